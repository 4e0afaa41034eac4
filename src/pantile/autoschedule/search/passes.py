"""Passes: a sum whose terms are whole pictures goes over a tile once for each term, and the stages of the term roll
down the tile with it.

    total[y, x] += weight[r.dy, r.dx, y, x] * img[y + r.dy, x + r.dx]       weight: of sums of differences

    pt.on("out").compute_root().split("y", "y_o", "y_i", 32).split("x", "x_o", "x_i", 256)...parallel("y_o")
    pt.on("total").compute_at("out", "x_o").vectorize("x", 8).update(0).split("y", "y", "y_r", 2).vectorize("x", 8)
        .reorder("r.dy", "r.dx", "y", "x", "y_r", "x_v").unroll("y_r")
    pt.on("difference").compute_at("total", "y").store_at("total", "r.dx").split("y", "y", "y_r", 2)...

There is one picture of each stage at a time, not one for each term.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.schedule import Schedule, is_inlined
from ..common.marking import unrolled, vector
from ..common.tiles import marking
from ..strategy import Problem
from .block import is_at
from .groups import needed_by
from .rolling import Roll, RolledLoops, can_roll, is_used_again

STRIP, TILE = 32, 256  # rows and columns of a tile
VECTORS = 2  # at a time, of two rows


def passes(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with a sum of pictures in passes over tiles of its only reader."""
    stage = problem.graph.stage[name]
    members = _members(problem, schedule, stage)
    reader = _reader(problem, stage)
    if reader is not None and members and _adds_pictures(problem, stage, members):
        parts = [_tiles(problem, reader), _sum(problem, stage, reader), *_terms(problem, stage, members)]
        yield schedule.replace(*parts)


def _adds_pictures(problem: Problem, stage: Stage, members: list[Stage]) -> bool:
    """Whether each term has values of its own, in the rows and columns of the sum."""
    if len(stage.updates) != 1 or stage.ndim != len(("y", "x")) or not is_at(stage.updates[0].indices, stage.dims):
        return False
    more = [s for s in members if len(s.dims) > stage.ndim]
    in_rows = all(can_roll(problem, s.name) and s.dims[-stage.ndim :] == stage.dims for s in members)
    return bool(stage.updates[0].domain) and bool(more) and in_rows


def _members(problem: Problem, schedule: Schedule, stage: Stage) -> list[Stage]:
    """The stages that are computed only for the sum, and stored, producers first."""
    return [s for s in needed_by(problem.graph, stage) if not is_inlined(schedule.on(s.name))]


def _reader(problem: Problem, stage: Stage) -> Stage | None:
    """The only stage that reads the sum, if it reads each pixel at its own coordinates."""
    readers = [problem.graph.stage[c] for c in problem.graph.consumers[stage.name]]
    if len(readers) != 1 or not can_roll(problem, readers[0].name):
        return None
    at = [e.indices for e in readers[0].pure.loads if e.buffer in stage.buffers]
    return readers[0] if all(is_at(i, readers[0].dims[-stage.ndim :]) for i in at) else None


def _tiles(problem: Problem, reader: Stage) -> StageSchedule:
    loops = RolledLoops.of(problem, reader)
    chain = problem.alone.stored(reader, on(reader.name).compute_root())
    chain = chain.split(loops.y, loops.strips, loops.rows, STRIP).split(loops.x, loops.tiles, loops.columns, TILE)
    row = vector(loops.columns, loops.width(problem, VECTORS))
    order = [loops.strips, loops.tiles, *loops.planes, loops.rows, loops.columns, row.part]
    return marking(problem).nest(chain, [row], order, [loops.strips])


def _sum(problem: Problem, stage: Stage, reader: Stage) -> StageSchedule:
    loops = RolledLoops.of(problem, stage)
    row = vector(loops.x, loops.width(problem, VECTORS))
    chain = on(stage.name).compute_at(reader.name, RolledLoops.of(problem, reader).tiles)
    domain = [r.name for r in stage.updates[0].domain]
    return _two_rows(problem, marking(problem).nest(chain, [row]).update(0), loops, domain)


def _terms(problem: Problem, stage: Stage, members: list[Stage]) -> Iterator[StageSchedule]:
    """Yield the schedules of the stages of a term, two rows at a time. Rows that the next rows need as well are
    kept."""
    roll = Roll(stage.name, tuple(s.name for s in members))
    for s in members:
        loops = RolledLoops.of(problem, s)
        chain = on(s.name).compute_at(stage.name, RolledLoops.of(problem, stage).y)
        if is_used_again(problem, roll, s.name):
            chain = chain.store_at(stage.name, stage.updates[0].domain[-1].name)
        chain = problem.alone.stored(s, chain)
        yield _two_rows(problem, chain, loops, [*loops.planes])


def _two_rows(problem: Problem, chain: StageSchedule, loops: RolledLoops, around: list[str]) -> StageSchedule:
    chain, row = chain.split(loops.y, loops.y, loops.row, 2), vector(loops.x, loops.width(problem, VECTORS))
    order = [*around, loops.y, loops.x, loops.row, row.part]
    return marking(problem).nest(chain, [row, unrolled(loops.row)], order)
