"""The loops of one definition while they are being opened: their bounds, and how coordinates are computed from them.

A split's outer loop counts blocks. Its inner loop runs over coordinates, starting at the first one of the block, which
is called stage.inner.lo. Objects are immutable: opening a loop gives another `DefinitionLoops`, with the loops that are
still to be opened.

In nested lane loops, the iteration of each loop that a lane takes is a digit of the lane's number:

lane for y in 0..2:          2 threads, 16 apart
    lane for x in 0..16:     16 threads

Two properties of loop kinds matter when loops are built; new kinds are classified here.

    LANES     the iterations are the lanes of vectors
    IN_ORDER  each iteration runs after the previous one: stages may keep what that one has computed, and slide

`target` lists the kinds that are written out, whose trip count is constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from math import prod

from ...dataclass import dataclass
from ...expr.linear import simplify
from ...expr.nodes import Const, Expr, Var, var
from ...expr.visit import depends, names, substitute
from ...graph.nodes import Definition, Stage
from ...schedule.limits import MOST_COPIES, MOST_LANES, MOST_VALUES
from ...schedule.plan import Loop, Nest, Split
from ...schedule.refuse import unknown_lanes
from ...schedule.split_loops import SplitLoops
from ...target.gpu import WARP_SIZE
from ...target.kinds import WRITTEN_OUT, Kind, Memory
from ...target.layout import Digit, Unit
from ...target.mma import COLUMN_LANES, ROW_LANES
from ..coverage import CoveredRange, Range
from ..names import loop_name, of_loop, prefix
from ..refuse import not_constant, too_many_values
from . import rewrites

NamedValue = tuple[str, Expr]
LANES = frozenset({Kind.VECTOR})
IN_ORDER = frozenset({Kind.SERIAL, Kind.UNROLL})


@dataclass(frozen=True)
class Peel:
    """A split whose partial last block is a separate loop, over the coordinates `left`."""

    split: Split
    loops: SplitLoops
    left: Range


@dataclass(frozen=True)
class DefinitionLoops:
    """One definition's loops, outermost first. Names are those of the nest, variables those of the loop IR."""

    stage: Stage
    index: int  # the definition's number
    nest: Nest
    ranges: Mapping[str, Range]  # by loop name
    at: Mapping[str, Expr]  # dim -> its coordinate
    pending: tuple[NamedValue, ...]  # lets that depend on loops not yet open
    made: Mapping[str, Expr] = field(default_factory=dict)  # the other lets
    # outermost loop over whole blocks -> its splits, outer ones first
    peel: Mapping[str, tuple[Peel, ...]] = field(default_factory=dict)
    guards: tuple[Expr, ...] = ()
    gone: frozenset[str] = frozenset()  # loops that this tail of a peeled split does not have
    serial: frozenset[str] = frozenset()  # loops forced to run serially
    peeled: tuple[str, ...] = ()  # splits of which this is the last block
    covered: Mapping[str, CoveredRange] = field(default_factory=dict)  # variable or let -> its range
    fused: frozenset[str] = frozenset()  # lets that recover the coordinates of a fused loop
    blocks: Mapping[str, Expr] = field(default_factory=dict)  # let -> extent of the clipped block there, at least 1

    @property
    def definition(self) -> Definition:
        return self.stage.definitions[self.index]

    @property
    def prefix(self) -> str:
        return prefix(self.stage, self.index)

    def var(self, loop: str) -> Var:
        """The loop's variable."""
        return var(loop_name(self.stage, self.index, loop))

    def of_loop(self, loop: str, word: str, number: int | None = None) -> str:
        """The name of something that belongs to a loop, such as its first coordinate."""
        return of_loop(self.var(loop).name, word, number)

    def kind(self, loop: Loop) -> Kind:
        """The kind of the loop."""
        return Kind.SERIAL if loop.name in self.serial and loop.kind is not Kind.TENSOR_CORE else loop.kind

    @property
    def lanes(self) -> list[str]:
        """The variables whose values become the lanes of vectors."""
        return [self.var(x.name).name for x in self.nest.loops if x.name not in self.gone and self.kind(x) in LANES]

    @property
    def innermost(self) -> int:
        """The depth of the innermost loop that remains a loop, or -1 if there is none."""
        real = [k for k, x in enumerate(self.nest.loops) if x.name not in self.gone and self.kind(x) not in WRITTEN_OUT]
        return real[-1] if real else -1

    def made_of(self, e: Expr) -> frozenset[str]:
        """The variables of an expression, including those of the lets that it depends on."""
        used = names(e)
        return used.union(*(self.made_of(self.made[name]) for name in used if name in self.made))

    # Opening

    def ready(self, depth: int) -> list[NamedValue]:
        """The lets whose loops (those above `depth`) are all open, in order of their dependences."""
        if not self.pending:
            return []
        inner = self.nest.loops[depth:]
        waiting = {self.var(x.name).name for x in inner if x.name not in self.gone} | {n for n, _ in self.pending}
        ready: list[NamedValue] = []
        pending = list(self.pending)
        while let := next((i for i in pending if waiting.isdisjoint(names(i[1]))), None):
            pending.remove(let)
            waiting.discard(let[0])
            ready.append(let)
        return ready

    def after(self, lets: Collection[NamedValue], first: Collection[NamedValue] = ()) -> DefinitionLoops:
        """The loops that are still to be opened inside of these lets. `first` has the lets that come next."""
        if not lets:
            return self
        moved = {name for name, _ in (*lets, *first)}
        pending = (*first, *(let for let in self.pending if let[0] not in moved))
        return replace(self, pending=pending, made={**self.made, **dict(lets)})

    def taken_apart(self, depth: int) -> tuple[list[NamedValue], DefinitionLoops]:
        """The coordinates recovered from a fused loop above `depth`, and the loops that are still to be opened.

        Regions are expressed in these coordinates: their ranges are known, whereas the ranges of the quotient and the
        remainder would be far too large.
        """
        if not self.fused:
            return [], self
        ready = self.ready(depth)
        outside = {name for name, _ in ready if name in self.fused}
        for name, value in reversed(ready):  # and the lets that they depend on, if a fused loop was split again
            outside |= names(value) if name in outside else set()
        parts = [let for let in ready if let[0] in outside]
        return parts, self.after(parts, [let for let in ready if let[0] not in outside])

    def decided(self, depth: int) -> list[Expr]:
        """The guards that depend only on the loops outside `depth`."""
        inside = {self.var(x.name).name for x in self.nest.loops[depth:]}
        return [g for g in self.guards if not depends(g, inside.union(name for name, _ in self.pending))]

    # Derived loops

    def one_after_another(self, loop: str) -> DefinitionLoops:
        """These loops, with one of them made serial."""
        return replace(self, serial=self.serial | {loop})

    def inside(self, host: DefinitionLoops, loop: str) -> DefinitionLoops:
        """These loops, with those down to `loop` replaced by the host's loops of the same names and ranges."""
        result = self
        for outermost in host.peeled:
            result = result.tail(outermost)[0]
        loops = [x.name for x in result.nest.loops]
        shared = loops[: loops.index(loop) + 1]
        values: dict[str, Expr] = {result.var(n).name: host.var(n) for n in shared}
        values |= {result.of_loop(n, "rest"): var(host.of_loop(n, "rest")) for n in loops}
        return result.renamed(values)

    def tail(self, outermost: str) -> tuple[DefinitionLoops, str, Expr]:
        """The loops over the tail of a peeled split, and the name and the value of the tail's first coordinate."""
        peel = self.peel[outermost][0]
        split, of, left, run = peel.split, peel.loops, peel.left, peel.loops.rest
        gone = {*of.blocks, *of.inside} - {run}
        dropped = {self.of_loop(*let) for let in rewrites.lets(self.nest, split)}
        start = var(self.of_loop(split.inner, "rest"))
        rest = replace(
            self,
            ranges={**self.ranges, run: Range(start, left.high)},
            peel={n: p for n, p in self.peel.items() if n not in gone | {run}},
            pending=tuple((n, e) for n, e in self.pending if n not in dropped),
            guards=tuple(g for g in self.guards if not depends(g, dropped)),
            gone=self.gone | gone,
            serial=self.serial | {run},
            peeled=(*self.peeled, outermost),
        )
        # Parts that are nested inside out have no contiguous range of coordinates; lets give their coordinates.
        told = [self.of_loop(*let) for let in rewrites.lets(self.nest, split) if let[1] == "at"]
        return rest.renamed(dict.fromkeys((self.var(of.inside[-1]).name, *told), self.var(run))), start.name, left.low

    def whole(self, outermost: str) -> DefinitionLoops:
        """The loops over the whole blocks of the same split."""
        others = {n: p[1:] if n == outermost else p for n, p in self.peel.items()}
        return replace(self, peel={n: p for n, p in others.items() if p})

    def renamed(self, values: Mapping[str, Expr]) -> DefinitionLoops:
        """These loops, with expressions substituted for names."""

        def new(e: Expr) -> Expr:
            return substitute(e, values)

        def ends(r: Range) -> Range:
            return Range(new(r.low), new(r.high))

        return replace(
            self,
            ranges={n: ends(r) for n, r in self.ranges.items()},
            at={n: new(e) for n, e in self.at.items()},
            pending=tuple((n, new(e)) for n, e in self.pending),
            peel={n: tuple(replace(p, left=ends(p.left)) for p in several) for n, several in self.peel.items()},
            guards=tuple(map(new, self.guards)),
        )


