"""Hybrid tiles: a buffer of a warp is in shared memory up to a constant column, and from there on in registers of its
lanes, where a register holds W adjacent columns, one in each lane (Algorithm 1 of Jangda and Guha: Model-Based Warp
Overlapped Tiling for Image Processing Programs on GPUs, PACT 2020).

before:  realize g: [0..10] in shared               after:  realize g: [0..6], g.registers: [6..10] over (4 threads)
         lane for x in 0..10: g[x] = a[x]                   lane for x in 0..6: g[x] = a[x]
         lane for x in 0..4: f[x] = g[x] + g[x + 2]         lane for x in 6..10: g.registers[x] = a[x]
         lane for x in 4..8: f[x] = g[x] + g[x + 2]         lane for x in 0..4: f[x] = g[x] + g[x + 2]
                                                            lane for x in 4..8:
                                                                f[x] = select(x < 6, g[x], g.registers[x])
                                                                       + g.registers[x + 2]

Loops around accesses are unrolled, so that it is known for each access which of the two parts it reads, or that its
first lanes read shared memory and the others a register. The result has two ordinary buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import product

from ...dataclass import dataclass
from ...errors import UserError
from ...expr.build import broadcast, select
from ...expr.linear import simplify
from ...expr.nodes import Const, Expr, Load, const
from ...expr.types import INDEX
from ...expr.visit import loaded, transform
from ...ir.nodes import For, Let, Realize, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.gpu import MOST_REGISTERS, WARP_SIZE
from ...target.kinds import Kind, Memory
from ...target.layout import Digit, Layout, Unit
from ..footprint import step
from ..names import of_buffer
from .let_sums import Named
from .own_registers import is_alike
from .thread_context import At, ThreadLoop, first_lane


@dataclass(frozen=True)
class TileSplit:
    """How a buffer is split: along a dim, at a column counted from its first one. `lanes` maps dims to numbers of
    lanes, outermost first."""

    dim: int
    column: int
    lanes: Mapping[int, int]
    refuse: Callable[[str], UserError]


def hybrid_tiles(body: Stmt, splits: Mapping[str, TileSplit], small: bool = False) -> Stmt:
    """Split buffers into a part in shared memory and a part in registers.

    With `small`, blocks were shrunk to fit small arrays; a tile that cannot be split is then in shared memory.
    """
    return _Visit(splits, small).visit(body, At(Named(), {}), {}) if splits else body


class _Visit:
    def __init__(self, splits: Mapping[str, TileSplit], small: bool) -> None:
        self.splits, self.small = splits, small

    def visit(self, s: Stmt, at: At, current: Mapping[str, _HybridTile]) -> Stmt:
        """Visit a statement. `current` has the split buffers around it."""
        if isinstance(s, Realize):
            current = {name: tile for name, tile in current.items() if name != s.buffer}
            if s.buffer in self.splits:
                try:
                    return self.split(_of_one_stage(s, self.splits), at, current)
                except UserError:
                    if not self.small:
                        raise
        inside = tuple([self.visit(c, at.inside(s, scope), current) for c, scope in step(s, at.scope)])
        return rebuild(s, tuple([self.read(e, at, current) for e in expressions(s)]), inside)

    def split(self, realizes: list[Realize], at: At, current: Mapping[str, _HybridTile]) -> Stmt:
        tile = _HybridTile(realizes, at, self.splits[realizes[0].buffer])
        body = tile.stored(realizes[-1].body, at)
        return tile.realized(self.visit(body, at, {**current, **dict.fromkeys(tile.buffers, tile)}))

    def read(self, e: Expr, at: At, current: Mapping[str, _HybridTile]) -> Expr:
        def load(n: Expr) -> Expr | None:
            return current[n.buffer].load(n, at) if isinstance(n, Load) and n.buffer in current else None

        return transform(e, load, concerns=lambda n: not loaded(n).isdisjoint(current))


class _HybridTile:
    """The tile of a stage that a warp holds: one buffer for each value of the stage, all of which are split."""

    def __init__(self, realizes: list[Realize], at: At, split: TileSplit) -> None:
        self.realizes, self.split = realizes, split
        self.buffers = {s.buffer: of_buffer(s.buffer, "registers") for s in realizes}
        self.lows = [at.named.form(low) for low, _ in realizes[0].box]
        self.widths, weight = dict[int, Digit](), WARP_SIZE  # dim -> its lanes
        for k, lanes in split.lanes.items():
            weight //= lanes
            self.widths[k] = Digit(lanes, Unit.THREAD, weight)
        self.columns = self.extent(split.dim)
        if self.columns <= split.column:
            raise split.refuse(f"a warp has {self.columns} of them")

    def extent(self, k: int) -> int:
        extent = self.realizes[0].box[k][1]
        if not isinstance(extent, Const):
            raise self.split.refuse("the size of a warp's tile is not constant")
        return int(extent.value)

    # ---- the loops of its stage

    def stored(self, s: Stmt, at: At) -> Stmt:
        """Replace the loops that store the buffer by loops over both parts."""
        if not self.is_stored_in(s):
            return s
        if isinstance(s, For) and s.kind is Kind.LANE:
            return self.in_parts(s, at)
        if isinstance(s, Store):
            raise self.split.refuse("it is stored outside of its lane loops")
        return rebuild(s, expressions(s), tuple([self.stored(c, at.inside(s, i)) for c, i in step(s, at.scope)]))

    def is_stored_in(self, s: Stmt) -> bool:
        return any(isinstance(i, Store) and i.buffer in self.buffers for i in walk(s))

    def in_parts(self, s: For, at: At) -> Stmt:
        """Replace lane loops over all columns by loops over each part, those over the registers of a lane one after the
        other."""
        dims = self.nested(s, at)
        along = next((name for name, k in dims.items() if k == self.split.dim), None)
        if along is None:
            raise self.split.refuse("no lane loop goes over that dim")
        shared = [_with_loops(s, {along: (0, self.split.column)}, {})] if self.split.column else []
        places = list(product(*map(self.pieces, dims.values())))
        if len(places) >= MOST_REGISTERS:
            raise self.split.refuse(f"a lane would have {len(places)} values of it in {MOST_REGISTERS} registers")
        digits = {name: self.widths[k] for name, k in dims.items()}
        pieces = [_with_loops(s, dict(zip(dims, place, strict=True)), digits) for place in places]
        return block(*shared, *map(self.in_registers, pieces))

    def pieces(self, k: int) -> list[tuple[int, int]]:
        """Where each register begins along a dim, and the number of lanes that have one."""
        lanes, first, extent = self.widths[k].size, 0, self.extent(k)
        if k == self.split.dim:
            first = self.split.column
            if (extent - first) % lanes:
                many = f"{extent - first} of its {extent} entries lie there"
                raise self.split.refuse(f"{many}, which is no multiple of {lanes} lanes")
        return [(begin, min(lanes, extent - begin)) for begin in range(first, extent, lanes)]

    def nested(self, s: For, at: At) -> dict[str, int]:
        """Map nested lane loops to the dims that they iterate over."""
        dims, *others = [
            {loop.var: self.dim(loop, store, inside) for loop in inside.loops}
            for store, inside in _stores(s, self.buffers, at)
        ]
        if any(other != dims for other in others):
            raise self.split.refuse("its lane loops go over other dims in one store than in another")
        return dims

    def dim(self, loop: ThreadLoop, store: Store, at: At) -> int:
        """The dim that a lane loop iterates over."""
        moved = [at.moved(i, low) for i, low in zip(store.indices, self.lows, strict=True)]
        dims = [(k, rest) for k, (steps, rest) in enumerate(moved) if steps[loop.var]]
        extent = simplify(at.named.form(loop.extent).expr())
        for k, rest in dims[: len(dims) == 1]:
            is_whole = isinstance(extent, Const) and int(extent.value) == self.extent(k)
            if moved[k][0][loop.var] == 1 and not rest.terms and not rest.constant and is_whole:
                return k
        raise self.split.refuse("its lane loops do not go over all that a warp has of it")

    def in_registers(self, s: Stmt) -> Stmt:
        """Return the statement with its stores redirected to the registers."""
        s = rebuild(s, expressions(s), tuple([self.in_registers(c) for c in children(s)]))
        return replace(s, buffer=self.buffers[s.buffer]) if isinstance(s, Store) and s.buffer in self.buffers else s

    # ---- loads

    def load(self, e: Load, at: At) -> Expr:
        """Load from one of the two parts. If lanes read on both sides of the column, those below it load from shared
        memory."""
        index = e.indices[self.split.dim]
        first, last = {k: self.places(k, e.indices[k], at) for k in self.widths}[self.split.dim]
        there = replace(e, buffer=self.buffers[e.buffer])
        if last < self.split.column:
            return e
        if last - first >= self.widths[self.split.dim].size:
            raise self.split.refuse(f"{last - first + 1} entries are read at once, by more lanes than have them")
        if first >= self.split.column:
            return there
        low, _ = self.realizes[0].box[self.split.dim]
        below = broadcast(first_lane(index) < low + self.split.column, e.lanes)
        return select(below, replace(e, mask=below if e.mask is None else below & e.mask), there)

    def places(self, k: int, index: Expr, at: At) -> tuple[int, int]:
        """The first and the last entry along a dim that the lanes read."""
        steps, rest = at.moved(index, self.lows[k])
        extents = {x.var: simplify(at.named.form(x.extent).expr()) for x in at.loops if steps[x.var]}
        counts = {name: int(n.value) for name, n in extents.items() if isinstance(n, Const)}
        if rest.terms or len(counts) < len(extents) or not is_alike(index):
            raise self.split.refuse("which entries are read is not constant; unroll the loops around")
        ends = [steps[name] * (n - 1) for name, n in counts.items()]
        return rest.constant + sum(n for n in ends if n < 0), rest.constant + sum(n for n in ends if n > 0)

    # ---- memory

    def realized(self, body: Stmt) -> Stmt:
        column, sides = self.split.column, self.realizes[0].box
        shared = {k: digit for k, digit in self.widths.items() if digit.size > 1}
        layout = Layout(tuple((shared[k],) if k in shared else () for k in range(len(sides))))
        for s in self.realizes:
            low, _ = s.box[self.split.dim]
            right = self.box(s, low + column, self.columns - column)
            body = Realize(self.buffers[s.buffer], s.dtype, right, Memory.REGISTER, body, layout=layout)
            body = replace(s, box=self.box(s, low, column), body=body) if column else body
        return body

    def box(self, s: Realize, low: Expr, columns: int) -> tuple[tuple[Expr, Expr], ...]:
        side = simplify(low), const(columns, INDEX)
        return tuple(side if k == self.split.dim else other for k, other in enumerate(s.box))


def _of_one_stage(s: Realize, splits: Mapping[str, TileSplit]) -> list[Realize]:
    """The buffer, and the buffers of the other values of its stage."""
    inside = s.body
    if isinstance(inside, Realize) and splits.get(inside.buffer) is splits[s.buffer]:
        return [s, *_of_one_stage(inside, splits)]
    return [s]


def _stores(s: Stmt, buffers: Collection[str], at: At) -> Iterator[tuple[Store, At]]:
    """Yield the stores to some buffers, each with its context."""
    if isinstance(s, Store) and s.buffer in buffers:
        yield s, at
    for c, scope in step(s, at.scope):
        yield from _stores(c, buffers, at.inside(s, scope))


def _with_loops(s: Stmt, pieces: Mapping[str, tuple[int, int]], digits: Mapping[str, Digit]) -> Stmt:
    """Restrict lane loops to pieces of their ranges, each given by its start and its length."""
    s = rebuild(s, expressions(s), tuple([_with_loops(c, pieces, digits) for c in children(s)]))
    if not isinstance(s, For) or s.kind is not Kind.LANE:
        return s
    begin, count = pieces.get(s.var, (0, None))
    low, digit = simplify(s.min + begin), digits.get(s.var)
    if digit is not None and digit.size == 1:
        return Let(s.var, low, s.body)
    return replace(s, min=low, extent=s.extent if count is None else const(count, INDEX), digit=digit)
