"""Fill rows of elements that are partly beyond the ends of an image by vectors.

For rows with clamped indices, the interior is copied, the elements that a clamp repeats are stored before and after it,
and vectors are loaded at shifted starts.

    img[max(x + u, 0)] for u in 0..16, where x = -1, or -2:

        img[0], ..., img[0] | img[0], ..., img[15] | img[15], ..., img[15]
                          ^ 16 elements from here, or from one before

Loading one element takes as long as loading a vector. If an image is narrower than a row, or a row begins outside by
more than the length of a vector, elements are loaded one by one.

For rows of elements that are mirrored or repeated beyond the ends, only the interior is filled by vectors.

    img[select(0 <= x + u < w, x + u, (x + u)%w)] for u in 0..20, where x = -3:

        img[w - 3], img[w - 2], img[w - 1] | img[0], ..., img[16]
        one by one                         | by vectors, the last of which is shifted to stay inside

The index of an element outside takes a division, which few targets have for vectors. The interior is often a little
shorter than a vector, so half vectors are copied. If it is shorter than a half vector, all elements are loaded one by
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from ..dataclass import dataclass
from ..expr.build import broadcast, logical_and, maximum, minimum, ramp, select
from ..expr.linear import linear, simplify
from ..expr.nodes import Expr, Load, Op, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import Key, conjuncts, key, names, substitute
from ..ir import visit as ir
from ..ir.nodes import For, If, Let, Stmt, Store
from ..target.kinds import Kind
from .names import of_buffer, of_loop

Columns = Mapping[str, tuple[Expr, Expr]]  # buffer -> its first and last index along the last dim


@dataclass(frozen=True)
class Clamped:
    """The index of element 0 of a row, and the ends to which it and the following indices are clamped."""

    begin: Expr
    least: Expr
    most: Expr

    @staticmethod
    def of(buffer: str, places: tuple[Expr, ...], number: Var, columns: Columns) -> Clamped | None:
        """The clamp of a row whose elements are otherwise adjacent, or None. Indices are given as functions of the
        element's number.

        A clamp may allow more than the buffer has, and a vector may extend beyond the elements that are used.
        """
        *others, place = places
        if buffer not in columns or any(number.name in names(i) for i in others):
            return None
        first, last = columns[buffer]
        bounds: dict[str, list[Expr]] = {"max": [first], "min": [last]}
        while isinstance(place, Op) and place.op in bounds:
            a, b = place.args
            bound, inside = (b, a) if number.name in names(a) else (a, b)
            if number.name in names(bound):
                return None
            bounds[place.op].append(bound)
            place = inside
        if linear(place).coefficient(number.name) != 1:
            return None
        begin = simplify(substitute(place, {number.name: const(0, INDEX)}))
        if number.name in names(begin):
            return None
        return Clamped(begin, simplify(reduce(maximum, bounds["max"])), simplify(reduce(minimum, bounds["min"])))

    @property
    def like(self) -> tuple[Key, ...]:
        """A key that is equal for rows that differ only in the buffers that they read."""
        return key(self.begin), key(self.least), key(self.most)


@dataclass(frozen=True)
class Shifted:
    """Rows in a separate buffer: `extent` elements, the first of which is number `first`, with a vector before and
    after them."""

    name: str
    clamped: Clamped
    first: int
    extent: int
    lanes: int

    @property
    def width(self) -> int:
        return self.extent + 2 * self.lanes

    @property
    def begin(self) -> Expr:
        """The position of element number `first` in the rows."""
        return self._shift + self.lanes

    @property
    def _from(self) -> Var:
        return var(of_buffer(self.name, "from"))

    @property
    def _shift(self) -> Var:
        return var(of_buffer(self.name, "min"))

    def around(self, rows: list[Load], by_element: Stmt, s: Stmt) -> Stmt:
        """Fill the rows before a statement that loads from them. `rows` has one element of each row."""
        begin = simplify(self.clamped.begin + self.first)
        least, most = self.clamped.least, self.clamped.most
        copied = simplify(maximum(minimum(begin, most - (self.extent - 1)), least))
        shift = begin - self._from
        fits = logical_and(simplify(most - least) >= self.extent - 1, shift >= -self.lanes, shift <= self.lanes)
        vectors = ir.block(*(part for k, row in enumerate(rows) for part in self._filled(k, row)))
        body = ir.block(If(fits, vectors, by_element), s)
        return Let(self._from.name, copied, Let(self._shift.name, select(fits, shift, const(0, INDEX)), body))

    def _filled(self, k: int, row: Load) -> list[Stmt]:
        """Fill a row by vectors, the last of which is shifted inwards."""
        starts = [*range(0, self.extent - self.lanes, self.lanes), self.extent - self.lanes]
        inside = [(self.lanes + at, self._load(row, ramp(self._from + at, 1, self.lanes))) for at in starts]
        ends = [
            (at, broadcast(self._load(row, self._from + of), self.lanes))
            for at, of in ((0, 0), (self.lanes + self.extent, self.extent - 1))
        ]
        return [
            Store(self.name, (const(k, INDEX), ramp(const(at, INDEX), 1, self.lanes)), value)
            for at, value in (*inside, *ends)
        ]

    def _load(self, row: Load, at: Expr) -> Load:
        return Load(row.dtype, at.lanes, row.buffer, (*row.indices[:-1], at))


@dataclass(frozen=True)
class InteriorRange:
    """The index of element 0 of a row, and the range of element numbers in the interior, from `first` to `end`
    (exclusive)."""

    begin: Expr
    first: tuple[Expr, ...]  # it begins at the maximum of these
    end: tuple[Expr, ...]  # it ends at the minimum of these

    @staticmethod
    def of(places: tuple[Expr, ...], number: Var) -> InteriorRange | None:
        """The interior of a row whose elements are adjacent where conditions on their numbers hold, or None."""
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
        """A key that is equal for rows that differ only in the buffers that they read."""
        return key(self.begin), *map(key, self.first), *map(key, self.end)


@dataclass(frozen=True)
class FoldedRows:
    """Rows in a separate buffer: `extent` elements, the first of which is number `first`."""

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
        """The position of element number `first` in the rows."""
        return const(0, INDEX)

    def around(self, rows: list[Load], by_element: For, s: Stmt) -> Stmt:
        """Fill the rows before a statement that loads from them. `rows` has one element of each row."""
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
