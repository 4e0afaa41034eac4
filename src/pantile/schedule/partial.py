"""Reductions of everything to one value, by all threads and lanes: in three steps instead of one loop.

    s[] += img[r.y, r.x]      ->      s_blocks_lanes[lanes, blocks] += ...    a lane's share of a block of rows
                                      s_blocks[blocks] += s_blocks_lanes      each block of rows, in parallel
                                      s[] += s_blocks

Besides being faster, sums of floats lose fewer digits: no partial sum has millions of terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from ..graph.nodes import Graph, ReductionDim, Stage
from ..target.description import Target
from .directives import StageSchedule, on
from .names import fresh
from .updates import accumulation, constant

# Shares of a task: so many rows, or so many elements where there is but one loop.
ROWS, ELEMENTS = 16, 1 << 15
FEWEST_POINTS = 1 << 14  # what is known to have fewer is not worth a task
_ACCUMULATORS = 4  # vectors of 32-bit values: enough to hide the time that an addition takes


def in_parts(
    graph: Graph, stage: Stage, target: Target, strict: bool, named: Collection[str]
) -> tuple[StageSchedule, ...]:
    """The schedules of a stage and its partial results, which get none of the names; () if it is better whole."""
    if not is_shared_out(stage, strict):
        return ()
    update = stage.updates[0]
    taken = {*named, *graph.stage, *graph.input, *(p.name for p in graph.params), *(r.name for r in update.domain)}
    blocks, rows, steps, lanes = (free_name(n, stage.name, taken) for n in ("blocks", "rows", "steps", "lanes"))
    first, last = update.domain[0].name, update.domain[-1].name
    along, between = (rows, ()) if len(update.domain) == 1 else (last, (rows,))
    per_block, per_lane = f"{stage.name}_{blocks}", f"{stage.name}_{blocks}_{lanes}"
    width = _ACCUMULATORS * target.lanes(32)
    share = ELEMENTS if len(update.domain) == 1 else ROWS
    return (
        on(stage.name).compute_root().update(0).split(first, blocks, rows, share).rfactor(blocks, blocks),
        on(per_block).compute_root().update(0).split(along, steps, lanes, width).rfactor(lanes, lanes).parallel(blocks),
        on(per_lane).compute_at(per_block, blocks).reorder(blocks, lanes).vectorize(lanes, width)
        .update(0).reorder(blocks, *between, steps, lanes).vectorize(lanes, width),
    )  # fmt: skip


def is_shared_out(stage: Stage, strict: bool) -> bool:
    """Whether a stage is a reduction to one value that can be made in parts, and large enough for that."""
    if stage.dims or len(stage.updates) != 1:
        return False
    terms = accumulation(stage, stage.updates[0])
    exact = terms is not None and (not strict or all(t.is_exact for t in terms))
    return exact and _is_large(stage.updates[0].domain)


def _is_large(domain: tuple[ReductionDim, ...]) -> bool:
    """Whether there is enough to share; of three loops and more, the innermost may be a few channels."""
    extents = [constant(r.extent) for r in domain]
    known = math.prod(n for n in extents if n is not None)
    return len(domain) in (1, 2) and (None in extents or known >= FEWEST_POINTS)


def free_name(name: str, stage: str, taken: Collection[str]) -> str:
    """A name that neither a loop nor a stage of partial results has."""
    return fresh(name, lambda n: n in taken or f"{stage}_{n}" in taken)