def is_constant(loops: DefinitionLoops, loop: Loop, extent: Expr, is_part: bool) -> bool:
    """Whether a vector or unrolled loop has a constant extent of a reasonable size; other extents are refused.

    `is_part` tells that the tail of a split or a version for small arrays is being built, in which such loops may run
    serially.
    """
    if not isinstance(extent, Const):
        if is_part:
            return False
        raise not_constant(loops.stage, loop, extent)
    lanes, copies = (_product(loops, kind) for kind in WRITTEN_OUT)
    if lanes > MOST_LANES or copies > MOST_COPIES or lanes * copies > MOST_VALUES:
        raise too_many_values(loops.stage, loop, lanes, copies)
    return True


def _product(loops: DefinitionLoops, kind: Kind) -> int:
    """The product of the known trip counts of all loops of a kind."""
    ranges = [loops.ranges[x.name] for x in loops.nest.loops if x.kind is kind and x.name in loops.ranges]
    extents = [simplify(r.high - r.low + 1) for r in ranges]
    return prod(int(e.value) for e in extents if isinstance(e, Const))


def lane_digit(loops: DefinitionLoops, depth: int, memory: Memory) -> Digit | None:
    """The digit of a lane's number that the loop at `depth` counts. It is None if this is not a lane loop, or if the
    digit is not known and lanes may take its points in turn because these are in shared memory. Of the loops that
    tensor cores compute, those over rows and columns have the digits of fragments."""
    first, *inner = (x for x in loops.nest.loops[depth:] if x.name not in loops.gone)
    if loops.kind(first) is Kind.TENSOR_CORE:
        return dict(zip(loops.nest.tensor_core, (ROW_LANES, COLUMN_LANES), strict=False)).get(first.name)
    if loops.kind(first) is not Kind.LANE:
        return None
    inside = [x for x in inner if loops.kind(x) is Kind.LANE]
    sizes = [_iterations(loops, x.name) for x in inside]
    if None in sizes and memory is Memory.SHARED:
        return None
    if None in sizes:
        unknown = inside[sizes.index(None)]
        raise unknown_lanes(loops.stage, unknown.mark, unknown.name)
    weight = math.prod(max(1, n) for n in sizes if n is not None)
    return Digit(_iterations(loops, first.name) or max(WARP_SIZE // weight, 1), Unit.THREAD, weight)


def _iterations(loops: DefinitionLoops, name: str) -> int | None:
    """The trip count of a loop in whole blocks, or None if it is not constant."""
    sizes: dict[str, int] = {}
    for r in loops.nest.rewrites:
        if isinstance(r, Split):
            whole = sizes.pop(r.old, 0)
            sizes |= {r.outer: -(-whole // r.factor), r.inner: r.factor}
        else:
            sizes[r.fused] = sizes.pop(r.outer, 0) * sizes.pop(r.inner, 0)
    extent = simplify(loops.ranges[name].high - loops.ranges[name].low + 1)
    return sizes.get(name) or (int(extent.value) if isinstance(extent, Const) else None)
