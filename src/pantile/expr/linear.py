"""Integer expressions as linear sums, and what can be proved with them.

`linear(e)` writes an index expression as  constant + sum(coefficient * atom)  where an atom is a variable or an
opaque subexpression; equal atoms cancel. `Facts` hold known bounds of variables. From these, `lower` and `upper`
find constant bounds, which is all that lowering needs to make extents static and to drop clamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import gcd
from operator import is_
from typing import NamedTuple

from .build import binary
from .congruence import Class, known_remainder
from .magnitude import Magnitudes
from .nodes import Cast, Const, Expr, Op, Var, const, node, op
from .types import FLOAT32, FLOAT64, INDEX, UINT64
from .visit import Key, children, key, names, note, once_per_node, operands_first, rebuild, same

_LINEAR = frozenset({"add", "sub", "neg", "mul"})
# A proof may look at this many linear forms; expressions that need more are left as they are.
_EFFORT = 120
_UNKNOWN = object()
_MOST_FOUND = 1 << 16
_found: dict[tuple[object, ...], object] = {}  # bounds, by form and what was known about its variables: all passes ask
_LARGE = 1 << 32  # a divisor that leaves little of a number


@node()
class Linear:
    """constant + sum of coefficient * atom; atoms by structural key."""

    constant: int
    terms: Mapping[Key, tuple[Expr, int]] = field(default_factory=dict)

    def plus(self, other: Linear, scale: int = 1) -> Linear:
        """self + scale * other."""
        terms = dict(self.terms)
        for k, (atom, c) in other.terms.items():
            before = terms.get(k)
            total = scale * c if before is None else before[1] + scale * c
            if total:
                terms[k] = (atom, total)
            elif before is not None:
                del terms[k]
        return Linear(self.constant + scale * other.constant, terms)

    def without(self, k: Key) -> Linear:
        """All but one term."""
        return Linear(self.constant, {j: t for j, t in self.terms.items() if j != k})

    def coefficient(self, name: str) -> int:
        """How often the variable occurs as an atom of its own."""
        return sum(c for atom, c in self.terms.values() if isinstance(atom, Var) and atom.name == name)

    @property
    def fits(self) -> bool:
        """Whether its numbers are indices: where some are not, only sums and products of it, which wrap, are right."""
        return all(INDEX.min <= n <= INDEX.max for n in (self.constant, *[c for _, c in self.terms.values()]))

    def expr(self) -> Expr:
        """As an expression again, constant last; a sum knows its form."""
        result: Expr | None = None
        for atom, c in self.terms.values():
            term = atom if c in (1, -1) else op("mul", atom, const(abs(c), atom.dtype))
            if result is None:
                result = term if c > 0 else op("sub", const(0, atom.dtype), term)
            else:
                result = op("add" if c > 0 else "sub", result, term)
        if result is None:
            return const(self.constant, INDEX)
        if self.constant:
            result = op("add", result, const(self.constant, result.dtype))
        elif len(self.terms) == 1 and result is atom:
            return result
        if result.dtype is INDEX:
            note(result, _linear=self, _is_normal=True)
        return result


class _Terms:
    """The terms of a sum while it is added up; one that has cancelled is gone, and comes last if it comes again."""

    def __init__(self) -> None:
        self.constant = 0
        self.terms: dict[Key, tuple[Expr, int]] = {}

    def add(self, k: Key, atom: Expr, c: int) -> None:
        before, total = self.terms.get(k, (atom, 0))
        if total + c:
            self.terms[k] = (before, total + c)
        else:
            self.terms.pop(k, None)

    def add_part(self, part: Expr, c: int) -> None:
        if isinstance(part, Const):
            self.constant += c * int(part.value)
        else:
            self.add(key(part), part, c)

    def add_form(self, form: Linear, c: int) -> None:
        self.constant += c * form.constant
        for k, (atom, times) in form.terms.items():
            self.add(k, atom, c * times)

    def form(self) -> Linear:
        return Linear(self.constant, self.terms)


def linear(e: Expr) -> Linear:
    """The linear form of a scalar index expression. Data wraps, so that a sum of it is one atom."""
    if isinstance(e, Op):
        known: Linear | None = e._linear
        if known is not None:
            return known
        if e.op in _LINEAR and e.dtype is INDEX and not _is_product(e):
            return _linear_sum(e)
    elif isinstance(e, Const):
        return Linear(int(e.value))
    return Linear(0, {key(e): (e, 1)})


def _is_product(e: Op) -> bool:
    """Of variables: an atom. It does not note its form, which would refer to it: such rings stay in memory."""
    return e.op == "mul" and not isinstance(e.args[0], Const) and not isinstance(e.args[1], Const)


def _scaled_parts(e: Expr) -> list[tuple[Expr, int]]:
    """What a sum consists of, and how often; nothing if this is none, such as a product of variables."""
    if not (isinstance(e, Op) and e.op in _LINEAR and e.dtype is INDEX):
        return []
    if e.op == "mul":
        a, b = e.args if isinstance(e.args[1], Const) else e.args[::-1]
        return [(a, int(b.value))] if isinstance(b, Const) else []
    if e.op == "neg":
        return [(e.args[0], -1)]
    return [(e.args[0], 1), (e.args[1], 1 if e.op == "add" else -1)]


@once_per_node("_linear", lambda _: ())
def _linear_sum(e: Op) -> Linear:
    """The whole sum at once: a form for each partial sum, with all of its terms, would add up to a square of them."""
    found = _Terms()
    seen: set[int] = set()
    stack: list[tuple[Expr, int]] = [(e, 1)]
    while stack:
        part, c = stack.pop()
        if not isinstance(part, Op):
            found.add_part(part, c)
            continue
        known: Linear | None = part._linear
        parts = _scaled_parts(part) if known is None else []
        if known is not None:
            found.add_form(known, c)
        elif not parts:
            found.add_part(part, c)
        elif id(part) in seen:
            return _sum_of_shared(e)
        else:
            seen.add(id(part))
            stack += [(inner, c * scale) for inner, scale in reversed(parts)]
    return found.form()


def _sum_of_shared(e: Op) -> Linear:
    """The linear form of a sum whose partial sums are shared: how often each one counts is known before it is
    expanded."""
    inside = operands_first(e, lambda s: [part for part, _ in _scaled_parts(s)])
    times = {id(e): 1}
    for s in reversed(inside):
        for part, scale in _scaled_parts(s):
            times[id(part)] = times.get(id(part), 0) + times[id(s)] * scale
    found = _Terms()
    for s in inside:
        if not _scaled_parts(s):
            found.add_part(s, times[id(s)])
    return found.form()


class _Simplified(NamedTuple):
    """An expression, what was known about its variables, and what it was simplified to."""

    original: Expr
    known: list[object]
    result: Expr


class _Rewritten(NamedTuple):
    """What nodes of one structure became, by what was known about their variables."""

    names: tuple[str, ...]
    results: dict[tuple[object, ...], Expr]


class Facts:
    """Known bounds of variables, as integers: name -> (low, high), either may be None; and their classes modulo n."""

    def __init__(
        self,
        bounds: Mapping[str, tuple[int | None, int | None]] | None = None,
        classes: Mapping[str, Class] | None = None,
    ) -> None:
        self.bounds = dict(bounds or {})
        self.classes = dict(classes or {})
        self.simplified: dict[int, _Simplified] = {}
        self.rewritten: dict[Key, _Rewritten] = {}
        self.versions: dict[tuple[object, ...], tuple[Expr, tuple[object, ...], Expr]] = {}

    def copy(self) -> Facts:
        """A copy, to which facts can be added."""
        return Facts(self.bounds, self.classes)

    def about(self, e: Expr) -> list[object]:
        """All that is known about the variables of an expression: what may decide how it is simplified."""
        return [(self.bounds.get(n), self.classes.get(n)) for n in names(e)]

    def lower(self, e: Expr) -> int | None:
        """A constant that e never goes below."""
        return self.bound(linear(e), -1)

    def upper(self, e: Expr) -> int | None:
        """A constant that e never exceeds."""
        return self.bound(linear(e), 1)

    def ge(self, a: Expr, b: Expr) -> bool:
        """Whether a >= b is certain."""
        low = self.bound(linear(a).plus(linear(b), -1), -1)
        return low is not None and low >= 0

    def bound(self, form: Linear, side: int) -> int | None:
        """Constant bound of a linear form; side +1: from above, -1: from below."""
        terms = form.terms.items()
        if not any(isinstance(atom, Op) for _, (atom, _) in terms):
            return self._searched(form, side)
        known = self.bounds
        asked = side, form.constant, *[(k, c, *[(n, known.get(n)) for n in names(atom)]) for k, (atom, c) in terms]
        found = _found.get(asked, _UNKNOWN)
        if found is _UNKNOWN:
            if len(_found) >= _MOST_FOUND:
                _found.clear()
            found = _found[asked] = self._searched(form, side)
        return found  # type: ignore[return-value]

    def _searched(self, form: Linear, side: int) -> int | None:
        return _Search(self.bounds).bound(form, side)


class _Search:
    """Looks for one bound. What was met before is not looked for again, but takes as much of the effort as it did: what
    is found is the same."""

    def __init__(self, bounds: Mapping[str, tuple[int | None, int | None]]) -> None:
        self.bounds = bounds
        self._effort = _EFFORT
        self._met: dict[tuple[object, ...], tuple[int | None, int]] = {}  # form and side -> its bound, effort

    def bound(self, form: Linear, side: int) -> int | None:
        if self._effort <= 0:
            return None
        for atom, _ in form.terms.values():
            if isinstance(atom, Op):
                return self._met_before(form, side)
        self._effort -= 1
        return self._bound_sum(form, side)

    def _met_before(self, form: Linear, side: int) -> int | None:
        asked = side, form.constant, *form.terms, *[c for _, c in form.terms.values()]
        found, effort = self._met.get(asked, (None, _EFFORT))
        if effort < self._effort:
            self._effort -= effort
            return found
        before = self._effort
        found = self._bound(form, side)
        if self._effort > 0:  # else there may be more to find
            self._met[asked] = found, before - self._effort
        return found

    def _bound(self, form: Linear, side: int) -> int | None:
        self._effort -= 1
        # Opaque atoms first: replacing one by a bound of itself may cancel against the others.
        for k, (atom, c) in form.terms.items():
            if isinstance(atom, Op) and self._effort > 0:
                found = self._bound_op(form, k, atom, c, side)
                if found is not None:
                    return found
        scaled, total = self._bound_quotients(form, side), self._bound_sum(form, side)
        if scaled is None or total is None:
            return scaled if total is None else total
        return min(total, scaled) if side > 0 else max(total, scaled)

    def _bound_sum(self, form: Linear, side: int) -> int | None:
        """Term by term."""
        total = form.constant
        for atom, c in form.terms.values():
            limit = self._bound_atom(atom, side if c > 0 else -side)
            if limit is None:
                return None
            total += c * limit
        return total

    def _bound_quotients(self, form: Linear, side: int) -> int | None:
        """A bound by way of a multiple of the form, in which a quotient may cancel against other terms.

        3 + w//2 - (w + 1)//2: twice that is at least 6 + (w - 1) - (w + 1) = 4, so it is at least 2.
        """
        if len(form.terms) < 2:
            return None
        for atom, c in form.terms.values():
            d = _divisor(atom)
            if d is not None and c % d:
                scale = d // gcd(c, d)
                limit = self.bound(Linear(0).plus(form, scale), side)
                return None if limit is None else limit // scale if side > 0 else -(-limit // scale)
        return None

    def _bound_op(self, form: Linear, k: Key, atom: Op, c: int, side: int) -> int | None:
        wanted = side if c > 0 else -side  # which bound of the atom matters
        if atom.op in ("min", "max"):
            rest = form.without(k)
            options = [self.bound(rest.plus(linear(a), c), side) for a in atom.args]
            if (atom.op == "min") == (wanted > 0):  # min is below each argument: any one's bound will do
                known = [o for o in options if o is not None]
                return (min(known) if side > 0 else max(known)) if known else None
            if None in options:
                return None
            return max(o for o in options if o is not None) if side > 0 else min(o for o in options if o is not None)
        if atom.op == "select":
            rest = form.without(k)
            options = [self.bound(rest.plus(linear(a), c), side) for a in atom.args[1:]]
            if None in options:
                return None
            return max(o for o in options if o is not None) if side > 0 else min(o for o in options if o is not None)
        d = _divisor(atom)
        if d is not None and c % d == 0:
            return self._bound_multiple(form.without(k), linear(atom.args[0]), d, c, side)
        return None

    def _bound_multiple(self, rest: Linear, dividend: Linear, d: int, c: int, side: int) -> int | None:
        """Bound of rest + c * (dividend // d), c a multiple of d: the better of two proofs."""
        wanted = side if c > 0 else -side
        slack = 0 if wanted > 0 else 1 - d  # e - d + 1 <= d * (e // d) <= e
        options = [self.bound(rest.plus(dividend.plus(Linear(slack)), c // d), side)]
        limit = self.bound(dividend, wanted)
        if limit is not None:
            options.append(self.bound(rest.plus(Linear(c * (limit // d))), side))
        known = [o for o in options if o is not None]
        return None if not known else min(known) if side > 0 else max(known)

    def _bound_atom(self, atom: Expr, side: int) -> int | None:
        if isinstance(atom, Var):
            low, high = self.bounds.get(atom.name, (None, None))
            return high if side > 0 else low
        if isinstance(atom, Cast) and atom.value.dtype.is_int and atom.value.dtype is not UINT64:
            return self._bound_data(atom.value, side)
        if isinstance(atom, Op):
            return self._bound_nonlinear(atom, side)
        return None

    def _bound_data(self, data: Expr, side: int) -> int | None:
        """By its limits, by what is known of a param, else by its type."""
        self._effort -= 1
        if isinstance(data, Const):
            return int(data.value)
        if isinstance(data, Op) and data.op in ("min", "max") and self._effort > 0:
            better, worse = (min, max) if side > 0 else (max, min)
            limits = [self._bound_data(a, side) for a in data.args]
            known = [n for n in limits if n is not None]
            if (data.op == "min") == (side > 0):
                return better(known, default=None)
            return worse(known) if len(known) == len(limits) else None
        named = self.bounds.get(data.name, (None, None)) if isinstance(data, Var) else (None, None)
        limit, t = named[side > 0], data.dtype
        return limit if limit is not None else None if t.bits == 64 else t.max if side > 0 else t.min

    def _bound_nonlinear(self, atom: Op, side: int) -> int | None:
        if atom.op == "mod" and isinstance(atom.args[1], Const) and int(atom.args[1].value) > 0:
            return int(atom.args[1].value) - 1 if side > 0 else 0
        d = _divisor(atom)
        if d is not None:
            limit = self.bound(linear(atom.args[0]), side)
            if limit is None and d >= _LARGE:  # a quotient of any number, such as e >> 61
                limit = INDEX.max if side > 0 else INDEX.min
            return None if limit is None else limit // d
        if atom.op in ("min", "max", "select"):
            return self._bound_op(Linear(0), b"", atom, 1, side)
        return None


def _divisor(atom: Expr) -> int | None:
    """d of a quotient e // d by a positive number."""
    if isinstance(atom, Op) and atom.op == "floordiv" and isinstance(atom.args[1], Const):
        d = int(atom.args[1].value)
        return d if d > 0 else None
    return None


NO_FACTS = Facts()


def simplify(e: Expr, facts: Facts = NO_FACTS) -> Expr:
    """An equal expression, its indices shorter: sums cancelled, provable min/max and conditions dropped."""
    return (Simplifier(facts) if facts is NO_FACTS else _Remembering(facts)).visit(e)


class Simplifier:
    """Simplifies expressions under the same facts, each shared node once. `names`: variables to replace."""

    def __init__(self, facts: Facts, names: Mapping[str, Expr] | None = None) -> None:
        self.facts = facts
        self.names = names or {}
        self.memo: dict[int, Expr] = {}
        self.keep: list[Expr] = []  # originals stay alive while their ids are keys

    def visit(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return self.names.get(e.name, e)
        found = self.memo.get(id(e))
        if found is None:
            found = self.memo[id(e)] = self.node(e)
            self.keep.append(e)
        return found

    def node(self, e: Expr) -> Expr:
        if isinstance(e, Op) and e.op in _LINEAR and e.dtype == INDEX and e.lanes == 1:
            return self.sum(e)
        old = children(e)
        if not old:
            return e
        new = tuple([self.visit(c) for c in old])
        result = e if all(map(is_, new, old)) else rebuild(e, new)
        return self.rewrite(result)

    def sum(self, e: Op) -> Expr:
        """A whole sum at once: its atoms simplified, equal ones cancelled."""
        form = linear(e)
        old = [atom for atom, _ in form.terms.values()]
        if old and old[0] is e:  # a product of variables
            args = tuple([self.visit(a) for a in e.args])
            return e if all(map(is_, args, e.args)) else linear(rebuild(e, args)).expr()
        new = [self.visit(atom) for atom in old]
        if all(map(is_, new, old)):
            return self.tidied(e, form)
        total = _Terms()
        total.constant = form.constant
        for atom, (_, c) in zip(new, form.terms.values(), strict=True):
            total.add_form(linear(atom), c)
        return total.form().expr()

    def tidied(self, e: Op, form: Linear) -> Expr:
        """A sum of atoms that are simple already."""
        return form.expr()

    def rewrite(self, e: Expr) -> Expr:
        """The node itself, its operands being simple already."""
        if not isinstance(e, Op) or e.lanes > 1 or e.args[-1].dtype != INDEX:
            return _without_difference(e)
        if e.op in ("min", "max"):
            return self.min_max(e)
        if e.op in ("floordiv", "mod") and isinstance(e.args[1], Const) and int(e.args[1].value) > 0:
            return self.divide(e, int(e.args[1].value))
        if e.op in ("le", "lt", "ge", "gt"):
            return self.compare(e)
        return e

    def min_max(self, e: Op) -> Expr:
        a, b = e.args
        first_larger = self.facts.ge(a, b)
        if first_larger or self.facts.ge(b, a):
            return b if first_larger == (e.op == "min") else a
        for inner, other in ((a, b), (b, a)):  # max(a, min(a, c)) == a, and min(a, min(a, c)) == min(a, c)
            if isinstance(inner, Op) and inner.op in ("min", "max") and any(key(x) == key(other) for x in inner.args):
                return inner if inner.op == e.op else other
        return e

    def divide(self, e: Op, d: int) -> Expr:
        form = linear(e.args[0])
        common = gcd(d, *(c for _, c in form.terms.values()))
        if 1 < common < d:
            return self.divide_groups(e.op, form, d, common)
        whole = Linear(form.constant // d * d, {k: t for k, t in form.terms.items() if t[1] % d == 0})
        if not whole.terms and not whole.constant:
            low, high = self.facts.lower(e.args[0]), self.facts.upper(e.args[0])
            if low is not None and high is not None and low // d == high // d:
                q = low // d
                return const(q, INDEX) if e.op == "floordiv" else binary("sub", e.args[0], const(q * d, INDEX))
            return self.divide_known(e, form, d)
        rest = form.plus(whole, -1).expr()
        divisor = const(d, INDEX)
        if e.op == "mod":
            return self.rewrite(binary("mod", rest, divisor))
        quotient = Linear(whole.constant // d, {k: (a, c // d) for k, (a, c) in whole.terms.items()})
        remainder = self.rewrite(binary("floordiv", rest, divisor))
        return quotient.plus(linear(remainder)).expr()

    def divide_known(self, e: Op, form: Linear, d: int) -> Expr:
        """A quotient or remainder by d of atoms whose own remainder is known: (even + 1) // 2 == even // 2."""
        atoms = form.plus(Linear(form.constant), -1).expr()
        left = known_remainder(atoms, d, self.facts.classes)
        if left is None:
            return self.divide_again(e, form, d)
        if e.op == "mod":
            return const((left + form.constant) % d, INDEX)
        if not form.constant:
            return self.divide_again(e, form, d)
        quotient = binary("floordiv", atoms, const(d, INDEX))
        return linear(quotient).plus(Linear((left + form.constant) // d)).expr()

    def divide_again(self, e: Op, form: Linear, d: int) -> Expr:
        """(e // m + c) // d == (e + c*m) // (m*d), unless that leaves 64 bits."""
        if e.op == "floordiv" and len(form.terms) == 1:
            ((atom, c),) = form.terms.values()
            m = _divisor(atom)
            if m is not None and c == 1 and m * d <= INDEX.max:
                whole = linear(children(atom)[0]).plus(Linear(form.constant * m)).expr()
                if not form.constant or Magnitudes().fits(whole):
                    return self.rewrite(binary("floordiv", whole, const(m * d, INDEX)))
        return e

    def divide_groups(self, name: str, form: Linear, d: int, n: int) -> Expr:
        """(n*a + k) // (n*b) == a // b and (n*a + k) % (n*b) == n*(a % b) + k, where 0 <= k < n."""
        group = Linear(form.constant // n, {k: (atom, c // n) for k, (atom, c) in form.terms.items()})
        result = self.rewrite(binary(name, group.expr(), const(d // n, INDEX)))
        return result if name == "floordiv" else Linear(form.constant % n).plus(linear(result), n).expr()

    def compare(self, e: Op) -> Expr:
        a, b = e.args if e.op in ("ge", "gt") else e.args[::-1]  # a >= b or a > b
        strictly = e.op in ("gt", "lt")
        difference = linear(a).plus(linear(b), -1)
        if strictly:
            difference = difference.plus(Linear(-1))
        low = self.facts.bound(difference, -1)
        if low is not None and low >= 0:
            return const(True, e.dtype)
        high = self.facts.bound(difference, 1)
        if high is not None and high < 0:
            return const(False, e.dtype)
        return e


def _without_difference(e: Expr) -> Expr:
    """Zero for a number less itself, of integers that became floats: those are never infinite, nor no number."""
    if not isinstance(e, Op) or e.op != "sub" or e.dtype not in (FLOAT32, FLOAT64):
        return e
    a, b = e.args
    whole = isinstance(a, Cast) and isinstance(b, Cast) and a.value.dtype.is_int and b.value.dtype.is_int
    return const(0.0, e.dtype, e.lanes) if whole and same(a, b) else e


class _Sharing(Simplifier):
    """Keeps nodes that are as simple as they can be, so that expressions come to share them."""

    def tidied(self, e: Op, form: Linear) -> Expr:
        return e if e._is_normal else form.expr()


class _Remembering(_Sharing):
    """Looks up what was simplified before under the same facts: regions of long chains of stages are made of those of
    the stages before, which are simple already."""

    def node(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            return e
        known = self.facts.about(e)
        found = self.facts.simplified.get(id(e))
        if found is not None and found.known == known:
            return found.result
        result = super().node(e)
        if result is not e and same(e, result):
            result = e  # what is made of it keeps its identity, too, and is found here
        self.facts.simplified[id(e)] = _Simplified(e, known, result)
        return result


class VersionsSimplifier(_Sharing):
    """For versions of the same code one after the other: a node like one before, with the same facts about its
    variables, becomes the same, without another proof. Unrolled iterations share nodes: those are looked up as such."""

    def node(self, e: Expr) -> Expr:
        if not isinstance(e, Op) or e.dtype is not INDEX:
            return super().node(e)
        instead = tuple([self.names.get(n) for n in names(e)])
        known = [fact for n in (e, *instead) if n is not None for fact in self.facts.about(n)]
        asked = (id(e), *map(id, instead), *known)
        found = self.facts.versions.get(asked)
        if found is None:
            found = self.facts.versions[asked] = (e, instead, super().node(e))  # alive, as their ids are
        return found[2]

    def rewrite(self, e: Expr) -> Expr:
        if not isinstance(e, Op) or e.lanes > 1 or e.args[-1].dtype != INDEX:
            return _without_difference(e)
        like = self.facts.rewritten.get(key(e))
        if like is None:
            like = self.facts.rewritten[key(e)] = _Rewritten(tuple(names(e)), {})
        known = tuple([(self.facts.bounds.get(n), self.facts.classes.get(n)) for n in like.names])
        found = like.results.get(known)
        if found is None:
            found = like.results[known] = super().rewrite(e)
        return found
