"""Sets of stages that might become groups, aligned and scaled so that dependences between them are constant vectors.

Many sets of the same stages are looked at, so what is known of single stages is worked out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

from ..analysis.access import Access, Index, accesses
from ..analysis.alignment import Alignment, Reads, align
from ..expr.depth import deep_expressions
from ..graph.nodes import Definition, Stage
from ..schedule.updates import is_independent, pure_dims
from .grouping import Dag, Group, vertices
from .strategy import Problem

Distance = tuple[tuple[float, float], ...]  # per dim of the space: from, to

# Dims with so few points, such as channels, are not tiled: all of them belong to every tile, wherever they are read.
SHORT = 16


class Stages:
    """The stages of a problem as vertices of a graph."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.facts = problem.facts
        self.names = tuple(s.name for s in problem.graph.stages)
        self._hulls: dict[Definition, list[Access]] = {}
        self._aligned: dict[Group, AlignedGroup | None] = {}
        self._separate: dict[Group, tuple[Group, ...]] = {}

    @cached_property
    def dag(self) -> Dag:
        at = {name: k for k, name in enumerate(self.names)}
        edges = [(at[p], at[c]) for c in self.names for p in self.facts.producers[c] if p in at]
        return Dag.of(len(self.names), edges)

    def members(self, group: Group) -> tuple[str, ...]:
        """Producers before consumers."""
        return tuple(self.names[v] for v in vertices(group))

    def live_outs(self, group: Group) -> tuple[str, ...]:
        """Members that others read, or that the caller asked for."""
        outputs = self.problem.graph.output
        read = [v for v in vertices(group) if self.dag.successors[v] & ~group or self.names[v] in outputs]
        return tuple(self.names[v] for v in read)

    def live_ins(self, group: Group) -> tuple[str, ...]:
        """Stages and inputs that it reads."""
        inside = set(self.members(group))
        found = (p for name in inside for p in self.facts.producers[name])
        return tuple(sorted({p for p in found if p not in inside}))

    # ---- what can be in a group

    def can_be_fused(self, name: str) -> bool:
        """PolyMage groups functions, not reductions; an update at the points of its stage makes a function of it."""
        return name in self._fusable

    @cached_property
    def _fusable(self) -> frozenset[str]:
        return frozenset(s.name for s in self.problem.graph.stages if self.facts.is_limited(s.name) and _is_function(s))

    def is_hopeless(self, group: Group) -> bool:
        """Whether neither this set nor any larger one has constant dependence vectors."""
        if group & ~self._able or any(self._apart[v] & group for v in vertices(group)):
            return True
        return any(self.aligned(part) is None for part in self.separate(group))

    def separate(self, group: Group) -> tuple[Group, ...]:
        """Its connected parts."""
        if group not in self._separate:
            near = [before | after for before, after in zip(self.dag.predecessors, self.dag.successors, strict=True)]
            self._separate[group] = _components(group, near)
        return self._separate[group]

    def aligned(self, group: Group) -> AlignedGroup | None:
        """A connected set in one space, if there is one with constant dependence vectors."""
        if group not in self._aligned:
            self._aligned[group] = self._found(group)
        return self._aligned[group]

    def _found(self, group: Group) -> AlignedGroup | None:
        names = self.members(group)
        whole = next((space for part, space in self._spaces if not group & ~part), None)
        if whole is None or not whole.has(names[-1], self._long_dims(names[-1])):
            whole = self._space(names)
        return None if whole is None else AlignedGroup(self, names, whole)

    def _long_dims(self, name: str) -> list[str]:
        sizes = zip(self.problem.graph.stage[name].dims, self.extents[name], strict=True)
        return [d for d, n in sizes if n > SHORT]

    @cached_property
    def _able(self) -> Group:
        return sum(1 << v for v, name in enumerate(self.names) if self.can_be_fused(name))

    @cached_property
    def _apart(self) -> list[Group]:
        """Per vertex, those it cannot share a group with, because one reads the other where data or sizes decide."""
        found = [0] * len(self.names)
        for v in vertices(self._able):
            for s in vertices(self.dag.successors[v] & self._able):
                if self._space((self.names[v], self.names[s])) is None:
                    found[v] |= 1 << s
                    found[s] |= 1 << v
        return found

    @cached_property
    def _spaces(self) -> list[tuple[Group, _Space]]:
        """Of stages that are connected by constant dependences, all together: their subsets need none of their own."""
        at = {name: v for v, name in enumerate(self.names)}

        def constant(stage: Stage, definition: Definition) -> Sequence[Access]:
            sources = ((a, at.get(self.facts.source(a.buffer))) for a in self._along_axes(stage, definition))
            return [a for a, v in sources if v is None or not self._apart[v] >> at[stage.name] & 1]

        near = [(self.dag.successors[v] | self.dag.predecessors[v]) & ~self._apart[v] for v in range(len(self.names))]
        spaces = [(part, self._space(self.members(part), constant)) for part in _components(self._able, near)]
        return [(part, space) for part, space in spaces if space is not None]

    def _space(self, names: tuple[str, ...], reads: Reads | None = None) -> _Space | None:
        with deep_expressions():
            found = align(self.problem.graph, names, reads or self._along_axes)
        return None if found is None else _Space(found)

    def reads(self, stage: Stage, definition: Definition) -> Sequence[Access]:
        """What a definition reads, reads of the same kind taken together."""
        if definition not in self._hulls:
            found: dict[object, Access] = {}
            for access in accesses(stage, definition):
                kind = (access.buffer, *(None if i is None else (i.dim, i.scale) for i in access.indices))
                found[kind] = _hull(found[kind], access) if kind in found else access
            self._hulls[definition] = list(found.values())
        return self._hulls[definition]

    def _along_axes(self, stage: Stage, definition: Definition) -> Sequence[Access]:
        """The reads as far as tiles are concerned."""
        return [self._without_loose_dims(a) for a in self.reads(stage, definition)]

    def _without_loose_dims(self, access: Access) -> Access:
        name = self.facts.source(access.buffer)
        loose = self._loose.get(name)
        if not loose:
            return access
        anywhere = Index(None, Fraction(0), Fraction(0), Fraction(SHORT))
        dims = zip(self.problem.graph.stage[name].dims, access.indices, strict=True)
        return Access(access.buffer, tuple(anywhere if d in loose else i for d, i in dims))

    @cached_property
    def _loose(self) -> dict[str, set[str]]:
        """Short dims of stages that are read at constants too, such as the alpha channel, and those that go with them:
        no distances are constant along them, and none need be."""
        found: dict[str, set[str]] = {}
        links: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for consumer in self.problem.graph.stages:
            for access in (a for d in consumer.definitions for a in self.reads(consumer, d)):
                name = self.facts.source(access.buffer)
                if name in self.extents and name != consumer.name:
                    for dim, i in zip(self.problem.graph.stage[name].dims, access.indices, strict=True):
                        if i is not None and i.dim is None and self._is_short(name, dim):
                            found.setdefault(name, set()).add(dim)
                        elif i is not None and i.dim is not None:
                            links.append(((name, dim), (consumer.name, i.dim)))
        links += [(b, a) for a, b in links]
        pending = True
        while pending:
            new = [b for a, b in links if a[1] in found.get(a[0], ()) and b[1] not in found.get(b[0], ())]
            pending = [(name, dim) for name, dim in new if self._is_short(name, dim)] != []
            for name, dim in new:
                if self._is_short(name, dim):
                    found.setdefault(name, set()).add(dim)
        return found

    def _is_short(self, name: str, dim: str) -> bool:
        return self.extents[name][self.problem.graph.stage[name].dims.index(dim)] <= SHORT

    # ---- facts of single stages

    @cached_property
    def extents(self) -> dict[str, tuple[int, ...]]:
        return {name: self.facts.extents(name) for name in self.names}

    @cached_property
    def size(self) -> dict[str, int]:
        """Bytes of stages and inputs."""
        return {name: self.facts.size(name) for name in (*self.names, *self.problem.graph.input)}

    @cached_property
    def bytes_per_point(self) -> dict[str, int]:
        return {name: self.facts.bytes_per_point(name) for name in self.names}

    @cached_property
    def pointwise(self) -> frozenset[str]:
        """Stages that read others at their own coordinates, all shifted alike, or at constants such as a channel."""
        return frozenset(s.name for s in self.problem.graph.stages if self._is_pointwise(s))

    def _is_pointwise(self, stage: Stage) -> bool:
        indices = [i for d in stage.definitions for a in self.reads(stage, d) for i in a.indices]
        shifts: dict[str | None, set[Fraction]] = {}
        for i in indices:
            if i is None or (i.dim is not None and i.scale != 1):
                return False
            if i.dim is not None:
                shifts.setdefault(i.dim, set()).update((i.low, i.high))
        return not stage.updates and all(len(shift) == 1 for shift in shifts.values())

    @cached_property
    def operations(self) -> dict[str, float]:
        """Of one point of each stage."""
        found = {s.name: range(len(s.definitions)) for s in self.problem.graph.stages}
        with deep_expressions():
            return {name: sum(self.facts.arithmetic(name, k) for k in ks) for name, ks in found.items()}

    @cached_property
    def loads(self) -> dict[tuple[str, str], int]:
        """Of (producer, consumer): values that one point of the consumer reads."""
        found: dict[tuple[str, str], int] = {}
        for s in self.problem.graph.stages:
            for k in range(len(s.definitions)):
                for source, count in self.facts.reads(s.name, k).items():
                    found[source, s.name] = found.get((source, s.name), 0) + count
        return found

    @cached_property
    def reuse(self) -> dict[str, dict[str, int]]:
        """Per stage and dim, how many of the values that one iteration reads the next one reads again."""
        with deep_expressions():
            return {s.name: {d: _reuse(s, d) for d in s.dims} for s in self.problem.graph.stages}


