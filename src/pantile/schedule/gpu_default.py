"""What happens on GPUs to stages that a schedule does not name: each is a kernel, its pixels are threads.

    f[y, x] = ...              block for yo, xo: thread for yi in 0..8, xi in 0..32: f[8*yo + yi, 32*xo + xi]
    s[] += img[r.y, r.x]       shared by blocks and threads, see `grid_reduction`

A reduction per pixel, and a loop that carries values from one iteration to the next, runs in each thread. The channels
of a pixel are computed by one thread.
"""

from __future__ import annotations

from collections.abc import Collection

from ..analysis.channels import channels
from ..dataclass import cached_property
from ..graph.nodes import Definition, Graph, Stage
from .directives import StageSchedule, on
from .grid_reduction import GridReductions, in_blocks
from .updates import is_independent, loop_names, pure_dims


class GpuDefaults:
    """The default directives for the stages of one pipeline. `named` holds the stages that a schedule names."""

    def __init__(self, graph: Graph, strict: bool, named: Collection[str]) -> None:
        self._graph = graph
        self._across_blocks = GridReductions(graph, strict, named)

    @cached_property
    def _channels(self) -> dict[str, int]:
        return channels(self._graph)

    def at_root(self, stage: Stage) -> list[StageSchedule]:
        """All directives of a stage, and those of the partial results of its reductions."""
        schedule = self.marked(stage, stage.pure, on(stage.name).compute_root())
        parts = list[StageSchedule]()
        for k, update in enumerate(stage.updates):
            start = schedule.update(k)
            shared = self._across_blocks.of_update(stage, k, schedule, parts)
            marked = shared[0] if shared else self.marked(stage, update, start)
            schedule = schedule if marked == start else marked
            parts += shared[1:]
        return [schedule, *parts]

    def marked(self, stage: Stage, definition: Definition, schedule: StageSchedule) -> StageSchedule:
        """Mark the loops of a definition: blocks, threads, and in these the loops that must run in order."""
        free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
        if stage.name in self._channels and len(free) > 1 and free[-1] == stage.dims[-1]:
            free.pop()
        loops = loop_names(stage, definition)
        return in_blocks(schedule, free, [n for n in loops if n not in free], {*stage.dims, *loops})
