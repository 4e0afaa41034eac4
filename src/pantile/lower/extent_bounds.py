"""Constant upper bounds of extents: memory of threads and blocks is allocated at compile time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import floor

from ..analysis.interval import EVERYTHING, Scope, interval
from ..expr.linear import NO_FACTS, Linear, Simplifier, linear, simplify
from ..expr.nodes import Const, Expr, Op, var
from ..expr.visit import Key, key, names, substitute, variables
from ..ir.nodes import Let
from .footprint import bound_by

_FAR = 1 << 31  # larger bounds are merely those of a data type, and no memory is that large
_MOST_FORMS = 2_000  # alternatives examined for one extent
_MOST_MEMOIZED = 1 << 14
_memo: dict[Key, int | None] = {}  # bounds of whole extents, by their structure up to names


def most(e: Expr, scope: Scope) -> int | None:
    """The least constant upper bound of an extent, if one is known.

    The last of many blocks may be shorter, never longer: min(lo + 7, n) - lo + 1. The tail of a split by 8 is shorter
    than a block: n - n//8*8. A minimum or maximum is one of its operands: n - min(a, b) is n - a or n - b, also inside
    of a quotient, such as an index of a coarser level: (n + 7)//8 - min(a, n + 1)//8."""
    e = simplify(e)
    high = interval(e, scope).high
    bounds = [high] if isinstance(high, int) else []
    for way in (simplify(_written_out(e, scope)), *([simplify(high)] if isinstance(high, Expr) else [])):
        bound = _memoized_bound(way)
        bounds += [] if bound is None else [bound]
    return min((n for n in bounds if n < _FAR), default=None)


def most_kept(e: Expr, scope: Scope) -> int | None:
    """The least constant upper bound of an extent of memory, which may be one for any params: of bins that are chosen
    by `gain >> 61`, no more are kept than that type has. Loops over so many would be longer than most calls need.
    """
    known = most(e, scope)
    if known is not None:
        return known
    whole = _written_out(simplify(e), scope)
    high = interval(whole, dict.fromkeys(names(whole), EVERYTHING)).high
    return high if isinstance(high, int) and high < _FAR else None


def _memoized_bound(e: Expr) -> int | None:
    """The bound of an extent, memoized up to names: the loops and the memory of a stage have the same extents, and
    those of rows and columns mostly differ only in names.
    """
    canonical = substitute(e, {v.name: var(str(k), v.dtype) for k, v in enumerate(variables(e).values())})
    if key(canonical) not in _memo:
        if len(_memo) >= _MOST_MEMOIZED:
            _memo.clear()
        _memo[key(canonical)] = _BoundSearch().most(linear(canonical))
    return _memo[key(canonical)]


class _BoundSearch:
    """Upper bounds of linear forms, each computed once: nested clamps have many cases, but few distinct ones."""

    def __init__(self) -> None:
        self.known: dict[Key, int | None] = {}
        self.simplifier = Simplifier(NO_FACTS)  # cases share most of their operands
        self.cases: dict[Key, tuple[str, tuple[Expr, ...]]] = {}  # by term, which many forms share

    def most(self, form: Linear) -> int | None:
        if not form.terms:
            return form.constant
        canonical = key(form.expr())
        if canonical not in self.known and len(self.known) < _MOST_FORMS:
            self.known[canonical] = None
            bounds = [*_without_floors(form), *_apart(form), *self.in_each_case(form)]
            self.known[canonical] = min(bounds, default=None)
        return self.known.get(canonical)

    def in_each_case(self, form: Linear) -> Iterator[int]:
        """Split minima and maxima into cases. Where the whole grows with a minimum, either operand bounds it."""
        for k, (atom, coefficient) in form.terms.items():
            op, cases = self.cases_of(k, atom)
            if op == ("min" if coefficient < 0 else "max"):
                bounds = [self.most(c) for c in _each(form, atom, cases)]
                known = [b for b in bounds if b is not None]
                yield from [max(known)] if len(known) == len(cases) else []
                return
        for k, (atom, _) in form.terms.items():
            bounds = [self.most(c) for c in _each(form, atom, self.cases_of(k, atom)[1])]
            yield from (b for b in bounds if b is not None)

    def cases_of(self, k: Key, atom: Expr) -> tuple[str, tuple[Expr, ...]]:
        if k not in self.cases:
            self.cases[k] = _cases(atom, self.simplifier)
        return self.cases[k]


