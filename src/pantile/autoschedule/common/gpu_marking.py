"""Loops on a GPU: tile loops are blocks, the loops inside of tiles are threads.

    for y, x in tiles: for y, x in a tile    ->    .reorder("y_o", "x_o", "y_i", "x_i").block("y_o", "x_o")
                                                   .thread("y_i", "x_i")

Neighbouring threads take neighbouring columns. If a tile has more points than a block may have threads, each thread
computes several rows, and of longer rows several columns. It does so, too, if a style asks for several points per
thread and enough threads remain to fill the multiprocessors. Adjacent rows share what they load, and index arithmetic.
Under such a style, each thread also computes several rows of members, unless some threads then work for much longer.
If a group requests more threads than a tile has points, the additional ones only compute points of its members. Members
of a group are computed at the innermost block loop, into shared memory, by all threads of the block. If a style has
tiles of warps, they are computed at the innermost warp loop, into shared memory of the warp, by its lanes. Stages on
their own are scheduled as by default (`schedule.gpu_default`), except for sums of products (`staged_sums`,
`register_tiles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ...dataclass import cached_property
from ...expr.nodes import Const
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule
from ...schedule.gpu_bins import dims_to_pad, is_scattered, padded
from ...schedule.gpu_default import GpuDefaults
from ...schedule.gpu_updates import is_pointwise, pointwise_update, written_out
from ...schedule.limits import MOST_COPIES
from ...schedule.names import fresh
from ...schedule.sums import power_of_two
from ...schedule.updates import constant, is_independent
from ...target.gpu import MOST_THREADS, WARP_SIZE, whole_warps
from .marking import PLAIN, DefinitionLoops, Innermost, Marking, Names, Part, reordered
from .register_tiles import RegisterTile
from .staged_sums import is_staged

FEWEST_THREADS = 128  # of a block whose threads compute several points
MOST_UNROLLED = 16  # points of a thread
FEWEST_WAVES = 2  # times as many threads as the multiprocessors hold at a time, if threads compute several points
MOST_OF_MEMBER = 8  # adjacent points of a thread
MORE_ROUNDS = 1.25  # times as long as some threads may work if each computes several points
ROW_THREADS = 128  # of a row whose columns a strategy computes vector by vector on a CPU


class GpuMarking(Marking):
    """Blocks and threads."""

    @cached_property
    def _defaults(self) -> GpuDefaults:
        return GpuDefaults(self.problem.graph, self.problem.strict, (), extents=self.problem.facts.extents)

    def at_root(self, stage: Stage) -> Part:
        return tuple(self._defaults.at_root(stage))

    def alone(self, stage: Stage) -> Part:
        tile = RegisterTile.of(self.problem, stage)
        return self.at_root(stage) if tile is None else tile.scheduled(self.problem)

    def in_parts(self, stage: Stage) -> Part:
        part = self.at_root(stage)
        return part if len(part) > 1 and not self._defaults.bins(stage) else ()

    def is_alone(self, stage: Stage, is_tiled: bool, is_output: bool = False) -> bool:
        is_product = is_staged(self.problem, stage) or RegisterTile.of(self.problem, stage) is not None
        has_bins = is_output and bool(self._defaults.bins(stage))
        return not is_tiled or is_product or has_bins or self._defaults.cut_scans(stage) is not None

    def untiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        return self._defaults.marked(loops.stage, loops.definition, chain)

    def member(
        self, stage: Stage, chain: StageSchedule, extents: Mapping[str, int], host: StageSchedule | None = None
    ) -> StageSchedule:
        chain = chain.store_in("shared") if self.style.lanes else chain
        if stage.name in self.style.registers:
            dim, count = self.style.registers[stage.name]
            lanes = self.style.lanes[stage.name]
            chain = chain.registers_from(dim, extents[dim] - count, *(lanes[d] for d in stage.dims))
        if any(map(is_scattered, stage.updates)) and not self.style.lanes:
            chain = padded(chain, dims_to_pad(stage, extents))
        return super().member(stage, chain, extents, host)

    def inside(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        together = [d for d in loops.free if is_independent(loops.stage, loops.definition, d)]
        chain = reordered(chain, loops.now, [*together, *(n for n in loops.now if n not in together)])
        if self.style.lanes and together:
            return chain.lane(*together)
        dim, count = self._rows_of_member(loops, together)
        if count == 1:
            return _of_update(_kinds(chain, (), together), loops, together[-1:])
        shared, own = (fresh(dim + end, loops.now.__contains__) for end in ("_t", "_p"))
        threads = [shared if n == dim else n for n in together]
        chain = chain.split(dim, shared, own, count).reorder(*threads, own)
        return chain.thread(*threads).unroll(own)

    def threads(self, host: StageSchedule) -> int:
        dims, count = self.problem.graph.stage[host.name].dims, 1
        extents = dict(zip(dims, self.problem.facts.extents(host.name), strict=True))
        for d in host.directives:
            if d.verb == "split":
                loop, outer, inner, factor = d.args[:4]
                extents |= {str(outer): -(-extents[str(loop)] // int(factor)), str(inner): int(factor)}
            elif d.verb == "thread":
                count = prod(extents[str(loop)] for loop in d.args)
            elif d.verb == "threads":
                return int(d.args[0])
            elif d.verb == "update":
                break
        return count

    def _rows_of_member(self, loops: DefinitionLoops, together: Names) -> tuple[str, int]:
        """Along which dim of a member each thread computes several adjacent points, and how many: as many as make no
        thread work for much longer than before. The threads of a warp stay side by side."""
        points, threads, beside = prod(loops.inside[d] for d in together), loops.threads, 1
        dims = list[str]()
        for dim in reversed(together) if self.style.points > 1 and not loops.stage.updates else ():
            if beside >= WARP_SIZE:
                dims.insert(0, dim)
            beside *= loops.inside[dim]
        for dim in dims:
            for count in range(MOST_OF_MEMBER, 1, -1):
                rounds = count * -(-points // (count * threads))
                if loops.inside[dim] % count == 0 and rounds <= MORE_ROUNDS * -(-points // threads):
                    return dim, count
        return "", 1

    def tiled(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark the loops of blocks and threads. A dim without tiles, such as planes, is computed by one thread if other
        stages are computed for the tile. If not, each of its iterations is a block, except for channels."""
        if self.style.lanes:
            return self._of_warps(loops, chain)
        dims, counts = loops.stage.dims, {loops.called[loop]: count for loop, _, count in loops.tiles}
        tiled = [n for n, count in counts.items() if count > 1]
        row = dims[self.problem.row(loops.stage.name)]
        wanted = {loops.called[d]: n for d, n in self.style.threads.items() if d in loops.called}
        shares = _ThreadLoops(chain, [*loops.now], wanted, self._most_threads(loops))
        in_row = loops.called.get(row)
        shared = [n for n in loops.inside if n in tiled or n == in_row or wanted.get(n, 1) > 1]
        for name in reversed(shared):
            shares.take(name, loops.inside[name], is_row=name == in_row, is_constant=name in counts)
        whole = [n for n in loops.inside if n not in shared]
        outside = [n for n in whole if not loops.has_members and n in dims[: dims.index(row)]]
        blocks = [*outside, *(name for loop, name, _ in loops.tiles if loop in loops.free)]
        inner = [*(n for n in whole if n not in outside), *(n for _, n, _ in loops.tiles if n not in blocks)]
        order = [*blocks, *shares.threads, *shares.serial, *inner, *loops.reductions]
        is_written_out = self.style != PLAIN and not loops.definition.domain
        chain = shares.unrolled() if is_written_out else shares.chain
        marked = _kinds(reordered(chain, shares.now, order), blocks, shares.threads)
        is_larger = bool(blocks) and not shares.serial and loops.threads > shares.count
        marked = marked.threads(whole_warps(loops.threads)) if is_larger else marked
        return _of_update(marked, loops, [*shares.threads, *shares.serial, *inner][-1:] if shares.threads else ())

    def _of_warps(self, loops: DefinitionLoops, chain: StageSchedule) -> StageSchedule:
        """Mark tiles of warps: the points of a lane are as far apart as there are lanes."""
        blocks = [name for loop, name, _ in loops.tiles if name == loops.split[loop][0]]
        warps = [name for _, name, _ in loops.tiles if name not in blocks]
        now, lanes, serial = [*loops.now], list[str](), dict[str, int | None]()
        for name, count in self._lanes_in_tile(loops):
            points = loops.inside[name] // count
            if count > 1:
                shared, own = fresh(name + "_l", now.__contains__), fresh(name + "_p", now.__contains__)
                parts = [own, shared] if points > 1 else [name]
                chain = chain.split(name, own, shared, count) if points > 1 else chain
                now[now.index(name) : now.index(name) + 1] = parts
                lanes.append(parts[-1])
                name = own
            serial |= {name: points} if name in now else {}
        order = [*blocks, *warps, *serial, *lanes]
        order += [n for n in now if n not in order]
        most = MOST_COPIES if self.style.registers else MOST_UNROLLED
        whole = {n: e for n, e in self._constant_extents(loops.stage).items() if n in now and n not in serial}
        chain = reordered(_unrolled(chain, serial | whole, most), now, order)
        return chain.block(*blocks).warp(*warps).lane(*lanes)

    def _lanes_in_tile(self, loops: DefinitionLoops) -> Iterator[tuple[str, int]]:
        """The loops inside of a tile, and how many lanes share each."""
        tiled = {loop for loop, _, _ in loops.tiles}
        for dim, count in self.style.lanes[loops.stage.name].items():
            if dim in tiled:
                yield loops.called[dim], count

    def _constant_extents(self, stage: Stage) -> dict[str, int]:
        """The dims of an output whose extents are constant over all calls."""
        shapes = [o.shape for o in self.problem.graph.outputs if o.stage == stage.name]
        sides = zip(stage.dims, shapes[0], strict=True) if shapes else ()
        return {dim: int(extent.value) for dim, extent in sides if isinstance(extent, Const)}

    def _most_threads(self, loops: DefinitionLoops) -> int:
        """The most threads of a block. A thread of a reduction computes one point, since the terms of points load
        different values."""
        tile = prod(loops.inside.values())
        threads = max(FEWEST_THREADS, tile // self.style.points)
        resident = self.problem.gpu.multiprocessors * self.problem.gpu.multiprocessor.threads
        is_filled = self.problem.facts.points(loops.stage.name) * threads >= FEWEST_WAVES * resident * tile
        is_reduction = any(d.domain for d in loops.stage.definitions)
        return threads if threads < tile and is_filled and not is_reduction else MOST_THREADS

    def nest(
        self, chain: StageSchedule, parts: Sequence[Innermost] = (), order: Names = (), shared: Names = ()
    ) -> StageSchedule:
        """Share the loops that are vectors on a CPU among threads, a row of columns at a time, around what is
        unrolled."""
        rows = [p for p in parts if p.verb == "vectorize"]
        after = {row.loop: row.part for row in rows if row.count is not None}
        for loop, part in after.items():
            chain = chain.split(loop, loop, part, ROW_THREADS)
        for copies in (p for p in parts if p not in rows):
            chain = copies.mark(chain)
        order = [n for loop in order if loop not in after.values() for n in (loop, after.get(loop)) if n is not None]
        return _kinds(chain.reorder(*order) if order else chain, shared, [row.part for row in rows])


def _of_update(chain: StageSchedule, loops: DefinitionLoops, innermost: Names) -> StageSchedule:
    """Mark a pointwise update, or an update of the bins of a point, as by default. `innermost` is the innermost loop
    over dims of a pointwise update, if it is known."""
    if is_scattered(loops.definition):
        return written_out(chain, {loops.called[r.name]: constant(r.extent) for r in loops.definition.domain})
    is_update = loops.definition is not loops.stage.pure and is_pointwise(loops.stage, loops.definition)
    return pointwise_update(chain, loops.stage, loops.definition, *innermost) if is_update and innermost else chain


def _kinds(chain: StageSchedule, blocks: Names, threads: Names) -> StageSchedule:
    chain = chain.block(*blocks) if blocks else chain
    return chain.thread(*threads) if threads else chain


class _ThreadLoops:
    """Shares the loops inside of a tile among threads, from the innermost on, as long as a block has threads left."""

    def __init__(self, chain: StageSchedule, now: list[str], wanted: Mapping[str, int], most: int) -> None:
        """`wanted`: how many threads to share some loops among; `most`: the most threads of a block."""
        self.chain, self.now, self.wanted, self.room, self.count = chain, now, wanted, most, 1
        self.threads: list[str] = []
        self.serial: dict[str, int | None] = {}  # loops of each thread, with their extents where constant

    def take(self, name: str, extent: int, *, is_row: bool, is_constant: bool) -> None:
        """Share a loop among threads, or as much of it as there are threads for. Neighbouring threads take neighbouring
        columns; each thread takes consecutive rows, unless a number of threads is wanted."""
        most = min(extent, self.room, self.wanted.get(name, extent))
        is_row = is_row or name in self.wanted
        if most == extent and is_constant:
            self.threads.insert(0, name)
        elif most == 1:
            self._alone(name, extent if is_constant else None)
            return
        else:
            shared, own = fresh(name + "_t", self.now.__contains__), fresh(name + "_p", self.now.__contains__)
            row = most if most == self.wanted.get(name) else power_of_two(most)
            loops, factor = ((own, shared), row) if is_row else ((shared, own), -(-extent // most))
            self.chain = self.chain.split(name, *loops, factor)
            at = self.now.index(name)
            self.now[at : at + 1] = loops
            self.threads.insert(0, shared)
            most = factor if is_row else -(-extent // factor)
            self._alone(own, (-(-extent // most) if is_constant else None) if is_row else factor)
        self.room, self.count = self.room // most, self.count * most

    def _alone(self, name: str, extent: int | None) -> None:
        self.serial = {name: extent, **self.serial}

    def unrolled(self) -> StageSchedule:
        return _unrolled(self.chain, self.serial)


def _unrolled(chain: StageSchedule, serial: Mapping[str, int | None], most: int = MOST_UNROLLED) -> StageSchedule:
    """Unroll the loops over the points of a thread, from the innermost on, up to `most` points."""
    points = 1
    for name, extent in reversed([*serial.items()]):
        points *= extent or most + 1
        chain = chain.unroll(name) if points <= most else chain
    return chain
