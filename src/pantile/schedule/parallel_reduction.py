"""Reductions to a single value by all threads and lanes, in three steps instead of one loop.

    s[] += img[r.y, r.x]      ->      s_blocks_lanes[lanes, blocks] += ...    a lane's share of a block of rows
                                      s_blocks[blocks] += s_blocks_lanes      each block of rows, in parallel
                                      s[] += s_blocks

This is faster, and sums of floats lose fewer digits, since no partial sum has millions of terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from ..graph.nodes import Graph, ReductionDim, Stage
from ..target.description import Target
from .directives import StageSchedule, on
from .names import fresh
from .updates import accumulation, constant

# The share of a task: a number of rows, or a number of elements if there is only one loop.
ROWS, ELEMENTS = 16, 1 << 15
FEWEST_POINTS = 1 << 14  # a reduction known to have fewer points is not worth a task
_ACCUMULATORS = 4  # vectors of 32-bit values: enough to hide the latency of an addition


def in_parts(
    graph: Graph, stage: Stage, target: Target, strict: bool, named: Collection[str]
) -> tuple[StageSchedule, ...]:
    """The schedules of a stage and its partial results, whose names avoid those in `named`; () if the stage is better
    left whole."""
    p = ReductionParts.of(graph, stage, strict, named, ROWS, ELEMENTS)
    if p is None:
        return ()
    width = _ACCUMULATORS * target.lanes(32)
    return (
        p.whole,
        on(p.per_block)
        .compute_root()
        .update(0)
        .split(p.along, p.steps, p.lanes, width)
        .rfactor(p.lanes, p.lanes)
        .parallel(p.blocks),
        on(p.per_lane)
        .compute_at(p.per_block, p.blocks)
        .reorder(p.blocks, p.lanes)
        .vectorize(p.lanes, width)
        .update(0)
        .reorder(p.blocks, *p.between, p.steps, p.lanes)
        .vectorize(p.lanes, width),
    )


class ReductionParts(NamedTuple):
    """A reduction cut into blocks, and the names of its partial results and of their loops."""

    whole: StageSchedule
    per_block: str
    per_lane: str
    blocks: str
    between: tuple[str, ...]  # loops of a block around the loop that lanes share
    along: str  # the loop that lanes share, which becomes steps of lanes
    steps: str
    lanes: str

    @staticmethod
    def of(
        graph: Graph, stage: Stage, strict: bool, named: Collection[str], most_rows: int, most_elements: int
    ) -> ReductionParts | None:
        """Cut a reduction into blocks of `most_rows` rows, or of `most_elements` elements if it has only one loop. None
        if it is better left whole."""
        if not _is_worth_dividing(stage, strict):
            return None
        domain = [r.name for r in stage.updates[0].domain]
        taken = {*named, *graph.stage, *graph.input, *(p.name for p in graph.params), *domain}
        blocks, rows, steps, lanes = (free_name(n, stage.name, taken) for n in ("blocks", "rows", "steps", "lanes"))
        *between, along = [rows, *domain[1:]]
        share = most_rows if between else most_elements
        whole = on(stage.name).compute_root().update(0).split(domain[0], blocks, rows, share).rfactor(blocks, blocks)
        per_block = f"{stage.name}_{blocks}"
        return ReductionParts(whole, per_block, f"{per_block}_{lanes}", blocks, tuple(between), along, steps, lanes)


def _is_worth_dividing(stage: Stage, strict: bool) -> bool:
    """Whether a stage is a reduction to one value that can be computed in parts and is large enough for that."""
    if stage.dims or len(stage.updates) != 1:
        return False
    terms = accumulation(stage, stage.updates[0])
    exact = terms is not None and (not strict or all(t.is_exact for t in terms))
    return exact and _is_large(stage.updates[0].domain)


def _is_large(domain: tuple[ReductionDim, ...]) -> bool:
    """Whether a domain has enough points to divide. If there are three loops or more, the innermost one may be a few
    channels."""
    extents = [constant(r.extent) for r in domain]
    known = math.prod(n for n in extents if n is not None)
    return len(domain) in (1, 2) and (None in extents or known >= FEWEST_POINTS)


def free_name(name: str, stage: str, taken: Collection[str]) -> str:
    """A name that no loop and no stage of partial results has."""
    return fresh(name, lambda n: n in taken or f"{stage}_{n}" in taken)
