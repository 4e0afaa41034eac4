"""Tensorize: the loops of a matrix product become matrix instructions of a warp.

before:  tensor_core for i in i.min..i.min + 16:
             tensor_core for j in j.min..j.min + 8:
                 tensor_core for k in k.min..k.min + 16: c[i, j] = c[i, j] + float32(a[i, k])*float32(b[k, j])
after:   lane for i.lane in 0..8: lane for j.lane in 0..4:
             let c.value = mma(a[i.min + i.lane, ...], b[k.min + 2*j.lane, ...], c[i.min + i.lane, ...])
             c[i.min + i.lane, ramp(j.min + 2*j.lane, 1, 2)] = shuffle(c.value, [0, 1])
             c[i.min + i.lane + 8, ramp(j.min + 2*j.lane, 1, 2)] = shuffle(c.value, [2, 3])

Each lane loads its fragments of the operands (`fragments`). With more than 16 columns, four warps execute one
instruction, which reads the operands from shared memory (`core_matrices`) while threads continue; then they wait for
it:

             let c.value = wgmma(a[i.min, ...], ..., b[k.min, ...], ..., c[i.min + i.lane, ...])
             c[...] = ...
             let c.value = wgmma_wait(c[...], 0)
             c[...] = ...

If a tile is not whole, as at the end of a reduction whose length is not a multiple of 16, each lane computes its
elements of `c` without the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...dataclass import dataclass
from ...errors import UserError
from ...expr.build import maximum, minimum
from ...expr.linear import simplify
from ...expr.nodes import Cast, Const, Expr, Instruction, Load, Op, Shuffle, Var, const, var
from ...expr.types import INDEX
from ...expr.visit import names, same, walk_loads
from ...ir.instructions import wait_matrices, warpgroup_product
from ...ir.nodes import For, If, Let, Manner, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Kind
from ...target.layout import Digit, Unit
from ...target.mma import COLUMNS, MMAS, ROWS, Mma
from ...target.wgmma import COLUMNS as COLUMNS_OF_WARPGROUPS
from ...target.wgmma import ROWS as ROWS_OF_WARPGROUP
from ...target.wgmma import WARPS, Wgmma, wgmma
from ..names import of_buffer, of_loop
from .core_matrices import MatrixInSharedMemory, Warpgroup, core_matrices
from .fragments import Fragment, SharedMatrices, Storage
from .let_sums import Named

_ZERO = const(0, INDEX)
Refuse = Callable[[str, str], UserError]  # the buffer of the sums, and the buffer of a factor


def tensorize(body: Stmt, storage: Mapping[str, Storage], refuse: Refuse, small: bool = False) -> Stmt:
    """Replace the loops that tensor cores compute. `storage` tells how buffers are stored in memory.

    `refuse` makes the error for a factor that is not stored as warpgroups read it. With `small`, blocks were shrunk to
    fit small arrays; lanes then compute what instructions cannot.
    """
    has_tiles = any(isinstance(s, For) and s.kind is Kind.TENSOR_CORE for s in walk(body))
    return _Tensorizer(refuse, small).visit(body, SharedMatrices(storage, Named(), {}), None) if has_tiles else body


@dataclass(frozen=True)
class _Tensorizer:
    """Replaces the tiles of products in a statement by matrix instructions."""

    refuse: Refuse
    small: bool

    def visit(self, s: Stmt, shared: SharedMatrices, warps: For | None) -> Stmt:
        """Visit a statement inside of the loop `warps`, whose iterations are adjacent warps."""
        if isinstance(s, For) and s.kind is Kind.TENSOR_CORE:
            return self.tile(s, shared, warps)
        inside, warps = shared.inside(s), s if isinstance(s, For) and s.kind is Kind.WARP else warps
        return rebuild(s, expressions(s), tuple([self.visit(c, inside, warps) for c in children(s)]))

    def tile(self, s: Stmt, shared: SharedMatrices, warps: For | None) -> Stmt:
        """Replace the loops of a tile and their body. A loop of a single iteration may be missing."""
        sides, terms = list[_Side](), None
        while isinstance(s, For) and s.kind is Kind.TENSOR_CORE:
            if s.digit is None:
                terms = s
            else:
                sides.append(_Side(s, s.digit))
            s = s.body
        product = _product(sides, terms, s)
        if product is None:
            return _left_over(sides, terms, s, shared)
        if product.mma is not None:
            return product.by_instructions(product.mma, shared)
        made = None if product.wgmma is None else self.by_warpgroups(product, product.wgmma, shared, warps)
        return _left_over(sides, terms, s, shared) if made is None else made

    def by_warpgroups(self, of: _Product, wgmma: Wgmma, shared: SharedMatrices, warps: For | None) -> Stmt | None:
        """Return the instruction of the warpgroup that a warp belongs to, or None if the number of warps is not a
        multiple of four."""
        rows, columns, terms = of.rows.loop, of.columns.loop, of.terms
        if warps is None or _count(warps) == 0 or _count(warps) % WARPS:
            return None
        group = Warpgroup(warps.var, _ZERO if _count(warps) == WARPS else var(warps.var) // WARPS * WARPS)
        whole = replace(rows, extent=const(ROWS_OF_WARPGROUP, INDEX))
        a = core_matrices(of.a, whole, terms, ROWS, group, shared)
        b = core_matrices(of.b, columns, terms, 0, group, shared)
        if a is not None and b is not None:
            return of.by_warpgroup(wgmma, a, b, shared)
        if self.small:
            return None
        factor = next((load.buffer for load in walk_loads(of.b if b is None else of.a)), "a number")
        raise self.refuse(of.c.buffer, factor)


class _Side(NamedTuple):
    """A loop over rows or columns of a tile, and the digit of a lane's number that counts the rows or columns that a
    lane holds."""

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
    """The product of whole fragments that the loops of a tile compute, or None if they do not."""
    value = s.value if isinstance(s, Store) and s.manner is Manner.PLAIN else None
    if not isinstance(s, Store) or not isinstance(value, Op) or value.op != "add" or len(sides) < 2 or terms is None:
        return None
    here = Load(value.dtype, 1, s.buffer, s.indices)
    term = next((b for a, b in (value.args, value.args[::-1]) if same(a, here)), None)
    if not isinstance(term, Op) or term.op != "mul":
        return None
    a, b = (f.value if isinstance(f, Cast) and f.dtype == value.dtype else f for f in term.args)
    (rows, columns), types = sides, (a.dtype.name, value.dtype.name)
    counts = _count(rows.loop), _count(columns.loop), _count(terms)
    mma, wide = MMAS.get(types), wgmma(*types, *counts[1:])
    if mma is not None and counts not in ((ROWS, n, mma.terms) for n in (COLUMNS, 2 * COLUMNS)):
        mma = None
    a, b = (a, b) if rows.loop.var in names(a) else (b, a)
    is_whole = mma is not None or wide is not None and counts[0] == ROWS
    return _Product(mma, wide, rows, columns, terms, a, b, here) if is_whole else None


@dataclass(frozen=True)
class _Product:
    """A tile of whole fragments: the instruction of a warp or of a warpgroup that computes it, its loops, the factors
    that one iteration multiplies, and the element to which it adds."""

    mma: Mma | None
    wgmma: Wgmma | None
    rows: _Side
    columns: _Side
    terms: For
    a: Expr
    b: Expr
    c: Load

    @property
    def lanes(self) -> dict[Digit, Var]:
        return {x.digit: x.lane for x in (self.rows, self.columns)}

    @property
    def begin(self) -> dict[str, Expr]:
        return {x.var: x.min for x in (self.rows.loop, self.columns.loop, self.terms)}

    def in_lanes(self, body: Stmt) -> Stmt:
        for side in (self.columns, self.rows):
            body = side.in_lanes(const(side.digit.size, INDEX), body)
        return body

    def by_instructions(self, mma: Mma, shared: SharedMatrices) -> Stmt:
        """Return one instruction for each 8 columns."""
        rows, columns, terms = self.rows.loop, self.columns.loop, self.terms
        lanes, begin = self.lanes, self.begin
        count = _count(columns) // COLUMNS
        a = Fragment(mma.a, (rows.var, terms.var), begin, lanes, shared).vector(self.a)
        b = Fragment(mma.b(count), (terms.var, columns.var), begin, lanes, shared).vector(self.b)
        stmts, each = list[Stmt](), b.lanes // count
        for k in range(count):
            part = Shuffle(b.dtype, each, (b,), tuple(range(k * each, (k + 1) * each)))
            here = {**begin, columns.var: columns.min + k * COLUMNS}
            c = Fragment(mma.c, (rows.var, columns.var), here, lanes, shared)
            before = c.vector(self.c)
            stmts.append(self.stored(Instruction(before.dtype, before.lanes, mma.name, (a, part, before)), c))
        return self.in_lanes(block(*stmts))

    def by_warpgroup(self, of: Wgmma, a: MatrixInSharedMemory, b: MatrixInSharedMemory, shared: SharedMatrices) -> Stmt:
        """Return an instruction of four warps, and the wait for it."""
        c = Fragment(of.fragment, (self.rows.loop.var, self.columns.loop.var), self.begin, self.lanes, shared)
        before = c.vector(self.c)
        begun = self.stored(warpgroup_product(of, *a, *b, before), c)
        return self.in_lanes(block(begun, self.stored(wait_matrices(before, 0), c)))

    def stored(self, value: Instruction, c: Fragment) -> Stmt:
        """Return the stores of an instruction's result."""
        stores, first = list[Stmt](), 0
        result = Var(value.dtype, value.lanes, of_buffer(self.c.buffer, "value"))
        for place in c.parts(self.c):
            assert isinstance(place, Load)
            part = Shuffle(result.dtype, place.lanes, (result,), tuple(range(first, first + place.lanes)))
            stores.append(Store(place.buffer, place.indices, part))
            first += place.lanes
        return Let(result.name, value, block(*stores))


