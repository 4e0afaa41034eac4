"""Periodic rows: rows of elements that are mirrored or repeated beyond the ends of an image, filled by vectors in its
interior.

    img[select(0 <= x + u < w, x + u, (x + u)%w)] for u in 0..20, where x = -3:

        img[w - 3], img[w - 2], img[w - 1] | img[0], ..., img[16]
        one by one                         | by vectors, of which the last begins where it still is inside

An element outside takes a division, which few targets have for vectors. The interior is often a little less than a
vector, so that half vectors are copied. Where it is less than one of these, all elements are loaded one by one.
"""

from __future__ import annotations

from functools import reduce

from ..dataclass import dataclass
from ..expr.build import maximum, minimum, ramp, select
from ..expr.linear import linear, simplify
from ..expr.nodes import Expr, Load, Op, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import Key, conjuncts, key, names, substitute
from ..ir import visit as ir
from ..ir.nodes import For, Let, Stmt, Store
from ..target.kinds import Kind
from .names import of_loop


@dataclass(frozen=True)
class InteriorRange:
    """The index of element 0 along a row, and the numbers of elements in the interior: from `first` up to `end`."""

    begin: Expr
    first: tuple[Expr, ...]  # it begins at the largest of these
    end: tuple[Expr, ...]  # the least

    @staticmethod
    def of(places: tuple[Expr, ...], number: Var) -> InteriorRange | None:
        """The interior of a row whose elements are adjacent where conditions on their number hold."""
        *others, place = places
        if any(number.name in names(i) for i in others) or not (isinstance(place, Op) and place.op == "select"):
            return None
        holds, inside, _ = place.args
        begin = simplify(substitute(inside, {number.name: const(0, INDEX)}))
        if linear(inside).coefficient(number.name) != 1 or number.name in names(begin):
            return None
        ends: dict[bool, list[Expr]] = {True: [], False: []}
        for condition in conjuncts(holds):
            bound = _bound(condition, number)
            if bound is None:
                return None
            ends[bound[0]].append(bound[1])
        return InteriorRange(begin, tuple(ends[True]), tuple(ends[False]))

    @property
    def like(self) -> tuple[Key, ...]:
        """A key that is equal for rows that differ only in what is read."""
        return key(self.begin), *map(key, self.first), *map(key, self.end)


@dataclass(frozen=True)
class FoldedRows:
    """Rows in a buffer of their own: `extent` elements from number `first` on."""

    name: str
    folded: InteriorRange
    first: int
    extent: int
    lanes: int

    @property
    def half(self) -> int:
        return max(self.lanes // 2, 2)

    @property
    def width(self) -> int:
        return self.extent

    @property
    def begin(self) -> Expr:
        """The position of element `first` in the rows."""
        return const(0, INDEX)

    def around(self, rows: list[Load], by_element: For, s: Stmt) -> Stmt:
        """Fill the rows before a statement that loads from them; `rows` has an element of each."""
        none: Expr = const(0, INDEX)
        all_of: Expr = const(self.extent, INDEX)
        first, whole, piece, rest = (var(of_loop(by_element.var, w)) for w in ("first", "whole", "piece", "rest"))
        low = reduce(maximum, [e - self.first for e in self.folded.first], none)
        high = reduce(minimum, [e - self.first for e in self.folded.end], all_of)
        many = simplify(high) - first
        at = minimum(first + piece * self.half, first + whole - self.half)
        vectors = [
            Store(self.name, (const(k, INDEX), ramp(at, 1, self.half)), self._load(row, at))
            for k, row in enumerate(rows)
        ]
        outside = Let(by_element.var, rest + select(rest < first, none, whole), by_element.body)
        pieces = simplify((whole + (self.half - 1)) // self.half)
        filled = ir.block(
            For(piece.name, none, pieces, Kind.SERIAL, ir.block(*vectors)),
            For(rest.name, none, all_of - whole, Kind.SERIAL, outside),
        )
        body = Let(whole.name, select(many >= self.half, many, none), ir.block(filled, s))
        return Let(first.name, simplify(low), body)

    def _load(self, row: Load, at: Expr) -> Load:
        place = ramp(simplify(self.folded.begin + self.first) + at, 1, self.half)
        return Load(row.dtype, self.half, row.buffer, (*row.indices[:-1], place))


def _bound(e: Expr, number: Var) -> tuple[bool, Expr] | None:
    """The bound that a comparison puts on a number: (True, b) for number >= b, (False, b) for number < b."""
    if not isinstance(e, Op) or e.op not in ("lt", "le", "gt", "ge"):
        return None
    less, more = e.args if e.op in ("lt", "le") else e.args[::-1]
    gap = linear(more - less)  # > 0, or >= 0
    rest = simplify(substitute(gap.expr(), {number.name: const(0, INDEX)}))
    times = gap.coefficient(number.name)
    if abs(times) != 1 or number.name in names(rest):
        return None
    strict = e.op in ("lt", "gt")
    return (True, simplify(int(strict) - rest)) if times > 0 else (False, simplify(rest + int(not strict)))
