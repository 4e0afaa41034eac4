"""Which stages to compute as copies: those whose readers need disjoint parts of them.

    top[y, x] = op0[y, x] + op0[y + 1, x]          op0   over rows 0..h
    low[y, x] = op0[y + 500, x]                    op0_2 over rows 500..500 + h, the copy that low reads

Algorithm 3 fuses a space with each of several live-outs that share it if their parts of it do not intersect (its lines
4-5, and Figure 6(b)): then no instance is computed twice. Parts of one live-out that lie far apart become copies as
well. A tile computes a box of each stage, so that everything between two parts would be computed, too, though nothing
reads it: these are the dead instances of §IV-C.

Parts are what is needed for the whole outputs at the estimated sizes, as boxes. At other sizes copies may overlap,
which only costs time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

from ...analysis.interval import Interval, Scope
from ...analysis.regions import Box, definition_scope, each_load, hull, where_it_holds, with_own_updates
from ...dataclass import dataclass
from ...errors import UserError
from ...expr.nodes import Expr, Load
from ...graph.nodes import Stage
from ...schedule.clones import Place, clone_stages, copied_out, decides_places, place_of, places
from ...schedule.directives import Directive, StageSchedule, on
from ...schedule.schedule import Schedule
from ..common.facts import UNLIMITED
from ..strategy import Problem

MOST_PARTS = 4  # of one stage; with more it is left whole
MOST_COPIES = 64  # in all
ALL_PLACES = -1  # the number of the place for all reads of a reader that only one copy can serve
MOST_DEAD = 0.25  # parts of one live-out are merged if the box around them exceeds them by at most this fraction


@dataclass(frozen=True)
class StagePart:
    """A required box of a stage, the live-outs that require it, and the reads that do: (reader, number of place)."""

    box: Box
    liveouts: frozenset[str]
    reads: frozenset[tuple[str, int]] = frozenset()

    def __or__(self, other: StagePart) -> StagePart:
        return StagePart(hull(self.box, other.box), self.liveouts | other.liveouts, self.reads | other.reads)

    def meets(self, other: StagePart) -> bool:
        return all(a.low <= b.high and b.low <= a.high for a, b in zip(self.box, other.box, strict=True))

    def is_far_from(self, other: StagePart) -> bool:
        """Whether the box around two parts has much that nobody requires."""
        return _volume(hull(self.box, other.box)) > (1 + MOST_DEAD) * (_volume(self.box) + _volume(other.box))


@dataclass(frozen=True)
class StageClones:
    """The clone_in directives, and the parts of stages that they are for: stage -> name of the stage or copy ->
    part."""

    problem: Problem  # in which the copies are stages of their own
    clones: tuple[StageSchedule, ...]
    parts: Mapping[str, Mapping[str, StagePart]]
    whole: frozenset[str]  # stages that must not be copied
    refusals: tuple[str, ...] = ()

    def added(self, schedule: Schedule) -> Schedule:
        """Turn a schedule of the problem with copies into one of the original pipeline. If a reader is a copy of a
        stage that is computed in its place (`copy_out`), that stage reads."""
        computed = {name: made for name, chain in schedule.items() for made in copied_out(chain)}

        def of(d: Directive) -> Directive:
            reader, *others = d.args
            return replace(d, args=(computed.get(str(reader), reader), *others))

        chains = (StageSchedule(c.name, (*schedule[c.name].directives, *map(of, c.directives))) for c in self.clones)
        return schedule.replace(*chains)

    @property
    def remarks(self) -> list[str]:
        apart = (
            f"{stage} is computed as {' and '.join(parts)}: what is read of it lies apart"
            for stage, parts in self.parts.items()
        )
        return [*apart, *(f"no stage is computed as copies, because {refusal}" for refusal in self.refusals)]

    def in_vain(self, fused: set[str]) -> set[str]:
        """Line 7: the stages no copy of which is fused with its use, unless there are dead instances between the
        copies."""
        return {
            stage
            for stage, parts in self.parts.items()
            if fused.isdisjoint(parts) and not any(a.is_far_from(b) for a in parts.values() for b in parts.values())
        }


def copies(problem: Problem, whole: Collection[str] = ()) -> StageClones:
    """Decide which stages to copy; those in `whole` are not copied."""
    finder = _Finder(problem, whole)
    for stage in reversed(problem.graph.stages):
        finder.visit(stage)
    clones = tuple(finder.clones())
    try:
        graph = clone_stages(problem.graph, Schedule(*clones))[0]
    except UserError as refusal:
        return StageClones(problem, (), {}, frozenset(problem.graph.stage), (refusal.reason,))
    return StageClones(problem.with_graph(graph) if clones else problem, clones, finder.parts, frozenset(whole))


class _Finder:
    """Visits stages from consumers to producers, and from each copy of a consumer visits what that copy reads."""

    def __init__(self, problem: Problem, whole: Collection[str]) -> None:
        self.graph, self.facts, self.whole = problem.graph, problem.facts, whole
        self.required: dict[str, list[StagePart]] = {
            name: [StagePart(tuple(Interval(0, n - 1) for n in shape), frozenset((name,)))]
            for name, shape in problem.shapes.items()
        }
        self.parts: dict[str, dict[str, StagePart]] = {}
        self.names = {*self.graph.stage, *self.graph.input, *(p.name for p in self.graph.params)}
        self.count = 0

    def visit(self, stage: Stage) -> None:
        wanted = self.required.pop(stage.name, None)
        if wanted is None:
            return
        parts = _separate_parts([StagePart(self._grown(stage, p.box), p.liveouts, p.reads) for p in wanted])
        if len(parts) > 1 and not self._may_be_copied(stage, parts):
            parts = [_together(parts)]
        names = [stage.name, *(self._fresh(stage) for _ in parts[1:])]
        if len(parts) > 1:
            self.parts[stage.name] = dict(zip(names, parts, strict=True))
            self.count += len(parts) - 1
        for name, part in zip(names, parts, strict=True):
            self._read(stage, name, part)

    def _grown(self, stage: Stage, box: Box) -> Box:
        return box if stage.name in self.graph.output else with_own_updates(stage, box, self.facts.scope)

    def _may_be_copied(self, stage: Stage, parts: list[StagePart]) -> bool:
        if stage.name in self.whole or stage.name in self.graph.output or len(parts) > MOST_PARTS:
            return False
        return self.facts.is_limited(stage.name) and self.count + len(parts) - 1 <= MOST_COPIES

    def _fresh(self, stage: Stage) -> str:
        number = 2
        while (name := f"{stage.name.replace('.', '_')}_{number}") in self.names:
            number += 1
        self.names.add(name)
        return name

    def _read(self, stage: Stage, name: str, part: StagePart) -> None:
        """Record the regions that a part of a stage requires of others."""
        numbers: dict[str, dict[Place, int]] = {}
        for load, box in _loads(stage, part.box, self.facts.scope):
            if load.buffer in stage.buffers or load.buffer not in self.graph.producer:
                continue
            source = self.graph.producer[load.buffer]
            if source.name not in numbers:
                numbers[source.name] = _numbers(source, stage)
            read = (name, numbers[source.name][place_of(load)])
            self.required.setdefault(source.name, []).append(StagePart(box, part.liveouts, frozenset((read,))))

    def clones(self) -> Iterator[StageSchedule]:
        for stage, parts in self.parts.items():
            chain = on(stage)
            for name, part in list(parts.items())[1:]:
                readers = dict.fromkeys(reader for reader, _ in sorted(part.reads))
                for reader in readers:
                    numbers = sorted(k for r, k in part.reads if r == reader)
                    chain = chain.clone_in(reader, name, *(k for k in numbers if k != ALL_PLACES))
            yield chain


def _numbers(source: Stage, reader: Stage) -> dict[Place, int]:
    """The numbers that identify reads. Reads that cannot be of different copies share a number, and so become one
    part."""
    together = decides_places(source, reader)
    return {place: ALL_PLACES if together else k for k, place in enumerate(places(source, reader))}


def _loads(stage: Stage, box: Box, scope: Scope) -> list[tuple[Load, Box]]:
    """The loads for computing a box of a stage, and the boxes that they read, without loads that no instance
    reaches."""
    loads: list[tuple[Load, Box]] = []

    def seen(load: Load, touched: Box, inner: Scope) -> None:
        if all(not r.bounded or r.low <= r.high for r in inner.values()):
            loads.append((load, touched))

    for d in stage.definitions:
        everywhere = definition_scope(stage, d, box, scope)
        tested: list[Expr] = [] if d.condition is None else [d.condition]
        each_load(tested, everywhere, seen)
        each_load([*d.indices, *d.values], where_it_holds(d, everywhere), seen)
    return loads


def _separate_parts(parts: list[StagePart]) -> list[StagePart]:
    """Merge parts that intersect, or that one live-out requires and that are close together."""
    if any(not _is_limited(p.box) for p in parts):
        return [_together(parts)]
    separate: list[StagePart] = []
    for part in parts:
        while near := [p for p in separate if _belong_together(p, part)]:
            separate = [p for p in separate if p not in near]
            part = _together([*near, part])
        separate.append(part)
        if len(separate) > MOST_PARTS**2:
            return [_together(parts)]
    return separate


def _belong_together(a: StagePart, b: StagePart) -> bool:
    # All that one read needs under several conditions is one part: a read has one source.
    one_read = not a.reads.isdisjoint(b.reads)
    return one_read or a.meets(b) or (not a.liveouts.isdisjoint(b.liveouts) and not a.is_far_from(b))


def _together(parts: list[StagePart]) -> StagePart:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole | part
    return whole


def _volume(box: Box) -> int:
    return prod(max(0, int(r.high - r.low) + 1) for r in box)


def _is_limited(box: Box) -> bool:
    return all(r.bounded and r.high - r.low < UNLIMITED for r in box)