# Other tiles: for terms: for turn: for lane: for own: iteration turn*8 + lane*each + own


_EIGHT = COLUMNS  # rows or columns that lanes share in a turn
_MOST = COLUMNS_OF_WARPGROUPS[-1]  # most rows or columns of a tile


def _left_over(sides: list[_Side], terms: For | None, body: Stmt, around: SharedMatrices) -> Stmt:
    """Compute a tile that is not whole. Along a dim in which the sums are shorter than a fragment, the lanes of a warp
    do not share them; each lane computes all of them."""
    store = next(i for i in walk(body) if isinstance(i, Store))
    realized = around.realized.get(store.buffer)
    layout = None if realized is None else realized.layout
    shared = list[_Side]()
    for side in reversed(sides):
        dims = zip(store.indices, layout.dims if layout is not None else (), strict=False)
        digits = [d for i, of_dim in dims if side.loop.var in names(i) for d in of_dim if d.unit is Unit.THREAD]
        if digits:
            is_so = digits[0].size == side.digit.size
            shared.insert(0, side._replace(digit=digits[0]) if is_so else side)
        else:
            body = replace(side.loop, kind=Kind.SERIAL, digit=None, body=body)
    return _by_lanes(shared, terms, body)


def _by_lanes(sides: list[_Side], terms: For | None, body: Stmt) -> Stmt:
    """Compute a tile that is not whole: lanes share its rows and columns as they share those of a fragment."""
    for side in reversed(sides):
        body = _own(side, body)
    for side in reversed(sides):
        body = side.in_lanes(_working(side), body)
    for side in reversed(sides):
        turns = -(-_most(side.loop.extent) // _EIGHT)
        body = For(_turn(side).name, _ZERO, const(turns, INDEX), Kind.UNROLL, body)
    return body if terms is None else replace(terms, kind=Kind.SERIAL, body=body)


def _working(side: _Side) -> Expr:
    """The number of lanes that have an iteration in a turn."""
    count, each, lanes = _count(side.loop), _each(side), const(side.digit.size, INDEX)
    if count and count % _EIGHT == 0:
        return lanes
    left = (side.loop.extent - _turn(side) * _EIGHT + (each - 1)) // each
    return simplify(maximum(minimum(left, lanes), _ZERO))


def _own(side: _Side, body: Stmt) -> Stmt:
    """Return the loop over the adjacent iterations of one lane."""
    loop, each, own = side.loop, _each(side), var(of_loop(side.loop.var, "own"))
    place = _turn(side) * _EIGHT + side.lane * each
    if each == 1:
        return Let(loop.var, loop.min + place, body)
    if _count(loop) == 0 or _count(loop) % each:
        body = If(place + own < loop.extent, body)
    return For(own.name, _ZERO, const(each, INDEX), Kind.UNROLL, Let(loop.var, loop.min + place + own, body))


def _each(side: _Side) -> int:
    """The number of adjacent rows or columns of a fragment that a lane holds."""
    return _EIGHT // side.digit.size


def _turn(side: _Side) -> Var:
    return var(of_loop(side.loop.var, "turn"))


def _most(extent: Expr) -> int:
    """An upper bound of the number of iterations of a loop of a tile."""
    if isinstance(extent, Const):
        return int(extent.value)
    parts = extent.args if isinstance(extent, Op) and extent.op == "min" else ()
    return min([_MOST, *map(_most, parts)])


def _count(loop: For) -> int:
    """The number of iterations of a loop, or 0 if it is not constant."""
    return int(loop.extent.value) if isinstance(loop.extent, Const) else 0