def _each(form: Linear, atom: Expr, cases: tuple[Expr, ...]) -> Iterator[Linear]:
    """The form with each case of a term substituted for it."""
    coefficient = form.terms[key(atom)][1]
    yield from (form.without(key(atom)).plus(linear(c), coefficient) for c in cases)


def _cases(atom: Expr, simplifier: Simplifier) -> tuple[str, tuple[Expr, ...]]:
    """The term as a minimum or maximum of two numbers: min(a, b)//n is min(a//n, b//n)."""
    if isinstance(atom, Op) and atom.op in ("min", "max"):
        return atom.op, atom.args
    n = _divisor(atom)
    if n:
        assert isinstance(atom, Op)
        number = linear(atom.args[0])
        for inner, coefficient in number.terms.values():
            op, cases = _cases(inner, simplifier)
            if cases:
                opposite = {"min": "max", "max": "min"}
                whole = tuple(simplifier.visit(c.expr() // n) for c in _each(number, inner, cases))
                return op if coefficient > 0 else opposite[op], whole
    return "", ()


def _divisor(atom: Expr, op: str = "floordiv") -> int:
    """The constant divisor of a quotient, or of a remainder if `op` is "mod"; 0 if the expression is none."""
    if isinstance(atom, Op) and atom.op == op and isinstance(atom.args[1], Const):
        return max(int(atom.args[1].value), 0)
    return 0


def _written_out(e: Expr, scope: Scope) -> Expr:
    """The expression with the values of lets substituted, since both ends of a range move together."""
    while values := {n: by.value for n in names(e) if isinstance(by := bound_by(scope.get(n)), Let)}:
        e = substitute(e, values)
    return e


def _without_floors(form: Linear) -> Iterator[int]:
    """Bounds, if all other terms cancel: x//n is at most x/n, and less by at most (n - 1)/n; x%n is at most n - 1."""
    constant, rest = Fraction(0), dict[Key, Fraction]()

    def add(part: Linear, times: Fraction) -> None:
        nonlocal constant
        constant += times * part.constant
        for k, (atom, coefficient) in part.terms.items():
            if n := _divisor(atom):
                assert isinstance(atom, Op)
                add(linear(atom.args[0]), times * coefficient / n)
                constant -= min(times * coefficient, Fraction(0)) * (n - 1) / n
            elif n := _divisor(atom, "mod"):
                constant += max(times * coefficient, Fraction(0)) * (n - 1)
            else:
                rest[k] = rest.get(k, Fraction(0)) + times * coefficient

    add(form, Fraction(1))
    if not any(rest.values()):
        yield floor(constant)


def _apart(form: Linear) -> Iterator[int]:
    """m*((x + d)//p) - m*n*(x//(p*n)) is at most m times (p*n - 1 + d)//p: d/p rounded up where n is 1, and n - 1, the
    tail of a split, where d is 0.
    """
    if len(form.terms) != 2:
        return
    for (part, times), (whole, less) in permutations(form.terms.values()):
        p, q = _divisor(part), _divisor(whole)
        if p and q and times > 0 and q % p == 0 and less == -times * (q // p):
            assert isinstance(part, Op) and isinstance(whole, Op)
            gap = linear(part.args[0]).plus(linear(whole.args[0]), -1)
            if not gap.terms:
                yield form.constant + times * ((q - 1 + gap.constant) // p)
