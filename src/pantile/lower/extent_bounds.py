"""Constant upper bounds of extents. They are needed because memory of threads and blocks is allocated at compile
time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import floor

from ..analysis.interval import EVERYTHING, Scope, interval
from ..expr.linear import NO_FACTS, Linear, Simplifier, linear, simplify
from ..expr.nodes import Const, Expr, Op, node, var
from ..expr.visit import Key, key, names, substitute, variables
from ..ir.nodes import Let
from .footprint import bound_by

_FAR = 1 << 31  # larger bounds are merely those of a data type; no memory is that large
_MOST_FORMS = 2_000  # most alternatives examined for one extent
_MOST_SIMPLIFIED = 1_000  # most expressions simplified for them; bounds that are found need a hundred
_MOST_MEMOIZED = 1 << 14
_memo: dict[Key, int | None] = {}  # bounds of whole extents, by their structure up to names


def most(e: Expr, scope: Scope) -> int | None:
    """The smallest constant upper bound of an extent that can be derived, or None.

    The last of many blocks may be shorter than the others, never longer: min(lo + 7, n) - lo + 1. The tail of a split
    by 8 is shorter than a block: n - n//8*8. A minimum or maximum is one of its operands: n - min(a, b) is n - a or n -
    b. This also holds inside of a quotient, such as an index of a coarser level: (n + 7)//8 - min(a, n + 1)//8.
    """
    e = simplify(e)
    if isinstance(e, Const):
        return int(e.value) if e.value < _FAR else None
    high = interval(e, scope).high
    bounds = [high] if isinstance(high, int) else []
    for way in (_written_out(e, scope), *([high] if isinstance(high, Expr) else [])):
        bound = _memoized_bound(way)
        bounds += [] if bound is None else [bound]
    return min((n for n in bounds if n < _FAR), default=None)


def most_kept(e: Expr, scope: Scope) -> int | None:
    """The smallest constant upper bound of an extent of memory that can be derived, or None. It may hold for any
    params: if `gain >> 61` selects bins, the number of bins that are kept is limited by its type. Loops do not use this
    bound, since they would be longer than most calls need.
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
        _memo[key(canonical)] = _BoundSearch().most(linear(simplify(canonical)))
    return _memo[key(canonical)]


class _BoundSearch:
    """Upper bounds of linear forms, each computed once. Nested clamps have many cases, but few distinct ones, and the
    bounds of forms that differ only in their constants differ by the same amount."""

    def __init__(self) -> None:
        self.known: dict[frozenset[tuple[Key, int]], int | None] = {}  # terms of a form without its constant -> bound
        self.simplifier = Simplifier(NO_FACTS)  # memoizes: cases share most of their operands
        self.cases: dict[Key, tuple[str, tuple[Expr, ...]]] = {}  # by term; many forms share it
        self.parts: dict[tuple[Key, bool], _WithoutFloors] = {}  # by term, and whether its coefficient is positive

    def most(self, form: Linear) -> int | None:
        if not form.terms:
            return form.constant
        canonical = frozenset([(k, c) for k, (_, c) in form.terms.items()])
        if canonical not in self.known and self.may_go_on:
            self.known[canonical] = None
            terms = Linear(0, form.terms)
            bounds = [*self.without_floors(terms), *_apart(terms), *self.in_each_case(terms)]
            self.known[canonical] = min(bounds, default=None)
        bound = self.known.get(canonical)
        return None if bound is None else bound + form.constant

    @property
    def may_go_on(self) -> bool:
        """Whether to examine another form."""
        return len(self.known) < _MOST_FORMS and len(self.simplifier.memo) < _MOST_SIMPLIFIED

    def without_floors(self, form: Linear) -> Iterator[int]:
        """Yield a bound if all terms cancel once quotients and remainders are bounded by linear terms."""
        if not any(_divisor(atom) or _divisor(atom, "mod") for atom, _ in form.terms.values()):
            return
        left: dict[Key, Fraction] = {}
        parts = [(self.part(k, atom, c), abs(c)) for k, (atom, c) in form.terms.items()]
        for part, times in parts:
            _add(left, part.terms, times)
        if not any(left.values()):
            yield floor(form.constant + sum(part.constant * times for part, times in parts))

    def part(self, k: Key, atom: Expr, c: int) -> _WithoutFloors:
        query = k, c > 0
        if query not in self.parts:
            self.parts[query] = _term_without_floors(k, atom, 1 if c > 0 else -1)
        return self.parts[query]

    def in_each_case(self, form: Linear) -> Iterator[int]:
        """Split minima and maxima into cases. If the form grows with a minimum, either operand gives a bound."""
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
    """Yield the form with each case substituted for a term."""
    coefficient = form.terms[key(atom)][1]
    yield from (form.without(key(atom)).plus(linear(c), coefficient) for c in cases)


def _cases(atom: Expr, simplifier: Simplifier) -> tuple[str, tuple[Expr, ...]]:
    """The term as a minimum or maximum of two expressions: min(a, b)//n is min(a//n, b//n)."""
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
    """The constant divisor of a quotient, or of a remainder if `op` is "mod"; 0 if the expression is neither."""
    if isinstance(atom, Op) and atom.op == op and isinstance(atom.args[1], Const):
        return max(int(atom.args[1].value), 0)
    return 0


def _written_out(e: Expr, scope: Scope) -> Expr:
    """The expression with the values of lets substituted, since both ends of a range move together."""
    while values := {n: by.value for n in names(e) if isinstance(by := bound_by(scope.get(n)), Let)}:
        e = substitute(e, values)
    return e


@node()
class _WithoutFloors:
    """A bound of a term times 1 or -1 that contains no quotients and remainders by constants: a constant plus multiples
    of other terms."""

    constant: Fraction
    terms: dict[Key, Fraction]


def _term_without_floors(k: Key, atom: Expr, sign: int) -> _WithoutFloors:
    """Bound a term: x//n is at most x/n, and less by at most (n - 1)/n; x%n is at most n - 1, and at least 0."""
    if n := _divisor(atom, "mod"):
        return _WithoutFloors(Fraction(max(sign, 0) * (n - 1)), {})
    n = _divisor(atom)
    if not n:
        return _WithoutFloors(Fraction(0), {k: Fraction(sign)})
    assert isinstance(atom, Op)
    dividend = linear(atom.args[0])
    constant = Fraction(sign * dividend.constant - min(sign, 0) * (n - 1), n)
    terms: dict[Key, Fraction] = {}
    for j, (inner, c) in dividend.terms.items():
        part = _term_without_floors(j, inner, sign if c > 0 else -sign)
        constant += part.constant * abs(c) / n
        _add(terms, part.terms, Fraction(abs(c), n))
    return _WithoutFloors(constant, terms)


def _add(terms: dict[Key, Fraction], others: dict[Key, Fraction], times: Fraction | int) -> None:
    for k, c in others.items():
        terms[k] = terms.get(k, 0) + c * times


def _apart(form: Linear) -> Iterator[int]:
    """Yield a bound of m*((x + d)//p) - m*n*(x//(p*n)), which is at most m times (p*n - 1 + d)//p: d/p rounded up if n
    is 1, and n - 1, the tail of a split, if d is 0.
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
