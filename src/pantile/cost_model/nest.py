"""The loops that a plan describes, in numbers: how often each stage is computed, over what box, in which loops.

    out: strip 8 > y 32 > x 16 vector of 8;  blur_x at y of out, stored at strip

        computed("blur_x")              a box of (1, 128), (32 + 2) * 8 times: it slides
        extents(("out", 0), Site y)     {"y": 1, "x": 128}: what one iteration of y computes of out

A box is what the stages in one iteration of its loop read, in the interior of the image (see `linear_forms`): it has
only extents, no positions. All iterations of a loop count as alike, and partial last blocks count in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from ..dataclass import memoized, value
from ..schedule.loop_tree import Leaf, LoopTree
from ..schedule.plan import ONCE, Nest, Plan, Site, Split
from ..target.kinds import Kind
from .call_facts import CallFacts
from .counted_loops import CountedLoops
from .layout import MemoryDim
from .linear_forms import LinearForm
from .reads import Box


@value(eq=False)
class ComputedBox:
    """A box that is computed `times` times. `slides` is the dim along which earlier boxes leave a part of it, if any.
    In partial blocks the box is smaller: `parts` has its mean extents along such dims, as fractions of its own."""

    box: Box
    times: float
    slides: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """How many points are computed in all."""
        return self.times * prod(self.box) * prod(self.parts.values())


def _vector_variables(nest: Nest) -> set[str]:
    """The variables that differ between the lanes of vectors."""
    variables = {loop.name for loop in nest.loops if loop.kind is Kind.VECTOR}
    for r in reversed(nest.rewrites if variables else ()):
        if isinstance(r, Split):
            variables |= {r.old} if variables & {r.outer, r.inner} else set()
        elif r.fused in variables:
            variables |= {r.outer, r.inner}
    return variables


class Nests:
    """The loops of those stages of a plan that are nested in each other, at the sizes of a call."""

    def __init__(self, facts: CallFacts, plan: Plan, names: Sequence[str]) -> None:
        self.facts, self.plan, self.tree = facts, plan, LoopTree(facts.graph, plan)
        self.leaves = [(name, k) for name in names for k in range(len(facts.graph.stage[name].definitions))]
        for name in reversed(names):  # consumers first, so that recursion does not get deep
            for site in self.tree.around(name):
                self.required(name, site)
            self.computed(name)

    def trips(self, site: Site) -> int:
        return self.loops((site.stage, site.definition)).trips(site.loop)

    # ---- boxes

    @memoized
    def computed(self, name: str) -> ComputedBox:
        """The box of a stage that is computed at a time, and how often it is."""
        p = self.plan.stages[name]
        sites = (p.compute, *p.also)
        box = self.required(name, p.compute)
        for site in p.also:
            box = tuple(map(max, box, self.required(name, site)))
        times = sum(map(self.times, sites))
        return self._without_overlap(name, ComputedBox(box, times, parts=self._mean_parts(name)))

    def _mean_parts(self, name: str) -> dict[str, float]:
        """The mean extents of the boxes of a stage, as fractions of the largest ones, along dims that move with blocks
        the last of which is partial."""
        chain = self.tree.around(name)
        parts: dict[str, float] = {}
        for depth, site in enumerate(chain):
            loops = self.loops((site.stage, site.definition))
            inside = {s.loop for s in chain[depth + 1 :] if s[:2] == site[:2]}
            if any(s.blocks == (site.loop,) and inside.isdisjoint(s.inside) for s, _ in loops.partial):
                parts |= self._mean_of_blocks(name, site, self.required(name, chain[depth - 1] if depth else None))
        return parts

    def _mean_of_blocks(self, name: str, site: Site, every: Box) -> dict[str, float]:
        """The mean extents of the boxes of the blocks of a loop; `every` is the box of all of them."""
        loops, parts = self.loops((site.stage, site.definition)), dict[str, float]()
        blocks, step = loops.trips(site.loop), loops.step[site.loop]
        for k, (one, whole) in enumerate(zip(self.required(name, site), every, strict=True)):
            rate = self._rate(name, k, site) if whole > one else None
            if rate is not None:
                last = min(max(1.0, whole - (blocks - 1) * rate * step), one)
                parts[self.facts.graph.stage[name].dims[k]] = (one * (blocks - 1) + last) / (one * blocks)
        return parts

    @memoized
    def times(self, site: Site | None) -> float:
        """How often a site is reached."""
        if site is None:
            return 1.0
        leaf = (site.stage, site.definition)
        loops = self.loops(leaf)
        computed, depth = self.computed(site.stage), loops.names.index(site.loop) + 1
        moved = frozenset().union(*(loops.of[name] for name in loops.names[:depth]))
        parts = [part for dim, part in computed.parts.items() if dim in moved]
        return computed.times * loops.iterations(depth) * prod(parts)

    def _without_overlap(self, name: str, whole: ComputedBox) -> ComputedBox:
        """Return the box without what earlier iterations of a loop between storage and computation have left in memory
        (sliding window)."""
        p = self.plan.stages[name]
        between = self.tree.around(name)[len(self.tree.to(p.store)) :]
        chain = self.tree.around(name)
        for site in reversed(between):
            depth = chain.index(site)
            one, count = self.required(name, site), self.trips(site)
            every = self.required(name, chain[depth - 1] if depth else None)
            moving = [k for k, (a, b) in enumerate(zip(one, every, strict=True)) if b > a]
            kind = self.tree.kind(site)
            if kind is not Kind.SERIAL or count < 2 or len(moving) != 1 or one[moving[0]] != whole.box[moving[0]]:
                continue
            k = moving[0]
            rate = self._rate(name, k, site)
            if rate is None:
                continue
            step = max(1, round(rate * self.loops((site.stage, site.definition)).step[site.loop]))
            if step < one[k]:
                box = tuple(step if j == k else n for j, n in enumerate(whole.box))
                times = whole.times * every[k] / step / count  # each row once; some iterations compute none
                return ComputedBox(box, times, k, whole.parts)
        return whole

    def is_unaligned(self, name: str) -> bool:
        """Whether nothing is known about the column at which a stage begins, such as whether it is even. This is so in
        tiles the last of which is partial."""
        return any(map(self._cuts_columns, self.tree.around(name)))

    @memoized
    def _cuts_columns(self, site: Site) -> bool:
        rewrites = self.plan.stages[site.stage].nests[site.definition].rewrites
        columns = {self.facts.graph.stage[site.stage].dims[-1]}
        for r in rewrites:
            if isinstance(r, Split) and r.old in columns:
                columns |= {r.outer, r.inner}
                if r.outer == site.loop and r.tail in ONCE:
                    return True
        return False

    @memoized
    def _rate(self, name: str, axis: int, site: Site) -> float | None:
        """The rate at which a dim of a stage moves with a loop of another stage, if it is constant. It is not if an
        index is clamped, if several indices have different rates, or if a stage in between pauses. Then lowering cannot
        tell what is new in each iteration."""
        inside = [leaf for leaf in self.facts.readers[name] if site in self.tree.chain(leaf)]
        reads = self.facts.reads
        rates = {self._rate_of(form, leaf, site) for leaf in inside for form in reads(leaf).along(name, axis)}
        return rates.pop() if len(rates) == 1 else None

    def _rate_of(self, form: LinearForm, leaf: Leaf, site: Site) -> float | None:
        dims = self.facts.graph.stage[leaf[0]].dims
        moving = [(v, s) for v, s in form.slopes if v in dims]
        if form.clamped or form.decided is not None or len(moving) != 1 or moving[0][1] <= 0:
            return None
        v, slope = moving[0]
        if leaf[0] == site.stage:
            return slope
        rate = self._rate(leaf[0], dims.index(v), site)
        return None if rate is None or self._pauses(leaf[0], rate, site) else slope * rate

    def _pauses(self, name: str, rate: float, site: Site) -> bool:
        """Whether a stage slides along a loop at a rate at which some iterations compute fewer rows than others, or
        none. Then lowering cannot tell what is new of what the stage reads."""
        slides = site in self.tree.around(name)[len(self.tree.to(self.plan.stages[name].store)) :]
        return slides and not (rate * self.loops((site.stage, site.definition)).step[site.loop]).is_integer()

    # ---- memory

    def layout(self, name: str) -> list[MemoryDim]:
        """The dims of memory, the contiguous one last. For a stage that is stored in a loop, they are those of its
        memory there."""
        return self._layout(name, self.stored(name) if name in self.plan.stages else self.facts.whole[name])

    def whole_layout(self, name: str) -> list[MemoryDim]:
        """The layout of a stage if all of it were stored."""
        return self._layout(name, self.facts.whole[name])

    @memoized
    def _layout(self, name: str, box: Box) -> list[MemoryDim]:
        p = self.plan.stages.get(name)
        if p is None:
            return [MemoryDim(axis, n, 1) for axis, n in enumerate(box)]
        dims = self.facts.graph.stage[name].dims
        parts = {d: MemoryDim(axis, n, 1) for axis, (d, n) in enumerate(zip(dims, box, strict=True))}
        for s in p.storage_splits:
            axis, n, step = parts[s.dim]
            outer, inner = MemoryDim(axis, -(-n // s.factor), step * s.factor), MemoryDim(axis, min(n, s.factor), step)
            parts[s.outer], parts[s.inner] = outer, inner
        return [parts[d] for d in p.storage]

    @memoized
    def memory_strides(self, name: str) -> Box:
        """The strides in memory of neighbours along each axis, in elements, if the whole stage is stored."""
        strides, distance = [0] * len(self.facts.whole[name]), 1
        for part in reversed(self.whole_layout(name)):
            if part.step == 1:
                strides[part.axis] = distance
            distance *= part.extent
        return tuple(strides)

    @memoized
    def stored(self, name: str) -> Box:
        """The memory that a stage has at a time. Along the dim in which it slides, only what is in use counts."""
        p = self.plan.stages[name]
        box, slides = self.required(name, p.store), self.computed(name).slides
        dim = None if slides is None else self.facts.graph.stage[name].dims[slides]
        if slides is None or dim is None or dim == p.storage[-1] or p.splits_storage(dim):
            return box
        used = self.required(name, p.compute)[slides] + self.computed(name).box[slides]
        return tuple(min(n, used) if k == slides else n for k, n in enumerate(box))

    @memoized
    def required(self, name: str, at: Site | None) -> Box:
        """The required region of a stage: what is read of it in one iteration of a loop, or in the whole call."""
        if at is None:
            return self.facts.whole[name]
        stage = self.facts.graph.stage[name]
        box: Box = (1,) * stage.ndim
        for leaf in self.facts.readers[name]:
            footprint = self.footprint(leaf, at)
            if footprint is not None:
                between = self.facts.reads(leaf).hull(name, self.extents(leaf, at) or {}, self.facts.whole)
                box = tuple(map(max, box, between or footprint[name]))
        for k in range(1, len(stage.definitions)):  # what updates write and read of the stage itself
            extents = {**dict(zip(stage.dims, box, strict=True)), **self._domain((name, k))}
            own = self.facts.reads((name, k)).boxes(extents, self.facts.whole)[name]
            box = tuple(map(max, box, own))
        return box

    @memoized
    def loops(self, leaf: Leaf) -> CountedLoops:
        """The loops of a definition."""
        extents = self._variables(leaf, self.computed(leaf[0]).box)
        return CountedLoops(self.plan.stages[leaf[0]].nests[leaf[1]], extents)

    def _variables(self, leaf: Leaf, box: Box) -> dict[str, int]:
        extents = dict(zip(self.facts.graph.stage[leaf[0]].dims, box, strict=True))
        return extents | self._domain(leaf) if leaf[1] else extents

    @memoized
    def _domain(self, leaf: Leaf) -> dict[str, int]:
        return self.facts.domain(leaf, _vector_variables(self.plan.stages[leaf[0]].nests[leaf[1]]))

    def versions(self, leaf: Leaf) -> list[CountedLoops]:
        """The loops of a definition, with separate loops for partial last blocks that differ from the others."""
        return self.loops(leaf).versions()

    @memoized
    def extents(self, leaf: Leaf, at: Site | None) -> dict[str, int] | None:
        """The number of values that the variables of a definition take in one iteration of a loop; None if the
        definition is outside of the loop."""
        name = leaf[0]
        if at is None:
            return self._variables(leaf, self.facts.whole[name])
        own = self.tree.own(leaf)
        if at in own:
            return self.loops(leaf).ranges(own.index(at) + 1)
        p = self.plan.stages[name]
        if at == p.compute or at in p.also:
            return self._variables(leaf, self.computed(name).box)
        if at in self.tree.around(name) or any(at in self.tree.to(site) for site in p.also):
            return self._variables(leaf, self.required(name, at))
        return None

    @memoized
    def footprint(self, leaf: Leaf, at: Site | None) -> dict[str, Box] | None:
        """The boxes that a definition reads and writes in one iteration of a loop; None if the definition is outside of
        the loop."""
        extents = self.extents(leaf, at)
        return None if extents is None else self.facts.definition(leaf).boxes(extents)

    def filled(self, leaf: Leaf, at: Site | None) -> dict[str, float]:
        """The fraction of the box of each source that a definition touches, for sources of which it touches only a
        part."""
        extents = self.extents(leaf, at)
        return {} if extents is None else self.facts.definition(leaf).filled(extents)
