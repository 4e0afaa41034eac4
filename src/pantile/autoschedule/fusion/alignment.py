"""Sets of stages that might become groups, aligned and scaled so that dependences between them are constant vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ...analysis.access import Access, Index
from ...analysis.alignment import Reads, align
from ...dataclass import cached_property, memoized
from ...graph.nodes import Definition, Stage
from ...schedule.updates import is_independent, pure_dims
from ..strategy import Problem
from .aligned_group import AlignedGroup, AlignedSpace
from .dag import Dag, Group, union, vertices
from .stage_facts import SingleStages

# Dims with at most this number of points, such as channels, are not tiled: every tile has all of their points, wherever
# these are read.
SHORT = 16


class StageGraph(SingleStages):
    """The stages of a problem as vertices of a graph. Without `reductions`, no stage with a reduction domain is in a
    group: how it reads others is no matter of tiles then."""

    def __init__(self, problem: Problem, reductions: bool = True) -> None:
        super().__init__(problem)
        self._reductions = reductions

    @cached_property
    def dag(self) -> Dag:
        at = {name: k for k, name in enumerate(self.names)}
        edges = [(at[p], at[c]) for c in self.names for p in self.facts.producers[c] if p in at]
        return Dag.of(len(self.names), edges)

    def members(self, group: Group) -> tuple[str, ...]:
        """The members of a group, producers before consumers."""
        return tuple(self.names[v] for v in vertices(group))

    def live_outs(self, group: Group) -> tuple[str, ...]:
        """The members that other stages read, or that are outputs of the pipeline."""
        outputs = self.problem.graph.output
        read = [v for v in vertices(group) if self.dag.successors[v] & ~group or self.names[v] in outputs]
        return tuple(self.names[v] for v in read)

    def live_ins(self, group: Group) -> tuple[str, ...]:
        """The stages and inputs that a group reads."""
        inside = set(self.members(group))
        producers = (p for name in inside for p in self.facts.producers[name])
        return tuple(sorted({p for p in producers if p not in inside}))

    # ---- what can be in a group

    def can_be_fused(self, name: str) -> bool:
        """Whether a stage can be in a group. PolyMage groups functions, not reductions; a stage whose updates change
        each point by itself is a function, too."""
        return name in self._fusable

    @cached_property
    def _fusable(self) -> frozenset[str]:
        able = (s for s in self.problem.graph.stages if self.facts.is_limited(s.name) and _is_function(s))
        return frozenset(s.name for s in able if self._reductions or not any(d.domain for d in s.definitions))

    def is_hopeless(self, group: Group) -> bool:
        """Whether neither this set nor any larger one has constant dependence vectors."""
        if group & ~self._able or any(self._apart[v] & group for v in vertices(group & self._some_apart)):
            return True
        return any(self.aligned(part) is None for part in self.separate(group))

    @memoized
    def separate(self, group: Group) -> tuple[Group, ...]:
        """The connected components of a group."""
        return _components(group, self._neighbours)

    @cached_property
    def _neighbours(self) -> list[Group]:
        """The neighbours of each vertex: those it reads or is read by."""
        return [before | after for before, after in zip(self.dag.predecessors, self.dag.successors, strict=True)]

    @memoized
    def aligned(self, group: Group) -> AlignedGroup | None:
        """A connected set in one space; None if its dependence vectors are not constant."""
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
        """For each vertex, those with which it cannot share a group, because one reads the other at indices that depend
        on data or sizes."""
        apart = [0] * len(self.names)
        for v in vertices(self._able):
            for s in vertices(self.dag.successors[v] & self._able):
                if self._pair_space(self.names[v], self.names[s]) is None:
                    apart[v] |= 1 << s
                    apart[s] |= 1 << v
        return apart

    @cached_property
    def _some_apart(self) -> Group:
        """The vertices that cannot share a group with some others."""
        return sum(1 << v for v, apart in enumerate(self._apart) if apart)

    def _pair_space(self, producer: str, consumer: str) -> AlignedSpace | None:
        return self._space((producer, consumer), lambda stage, d: self._by_source(stage, d).get(producer, ()))

    @cached_property
    def _spaces(self) -> list[tuple[Group, AlignedSpace]]:
        """Spaces of stages that are connected by constant dependences. Subsets of these stages need no spaces of their
        own."""
        at = {name: v for v, name in enumerate(self.names)}

        def constant(stage: Stage, definition: Definition) -> Sequence[Access]:
            apart = self._apart[at[stage.name]]
            sources = self._by_source(stage, definition).items()
            return [a for name, accesses in sources if name not in at or not apart >> at[name] & 1 for a in accesses]

        near = [close & ~apart for close, apart in zip(self._neighbours, self._apart, strict=True)]
        spaces = []
        for left in _components(self._able, near):
            while left:
                part, space = self._part_in_one_space(left, near, constant)
                spaces.append((part, space))
                left &= ~part
        return spaces

    def _part_in_one_space(self, group: Group, near: Sequence[Group], reads: Reads) -> tuple[Group, AlignedSpace]:
        """Return a part of a group in one space: all of it, or its first stage and neighbours that are added one by
        one."""
        if whole := self._space(self.members(group), reads):
            return group, whole
        part, *others = (1 << v for v in vertices(group))
        space = self._space(self.members(part), reads)
        assert space is not None, "a stage alone is in a space"
        for other in others:
            if union(near, other) & part and (larger := self._space(self.members(part | other), reads)):
                part, space = part | other, larger
        return part, space

    def _space(self, names: tuple[str, ...], reads: Reads | None = None) -> AlignedSpace | None:
        alignment = align(self.problem.graph, names, reads or self._along_axes)
        return None if alignment is None else AlignedSpace(alignment, self)

    def _along_axes(self, stage: Stage, definition: Definition) -> Sequence[Access]:
        """The reads of a definition, without what does not matter to tiles."""
        return [a for accesses in self._by_source(stage, definition).values() for a in accesses]

    @memoized
    def _by_source(self, stage: Stage, definition: Definition) -> dict[str, list[Access]]:
        """The accesses of a definition, grouped by the stage or input that they read."""
        accesses: dict[str, list[Access]] = {}
        for access in self.reads(stage, definition):
            accesses.setdefault(self.facts.source(access.buffer), []).append(self._without_loose_dims(access))
        return accesses

    def _without_loose_dims(self, access: Access) -> Access:
        name = self.facts.source(access.buffer)
        loose = self._loose.get(name)
        if not loose:
            return access
        anywhere = Index(None, Fraction(0), Fraction(0), Fraction(SHORT))
        dims = zip(self.problem.graph.stage[name].dims, access.indices, strict=True)
        return replace(access, indices=tuple(anywhere if d in loose else i for d, i in dims))

    @cached_property
    def _loose(self) -> dict[str, set[str]]:
        """Short dims of stages that are also read at constants, such as an alpha channel, and the dims that are aligned
        with them. Distances along them are not constant, and need not be."""
        loose: dict[str, set[str]] = {}
        beside: dict[tuple[str, str], list[tuple[str, str]]] = {}
        pending: list[tuple[str, str]] = []
        for consumer, access in self._between:
            name = self.facts.source(access.buffer)
            for dim, i in zip(self.problem.graph.stage[name].dims, access.indices, strict=True):
                if i is not None and i.dim is None:
                    pending.append((name, dim))
                elif i is not None and i.dim is not None:
                    beside.setdefault((name, dim), []).append((consumer, i.dim))
                    beside.setdefault((consumer, i.dim), []).append((name, dim))
        while pending:
            name, dim = pending.pop()
            if self._is_short(name, dim) and dim not in loose.setdefault(name, set()):
                loose[name].add(dim)
                pending += beside.get((name, dim), ())
        return loose

    @property
    def _between(self) -> Iterator[tuple[str, Access]]:
        """Yield the stages that may be in a group and read others, each with its accesses."""
        for consumer in (s for s in self.problem.graph.stages if self.can_be_fused(s.name)):
            for access in (a for d in consumer.definitions for a in self.reads(consumer, d)):
                source = self.facts.source(access.buffer)
                if source in self.extents and source != consumer.name:
                    yield consumer.name, access

    def _is_short(self, name: str, dim: str) -> bool:
        return self.extents[name][self.problem.graph.stage[name].dims.index(dim)] <= SHORT


def _is_function(stage: Stage) -> bool:
    return stage.ndim > 0 and all(
        pure_dims(stage, d) == stage.dims and all(is_independent(stage, d, dim) for dim in stage.dims)
        for d in stage.definitions
    )


def _components(group: Group, near: Sequence[Group]) -> tuple[Group, ...]:
    """The connected components of a group; `near` has the neighbours of each vertex."""
    parts = []
    while group:
        part, edge = 0, group & -group
        while edge:
            part |= edge
            edge = union(near, edge) & group & ~part
        parts.append(part)
        group &= ~part
    return tuple(parts)
