"""Tensorize: the loops of a product of matrices become matrix instructions of a warp.

before:  tensor_core for i in i.min..i.min + 16:
             tensor_core for j in j.min..j.min + 8:
                 tensor_core for k in k.min..k.min + 16: c[i, j] = c[i, j] + float32(a[i, k])*float32(b[k, j])
after:   lane for i.lane in 0..8: lane for j.lane in 0..4:
             let c.value = mma(a[i.min + i.lane, ...], b[k.min + 2*j.lane, ...], c[i.min + i.lane, ...])
             c[i.min + i.lane, ramp(j.min + 2*j.lane, 1, 2)] = shuffle(c.value, [0, 1])
             c[i.min + i.lane + 8, ramp(j.min + 2*j.lane, 1, 2)] = shuffle(c.value, [2, 3])

Each lane loads its fragments of the operands (`fragments`). Where a tile is not whole, as at the end of a reduction
that is no multiple of 16, each lane computes its elements of `c` without the instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ...dataclass import dataclass
from ...expr.build import maximum, minimum
from ...expr.linear import simplify
from ...expr.nodes import Cast, Const, Expr, Instruction, Load, Op, Shuffle, Var, const, var
from ...expr.types import INDEX
from ...expr.visit import names, same
from ...ir.nodes import For, If, Let, Manner, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Kind
from ...target.layout import Digit
from ...target.mma import COLUMNS, MMAS, ROWS, Mma
from ..names import of_buffer, of_loop
from .fragments import Fragment, Rows, SharedMatrices
from .let_sums import Named

_ZERO = const(0, INDEX)


def tensorize(body: Stmt, rows: Mapping[str, Rows]) -> Stmt:
    """Replace the loops that tensor cores compute; `rows` tells how buffers lie in memory."""
    has_tiles = any(isinstance(s, For) and s.kind is Kind.TENSOR_CORE for s in walk(body))
    return _visit(body, SharedMatrices(rows, Named(), {})) if has_tiles else body


def _visit(s: Stmt, shared: SharedMatrices) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.TENSOR_CORE:
        return _tile(s, shared)
    inside = shared.inside(s)
    return rebuild(s, expressions(s), tuple([_visit(c, inside) for c in children(s)]))


def _tile(s: Stmt, shared: SharedMatrices) -> Stmt:
    """The loops of a tile and what is in them. One of a single iteration may be missing."""
    sides, terms = list[_Side](), None
    while isinstance(s, For) and s.kind is Kind.TENSOR_CORE:
        if s.digit is None:
            terms = s
        else:
            sides.append(_Side(s, s.digit))
        s = s.body
    product = _product(sides, terms, s)
    return _by_lanes(sides, terms, s) if product is None else product.by_instructions(shared)


class _Side(NamedTuple):
    """A loop over rows or columns of a tile, and the digit of a lane's number that counts what a lane has of them."""

    loop: For
    digit: Digit

    @property
    def lane(self) -> Var:
        """The number of a lane among those that share the iterations."""
        return var(of_loop(self.loop.var, "lane"))

    def in_lanes(self, extent: Expr, body: Stmt) -> Stmt:
        return For(self.lane.name, _ZERO, extent, Kind.LANE, body, digit=self.digit)


# Whole tiles


def _product(sides: list[_Side], terms: For | None, s: Stmt) -> _Product | None:
    """The product of whole fragments that the loops of a tile compute, if they do."""
    value = s.value if isinstance(s, Store) and s.manner is Manner.PLAIN else None
    if not isinstance(s, Store) or not isinstance(value, Op) or value.op != "add" or len(sides) < 2 or terms is None:
        return None
    here = Load(value.dtype, 1, s.buffer, s.indices)
    term = next((b for a, b in (value.args, value.args[::-1]) if same(a, here)), None)
    if not isinstance(term, Op) or term.op != "mul":
        return None
    a, b = (f.value if isinstance(f, Cast) and f.dtype == value.dtype else f for f in term.args)
    mma, (rows, columns) = MMAS.get((a.dtype.name, value.dtype.name)), sides
    counts = _count(rows.loop), _count(columns.loop), _count(terms)
    if mma is None or counts not in ((ROWS, n, mma.terms) for n in (COLUMNS, 2 * COLUMNS)):
        return None
    a, b = (a, b) if rows.loop.var in names(a) else (b, a)
    return _Product(mma, rows, columns, terms, a, b, here)


