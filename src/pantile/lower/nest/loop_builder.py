"""Build the nested loops of a definition, from their ranges to the stores of one point.

for out.y in 0..h:                  loop: its kind and its bounds; a peeled split becomes two loops
    let out.x.lo = ...              the lets whose loops are open
    (stages computed at out.y)      body: placed by the callback `stages_at`
    for out.x in ...:
        out[out.y, out.x] = ...     point
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

from ...analysis.interval import Interval
from ...analysis.regions import Box
from ...expr.build import logical_and, maximum
from ...expr.linear import Facts, simplify
from ...expr.nodes import Const, Expr, Var, const
from ...expr.types import INDEX
from ...expr.visit import substitute
from ...graph.nodes import ReductionDim, Stage
from ...ir import visit as ir
from ...ir.nodes import Block, For, If, Let, Manner, Prefetch, Produce, Stmt
from ...schedule.loop_tree import LoopTree
from ...schedule.plan import Loop, Nest, Site, Split
from ...schedule.updates import pure_dims
from ...target.kinds import WRITTEN_OUT, Kind, Memory
from ..coverage import Coverage, Range
from ..names import loop_name, region_names, site_variable
from .context import BuildContext
from .early import OpenLoop, one_after_another
from .loops import DefinitionLoops, is_constant, lane_digit
from .make_loops import make_loops
from .point import point
from .regions import Regions
from .slide import LiveRows

_MOST = 64


class LoopBuilder:
    """Builds loops in a context. `stages_at(site, body)` returns the body of a loop with the stages computed there.

    `coverage`, `rows` and `ordered` collect notes on loops.
    """

    def __init__(
        self,
        tree: LoopTree,
        context: BuildContext,
        regions: Regions,
        coverage: Coverage,
        rows: LiveRows,
        small: bool,
        stages_at: Callable[[Site, Stmt], Stmt],
    ) -> None:
        self._tree, self._graph, self._plan = tree, tree.graph, tree.plan
        self._context, self._regions, self._coverage, self._rows = context, regions, coverage, rows
        self._small, self._stages_at = small, stages_at
        self.ordered: set[str] = set()  # loops whose iterations depend on earlier ones

    def definitions(self, stage: Stage) -> Stmt:
        """Return all definitions of a stage in order. Definitions that are fused into the loops of the first are built
        there."""
        within = self._plan.stages[stage.name].within
        parts = [
            self._if_needed(stage, k, self._lets(self._loops(stage, k), 0))
            for k in range(len(stage.definitions))
            if k not in within
        ]
        return one_after_another(self._context.open, parts)

    def _if_needed(self, stage: Stage, index: int, body: Stmt) -> Stmt:
        conditions = self._regions.needed_when(stage, index)
        if conditions is None:
            return Block(())
        return If(logical_and(*conditions), body) if conditions else body

    # Ranges

    def _loops(self, stage: Stage, index: int) -> DefinitionLoops:
        """Make the loops of a definition over its region."""
        nest, facts = self._plan.stages[stage.name].nests[index], self._context.facts
        self._context.forget(loop_name(stage, index, loop.name) for loop in nest.loops)
        dims = pure_dims(stage, stage.definitions[index])
        ranges = {dim: self._context.region(*region_names(stage, dim)) for dim in dims}
        for r in stage.definitions[index].domain:
            low, extent = simplify(r.min, facts), self._counted(nest, r)
            ranges[r.name] = Range(low, simplify(low + extent - 1, facts))
        loops = make_loops(stage, index, nest, ranges, facts, self._context.at_least)
        self._coverage.add(loops.covered)
        return loops

    def _counted(self, nest: Nest, r: ReductionDim) -> Expr:
        """The extent of a domain, clamped to 0 if needed.

        A loop runs no iterations over a negative extent, but splits and fuses compute with the extent: the last block
        of -1 values begins 8 before the first, and -1 rows of -1 values have one point.
        """
        rewritten = {n for w in nest.rewrites for n in ((w.old,) if isinstance(w, Split) else (w.outer, w.inner))}
        context = self._context
        if r.name not in rewritten or context.never_negative(r.extent):
            return r.extent
        return maximum(r.extent, const(0, INDEX))

    # Nesting

    def _lets(self, loops: DefinitionLoops, depth: int) -> Stmt:
        """Build the lets whose loops are open, then the loop at `depth`."""
        ready, context = loops.ready(depth), self._context
        with context.lets(ready):
            for name in (name for name, _ in ready if name in loops.blocks):
                context.extents.learn(substitute(loops.blocks[name], context.values))
            body = self._loop_or_point(loops.after(ready), depth)
        for name, value in reversed(ready):
            body = Let(name, value, body)
        return body

    def _loop_or_point(self, loops: DefinitionLoops, depth: int) -> Stmt:
        if depth == len(loops.nest.loops):
            return self._point(loops)
        loop = loops.nest.loops[depth]
        if loop.name in loops.gone:
            body = self._body(loops, depth, loop.name)
            alone = loops.kind(loop) is Kind.WARP  # one warp executes the tail
            return For(loops.var(loop.name).name, const(0, INDEX), const(1, INDEX), Kind.WARP, body) if alone else body
        if loop.name in loops.peel:
            return self._peeled(loops, depth, loop.name)
        return self._loop(loops, depth, loop)

    def _point(self, loops: DefinitionLoops) -> Stmt:
        is_inside = functools.partial(self._is_computed_in, loops)
        stores = point(loops, self._context, self._graph, self._regions.is_missing, is_inside, self._manner(loops))
        for k in stores.along_lanes:
            self._rows.in_lanes(loops.stage, k)
        return stores.body

    def _is_computed_in(self, loops: DefinitionLoops, buffer: str) -> bool:
        """Whether the producer of a buffer is computed in one of these loops. A loop of the same name in another
        definition of this stage counts as well, since an update runs in the block loops of the pure definition."""
        if buffer not in self._graph.producer:
            return False
        p = self._plan.stages[self._graph.producer[buffer].name]
        while p.with_stage is not None:
            p = self._plan.stages[p.with_stage]
        names = {loop.name for loop in loops.nest.loops}
        sites = [site for site in (p.compute, *p.also) if site is not None]
        return any(site.stage == loops.stage.name and site.loop in names for site in sites)

    def _variable(self, site: Site) -> str:
        return site_variable(self._graph, site)

    def _manner(self, loops: DefinitionLoops) -> Manner:
        """How the definition stores. Threads to which an update's iterations are distributed may store to the same
        element."""
        shared_out = [Kind.BLOCK, Kind.THREAD]
        if self._plan.stages[loops.stage.name].memory is Memory.SHARED:  # not registers of lanes
            shared_out.append(Kind.LANE)
        if loops.nest.atomic and any(x.kind in shared_out for x in loops.nest.loops):
            return Manner.ATOMIC
        return Manner.NONTEMPORAL if self._plan.stages[loops.stage.name].nontemporal else Manner.PLAIN

    def _peeled(self, loops: DefinitionLoops, depth: int, loop: str) -> Stmt:
        """Build the loop over the whole blocks of a split, and its tail."""
        rest, name, first = loops.tail(loop)
        context = self._context
        with context.extents.of_a_version():
            whole = self._loop_or_point(loops.whole(loop), depth)
        gone = [rest.var(x).name for x in rest.gone]
        with context.no_sliding_outside(), context.left_over(gone), context.lets([(name, first)]):
            tail: Stmt = Let(name, first, self._loop_or_point(rest, depth))
        for around in context.open:
            if around.start(whole) > around.current:
                tail = around.guarded(tail, around.current)
        return Block((whole, tail))

    def _loop(self, loops: DefinitionLoops, depth: int, loop: Loop) -> Stmt:
        context, r = self._context, loops.ranges[loop.name]
        name = loops.var(loop.name).name
        extent = simplify(r.high - r.low + 1, context.facts)
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return Block(())
        is_part = self._small or context.is_left_over
        if loops.kind(loop) in WRITTEN_OUT and not is_constant(loops, loop, extent, is_part):
            loops = loops.one_after_another(loop.name)
        if isinstance(extent, Const) and int(extent.value) == 1 and loops.kind(loop) is not Kind.WARP:
            with context.lets([(name, r.low)]):
                return Let(name, r.low, self._body(loops, depth, loop.name))
        kind = loops.kind(loop)
        opened = OpenLoop(name, r.low, extent, kind)
        with context.loop(opened, r.low, extent, self._may_start_early(opened)):
            body = self._body(loops, depth, loop.name)
        if loops.index > 0 or opened.starts:
            self.ordered.add(name)
        if not opened.starts:
            memory = self._plan.stages[loops.stage.name].memory
            return For(name, r.low, extent, kind, body, digit=lane_digit(loops, depth, memory))
        return self._start_early(loops, opened, r, extent, kind, body)

    def _start_early(
        self, loops: DefinitionLoops, opened: OpenLoop, r: Range, extent: Expr, kind: Kind, body: Stmt
    ) -> Stmt:
        """Build a loop that starts early for stages that slide along it."""
        early = opened.warm_up
        self._coverage.start_early(opened.var.name, early)
        started: Stmt = For(opened.var.name, opened.first - early, extent + early, kind, body)
        # A block clipped at the end has at least one iteration. A loop without iterations must not start early either.
        if not (isinstance(r.low, Var) and r.low.name in loops.blocks or self._context.certainly_runs(extent)):
            started = If(extent > 0, started)
        return Let(opened.first.name, r.low, started)

    def _may_start_early(self, loop: OpenLoop) -> bool:
        """Whether a stage may slide along the loop that is being opened: one that is stored outside of the loop and
        computed inside."""
        inside = self._context.is_in_body_of
        return loop.is_in_order and any(
            not inside(self._variable(computed)) and (stored is None or inside(self._variable(stored)))
            for computed, stored in self._tree.stored_outside
        )

    def _body(self, loops: DefinitionLoops, depth: int, loop: str) -> Stmt:
        """Build the body of the loop at `depth`: the stages computed there, the stages fused into it, and the inner
        loops."""
        with self._context.body_of(loops.var(loop).name):
            parts, loops = loops.taken_apart(depth + 1)
            if parts and self._context.open:
                self._context.open[-1].parts += [name for name, _ in parts]
            guards = loops.decided(depth + 1)
            alone = self._lets(loops, depth + 1)
            alone = self._with_companions(loops, loop, self._with_updates(loops, loop, alone))
            body = self._stages_at(Site(loops.stage.name, loops.index, loop), alone)
            if guards and body is not alone:  # do not compute empty regions either
                body = If(logical_and(*guards), body)
            body = self._prefetched(loops, body) if depth == loops.innermost else body
        for name, value in reversed(parts):
            body = Let(name, value, body)
        return body

    # Other statements in a loop

    def _with_companions(self, loops: DefinitionLoops, loop: str, body: Stmt) -> Stmt:
        """Run the inner loops of other stages in this loop, after this stage's loops (compute_with)."""
        for name in self._tree.companions(loops.stage.name) if loops.index == 0 else ():
            if self._plan.stages[name].with_loop == loop:
                inner = Produce(name, self._inner(self._graph.stage[name], 0, loops, loop))
                body = one_after_another(self._context.open, [body, inner])
        return body

    def _with_updates(self, loops: DefinitionLoops, loop: str, body: Stmt) -> Stmt:
        """Run the inner loops of updates here, after those of the pure definition (compute_with of the stage
        itself)."""
        within = self._plan.stages[loops.stage.name].within if loops.index == 0 else {}
        for k in (k for k, at in within.items() if at == loop):
            inner = self._if_needed(loops.stage, k, self._inner(loops.stage, k, loops, loop))
            body = one_after_another(self._context.open, [body, inner])
        return body

    def _inner(self, stage: Stage, index: int, host: DefinitionLoops, loop: str) -> Stmt:
        """The loops of a definition inside of a loop that it shares with others."""
        loops = self._loops(stage, index).inside(host, loop)
        return self._lets(loops, [x.name for x in loops.nest.loops].index(loop) + 1)

    def _prefetched(self, loops: DefinitionLoops, body: Stmt) -> Stmt:
        """The innermost body, after prefetches of the data that it will read in a later iteration of an outer loop."""
        for p in self._plan.stages[loops.stage.name].prefetches:
            ahead = loops.var(p.loop)
            is_open = any(o.var.name == ahead.name for o in self._context.open)
            box = self._regions.read(loops.stage, p.buffer, body) if is_open else None
            if box is not None:
                later = {ahead.name: ahead + p.distance}
                moved = tuple(Interval(*(substitute(e, later) for e in (s.low, s.high))) for s in box)
                line = self._plan.target.line
                body = ir.block(*prefetches(p.buffer, moved, self._bytes(p.buffer), line, self._context.facts), body)
        return body

    def _bytes(self, buffer: str) -> int:
        """The size of a buffer's elements in bytes."""
        if buffer in self._graph.input:
            return self._graph.input[buffer].dtype.bytes
        stage = self._graph.producer[buffer]
        return stage.dtypes[stage.buffers.index(buffer)].bytes


def prefetches(buffer: str, box: Box, element: int, line: int, facts: Facts) -> list[Prefetch]:
    """Prefetches of the box, whose last dim is taken as contiguous. None are made if its size is unknown or large."""
    counts = []
    for k, side in enumerate(box):
        extent = facts.upper(simplify(side.high - side.low + 1, facts))
        if extent is None:
            return []
        counts.append(extent if k < len(box) - 1 else max(1, extent * element // line))
    if math.prod(counts) > _MOST:
        return []
    steps = [1] * (len(box) - 1) + [line // element]
    places = itertools.product(*map(range, counts))
    return [
        Prefetch(buffer, tuple(simplify(s.low + i * n, facts) for s, i, n in zip(box, at, steps, strict=True)))
        for at in places
    ]
