"""Cells: sums of parts of a picture into elements that data select, such as a histogram of each square of pixels.

    grid[y, x, level[8*y + r.y, 8*x + r.x], c] += pt.select(c == 0, value[8*y + r.y, 8*x + r.x], 1)

    pt.on("grid")...update(0).vectorize("c", 2).split("x", "x", "x_i", 16).reorder("y", "x", "r.y", "x_i", "r.x", "c_v")
        .unroll("r.x").parallel("y")
    pt.on("pixel").compute_at("grid", "x").vectorize("x", 8)

The contiguous values of an element are one vector. A block of cells goes down its rows of pixels together, so that what
is counted is computed for the whole block in vectors before it is read pixel by pixel.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...expr.visit import loaded
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.schedule import Schedule
from ...schedule.stage_default import lanes
from ...schedule.updates import is_independent, pure_dims
from ..common.marking import unrolled, vector
from ..common.tiles import marking
from ..strategy import Problem

BLOCK = 16  # cells
MOST_COPIES = 16  # pixels of a row of a cell, all unrolled
VECTORS = (2, 4, 8)  # contiguous values


def cells(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with a sum of cells in other loops, if the stage is one, and then also with what it reads
    there."""
    stage, chain = problem.graph.stage[name], schedule.on(name)
    if len(stage.updates) == 1 and "compute_root" in chain.verbs:
        changed = _by_blocks(problem, stage, stage.updates[0], chain)
        if changed is not None:
            yield schedule.replace(changed)
            producers = [_of_a_block(problem, of, changed) for of in _read_here_alone(problem, stage)]
            if producers:
                yield schedule.replace(changed, *producers)


def _by_blocks(problem: Problem, stage: Stage, update: Definition, chain: StageSchedule) -> StageSchedule | None:
    """The schedule of the update by blocks of cells; None if it is not a sum of cells."""
    free = [d for d in pure_dims(stage, update) if is_independent(stage, update, d)]
    sizes = problem.facts.loops(stage.name, 1)
    side_by_side = [d for d in stage.dims[-1:] if d in free and sizes[d] in VECTORS]
    *outer, along = [d for d in free if d not in side_by_side] or [""]
    domain = [r.name for r in update.domain]
    if not outer or not domain or not any(map(loaded, update.indices)) or sizes[domain[-1]] > MOST_COPIES:
        return None
    start = chain.without_updates()
    cell = fresh(along + "_i", {*stage.dims, *domain}.__contains__)
    sums = start.update(0).split(along, along, cell, BLOCK)
    vectors = [vector(d, sizes[d]) for d in side_by_side]
    order = [*outer, along, *side_by_side, *domain[:-1], cell, domain[-1], *(v.part for v in vectors)]
    return marking(problem).nest(sums, [*vectors, unrolled(domain[-1])], order, outer[:1])


def _read_here_alone(problem: Problem, stage: Stage) -> list[str]:
    """The stages that only the update reads."""
    sources = {b: s.name for s in problem.graph.stages for b in s.buffers if s.name != stage.name}
    read = dict.fromkeys(sources[e.buffer] for e in stage.updates[0].loads if e.buffer in sources)
    return [
        name
        for name in read
        if problem.graph.consumers[name] == (stage.name,)
        and problem.graph.stage[name].dims
        and not problem.graph.stage[name].updates
        and problem.facts.is_limited(name)
        and name not in problem.facts.trivial
    ]


def _of_a_block(problem: Problem, name: str, reader: StageSchedule) -> StageSchedule:
    """The schedule of a stage that is computed for a block of cells before it is read."""
    stage = problem.graph.stage[name]
    along = next(str(d.args[0]) for d in reader.directives[::-1] if d.verb == "split")
    row = vector(stage.dims[problem.row(name)], 2 * lanes(stage, stage.pure, problem.target))
    return marking(problem).nest(on(name).compute_at(reader.name, along), [row])