@dataclass(frozen=True)
class _Product:
    """A tile of whole fragments: its loops, and what one iteration of all of them multiplies and adds to."""

    mma: Mma
    rows: _Side
    columns: _Side
    terms: For
    a: Expr
    b: Expr
    c: Load

    def by_instructions(self, shared: SharedMatrices) -> Stmt:
        """An instruction for each 8 columns."""
        rows, columns, terms = self.rows.loop, self.columns.loop, self.terms
        lanes, begin = (
            {x.digit: x.lane for x in (self.rows, self.columns)},
            {x.var: x.min for x in (rows, columns, terms)},
        )
        count = _count(columns) // COLUMNS
        a = Fragment(self.mma.a, (rows.var, terms.var), begin, lanes, shared).vector(self.a)
        b = Fragment(self.mma.b(count), (terms.var, columns.var), begin, lanes, shared).vector(self.b)
        stmts, each = list[Stmt](), b.lanes // count
        for k in range(count):
            part = Shuffle(b.dtype, each, (b,), tuple(range(k * each, (k + 1) * each)))
            here = {**begin, columns.var: columns.min + k * COLUMNS}
            stmts.append(self.instruction(a, part, Fragment(self.mma.c, (rows.var, columns.var), here, lanes, shared)))
        made = block(*stmts)
        for side in (self.columns, self.rows):
            made = side.in_lanes(const(side.digit.size, INDEX), made)
        return made

    def instruction(self, a: Expr, b: Expr, c: Fragment) -> Stmt:
        """An instruction, and the stores of its result."""
        before, stores, first = c.vector(self.c), list[Stmt](), 0
        result = Var(self.c.dtype, before.lanes, of_buffer(self.c.buffer, "value"))
        for place in c.parts(self.c):
            assert isinstance(place, Load)
            value = Shuffle(result.dtype, place.lanes, (result,), tuple(range(first, first + place.lanes)))
            stores.append(Store(place.buffer, place.indices, value))
            first += place.lanes
        return Let(result.name, Instruction(result.dtype, result.lanes, self.mma.name, (a, b, before)), block(*stores))


# Other tiles: for terms: for turn: for lane: for own: iteration turn*8 + lane*each + own


_EIGHT = COLUMNS  # rows or columns that lanes share in a turn
_MOST = 2 * COLUMNS  # rows or columns of a tile


def _by_lanes(sides: list[_Side], terms: For | None, body: Stmt) -> Stmt:
    """A tile that is not whole: lanes share its rows and columns as they do those of a fragment."""
    for side in reversed(sides):
        body = _own(side, body)
    for side in reversed(sides):
        body = side.in_lanes(_working(side), body)
    for side in reversed(sides):
        turns = -(-_count(side.loop) // _EIGHT) or _MOST // _EIGHT
        body = For(_turn(side).name, _ZERO, const(turns, INDEX), Kind.UNROLL, body)
    return body if terms is None else replace(terms, kind=Kind.SERIAL, body=body)


def _working(side: _Side) -> Expr:
    """The lanes that have an iteration in a turn."""
    count, each, lanes = _count(side.loop), _each(side), const(side.digit.size, INDEX)
    if count and count % _EIGHT == 0:
        return lanes
    left = (side.loop.extent - _turn(side) * _EIGHT + (each - 1)) // each
    return simplify(maximum(minimum(left, lanes), _ZERO))


def _own(side: _Side, body: Stmt) -> Stmt:
    """The adjacent iterations of one lane."""
    loop, each, own = side.loop, _each(side), var(of_loop(side.loop.var, "own"))
    place = _turn(side) * _EIGHT + side.lane * each
    if each == 1:
        return Let(loop.var, loop.min + place, body)
    if _count(loop) == 0 or _count(loop) % each:
        body = If(place + own < loop.extent, body)
    return For(own.name, _ZERO, const(each, INDEX), Kind.UNROLL, Let(loop.var, loop.min + place + own, body))


def _each(side: _Side) -> int:
    """The adjacent rows or columns of a fragment that a lane has."""
    return _EIGHT // side.digit.size


def _turn(side: _Side) -> Var:
    return var(of_loop(side.loop.var, "turn"))


def _count(loop: For) -> int:
    """The iterations of a loop; 0 if their number is not constant."""
    return int(loop.extent.value) if isinstance(loop.extent, Const) else 0
