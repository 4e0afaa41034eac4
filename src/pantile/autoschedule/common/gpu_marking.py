"""Loops on a GPU: tile loops are blocks, the loops inside of tiles are threads.

    for y, x in tiles: for y, x in a tile    ->    .reorder("y_o", "x_o", "y_i", "x_i").block("y_o", "x_o")
                                                   .thread("y_i", "x_i")

Neighbouring threads take neighbouring columns. Where a tile has more points than a block may have threads, each thread
computes several rows, and of longer rows several columns. Members of a group are computed at the innermost block loop,
into shared memory, by all threads of the block. Stages on their own are scheduled as by default
(`schedule.gpu_default`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...cached import cached_property
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule
from ...schedule.gpu_default import GpuDefaults
from ...schedule.names import fresh
from ...schedule.sums import power_of_two
from ...schedule.updates import is_independent
from ...target.gpu import MOST_THREADS
from .marking import DefinitionLoops, Innermost, Marking, Names, Part, reordered

ROW_THREADS = 128  # of a row whose columns a strategy computes vector by vector on a CPU


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

    def is_alone(self, stage: Stage, is_tiled: bool) -> bool:
        return not is_tiled

    def untiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        return self._defaults.marked(loops.stage, loops.definition, chain)

    def inside(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        threads = [d for d in loops.free if is_independent(loops.stage, loops.definition, d)]
        order = [*threads, *(n for n in loops.now if n not in threads)]
        return _kinds(reordered(chain, loops.now, order), (), threads)

    def tiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Of a dim without tiles, such as planes, all is computed by one thread if other stages are computed for the
        tile, and one iteration by a block if not, but for channels."""
        dims, tiled = loops.stage.dims, {loops.called[loop] for loop, _, _ in loops.tiles}
        row = dims[self.problem.row(loops.stage.name)]
        wanted = {loops.called[d]: n for d, n in self.style.threads.items()}
        shares = _ThreadLoops(chain, [*loops.now], wanted)
        for name in reversed(loops.inside):
            if name in tiled or name == row:
                is_row = name == loops.called.get(row)
                shares.take(name, loops.inside[name], is_row=is_row, is_constant=name in tiled)
        whole = [n for n in loops.inside if n not in tiled and n != row]
        outside = [n for n in whole if not loops.has_members and n in dims[: dims.index(row)]]
        blocks = [*outside, *(name for loop, name, _ in loops.tiles if loop in loops.free)]
        inner = [*(n for n in whole if n not in outside), *(n for _, n, _ in loops.tiles if n not in blocks)]
        order = [*blocks, *shares.threads, *shares.serial, *inner, *loops.reductions]
        return _kinds(reordered(shares.chain, shares.now, order), blocks, shares.threads)

    def nest(
        self, chain: StageSchedule, parts: Sequence[Innermost] = (), order: Names = (), shared: Names = ()
    ) -> StageSchedule:
        """Where a CPU has a vector, threads take a row of columns, around what is written out."""
        rows = [p for p in parts if p.verb == "vectorize"]
        after = {row.loop: row.part for row in rows if row.count is not None}
        for loop, part in after.items():
            chain = chain.split(loop, loop, part, ROW_THREADS)
        for copies in (p for p in parts if p not in rows):
            chain = copies.mark(chain)
        order = [n for loop in order if loop not in after.values() for n in (loop, after.get(loop)) if n is not None]
        return _kinds(chain.reorder(*order) if order else chain, shared, [row.part for row in rows])


def _kinds(chain: StageSchedule, blocks: Names, threads: Names) -> StageSchedule:
    chain = chain.block(*blocks) if blocks else chain
    return chain.thread(*threads) if threads else chain


class _ThreadLoops:
    """The loops inside of a tile, from the innermost on, as long as a block has threads left."""

    def __init__(self, chain: StageSchedule, now: list[str], wanted: Mapping[str, int]) -> None:
        """`wanted`: how many threads to share some of them among."""
        self.chain, self.now, self.wanted, self.room = chain, now, wanted, MOST_THREADS
        self.threads: list[str] = []
        self.serial: list[str] = []  # of each thread

    def take(self, name: str, extent: int, *, is_row: bool, is_constant: bool) -> None:
        """Share a loop among threads, or as much of it as there are threads for: columns side by side, rows one after
        the other in each thread unless a number of threads is wanted."""
        most = min(extent, self.room, self.wanted.get(name, extent))
        is_row = is_row or name in self.wanted
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