def _is_function(stage: Stage) -> bool:
    return stage.ndim > 0 and all(
        pure_dims(stage, d) == stage.dims and all(is_independent(stage, d, dim) for dim in stage.dims)
        for d in stage.definitions
    )


def _components(group: Group, near: Sequence[Group]) -> tuple[Group, ...]:
    """Its connected parts; `near` has the neighbours of each vertex."""
    parts = []
    while group:
        part, edge = 0, group & -group
        while edge:
            part |= edge
            edge = _union(near[v] for v in vertices(edge)) & group & ~part
        parts.append(part)
        group &= ~part
    return tuple(parts)


def _union(groups: Iterable[Group]) -> Group:
    found = 0
    for g in groups:
        found |= g
    return found


def _hull(a: Access, b: Access) -> Access:
    pairs = zip(a.indices, b.indices, strict=True)
    return Access(a.buffer, tuple(None if i is None or j is None else _wider(i, j) for i, j in pairs))


def _wider(a: Index, b: Index) -> Index:
    return Index(a.dim, a.scale, min(a.low, b.low), max(a.high, b.high))


def _reuse(stage: Stage, dim: str) -> int:
    """Group-temporal reuse along a dim: reads that are reads of the next iteration as well (Wolf and Lam)."""
    found = 0
    for d in stage.definitions:
        read = {a for a in accesses(stage, d) if None not in a.indices}
        found += sum(_points(a) for a in read if _shifted(a, dim) in read)
        found += sum(_overlap(a, dim) for a in read if _shifted(a, dim) not in read)
    return found


