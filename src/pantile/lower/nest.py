"""Build the loop nest: graph + plan -> loops, with a Produce and a Realize where each stage is computed and stored.

    out[y, x] = f[y - 1, x] + f[y + 1, x], f computed at out's y, becomes

    produce out:
        parallel for out.y in 0..h:
            let f.y.min = out.y - 1; let f.y.max = out.y + 1; ...
            realize f: [out.y - 1..out.y + 2, 0..w]
            produce f:
                for f.y in f.y.min..f.y.min + 3:
                    for f.x in 0..w: f[f.y, f.x] = ...
            for out.x in 0..w:
                out[out.y, out.x] = f[out.y - 1, out.x] + f[out.y + 1, out.x]

Works from consumers to producers: the region of a stage is what the statements after it read of it, over the loops in
between, so each stage's loops are built knowing their extents. Where a stage is stored outside the loop it is computed
in, `slide` cuts its region down to what is new. Names: loop variables are stage.loop, regions stage.dim.min and .max.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace

from .. import progress
from ..analysis.interval import Interval
from ..analysis.regions import definition_scope, where_it_holds, with_own_updates
from ..analysis.touched import Box
from ..dataclass import dataclass
from ..expr.build import expr, logical_and, maximum, minimum
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Load, Op, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import depends, loaded, names, same, substitute, walk
from ..graph.nodes import Graph, ReductionDim, Stage
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Let, Produce, Realize, Stmt, Store
from ..schedule.plan import Loop, Nest, Plan, Site, Split, StagePlan
from ..target.kinds import WRITTEN_OUT, Kind
from .assume import assume, is_impossible
from .constant import is_constant
from .extents import Extents
from .footprint import Contents, Reach, computed, read_by, read_if, read_when
from .loops import Coverage, Loops, Range, make_loops, pure_dims
from .mask import mask_lanes, mask_loads
from .names import loop_name, of_buffer, region_names
from .order import execution_order
from .prefetch import prefetches
from .refuse import different_regions, unbounded
from .required import Required
from .rows import Rows
from .slide import OpenLoop, Sliding, slide
from .widen import Lowered

_EARLIEST = 1 << 20  # no loop starts more iterations early than this
_FARTHEST = 1 << 40  # a coordinate beyond this is as good as unknown
_LONGEST_TILE = 1 << 13  # longer constant extents are those of a type rather than of a tile


@dataclass
class LoopNest:
    """The statement, per buffer the circular extent of each dim along which its stage slides, and the loops whose
    iterations depend on earlier ones: those of updates, and those along which something slides."""

    body: Stmt
    folds: dict[str, dict[int, int]] = field(default_factory=dict)
    ordered: set[str] = field(default_factory=set)


def build_nest(graph: Graph, checked: Graph, plan: Plan, facts: Facts, small: bool = False) -> LoopNest:
    """All stages that have loops, nested as the plan says, with their regions; perhaps for `small` arrays.

    `checked`: the graph before stages were inlined."""
    builder = _Builder(graph, checked, plan, facts, small)
    body = builder.place(None, Block(()))
    return LoopNest(body, builder.rows.folds(), builder.ordered)


class _Builder:
    def __init__(self, graph: Graph, checked: Graph, plan: Plan, facts: Facts, small: bool) -> None:
        self.small = small
        self.graph = graph
        self.plan = plan
        self.facts = Facts(facts.bounds)
        self.order = execution_order(graph, plan)
        self.open: list[OpenLoop] = []  # loops around the statement being built, outermost first
        self.closed: dict[str, Expr] = {}  # region name -> its value, for proofs
        self.values: dict[str, Expr] = {}  # let around the statement being built -> its value in loop variables
        self.rows = Rows(self.facts)
        self.lets: dict[str, Expr] = {}  # coordinate -> what it is made of
        self.most: dict[str, dict[int, int | None]] = {}  # stage -> dims that were clipped -> their extent before
        self.covered = Coverage()
        self.contents = Contents()
        self.fused: dict[str, list[str]] = {}  # stage -> those computed with it
        for p in plan.stages.values():
            if p.with_stage is not None:
                self.fused.setdefault(p.with_stage, []).append(p.name)
        self.at = self.stages_at()
        # Of the stages that are stored outside of the loop they are computed in, the variables of both loops.
        self.stored_outside = [
            (self.variable(p.compute), None if p.store is None else self.variable(p.store))
            for p in plan.stages.values() if p.compute is not None and p.compute != p.store
        ]  # fmt: skip
        self.begun: set[str] = set()  # stages whose loops have been built or are being built
        self.ordered: set[str] = set()
        self.floor = 0  # open loops below this depth are not slid along
        self.gone: frozenset[str] = frozenset()  # loops of which only what whole blocks leave over is being built
        self.extents = Extents(self.facts)
        # Variable of each loop around the statement being built -> open loops down to it. Loops of one iteration, and
        # those that a peeled tail does without, are not open, but stages are stored and computed there all the same.
        self.around: dict[str, int] = {}
        outputs = {s: self.output_box(graph.stage[s]) for s in graph.output}
        self.required = Required(graph, checked, outputs, facts)

    def reach(self) -> Reach:
        """What is known about whole loops, where the open ones are not whole."""
        return Reach(self.covered, self.gone.union(loop.var.name for loop in self.open), self.contents)

    # Stages at a site

    def stages_at(self) -> dict[Site | None, list[Stage]]:
        """The stages with loops of their own that a site has to do with, the last one to run first."""
        found: dict[Site | None, list[Stage]] = {}
        for stage in reversed(self.order):
            p = self.plan.stages[stage.name]
            if p.with_stage is None:
                stores = [self.plan.stages[name].store for name in (stage.name, *self.companions(stage.name))]
                for site in dict.fromkeys([p.compute, *p.also, *stores]):
                    found.setdefault(site, []).append(stage)
        return found

    def place(self, site: Site | None, body: Stmt) -> Stmt:
        """`body` with the stages that are computed and stored at `site` around it."""
        for stage in self.at.get(site, ()):
            p = self.plan.stages[stage.name]
            if p.is_computed_at(site):
                body = self.compute(stage, p, body)
            for name in (stage.name, *self.companions(stage.name)):
                if self.plan.stages[name].is_stored_at(site) and name not in self.graph.output:
                    body = self.store(self.graph.stage[name], self.plan.stages[name], body)
        return body

    def compute(self, stage: Stage, p: StagePlan, rest: Stmt) -> Stmt:
        """The stage (and those fused into its loops) over what `rest` needs, then `rest`."""
        self.begun.add(stage.name)
        progress.step(f"nest, stage {len(self.begun)} of {len(self.order)}")
        members = [self.graph.stage[n] for n in (stage.name, *self.companions(stage.name))]
        box = self.needed(members, rest)
        if box is None:
            return rest
        sliding = None
        if p.compute != p.store and not any(m.name in self.graph.output for m in members):
            sliding = slide(members, box, rest, self.loops_inside(p.store), self.values, self.reach(), self.facts,
                            lambda k: self.anywhere(members, k))  # fmt: skip
        if p.compute != p.store:
            self.rows.computed(members, box, sliding)
        if sliding is not None:
            box = sliding.box
        needed_when = self.conditions(members, rest) if p.compute == p.store else []
        needed_when += [c for m in members for c in self.there(m)]
        if sliding is not None and sliding.never_negative:
            self.extents.learn(box[sliding.dim].high - box[sliding.dim].low + 1)
        box = tuple(self.not_negative(side) for side in self.clipped(members, box, rest, needed_when))
        lets = [(*region_names(m, dim), side) for m in members for dim, side in zip(m.dims, box, strict=True)]
        for low, high, side in lets:
            for end, value in ((low.name, side.low), (high.name, side.high)):
                self.closed[end] = self.values[end] = value
                self.facts.bounds[end] = (self.facts.lower(value), self.facts.upper(value))
        produce, rest = self.started(members, p, sliding, rest)
        result: Stmt = Block((If(logical_and(*needed_when), produce) if needed_when else produce, rest))
        for low, high, side in reversed(lets):
            result = Let(low.name, side.low, Let(high.name, side.high, result))
        return result

    def there(self, stage: Stage) -> list[Expr]:
        """What must hold for the input to have pixels that a stage copies. Those who read it ask for no pixel that is
        not there; but what they clamp their places to is one, even of nothing."""
        if stage.updates or not self.required.is_conditional:
            return []
        read = [e for e in stage.pure.values if isinstance(e, Load) and all(map(same, e.indices, stage.pure.indices))]
        sources = {e.buffer for e in read} & self.graph.input.keys()
        sizes = (self.graph.input[i].size(axis) for i in sorted(sources) for axis in range(self.graph.input[i].ndim))
        return [size >= 1 for size in sizes if not self.facts.ge(size, const(1, INDEX))]

    def anywhere(self, members: list[Stage], k: int) -> bool:
        """Whether the stages can be computed at any position along dim k."""
        return all(self.required.anywhere(m, k) for m in members)

    def missing(self, buffer: str) -> bool:
        """Whether a call may need nothing of a stage that others read under conditions."""
        return buffer in self.graph.producer and self.required.is_limited(self.graph.producer[buffer])

    def clipped(self, members: list[Stage], box: Box, rest: Stmt, granted: list[Expr]) -> Box:
        """The box without what only iterations ask for in which a condition fails: there may be no input for it.

        Neither the conditions `granted` nor those on when a loop starts are such."""
        for m in members:
            self.most.pop(m.name, None)
        loops = {name for loop in self.open for name in (loop.var.name, *loop.parts)}
        starts = {loop.first.name for loop in self.open}

        def moves(name: str) -> bool:
            return name in loops or name in self.around or name in self.values and depends(self.values[name], loops)

        def counts(c: Expr) -> bool:
            settled = loaded(c) or depends(c, starts) or any(same(c, g) for g in granted)
            return any(map(moves, names(c))) and not settled

        reads = tuple(b for m in members for b in m.buffers)
        limited = self.required.is_loose or any(map(self.required.is_limited, members))
        whole = limited or read_if(rest, reads, counts, self.contents)
        return tuple(self.clipped_side(members, k, side)
                     if (whole or self.may_be_empty(side) or self.may_be_too_much(members, k, side))
                     and not self.anywhere(members, k) else side
                     for k, side in enumerate(box))  # fmt: skip

    def may_be_too_much(self, members: list[Stage], k: int, side: Interval) -> bool:
        """Whether a side, outside of all loops, may be more than is needed: of blocks in blocks, each as long as it
        happens to be, the last ones count as if they were as far out as any and as long as any. Of outputs, all that
        the caller has room for is computed."""
        if self.open or all(m.name in self.graph.output for m in members):
            return False
        needed = self.needed_by_call(members, k)
        return needed is not None and not (
            self.facts.ge(side.low, needed.low) and self.facts.ge(needed.high, side.high)
        )

    def needed_by_call(self, members: list[Stage], k: int) -> Interval | None:
        """All that a call needs of a dim of the stages, if that is known."""
        if not all(self.required.of(m)[k].bounded for m in members):
            return None
        wholes = [self.tidy(m, k, self.required.of(m)[k]) for m in members]
        return Interval(functools.reduce(minimum, (w.low for w in wholes)),
                        functools.reduce(maximum, (w.high for w in wholes)))  # fmt: skip

    def clipped_side(self, members: list[Stage], k: int, side: Interval) -> Interval:
        needed = self.needed_by_call(members, k)
        if needed is None:
            return side
        for m in members:
            most = None if self.required.is_limited(m) else self.facts.upper(side.high - side.low + 1)
            self.most.setdefault(m.name, {})[k] = None if most is None or most > _LONGEST_TILE else most
        # Both ends, so that nothing at all is an extent of 0.
        first = minimum(maximum(side.low, needed.low), needed.high + 1)
        last = minimum(maximum(side.high, needed.low - 1), needed.high)
        return Interval(simplify(first, self.facts), simplify(last, self.facts))

    def conditions(self, members: list[Stage], rest: Stmt) -> list[Expr]:
        """What must hold for `rest` to read the stages, apart from when a loop around it starts."""
        found = read_when(rest, tuple(b for m in members for b in m.buffers), self.contents) or []
        return [c for c in found if not depends(c, [loop.first.name for loop in self.open])]

    def not_negative(self, side: Interval) -> Interval:
        """Conditions may leave nothing to compute: then the extent is 0, which loops and their splits rely on."""
        extent = simplify(side.high - side.low + 1, self.facts)
        limits = any(isinstance(e, Op) and e.op in ("min", "max", "select") for e in walk(extent))
        if not (limits or self.required.is_conditional) or self.never_negative(extent):
            return side
        return Interval(side.low, maximum(side.high, side.low - 1))

    def may_be_empty(self, side: Interval) -> bool:
        """Whether conditions may leave nothing: then its ends may be anywhere, and what is read for it, too."""
        return self.required.is_conditional and not self.never_negative(simplify(side.high - side.low + 1, self.facts))

    def never_negative(self, extent: Expr) -> bool:
        return self.facts.ge(extent, const(0, INDEX)) or self.extents.follows(extent)

    def started(self, members: list[Stage], p: StagePlan, sliding: Sliding | None, rest: Stmt) -> tuple[Stmt, Stmt]:
        """The stage's loops and what follows them, each guarded until its first iteration of every loop around.

        A loop along which something slides starts early for its sake; everything else in it waits."""
        buffers = tuple(b for m in members for b in m.buffers)
        own = {}
        for loop in self.open:
            slides = sliding is not None and sliding.loop is loop
            own[loop] = sliding.start if sliding is not None and slides else loop.start_of_readers(rest, buffers)
        outer = {loop: loop.current for loop in self.open}
        for loop in self.open:
            loop.current = own[loop]
        produce = self.specialized(members[0], p.specializations)
        inner = {loop: loop.start(produce) for loop in self.open}
        for loop in self.open:
            loop.current = outer[loop]
            rest_start = loop.start(rest)
            if inner[loop] > rest_start:
                rest = loop.guarded(rest, rest_start)
            elif own[loop] < rest_start and inner[loop] == own[loop]:
                produce = loop.guarded(produce, own[loop])
            if inner[loop]:
                loop.starts.update({m.name: max(inner[loop], loop.starts.get(m.name, 0)) for m in members})
        return produce, rest

    def loops_inside(self, site: Site | None) -> list[OpenLoop]:
        """The open loops inside a site, outermost first."""
        depth = 0 if site is None else self.around[self.variable(site)]
        return self.open[max(depth, self.floor) :]

    @contextmanager
    def no_sliding_outside(self) -> Iterator[None]:
        """One of several versions of the same statement is built: they could not agree on when a loop around starts."""
        before, self.floor = self.floor, len(self.open)
        yield
        self.floor = before

    def one_after_another(self, parts: list[Stmt]) -> Stmt:
        """The parts, each waiting where a loop around starts early for the sake of another."""
        for loop in self.open:
            starts = [loop.start(p) for p in parts]
            parts = [loop.guarded(p, k) if k < max(starts) else p for p, k in zip(parts, starts, strict=True)]
        return parts[0] if len(parts) == 1 else Block(tuple(parts))

    def companions(self, name: str) -> list[str]:
        """The stages that run in the stage's loops (compute_with)."""
        return self.fused.get(name, [])

    def needed(self, members: list[Stage], rest: Stmt) -> Box | None:
        """The box that `rest` (or the caller) needs of the stages, as expressions; None if inlining left no reads."""
        boxes: list[tuple[Stage, Box]] = []
        reach = self.reach()
        for m in members:
            box = self.output_box(m) if m.name in self.graph.output else read_by(rest, m.buffers, {}, reach, m.name)
            if box is not None:
                grown = m.updates and m.name not in self.graph.output
                boxes.append((m, with_own_updates(m, box, {}, self.required.running) if grown else box))
        if not boxes:
            return None
        tidied = [(m, tuple(self.tidy(m, k, side) for k, side in enumerate(box))) for m, box in boxes]
        first = tidied[0][1]
        for m, box in tidied[1:]:
            if not self.same(box, first):
                raise different_regions(m, members[0])
        return first

    def same(self, a: Box, b: Box) -> bool:
        """Whether two boxes are certainly equal."""
        ends = [(x, y) for s, t in zip(a, b, strict=False) for x, y in ((s.low, t.low), (s.high, t.high))]
        return len(a) == len(b) and all(self.facts.ge(x, y) and self.facts.ge(y, x) for x, y in ends)

    def output_box(self, stage: Stage) -> Box:
        zero = const(0, INDEX)
        return tuple(Interval(zero, n - 1) for n in self.graph.output[stage.name].shape)

    def tidy(self, stage: Stage, k: int, side: Interval) -> Interval:
        if not side.bounded or any(isinstance(e, int) and abs(e) > _FARTHEST for e in (side.low, side.high)):
            raise unbounded(stage, k)
        ends = (expr(e, INDEX) for e in (side.low, side.high))
        return Interval(*(simplify(substitute(e, self.values), self.facts) for e in ends))

    def store(self, stage: Stage, p: StagePlan, body: Stmt) -> Stmt:
        """Memory for the box that `body` computes of the stage."""
        box = computed(body, stage, {}, self.reach())
        if box is None:
            return body
        sides = [self.tidy(stage, k, side) for k, side in enumerate(box)]
        sizes = tuple((side.low, self.extent(stage, p, k, side)) for k, side in enumerate(sides))
        for buffer, dtype in reversed(list(zip(stage.buffers, stage.dtypes, strict=True))):
            body = Realize(buffer, dtype, sizes, p.memory, body)
        return body

    def extent(self, stage: Stage, p: StagePlan, k: int, side: Interval) -> Expr:
        """Of the memory along one dim: what was clipped off may be a constant extent, and that is simpler."""
        most = self.most.get(stage.name, {}).get(k) if p.compute == p.store else None
        return simplify(side.high - side.low + 1, self.facts) if most is None else const(most, INDEX)

    # Loops of a stage

    def specialized(self, stage: Stage, conditions: tuple[Expr, ...]) -> Stmt:
        """A version of its own for where each condition holds, tried in order, and the general one."""
        if not conditions:
            return self.produce(stage)
        condition = conditions[0]
        bounds = self.facts.bounds
        known, assumed = assume(condition, bounds)
        if is_impossible(assumed):  # what never runs needs nothing of other stages
            return self.specialized(stage, conditions[1:])
        with self.no_sliding_outside():
            self.facts.bounds = assumed
            with self.extents.of_a_version():
                version = self.produce(stage)
            self.facts.bounds = bounds
            version = ir.map_exprs(version, lambda e: substitute(e, known))
            return If(condition, version, self.specialized(stage, conditions[1:]))

    def produce(self, stage: Stage) -> Stmt:
        """All definitions of the stage, one after the other; those in the loops of the first are built there."""
        within = self.plan.stages[stage.name].within
        parts = [self.if_needed(stage, k, self.open_lets(self.loops(stage, k), 0))
                 for k in range(len(stage.definitions)) if k not in within]  # fmt: skip
        return Produce(stage.name, self.one_after_another(parts))

    def if_needed(self, stage: Stage, index: int, body: Stmt) -> Stmt:
        """A definition's loops. Those of an update may run over its domain alone, also where nothing is needed of the
        stage: then there is no memory for what it writes."""
        clipped = self.most.get(stage.name, {}) if stage.name not in self.graph.output else range(len(stage.dims))
        along = pure_dims(stage, index)
        ends = [region_names(stage, dim) for k, dim in enumerate(stage.dims) if k in clipped and dim not in along]
        some = [low <= high for low, high in ends if not self.has_values(low, high)]
        missing = self.never_runs(stage, index) if len(along) < len(stage.dims) else 0
        if isinstance(missing, Expr):
            some.append(missing < 1)
        elif missing:
            return Block(())
        return If(logical_and(*some), body) if some else body

    def never_runs(self, stage: Stage, index: int) -> Expr | int:
        """1 where a definition's domain has no points, else 0. If it writes at places of its own, there may be no
        memory for them then, and what is accumulated there is held in registers around its loops."""
        d = stage.definitions[index]
        box = tuple(Interval(*region_names(stage, dim)) for dim in stage.dims)
        scope = where_it_holds(d, definition_scope(stage, d, box, {}))
        return self.required.missing(scope[r.name] for r in d.domain)

    def has_values(self, low: Var, high: Var) -> bool:
        """Whether a region certainly has."""
        return self.is_positive(self.closed[high.name] - self.closed[low.name] + 1)

    def is_positive(self, extent: Expr) -> bool:
        return self.facts.ge(extent, const(1, INDEX)) or self.required.is_positive(extent)

    def has_points(self, extent: Expr) -> bool:
        """Whether a range of an extent in loop variables and lets certainly has any."""
        return self.is_positive(simplify(substitute(extent, self.values), self.facts))

    def loops(self, stage: Stage, index: int) -> Loops:
        nest = self.plan.stages[stage.name].nests[index]
        for loop in nest.loops:  # another version of them may have been built before, with other bounds
            self.facts.bounds.pop(loop_name(stage, index, loop.name), None)
        ranges = {dim: self.region(stage, dim) for dim in pure_dims(stage, index)}
        for r in stage.definitions[index].domain:
            low, extent = simplify(r.min, self.facts), self.counted(nest, r)
            ranges[r.name] = Range(low, simplify(low + extent - 1, self.facts))
        loops = make_loops(stage, index, nest, ranges, self.facts, self.at_least)
        self.covered.add(loops.covered)
        return loops

    def counted(self, nest: Nest, r: ReductionDim) -> Expr:
        """The extent of a domain. A loop runs no iterations over a negative one, but splits and fuses count with it:
        the last block of -1 values begins 8 before the first, and -1 rows of -1 values are one."""
        names = {n for w in nest.rewrites for n in ((w.old,) if isinstance(w, Split) else (w.outer, w.inner))}
        if r.name not in names or self.never_negative(r.extent) or self.required.is_positive(r.extent + 1):
            return r.extent
        return maximum(r.extent, const(0, INDEX))

    def region(self, stage: Stage, dim: str) -> Range:
        """The range of a dim: constants where they are known, else by name."""
        low, high = region_names(stage, dim)
        extent = simplify(self.closed[high.name] - self.closed[low.name] + 1, self.facts)
        first = self.closed[low.name] if isinstance(self.closed[low.name], Const) else low
        return Range(first, simplify(first + extent - 1, self.facts) if isinstance(extent, Const) else high)

    def at_least(self, extent: Expr, n: int) -> bool:
        return self.facts.ge(substitute(extent, self.closed), const(n, INDEX))

    def ready(self, loops: Loops, depth: int) -> list[tuple[str, Expr]]:
        """The lets whose loops are open, that is, above `depth`; they are not pending any more."""
        inner = loops.nest.loops[depth:]
        waiting = {loops.var(x.name).name for x in inner if x.name not in loops.gone} | {n for n, _ in loops.lets}
        ready: list[tuple[str, Expr]] = []
        pending = list(loops.lets)
        while found := next((i for i in pending if waiting.isdisjoint(names(i[1]))), None):
            pending.remove(found)
            waiting.discard(found[0])
            ready.append(found)
        self.lets.update(ready)
        loops.lets = pending
        return ready

    def open_lets(self, loops: Loops, depth: int) -> Stmt:
        """The lets whose loops are open, then the loop at `depth`."""
        ready = self.ready(loops, depth)
        for name, value in ready:
            self.values[name] = simplify(substitute(value, self.values), self.facts)
            if name in loops.blocks:
                self.extents.learn(substitute(loops.blocks[name], self.values))
        body = self.open_loop(loops, depth)
        for name, value in reversed(ready):
            del self.values[name]
            body = Let(name, value, body)
        return body

    def open_loop(self, loops: Loops, depth: int) -> Stmt:
        if depth == len(loops.nest.loops):
            return self.leaf(loops)
        loop = loops.nest.loops[depth]
        if loop.name in loops.gone:
            return self.inside(loops, depth, loop.name)
        if loop.name not in loops.peel:
            return self.loop(loops, depth, loop)
        rest, name, first = loops.tail(loop.name)
        with self.extents.of_a_version():
            whole = self.open_loop(loops.whole(loop.name), depth)
        with self.no_sliding_outside(), self.left_over(rest, name, first):
            tail: Stmt = Let(name, first, self.inside(rest, depth, loop.name))
        for around in self.open:
            if around.start(whole) > around.current:
                tail = around.guarded(tail, around.current)
        return Block((whole, tail))

    @contextmanager
    def left_over(self, rest: Loops, name: str, first: Expr) -> Iterator[None]:
        """What whole blocks leave over is built: from `first` on, without the loop over blocks."""
        before, self.gone = self.gone, self.gone.union(rest.var(x).name for x in rest.gone)
        self.values[name] = simplify(substitute(first, self.values), self.facts)
        with self.extents.of_a_version():
            yield
        del self.values[name]
        self.gone = before

    def loop(self, loops: Loops, depth: int, loop: Loop) -> Stmt:
        r = loops.ranges[loop.name]
        kind = Kind.SERIAL if loop.name in loops.serial else loop.kind
        name = loops.var(loop.name).name
        extent = simplify(r.high - r.low + 1, self.facts)
        if isinstance(extent, Const) and int(extent.value) <= 0:
            return Block(())
        if kind in WRITTEN_OUT and not is_constant(loops, loop, extent, self.small or bool(self.gone)):
            loops, kind = replace(loops, serial=loops.serial | {loop.name}), Kind.SERIAL
        if isinstance(extent, Const) and int(extent.value) == 1:
            self.values[name] = simplify(substitute(r.low, self.values), self.facts)
            body = self.inside(loops, depth, loop.name)
            del self.values[name]  # another version may have a loop of this name
            return Let(name, r.low, body)
        around = OpenLoop(name, r.low, extent, kind)
        self.learn(name, r.low, extent, self.may_start_early(around))
        self.open.append(around)
        body = self.inside(loops, depth, loop.name)
        self.open.pop()
        if loops.index > 0 or around.starts:
            self.ordered.add(name)
        if not around.starts:
            return For(name, r.low, extent, kind, body)
        early = around.warm_up
        self.covered.start_early(name, early)
        started: Stmt = For(name, around.first - early, extent + early, kind, body)
        if not self.runs(loops, r, extent):
            started = If(extent > 0, started)  # what has no iterations does not start early, either
        return Let(around.first.name, r.low, started)

    def runs(self, loops: Loops, r: Range, extent: Expr) -> bool:
        """Whether a loop certainly has iterations: a block that is cut off at the end has one."""
        if isinstance(r.low, Var) and r.low.name in loops.blocks:
            return True
        return self.at_least(extent, 1) or self.required.is_positive(substitute(extent, self.closed))

    def inside(self, loops: Loops, depth: int, loop: str) -> Stmt:
        """The body of the loop at `depth`: what is computed there, the stages fused into it, the loops inside."""
        name = loops.var(loop).name
        self.around[name] = len(self.open)
        parts = self.parts(loops, depth + 1)
        guards = self.decided(loops, depth + 1)
        alone = self.open_lets(loops, depth + 1)
        alone = self.run_companions(loops, loop, self.run_updates(loops, loop, alone))
        body = self.place(Site(loops.stage.name, loops.index, loop), alone)
        if guards and body is not alone:  # what nothing needs is not computed, either
            body = If(logical_and(*guards), body)
        body = self.prefetched(loops, body) if depth == loops.innermost() else body
        del self.around[name]
        for name, value in reversed(parts):
            body = Let(name, value, body)
        return body

    def decided(self, loops: Loops, depth: int) -> list[Expr]:
        """The guards of the stage that the loops outside `depth` decide."""
        inside = {loops.var(x.name).name for x in loops.nest.loops[depth:]}
        return [g for g in loops.guards if not depends(g, inside.union(name for name, _ in loops.lets))]

    def parts(self, loops: Loops, depth: int) -> list[tuple[str, Expr]]:
        """The coordinates that a fused loop is taken apart into. Regions are told in terms of them: their ranges are
        known, and those of the quotient and remainder that they are would be far too large."""
        ready = self.ready(loops, depth)
        outside = {name for name, _ in ready if name in loops.fused}
        for name, value in reversed(ready):  # and what they are made of, where a fused loop was split again
            outside |= names(value) if name in outside else set()
        parts = [let for let in ready if let[0] in outside]
        loops.lets = [let for let in ready if let[0] not in outside] + loops.lets
        if parts and self.open:
            self.open[-1].parts += [name for name, _ in parts]
        return parts

    def prefetched(self, loops: Loops, body: Stmt) -> Stmt:
        """The innermost body, after asking for what it will read some iterations of an outer loop later."""
        for p in self.plan.stages[loops.stage.name].prefetches:
            box = read_by(body, (p.buffer,), {}, self.reach())
            ahead = loops.var(p.loop)
            if box is not None and any(o.var.name == ahead.name for o in self.open):
                sides = [self.tidy(loops.stage, k, side) for k, side in enumerate(box)]
                later = {ahead.name: ahead + p.distance}
                moved = tuple(Interval(*(substitute(e, later) for e in (s.low, s.high))) for s in sides)
                line = self.plan.target.line
                body = ir.block(*prefetches(p.buffer, moved, self.bytes(p.buffer), line, self.facts), body)
        return body

    def bytes(self, buffer: str) -> int:
        """Size of a buffer's elements."""
        if buffer in self.graph.input:
            return self.graph.input[buffer].dtype.bytes
        stage = self.graph.producer[buffer]
        return stage.dtypes[stage.buffers.index(buffer)].bytes

    def learn(self, name: str, low: Expr, extent: Expr, early: bool) -> None:
        """Remember constant bounds of a loop variable; how early a loop starts is known when its body is built."""
        last, first = self.facts.upper(simplify(low + extent - 1, self.facts)), self.facts.lower(low)
        self.facts.bounds[name] = first - _EARLIEST if early and first is not None else first, last

    def may_start_early(self, loop: OpenLoop) -> bool:
        """Whether some stage may slide along the loop that is being opened: it is stored outside."""
        return loop.serial and any(
            computed not in self.around and (stored is None or stored in self.around)
            for computed, stored in self.stored_outside
        )

    def variable(self, site: Site) -> str:
        """The loop variable of a site."""
        return loop_name(self.graph.stage[site.stage], site.definition, site.loop)

    def run_companions(self, loops: Loops, loop: str, body: Stmt) -> Stmt:
        """compute_with: the other stages' inner loops run in this loop, after this stage's."""
        if loops.index != 0:
            return body
        for name in self.companions(loops.stage.name):
            if self.plan.stages[name].with_loop == loop:
                own = self.loops(self.graph.stage[name], 0).inside(loops, loop)
                depth = [x.name for x in own.nest.loops].index(loop) + 1
                body = self.one_after_another([body, Produce(name, self.open_lets(own, depth))])
        return body

    def run_updates(self, loops: Loops, loop: str, body: Stmt) -> Stmt:
        """compute_with the stage itself: updates' inner loops run in this loop, after those of the pure definition."""
        if loops.index != 0:
            return body
        for k, at in self.plan.stages[loops.stage.name].within.items():
            if at == loop:
                own = self.loops(loops.stage, k).inside(loops, loop)
                depth = [x.name for x in own.nest.loops].index(loop) + 1
                body = self.one_after_another([body, self.if_needed(loops.stage, k, self.open_lets(own, depth))])
        return body

    def leaf(self, loops: Loops) -> Stmt:
        """The stores of one point, where the definition's condition holds: in those lanes, if it varies among them."""
        d = loops.definition
        lowered, scope = Lowered(loops.at).expression, self.everywhere(loops)

        def masked(e: Expr) -> Expr:
            return mask_loads(lowered(e), scope, self.graph.input, self.facts, self.missing, self.has_points)

        indices = tuple(simplify(masked(i), self.facts) for i in d.indices)
        for k, i in enumerate(indices):
            if not self.made_of(i).isdisjoint(self.lanes(loops)):
                self.rows.in_lanes(loops.stage, k)
        condition = None if d.condition is None else masked(d.condition)
        mask = condition if condition is not None and self.varies_by_lane(loops, condition) else None
        values = [masked(v) for v in d.values]
        if mask is not None:
            known = {n: Interval(*(substitute(e, self.values) for e in (r.low, r.high))) for n, r in scope.items()}
            by_lane = functools.partial(depends, wanted=self.lanes(loops))
            values = [mask_lanes(v, known, self.graph.input, self.facts, mask, loops.stage, by_lane) for v in values]
        body = self.stores(loops, indices, values, mask)
        guards = [*loops.guards, *([condition] if condition is not None and mask is None else [])]
        return If(logical_and(*guards), body) if guards else body

    def varies_by_lane(self, loops: Loops, condition: Expr) -> bool:
        """Whether a condition on coordinates differs between the lanes of a vector, at places that do not."""
        d = loops.definition
        return depends(condition, self.lanes(loops)) and not any(loaded(e) for e in (condition, *d.indices))

    def made_of(self, e: Expr) -> frozenset[str]:
        """The variables of an expression and of the lets that it is made of."""
        found = names(e)
        return found.union(*(self.made_of(self.lets[name]) for name in found if name in self.lets))

    def lanes(self, loops: Loops) -> list[str]:
        """The variables whose values become lanes."""
        return [loops.var(x.name).name for x in loops.nest.loops if loops.is_vector(x)]

    def everywhere(self, loops: Loops) -> dict[str, Interval]:
        """The coordinates of a definition, each over its whole range."""
        ranges = {dim: Interval(*region_names(loops.stage, dim)) for dim in loops.stage.dims}
        for r in loops.definition.domain:
            ranges[r.name] = Interval(r.min, r.min + r.extent - 1)
        return {at.name: ranges[dim] for dim, at in loops.at.items() if isinstance(at, Var)}

    def stores(self, loops: Loops, indices: tuple[Expr, ...], values: list[Expr], mask: Expr | None) -> Stmt:
        buffers, stream = loops.stage.buffers, self.plan.stages[loops.stage.name].nontemporal
        if len(values) == 1 or loops.index == 0:
            return ir.block(*(Store(b, indices, v, mask, stream) for b, v in zip(buffers, values, strict=True)))
        # An update may read what it writes: all values are computed before any is stored.
        names: list[Var] = [var(of_buffer(loops.prefix, "value", k), v.dtype) for k, v in enumerate(values)]
        body: Stmt = Block(tuple(Store(b, indices, n, mask, stream) for b, n in zip(buffers, names, strict=True)))
        for name, value in reversed(list(zip(names, values, strict=True))):
            body = Let(name.name, value, body)
        return body
