"""Loops on a GPU: tile loops are blocks, the loops inside of tiles are threads.

    for y, x in tiles: for y, x in a tile    ->    .reorder("y_o", "x_o", "y_i", "x_i").block("y_o", "x_o")
                                                   .thread("y_i", "x_i")

Neighbouring threads take neighbouring columns. Where a tile has more points than a block may have threads, each thread
computes several rows, and of longer rows several columns. Members of a group are computed at the innermost block loop,
into shared memory, by all threads of the block. Stages on their own are scheduled as by default
(`schedule.gpu_default`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...cached import cached_property
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule
from ...schedule.gpu_default import GpuDefaults
from ...schedule.names import fresh
from ...schedule.sums import power_of_two
from ...schedule.updates import is_independent
from ...target.gpu import MOST_THREADS
from .marking import DefinitionLoops, Marking, Part, SplitLoops, reordered


class GpuMarking(Marking):
    """Blocks and threads."""

    @cached_property
    def _defaults(self) -> GpuDefaults:
        return GpuDefaults(self.problem.graph, self.problem.strict, ())

    def at_root(self, stage: Stage) -> Part:
        return tuple(self._defaults.at_root(stage))

    def in_parts(self, stage: Stage) -> Part:
        part = self.at_root(stage)
        return part if len(part) > 1 else ()

    def is_apart(self, stage: Stage) -> bool:
        return False

    def needs_tiles(self, stage: Stage) -> bool:
        return True

    def tileable(self, stage: Stage) -> Sequence[str]:
        return self.problem.facts.tileable(stage.name)

    def unsplit(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        return self._defaults.marked(loops.stage, loops.definition, chain)

    def inside(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        threads = [d for d in loops.free if is_independent(loops.stage, loops.definition, d)]
        if not threads:
            return chain
        rest = [n for n in split.now if n not in threads]
        return reordered(chain, split.now, [*threads, *rest]).thread(*threads)

    def tiled(self, loops: DefinitionLoops, split: SplitLoops, chain: StageSchedule) -> StageSchedule:
        """Of a dim without tiles, such as planes, all is computed by one thread if other stages are computed for the
        tile, and one iteration by a block if not, but for channels."""
        inside, tiled = split.inside(loops), {split.called[loop] for loop, _, _ in split.tiles}
        row = split.called[loops.stage.dims[self.problem.row(loops.stage.name)]]
        whole = [n for n in inside if n not in tiled and n != row]
        names = [*inside]
        outside = [n for n in whole if not split.has_members and names.index(n) < names.index(row)]
        shares = _ThreadLoops(chain, [*split.now])
        for name in reversed([n for n in names if n not in whole]):
            shares.take(name, inside[name], is_row=name == row, is_constant=name in tiled)
        blocks = [*outside, *(name for _, name, _ in split.tiles)]
        own = [*shares.serial, *(n for n in whole if n not in outside), *(split.called[r] for r in loops.reductions)]
        chain = reordered(shares.chain, shares.now, [*blocks, *shares.threads, *own])
        return chain.block(*blocks).thread(*shares.threads)


class _ThreadLoops:
    """The loops inside of a tile, from the innermost on, as long as a block has threads left."""

    def __init__(self, chain: StageSchedule, now: list[str]) -> None:
        self.chain, self.now, self.room = chain, now, MOST_THREADS
        self.threads: list[str] = []
        self.serial: list[str] = []  # of each thread

    def take(self, name: str, extent: int, *, is_row: bool, is_constant: bool) -> None:
        """Share a loop among threads, or as much of it as there are threads for: columns side by side, rows one after
        the other in each thread."""
        most = min(extent, self.room)
        if most == extent and is_constant:
            self.threads.insert(0, name)
        elif most == 1:
            self.serial.insert(0, name)
            return
        else:
            shared, own = fresh(name + "_t", self.now.__contains__), fresh(name + "_p", self.now.__contains__)
            loops, factor = ((own, shared), power_of_two(most)) if is_row else ((shared, own), -(-extent // most))
            self.chain = self.chain.split(name, *loops, factor)
            at = self.now.index(name)
            self.now[at : at + 1] = loops
            self.threads.insert(0, shared)
            self.serial.insert(0, own)
            most = factor if is_row else -(-extent // factor)
        self.room //= most