def _shifted(a: Access, dim: str) -> Access:
    moved = (
        i if i is None or i.dim != dim else Index(dim, i.scale, i.low + i.scale, i.high + i.scale) for i in a.indices
    )
    return Access(a.buffer, tuple(moved))


def _points(a: Access) -> int:
    return prod(int(i.high - i.low) + 1 for i in a.indices if i is not None)


def _overlap(a: Access, dim: str) -> int:
    """Points that a read of a whole range, as in a reduction, has in common with itself one iteration later."""
    sizes = [(i.high - i.low + 1 - (i.scale if i.dim == dim else 0)) for i in a.indices if i is not None]
    return prod(max(0, int(n)) for n in sizes)


@dataclass(frozen=True)
class AlignedGroup:
    """A connected set of stages in one space, whose dims are those of the last stage, the output, in their order."""

    stages: Stages
    names: tuple[str, ...]
    space: _Space

    @property
    def output(self) -> str:
        return self.names[-1]

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return self.stages.problem.graph.stage[self.output].dims

    @property
    def extents(self) -> tuple[int, ...]:
        return self.stages.extents[self.output]

    @cached_property
    def _place(self) -> dict[int, int]:
        """Which dim of the output an axis of the space is."""
        own = self.space.axes[self.output]
        return {own[d][0]: k for k, d in enumerate(self.dims) if d in own}

    @cached_property
    def _units(self) -> dict[int, float]:
        return dict(self.space.axes[self.output].values())

    @cached_property
    def axes(self) -> dict[str, dict[str, int]]:
        """Stage -> its dim -> dim of the output that it goes along; all points of other dims belong to any tile."""
        place = self._place
        found = {n: self.space.axes[n].items() for n in self.names}
        return {n: {d: place[axis] for d, (axis, _) in axes if axis in place} for n, axes in found.items()}

    @cached_property
    def density(self) -> dict[str, dict[int, float]]:
        """Stage -> dim of the output -> its points per point of the output."""
        place, units = self._place, self._units
        found = {n: self.space.axes[n].values() for n in self.names}
        return {
            n: {place[axis]: units[axis] / scale for axis, scale in axes if axis in place} for n, axes in found.items()
        }

    @cached_property
    def dependences(self) -> dict[tuple[str, str], Distance]:
        """Of (producer, consumer), in points of the output."""
        members, units = set(self.names), self._units
        found: dict[tuple[str, str], Distance] = {}
        for name in self.names:
            for producer in self.stages.facts.producers[name]:
                if producer in members:
                    far = self.space.distance[producer, name]
                    along = {k: (far[a][0] / units[a], far[a][1] / units[a]) for a, k in self._place.items()}
                    found[producer, name] = tuple(along.get(k, (0.0, 0.0)) for k in range(len(self.dims)))
        centred = _centred(self.names, len(self.dims), found)
        return {(p, c): _narrowed(d, self.density[p], self.density[c]) for (p, c), d in centred.items()}

    def along(self, name: str) -> dict[int, int]:
        """The extent of a stage along each dim of the space that it has."""
        axes, dims = self.axes[name], self.stages.problem.graph.stage[name].dims
        return {axes[d]: n for d, n in zip(dims, self.stages.extents[name], strict=True) if d in axes}

    def beside(self, name: str) -> int:
        """Points of a stage at one point of the space, in dims that the space does not have."""
        axes, dims = self.axes[name], self.stages.problem.graph.stage[name].dims
        return prod(n for d, n in zip(dims, self.stages.extents[name], strict=True) if d not in axes)

    def same_points(self, a: str, b: str) -> bool:
        """Whether two stages have the same dims of the space, as densely."""
        return self.density[a] == self.density[b]


