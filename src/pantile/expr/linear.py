"""Linear forms of integer expressions, and proofs with them.

`linear(e)` writes an index expression as constant + sum(coefficient * atom), where an atom is a variable or an opaque
subexpression; equal atoms cancel. `Facts` has known bounds of variables. From these, `lower` and `upper` derive
constant bounds, which is all that lowering needs to make extents static and to drop clamps.
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
# The number of linear forms that a proof may look at; expressions that need more are left as they are.
_EFFORT = 120
_UNKNOWN = object()
_MOST_BOUNDS = 1 << 16
_bounds: dict[tuple[object, ...], object] = {}  # by form and the facts about its variables, for all passes
_LARGE = 1 << 32  # divisors of at least this size make a quotient small, whatever its dividend is


@node()
class Linear:
    """A linear form: constant + sum of coefficient * atom, with atoms by structural key."""

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
        """The form without one of its terms."""
        return Linear(self.constant, {j: t for j, t in self.terms.items() if j != k})

    def coefficient(self, name: str) -> int:
        """The coefficient of a variable that is an atom."""
        return sum(c for atom, c in self.terms.values() if isinstance(atom, Var) and atom.name == name)

    @property
    def fits(self) -> bool:
        """Whether all coefficients fit an index. Otherwise, only wrapping sums and products of the form are correct."""
        return all(INDEX.min <= n <= INDEX.max for n in (self.constant, *[c for _, c in self.terms.values()]))

    def expr(self) -> Expr:
        """The form as an expression, with the constant last. A sum caches its form."""
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
    """The terms of a sum under construction. A term that cancels is removed; if it occurs again, it becomes the
    last."""

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
    """The linear form of a scalar index expression. A sum of data is a single atom, since data wraps."""
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
    """Whether a node is a product of variables, which is an atom. Caching its form would create a reference cycle."""
    return e.op == "mul" and not isinstance(e.args[0], Const) and not isinstance(e.args[1], Const)


def _scaled_parts(e: Expr) -> list[tuple[Expr, int]]:
    """The parts of a sum with their coefficients; empty for other nodes, such as a product of variables."""
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
    """The linear form of a whole sum, computed at once: a form for each partial sum would take quadratic time and
    memory."""
    total = _Terms()
    seen: set[int] = set()
    stack: list[tuple[Expr, int]] = [(e, 1)]
    while stack:
        part, c = stack.pop()
        if not isinstance(part, Op):
            total.add_part(part, c)
            continue
        known: Linear | None = part._linear
        parts = _scaled_parts(part) if known is None else []
        if known is not None:
            total.add_form(known, c)
        elif not parts:
            total.add_part(part, c)
        elif id(part) in seen:
            return _sum_of_shared(e)
        else:
            seen.add(id(part))
            stack += [(inner, c * scale) for inner, scale in reversed(parts)]
    return total.form()


def _sum_of_shared(e: Op) -> Linear:
    """The linear form of a sum with shared partial sums. The coefficient of each is computed before its terms."""
    inside = operands_first(e, lambda s: [part for part, _ in _scaled_parts(s)])
    times = {id(e): 1}
    for s in reversed(inside):
        for part, scale in _scaled_parts(s):
            times[id(part)] = times.get(id(part), 0) + times[id(s)] * scale
    total = _Terms()
    for s in inside:
        if not _scaled_parts(s):
            total.add_part(s, times[id(s)])
    return total.form()


class _SimplifiedEntry(NamedTuple):
    """An expression, the facts about its variables, and the simplified expression."""

    original: Expr
    known: list[object]
    result: Expr


class _RewrittenNodes(NamedTuple):
    """The rewritten nodes of one structure, by the facts about their variables."""

    names: tuple[str, ...]
    results: dict[tuple[object, ...], Expr]


class Facts:
    """Known facts about variables: integer bounds, name -> (low, high), either of which may be None; and congruence
    classes."""

    def __init__(
        self,
        bounds: Mapping[str, tuple[int | None, int | None]] | None = None,
        classes: Mapping[str, Class] | None = None,
    ) -> None:
        self.bounds = dict(bounds or {})
        self.classes = dict(classes or {})
        self.simplified: dict[int, _SimplifiedEntry] = {}
        self.rewritten: dict[Key, _RewrittenNodes] = {}
        self.versions: dict[tuple[object, ...], tuple[Expr, tuple[object, ...], Expr]] = {}

    def copy(self) -> Facts:
        """A copy, to which facts can be added."""
        return Facts(self.bounds, self.classes)

    def about(self, e: Expr) -> list[object]:
        """All facts about the variables of an expression, on which its simplified form may depend."""
        return [(self.bounds.get(n), self.classes.get(n)) for n in names(e)]

    def lower(self, e: Expr) -> int | None:
        """A constant lower bound of e, or None."""
        return self.bound(linear(e), -1)

    def upper(self, e: Expr) -> int | None:
        """A constant upper bound of e, or None."""
        return self.bound(linear(e), 1)

    def ge(self, a: Expr, b: Expr) -> bool:
        """Whether a >= b is proved."""
        low = self.bound(linear(a).plus(linear(b), -1), -1)
        return low is not None and low >= 0

    def bound(self, form: Linear, side: int) -> int | None:
        """A constant bound of a linear form: an upper bound if `side` is +1, a lower bound if it is -1."""
        terms = form.terms.items()
        if not any(isinstance(atom, Op) for _, (atom, _) in terms):
            return self._prove_bound(form, side)
        known = self.bounds
        query = side, form.constant, *[(k, c, *[(n, known.get(n)) for n in names(atom)]) for k, (atom, c) in terms]
        bound = _bounds.get(query, _UNKNOWN)
        if bound is _UNKNOWN:
            if len(_bounds) >= _MOST_BOUNDS:
                _bounds.clear()
            bound = _bounds[query] = self._prove_bound(form, side)
        return bound  # type: ignore[return-value]

    def _prove_bound(self, form: Linear, side: int) -> int | None:
        return _BoundProver(self.bounds).bound(form, side)


class _BoundProver:
    """Proves one bound. Bounds of forms are memoized, but each use of a memoized bound counts the same effort as the
    first, so that the result does not depend on the memo."""

    def __init__(self, bounds: Mapping[str, tuple[int | None, int | None]]) -> None:
        self.bounds = bounds
        self._effort = _EFFORT
        self._memo: dict[tuple[object, ...], tuple[int | None, int]] = {}  # form and side -> its bound, effort

    def bound(self, form: Linear, side: int) -> int | None:
        if self._effort <= 0:
            return None
        for atom, _ in form.terms.values():
            if isinstance(atom, Op):
                return self._memoized_bound(form, side)
        self._effort -= 1
        return self._bound_sum(form, side)

    def _memoized_bound(self, form: Linear, side: int) -> int | None:
        query = side, form.constant, *form.terms, *[c for _, c in form.terms.values()]
        bound, effort = self._memo.get(query, (None, _EFFORT))
        if effort < self._effort:
            self._effort -= effort
            return bound
        before = self._effort
        bound = self._bound(form, side)
        if self._effort > 0:  # otherwise the search was cut short
            self._memo[query] = bound, before - self._effort
        return bound

    def _bound(self, form: Linear, side: int) -> int | None:
        self._effort -= 1
        # Opaque atoms come first: replacing one by its bound may make other terms cancel.
        for k, (atom, c) in form.terms.items():
            if isinstance(atom, Op) and self._effort > 0:
                bound = self._bound_op(form, k, atom, c, side)
                if bound is not None:
                    return bound
        scaled, total = self._bound_quotients(form, side), self._bound_sum(form, side)
        if scaled is None or total is None:
            return scaled if total is None else total
        return min(total, scaled) if side > 0 else max(total, scaled)

    def _bound_sum(self, form: Linear, side: int) -> int | None:
        """The sum of the bounds of all terms."""
        total = form.constant
        for atom, c in form.terms.values():
            limit = self._bound_atom(atom, side if c > 0 else -side)
            if limit is None:
                return None
            total += c * limit
        return total

    def _bound_quotients(self, form: Linear, side: int) -> int | None:
        """A bound derived from a multiple of the form, in which a quotient may cancel against other terms: twice
        3 + w//2 - (w + 1)//2 is at least 6 + (w - 1) - (w + 1) = 4, so the form is at least 2."""
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
            if (atom.op == "min") == (wanted > 0):  # min is at most each argument, so the bound of any of them will do
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
        """A bound of rest + c * (dividend // d), where c is a multiple of d: the better of two proofs."""
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
        """A bound of data from its clamps, from the facts about a param, or else from its type."""
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
    """The divisor d of a quotient e // d by a positive number."""
    if isinstance(atom, Op) and atom.op == "floordiv" and isinstance(atom.args[1], Const):
        d = int(atom.args[1].value)
        return d if d > 0 else None
    return None


