"""The constant that an extent never exceeds: memory of threads and blocks is planned when code is made."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import floor

from ..analysis.interval import Scope, interval
from ..expr.linear import Linear, linear, simplify
from ..expr.nodes import Const, Expr, Op, var
from ..expr.visit import Key, key, names, substitute, variables
from ..ir.nodes import Let
from .footprint import bound_by

_FAR = 1 << 31  # what is no nearer has only the limits of data that is compared with it, and there is no such memory
_MOST_FORMS = 2_000  # that are looked at for one extent
_MOST_KEPT = 1 << 14
_kept: dict[Key, int | None] = {}  # bounds of whole extents, by what they are but for names


def most(e: Expr, scope: Scope) -> int | None:
    """The least one that is found, if there is one.

    The last of many blocks may be shorter, never longer: min(lo + 7, n) - lo + 1. What whole blocks of 8 leave over is
    less than one: n - n//8*8. Where two loops begin, it is one of them: n - min(a, b) is n - a or n - b; that may be
    inside of a quotient, such as a place of a coarser level: (n + 7)//8 - min(a, n + 1)//8."""
    e = simplify(e)
    high = interval(e, scope).high
    bounds = [high] if isinstance(high, int) else []
    for way in (simplify(_written_out(e, scope)), *([simplify(high)] if isinstance(high, Expr) else [])):
        bound = _found(way)
        bounds += [] if bound is None else [bound]
    return min((n for n in bounds if n < _FAR), default=None)


def _found(e: Expr) -> int | None:
    """The values of a stage have one box, and its loops and its memory ask for the same extents; those of rows and of
    columns mostly are equal but for names, of which nothing is known."""
    asked = substitute(e, {v.name: var(str(k), v.dtype) for k, v in enumerate(variables(e).values())})
    if key(asked) not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key(asked)] = _Search().most(linear(asked))
    return _kept[key(asked)]


class _Search:
    """Bounds of forms, each looked for once: clamps inside of clamps have many cases, but few kinds of them."""

    def __init__(self) -> None:
        self.known: dict[Key, int | None] = {}
        self.cases: dict[Key, tuple[str, tuple[Expr, ...]]] = {}  # of terms, which many forms have

    def most(self, form: Linear) -> int | None:
        if not form.terms:
            return form.constant
        asked = key(form.expr())
        if asked not in self.known and len(self.known) < _MOST_FORMS:
            self.known[asked] = None
            bounds = [*_without_floors(form), *_apart(form), *self.in_each_case(form)]
            self.known[asked] = min(bounds, default=None)
        return self.known.get(asked)

    def in_each_case(self, form: Linear) -> Iterator[int]:
        """A minimum is one of two numbers, and less than both: where the whole grows with it, either will do."""
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
            self.cases[k] = _cases(atom)
        return self.cases[k]


def _each(form: Linear, atom: Expr, cases: tuple[Expr, ...]) -> Iterator[Linear]:
    """The form with each case of a term in its place."""
    coefficient = form.terms[key(atom)][1]
    yield from (form.without(key(atom)).plus(linear(c), coefficient) for c in cases)


def _cases(atom: Expr) -> tuple[str, tuple[Expr, ...]]:
    """The minimum or maximum of two numbers that it is: min(a, b)//n is min(a//n, b//n)."""
    if isinstance(atom, Op) and atom.op in ("min", "max"):
        return atom.op, atom.args
    n = _divisor(atom)
    if n:
        assert isinstance(atom, Op)
        number = linear(atom.args[0])
        for inner, coefficient in number.terms.values():
            op, cases = _cases(inner)
            if cases:
                opposite = {"min": "max", "max": "min"}
                whole = tuple(simplify(c.expr() // n) for c in _each(number, inner, cases))
                return op if coefficient > 0 else opposite[op], whole
    return "", ()


def _divisor(atom: Expr, op: str = "floordiv") -> int:
    """What a quotient is divided by, or a remainder is left by; 0 if it is none."""
    if isinstance(atom, Op) and atom.op == op and isinstance(atom.args[1], Const):
        return max(int(atom.args[1].value), 0)
    return 0


def _written_out(e: Expr, scope: Scope) -> Expr:
    """With what lets stand for: two ends of a range move together."""
    while values := {n: by.value for n in names(e) if isinstance(by := bound_by(scope.get(n)), Let)}:
        e = substitute(e, values)
    return e


def _without_floors(form: Linear) -> Iterator[int]:
    """x//n is x/n at most, and less by (n - 1)/n at most; x%n is n - 1 at most. Where all else cancels out, that is a
    bound."""
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
    """m*((x + d)//p) - m*n*(x//(p*n)) is m times (p*n - 1 + d)//p at most: d/p rounded up where n is 1, and n - 1 where
    d is 0, what whole blocks leave over of a part."""
    if len(form.terms) != 2:
        return
    for (part, times), (whole, less) in permutations(form.terms.values()):
        p, q = _divisor(part), _divisor(whole)
        if p and q and times > 0 and q % p == 0 and less == -times * (q // p):
            assert isinstance(part, Op) and isinstance(whole, Op)
            gap = linear(part.args[0]).plus(linear(whole.args[0]), -1)
            if not gap.terms:
                yield form.constant + times * ((q - 1 + gap.constant) // p)
