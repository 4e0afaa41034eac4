"""Pointwise updates, such as sums over a window, in the threads of a GPU.

thread for y, x: f[y, x] = 0                          thread for y, x:
thread for y, x: for r in 0..3: f[y, x] += a[...]         f[y, x] = 0 + a[...] + a[...] + a[...]
"""

from __future__ import annotations

from collections.abc import Mapping

from ..graph.nodes import Definition, Stage
from .directives import StageSchedule
from .updates import constant, is_independent, pure_dims

MOST_TERMS = 32  # most terms of a reduction that are unrolled


def is_pointwise(stage: Stage, update: Definition) -> bool:
    """Whether an update changes each point independently of others."""
    return pure_dims(stage, update) == stage.dims and all(is_independent(stage, update, d) for d in stage.dims)


def pointwise_update(schedule: StageSchedule, stage: Stage, update: Definition, innermost: str) -> StageSchedule:
    """The schedule of a pointwise update whose loops over dims end with `innermost`. The first update runs in the loops
    of the pure definition, which are the same. The innermost reduction loops are unrolled."""
    schedule = schedule.compute_with(stage.name, innermost) if update is stage.updates[0] else schedule
    return written_out(schedule, {r.name: constant(r.extent) for r in update.domain})


def written_out(schedule: StageSchedule, loops: Mapping[str, int | None]) -> StageSchedule:
    """The innermost of some loops written out, as far as their extents are known."""
    room = MOST_TERMS
    for name, count in reversed([*loops.items()]):
        extent = count or 1
        terms = next(n for n in range(min(extent, room), 0, -1) if extent % n == 0)
        if terms > 1:
            schedule = schedule.unroll(name) if terms == extent else schedule.unroll(name, terms)
        if terms < extent or extent == 1:
            break
        room //= terms
    return schedule
