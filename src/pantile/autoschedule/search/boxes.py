"""Boxes: a volume of several quantities is computed some planes and rows at a time, for all quantities, after what they
share.

    out[c, z, y, x] = phi[c, z, y, x] + face[c, z, y, x + 1] * velocity[z, y, x + 1] - ...

    pt.on("velocity").compute_at("out", "y_o").vectorize("x", 8)
    pt.on("out").split("z", "z_o", "z_i", 8).split("y", "y_o", "y_i", 8).vectorize("x", 8)
        .reorder("z_o", "y_o", "c", "z_i", "y_i", "x", "x_v").parallel("z_o")

What all quantities of a box share stays in a cache while one after the other reads it. Strips of rows would go through
all planes of a quantity instead, and jump to distant memory after every few rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.schedule import Schedule
from ..common.marking import vector
from ..common.tiles import marking
from ..strategy import Problem
from .groups import needed_by
from .rolling import RolledLoops, can_roll

SIZES = ((4, 16), (8, 8))  # planes and rows; resizing finds others
VECTORS = 2  # at a time
SEVERAL = 2  # dims besides rows and columns: quantities and planes


def boxes(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with a volume of several quantities in boxes, and with what only it needs. All of that is
    inlined unless it is the same for all quantities."""
    stage = problem.graph.stage[name]
    if not can_roll(problem, name) or len(RolledLoops.of(problem, stage).planes) < SEVERAL:
        return
    loops, needed = RolledLoops.of(problem, stage), needed_by(problem.graph, stage)
    shared = [s for s in needed if not set(loops.planes) <= set(s.dims)]
    own = [s.name for s in needed if s not in shared]
    inlined = [on(n).compute_inline() for n in own if problem.facts.can_be_inlined(n)]
    if not shared or len(inlined) < len(own) or not all(_is_volume(problem, loops, s) for s in shared):
        return
    for planes, rows in SIZES:
        if planes < loops.extents[loops.planes[-1]] and rows < loops.extents[loops.y]:
            whole = _in_boxes(problem, loops, planes, rows)
            yield schedule.replace(whole, *inlined, *(_of_a_box(problem, loops, s) for s in shared))


def _is_volume(problem: Problem, loops: RolledLoops, s: Stage) -> bool:
    """Whether a stage has the planes, rows and columns of a volume."""
    return can_roll(problem, s.name) and s.dims[-3:] == (loops.planes[-1], loops.y, loops.x)


def _in_boxes(problem: Problem, loops: RolledLoops, planes: int, rows: int) -> StageSchedule:
    *quantities, z = loops.planes
    around, inside = loops.named(z, "_o"), loops.named(z, "_i")
    chain = problem.alone.stored(loops.stage, on(loops.stage.name).compute_root())
    chain = chain.split(z, around, inside, planes).split(loops.y, loops.strips, loops.rows, rows)
    row = vector(loops.x, loops.width(problem, VECTORS))
    order = [around, loops.strips, *quantities, inside, loops.rows, loops.x, row.part]
    return marking(problem).nest(chain, [row], order, [around])


def _of_a_box(problem: Problem, loops: RolledLoops, s: Stage) -> StageSchedule:
    """The schedule of a stage that all quantities of a box share, computed before any of them."""
    chain = problem.alone.stored(s, on(s.name).compute_at(loops.stage.name, loops.strips))
    return marking(problem).nest(chain, [vector(s.dims[-1], RolledLoops.of(problem, s).width(problem, VECTORS))])