NO_FACTS = Facts()


def simplify(e: Expr, facts: Facts = NO_FACTS) -> Expr:
    """Simplify the indices in an expression: sums are cancelled, and provable min, max and conditions are dropped."""
    return (Simplifier(facts) if facts is NO_FACTS else _CachingSimplifier(facts)).visit(e)


class Simplifier:
    """Simplifies expressions under the same facts, each shared node once. `names` maps variables to replacements."""

    def __init__(self, facts: Facts, names: Mapping[str, Expr] | None = None) -> None:
        self.facts = facts
        self.names = names or {}
        self.memo: dict[int, Expr] = {}
        self.keep: list[Expr] = []  # originals stay alive while their ids are keys

    def visit(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return self.names.get(e.name, e)
        result = self.memo.get(id(e))
        if result is None:
            result = self.memo[id(e)] = self.node(e)
            self.keep.append(e)
        return result

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
        """Simplify a whole sum at once: its atoms are simplified, and equal atoms cancel."""
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
        """A sum in its normal form, whose atoms are already simplified."""
        return form.expr()

    def rewrite(self, e: Expr) -> Expr:
        """Simplify a node whose operands are already simplified."""
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
        """Simplify a quotient or remainder by d of atoms with a known remainder: (even + 1) // 2 == even // 2."""
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
        """Use (e // m + c) // d == (e + c*m) // (m*d), unless the latter may overflow 64 bits."""
        if e.op == "floordiv" and len(form.terms) == 1:
            ((atom, c),) = form.terms.values()
            m = _divisor(atom)
            if m is not None and c == 1 and m * d <= INDEX.max:
                whole = linear(children(atom)[0]).plus(Linear(form.constant * m)).expr()
                if not form.constant or Magnitudes().fits(whole):
                    return self.rewrite(binary("floordiv", whole, const(m * d, INDEX)))
        return e

    def divide_groups(self, name: str, form: Linear, d: int, n: int) -> Expr:
        """Use (n*a + k) // (n*b) == a // b and (n*a + k) % (n*b) == n*(a % b) + k, where 0 <= k < n."""
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
    """Replace the difference of equal floats by 0 if they were cast from integers, and so are never infinite or NaN."""
    if not isinstance(e, Op) or e.op != "sub" or e.dtype not in (FLOAT32, FLOAT64):
        return e
    a, b = e.args
    whole = isinstance(a, Cast) and isinstance(b, Cast) and a.value.dtype.is_int and b.value.dtype.is_int
    return const(0.0, e.dtype, e.lanes) if whole and same(a, b) else e


class _SharingSimplifier(Simplifier):
    """Keeps nodes that are already in normal form, so that expressions share them."""

    def tidied(self, e: Op, form: Linear) -> Expr:
        return e if e._is_normal else form.expr()


class _CachingSimplifier(_SharingSimplifier):
    """Looks up expressions that were simplified before under the same facts. In long chains of stages, regions contain
    those of earlier stages, which are already simplified."""

    def node(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            return e
        known = self.facts.about(e)
        cached = self.facts.simplified.get(id(e))
        if cached is not None and cached.known == known:
            return cached.result
        result = super().node(e)
        if result is not e and same(e, result):
            result = e  # expressions that contain it then keep their identity, too, and are found in the cache
        self.facts.simplified[id(e)] = _SimplifiedEntry(e, known, result)
        return result


class VersionsSimplifier(_SharingSimplifier):
    """Simplifies several versions of the same code. A node that is equal to an earlier one, with equal facts about its
    variables, gets the same result without another proof. Unrolled iterations share nodes, which are looked up by
    identity."""

    def node(self, e: Expr) -> Expr:
        if not isinstance(e, Op) or e.dtype is not INDEX:
            return super().node(e)
        instead = tuple([self.names.get(n) for n in names(e)])
        known = [fact for n in (e, *instead) if n is not None for fact in self.facts.about(n)]
        query = (id(e), *map(id, instead), *known)
        cached = self.facts.versions.get(query)
        if cached is None:
            cached = self.facts.versions[query] = (e, instead, super().node(e))  # kept alive while their ids are keys
        return cached[2]

    def rewrite(self, e: Expr) -> Expr:
        if not isinstance(e, Op) or e.lanes > 1 or e.args[-1].dtype != INDEX:
            return _without_difference(e)
        like = self.facts.rewritten.get(key(e))
        if like is None:
            like = self.facts.rewritten[key(e)] = _RewrittenNodes(tuple(names(e)), {})
        known = tuple([(self.facts.bounds.get(n), self.facts.classes.get(n)) for n in like.names])
        result = like.results.get(known)
        if result is None:
            result = like.results[known] = super().rewrite(e)
        return result
