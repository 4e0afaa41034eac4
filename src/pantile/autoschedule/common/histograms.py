"""Sums into places that data decides, such as histograms, by all threads: each counts a strip of rows for itself.

    histogram[level[r.y, r.x]] += 1   ->   histogram_strip_turn[..]   the pixels of a row in four histograms in turn
                                           histogram_strip[..]        those of a strip; strips are counted in parallel
                                           histogram[i]               those of all strips

Turns, since equal neighbours, common in pictures, otherwise wait for each other's count.
"""

from __future__ import annotations

from math import prod

from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.parallel_reduction import free_name
from ...schedule.stage_default import lanes
from ...schedule.updates import accumulation, pure_dims
from ..strategy import Problem

STRIPS_PER_THREAD = 4
WORTH = 16  # terms for each place of a part: to clear parts and to add them up is work, too
TURNS = 4


def counted_in_parts(problem: Problem, stage: Stage) -> tuple[StageSchedule, ...]:
    """The schedules of a stage and its partial results; () if it is better whole."""
    if not stage.dims or len(stage.updates) != 1 or not problem.facts.is_limited(stage.name):
        return ()
    update = stage.updates[0]
    terms = accumulation(stage, update)
    if terms is None or not update.domain or pure_dims(stage, update):
        return ()
    if problem.strict and not all(t.is_exact for t in terms):
        return ()
    rows = _rows_of_a_strip(problem, stage)
    if rows is None:
        return ()
    names = (r.name for r in update.domain)
    taken = {*stage.dims, *names, *(p.name for p in problem.graph.params), *problem.graph.stage, *problem.graph.input}
    strip, row, steps, turn = (free_name(n, stage.name, taken) for n in ("strip", "row", "steps", "turn"))
    first, last = update.domain[0].name, update.domain[-1].name if len(update.domain) > 1 else row
    per_strip, per_turn = f"{stage.name}_{strip}", f"{stage.name}_{strip}_{turn}"
    between = [row, *(r.name for r in update.domain[1:-1])] if len(update.domain) > 1 else []
    *others, along = stage.dims
    width = lanes(stage, update, problem.target)

    def vectors(chain: StageSchedule, *around: str) -> StageSchedule:
        chain = chain.reorder(*around, *others, along)
        return chain.vectorize(along, width) if problem.facts.extents(stage.name)[-1] >= width else chain

    whole = on(stage.name).compute_root().update(0).split(first, strip, row, rows).rfactor(strip, strip)
    parts = vectors(on(per_strip).compute_root(), strip).parallel(strip)
    parts = parts.update(0).split(last, steps, turn, TURNS).rfactor(turn, turn)
    turns = vectors(on(per_turn).compute_at(per_strip, strip), strip, turn)
    turns = turns.update(0).reorder(strip, *between, steps, turn).unroll(turn, TURNS)
    return (vectors(whole, strip), vectors(parts, strip, turn).parallel(strip), turns)


def _rows_of_a_strip(problem: Problem, stage: Stage) -> int | None:
    """The number of rows of a strip: few enough that all threads are busy, and enough that strips are worth it."""
    rows, *inside = problem.facts.loops(stage.name, 1).values()
    places = problem.facts.points(stage.name)
    least = -(-WORTH * TURNS * places // prod(inside))
    strip = max(least, rows // (STRIPS_PER_THREAD * problem.cpu.threads), TURNS)
    return strip if 2 * strip <= rows else None
