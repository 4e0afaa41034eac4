"""Computation spaces: the start-up fusion that a polyhedral scheduler does before anything is tiled.

It fuses what costs nothing: a producer each element of which is read at only one point shares the loops of its
consumer, which stays as parallel as it was (post-tiling-fusion §II-A, the "conservative fusion heuristic").

    {S0}, {S1, S2, S3}      of Figure 1(a): each of S1, S2 and S3 is read at the point where it was computed,
                            while 9 points read an element of S0

A producer with a closed form that one statement reads in this way is inlined, which is how one loop body is written for
both. Any other one is computed by loops of its own, tile by tile of its space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import islpy as isl

from ...analysis.polyhedra import AffineStatement, simplified, statements
from ...dataclass import dataclass
from ..strategy import Problem


@dataclass(frozen=True)
class Space:
    """Stages that share their parallel loops; all except the last are read only inside the space."""

    stages: tuple[str, ...]  # producers first

    @property
    def output(self) -> str:
        return self.stages[-1]


class PolyhedralProgram:
    """The statements of a problem, by stage."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        facts = problem.facts
        self.stages = [s for s in problem.graph.stages if s.name in facts.boxes]
        self.statements: Mapping[str, tuple[AffineStatement, ...]] = {
            s.name: statements(problem.graph, s, facts.boxes[s.name], facts.scope) for s in self.stages
        }

    def readers(self, name: str) -> list[AffineStatement]:
        """The statements of other stages that read a stage."""
        consumers = self.problem.facts.consumers[name]
        return [t for c in consumers for t in self.statements.get(c, ()) if name in t.reads]


def inlined_at_startup(program: PolyhedralProgram) -> frozenset[str]:
    """The stages with a closed form that one statement reads, each element once: they join its loop body."""
    bodies = _Bodies(program)
    return frozenset(s.name for s in program.stages if bodies.host(s.name) is not None)


class _Bodies:
    """The statement in which each inlined stage ends up, and the elements of the stage that its instances require."""

    def __init__(self, program: PolyhedralProgram) -> None:
        self.program = program
        self.hosts: dict[str, tuple[AffineStatement, isl.Map] | None] = {}
        for stage in reversed(program.stages):
            self.hosts[stage.name] = self._find(stage.name)

    def host(self, name: str) -> tuple[AffineStatement, isl.Map] | None:
        return self.hosts[name]

    def _find(self, name: str) -> tuple[AffineStatement, isl.Map] | None:
        facts = self.program.problem.facts
        if not facts.can_be_inlined(name) or not facts.is_limited(name) or _transposes(self.program.statements[name]):
            return None
        needs = [self._needs(t, t.reads[name]) for t in self.program.readers(name)]
        if len({body.name for body, _ in needs}) != 1:
            return None
        body = needs[0][0]
        needed = needs[0][1]
        for _, more in needs[1:]:
            needed = needed.union(more)
        return (body, needed) if _once_each(needed) and _in_order(needed) else None

    def _needs(self, reader: AffineStatement, reads: isl.Map) -> tuple[AffineStatement, isl.Map]:
        """The statement into whose body a reader is inlined, and what it reads there."""
        host = self.hosts[reader.stage]
        if host is None:
            return reader, reads
        return host[0], simplified(host[1].apply_range(reader.writes.reverse()).apply_range(reads))


def _once_each(reads: isl.Map) -> bool:
    """Whether every instance reads one element, and every element is read by one instance."""
    return bool(reads.plain_is_single_valued() and reads.is_injective())


def _transposes(of_a_stage: Iterable[AffineStatement]) -> bool:
    """Whether a stage transposes what it reads. If it were inlined, this would no longer happen."""
    reads = [r for t in of_a_stage for r in t.reads.values()]
    return any(r.plain_is_single_valued() and not _in_order(r) for r in reads)


def _in_order(reads: isl.Map) -> bool:
    """Whether the outermost loops that the indices along each dim depend on come in the order of the dims."""
    places = reads.as_pw_multi_aff()
    loops = range(reads.dim(isl.dim_type.in_))
    order: list[int] = []
    for dim in range(reads.dim(isl.dim_type.out)):
        pieces = [place for _, place in places.get_pw_aff(dim).get_pieces()]
        order += [k for k in loops if any(place.involves_dims(isl.dim_type.in_, k, 1) for place in pieces)][:1]
    return order == sorted(order)


def spaces(program: PolyhedralProgram) -> list[Space]:
    """All stages in spaces, producers first."""
    of: dict[str, str] = {}  # stage -> the last stage of its space
    for stage in reversed(program.stages):
        of[stage.name] = _host_space(program, stage.name, of) or stage.name
    order = [s.name for s in program.stages]
    outputs = [n for n in order if of[n] == n]
    return [Space(tuple(n for n in order if of[n] == last)) for last in outputs]


def _host_space(program: PolyhedralProgram, name: str, of: Mapping[str, str]) -> str | None:
    """The space that a stage joins without losing parallelism, if there is one."""
    readers = program.readers(name)
    hosts = {of[t.stage] for t in readers}
    if len(hosts) != 1 or name in program.problem.graph.output:
        return None
    facts = program.problem.facts
    (space,) = hosts
    loops = facts.tileable(name)
    as_parallel = loops == facts.graph.stage[name].dims and len(loops) >= len(facts.tileable(space))
    pointwise = (_once_each(t.reads[name]) and _in_order(t.reads[name]) for t in readers)
    return space if as_parallel and all(pointwise) else None