def _centred(
    names: Sequence[str], rank: int, found: Mapping[tuple[str, str], Distance]
) -> dict[tuple[str, str], Distance]:
    """Every stage is shifted to the middle of its consumers: what is only read elsewhere does not overlap."""
    shifts = dict.fromkeys(names, (0.0,) * rank)
    ways: dict[str, list[tuple[str, Distance]]] = {n: [] for n in names}
    for (p, c), distance in found.items():
        ways[p].append((c, distance))
    centred = {}
    for name in reversed(names):
        mine = [(c, _moved(distance, shifts[c])) for c, distance in ways[name]]
        if mine:
            ends = [(min(d[k][0] for _, d in mine), max(d[k][1] for _, d in mine)) for k in range(rank)]
            shifts[name] = tuple((low + high) / 2 for low, high in ends)
        back = tuple(-s for s in shifts[name])
        centred.update({(name, c): _moved(distance, back) for c, distance in mine})
    return centred


def _narrowed(distance: Distance, producer: Mapping[int, float], consumer: Mapping[int, float]) -> Distance:
    """A consumer that is coarser than its producer steps over what its last point has read: that does not overlap."""
    steps = [max(0.0, 1 / consumer.get(k, 1.0) - 1 / producer.get(k, 1.0)) / 2 for k in range(len(distance))]
    middles = [(low + high) / 2 for low, high in distance]
    return tuple(
        (min(low + s, m), max(high - s, m)) for (low, high), s, m in zip(distance, steps, middles, strict=True)
    )


def _moved(distance: Distance, shift: Sequence[float]) -> Distance:
    return tuple((low + s, high + s) for (low, high), s in zip(distance, shift, strict=True))


class _Space:
    """An alignment in floats, to look up in."""

    def __init__(self, alignment: Alignment) -> None:
        self.axes = {n: {d: (k, float(s)) for d, (k, s) in a.items()} for n, a in alignment.axes.items()}
        self.distance = {
            (d.producer, d.consumer): tuple((float(a), float(b)) for a, b in d.distance) for d in alignment.dependences
        }

    def has(self, name: str, dims: Iterable[str]) -> bool:
        """Whether these dims of a stage go along some of the space."""
        return all(d in self.axes[name] for d in dims)
