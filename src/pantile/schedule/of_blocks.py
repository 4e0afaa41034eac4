"""What happens on GPUs to stages that a schedule does not name: each is a kernel, its pixels are threads.

    f[y, x] = ...              block for yo, xo: thread for yi in 0..8, xi in 0..32: f[8*yo + yi, 32*xo + xi]
    s[] += img[r.y, r.x]       s_blocks[blocks] in blocks, whose threads each sum some columns of some rows; then s

A reduction, and a loop that carries values from one iteration to the next, runs in each thread. The channels of a
pixel are computed by one thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..analysis.channels import channels
from ..cached import cached_property
from ..graph.nodes import Definition, Graph, Stage
from .directives import StageSchedule, on
from .names import fresh
from .partial import Parts
from .updates import is_independent, pure_dims

ROWS, COLUMNS = 8, 32  # of a block of a picture
POINTS = 256  # of a block of a single row
SUMMED = 32  # rows of a picture that one block sums


class OfBlocks:
    """The defaults of one pipeline."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def _channels(self) -> dict[str, int]:
        return channels(self._graph)

    def at_root(self, stage: Stage) -> StageSchedule:
        """All directives of a stage."""
        schedule = self._marked(stage, stage.pure, on(stage.name).compute_root())
        for k, update in enumerate(stage.updates):
            start = schedule.update(k)
            marked = self._marked(stage, update, start)
            schedule = schedule if marked == start else marked
        return schedule

    def _marked(self, stage: Stage, definition: Definition, schedule: StageSchedule) -> StageSchedule:
        """The loops of a definition: blocks, threads, and in them all that has an order."""
        free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
        if stage.name in self._channels and len(free) > 1 and free[-1] == stage.dims[-1]:
            free.pop()
        if not free:
            return schedule
        used = {*stage.dims, *(r.name for r in definition.domain)}
        sizes = (ROWS, COLUMNS) if len(free) > 1 else (POINTS,)
        cut = free[-len(sizes) :]
        outer, inner = _names(cut, "block", used), _names(cut, "thread", used)
        blocks = [*free[: -len(sizes)], *outer]
        for old, block, thread, size in zip(cut, outer, inner, sizes, strict=True):
            schedule = schedule.split(old, block, thread, size)
        return schedule.reorder(*blocks, *inner, *self._rest(stage, definition, free)).block(*blocks).thread(*inner)

    def _rest(self, stage: Stage, definition: Definition, free: Collection[str]) -> list[str]:
        """The other loops, in their order."""
        return [n for n in (*pure_dims(stage, definition), *(r.name for r in definition.domain)) if n not in free]


def _names(loops: Sequence[str], word: str, used: set[str]) -> list[str]:
    """New names for parts of loops."""
    found = []
    for loop in loops:
        found.append(fresh(f"{loop}_{word}", used.__contains__))
        used.add(found[-1])
    return found


def in_parts(graph: Graph, stage: Stage, strict: bool, named: Collection[str]) -> tuple[StageSchedule, ...]:
    """The schedules of a reduction to one value and of its partial results; () if it is better whole."""
    p = Parts.of(graph, stage, strict, named, SUMMED, SUMMED * POINTS)
    if p is None:
        return ()
    return (
        p.whole,
        on(p.per_block).compute_root().block(p.blocks)
        .update(0).split(p.along, p.steps, p.lanes, POINTS).rfactor(p.lanes, p.lanes).block(p.blocks),
        on(p.per_lane).compute_at(p.per_block, p.blocks).reorder(p.blocks, p.lanes).thread(p.lanes)
        .update(0).reorder(p.blocks, p.lanes, *p.between, p.steps).thread(p.lanes),
    )  # fmt: skip
