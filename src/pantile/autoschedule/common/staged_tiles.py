"""The tiles in which a block of a GPU sums products of factors that it stages in shared memory.

    block: 128 x 128 sums      thread: 8 x 16 of them      slice: 16 terms, with what they read in shared memory

Of all tiles that fit, the one with the fewest predicted cycles is chosen. The prediction counts what a multiprocessor
does: each of its four schedulers issues an instruction of a warp per cycle, shared memory serves 32 banks per cycle,
and blocks run one after the other, in whole rounds of all multiprocessors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from ...dataclass import cached_property, dataclass
from ...machine.multiprocessor import Gpu
from ...schedule.limits import MOST_COPIES
from ...target.gpu import BANK_WIDTH, BANKS, LONGEST_ACCESS, WARP_SIZE

FOUR = 4  # columns that a thread loads at once; those of neighbouring threads are in between
ROWS, COLUMNS = (8, 4, 5, 6, 7, 10), (8, 4, 16)  # of a thread
LANES = (1, 2, 4, 8, 16, 32)  # threads along one dim
THREADS = (64, 128, 256)  # of a block
MOST_SUMS, FEWEST_SUMS = 128, 16  # of a thread, in words
SLICES = (16, 8, 4, 2, 1)  # iterations of the loop that is cut into slices
MOST_TERMS = 64  # of a slice
MOST_UNROLLED = 4  # iterations of the innermost loop over terms
WANTED_WARPS = 12  # of a multiprocessor, for which shared memory suffices
ENOUGH_WARPS = 8  # that keep a multiprocessor busy
OTHER_REGISTERS = 40
SHARED_OUT, MOST_SHARED_OUT = 128, 96  # the registers of a thread that has at most this number of words of sums
SCHEDULERS = 4
COPY_INSTRUCTIONS = 5  # per access: the address that it reads, the address that it writes, and the copy itself
SLICE_CYCLES = 40  # waiting for a slice and for the threads of a block
ALONE_CYCLES = 160  # in addition, if a multiprocessor has no other block to run meanwhile
OVERLAPPED = 0.25  # the fraction of the shorter of two concurrent activities that the longer one does not hide
L2_BYTES = 40  # per cycle and multiprocessor
MOST_PADDING = 8

Steps = tuple[tuple[str, int], ...]  # loop -> how far it moves an index


@dataclass(frozen=True)
class Read:
    """A factor, described by the loops that move its indices."""

    indices: tuple[Steps, ...]
    bytes: int

    @cached_property
    def loops(self) -> frozenset[str]:
        return frozenset(loop for steps in self.indices for loop, _ in steps)

    def lengths(self, tile: dict[str, int]) -> list[int]:
        """The number of entries that a tile reads along each axis. Loops that are not in `tile` do not move."""
        return [1 + sum(abs(c) * (tile.get(loop, 1) - 1) for loop, c in steps) for steps in self.indices]

    def stored(self, row: str, column: str, dims: tuple[str, ...]) -> list[int]:
        """The axes in the order in which they are stored, so that what neighbouring threads read is contiguous."""

        def rank(axis: int) -> int:
            loops = {loop for loop, _ in self.indices[axis]}
            return 2 if loops & {row, column} else 1 if loops.intersection(dims) else 0

        return sorted(range(len(self.indices)), key=rank)


@dataclass(frozen=True)
class Sums:
    """The facts that the tiles of a sum depend on."""

    dims: tuple[tuple[str, int], ...]  # with their extents
    row: str
    column: str
    words: int  # of a sum, in registers
    reductions: tuple[tuple[str, int, bool], ...]  # name, extent, and whether the extent is constant
    reads: tuple[Read, ...]


@dataclass(frozen=True)
class StagedTile:
    """The tile of a block, and how it is shared among threads."""

    sums: Sums
    rows: int  # of a thread
    columns: int
    threads: tuple[tuple[str, int], ...]  # along each dim
    sliced: str  # the reduction loop that is cut into slices
    slice: int  # its iterations in one
    inside: tuple[str, ...]  # other reduction loops of which a slice has all iterations
    ahead: int

    @cached_property
    def own(self) -> dict[str, int]:
        """The sums of a thread along each dim."""
        return {self.sums.row: self.rows, self.sums.column: self.columns}

    @cached_property
    def block(self) -> dict[str, int]:
        """The sums of a block along each dim."""
        return {d: n * self.own.get(d, 1) for d, n in self.threads}

    @cached_property
    def count(self) -> int:
        return prod(n for _, n in self.threads)

    @cached_property
    def of_slice(self) -> dict[str, int]:
        """The loops of one slice with their extents."""
        whole = {r: n for r, n, _ in self.sums.reductions if r in self.inside}
        return {**self.block, **whole, self.sliced: self.slice}

    @cached_property
    def terms(self) -> int:
        return prod(n for loop, n in self.of_slice.items() if loop not in self.block)

    @cached_property
    def slices(self) -> int:
        reductions = {r: n for r, n, _ in self.sums.reductions}
        outer = prod(n for r, n in reductions.items() if r not in self.inside and r != self.sliced)
        return outer * -(-reductions[self.sliced] // self.slice)

    @cached_property
    def unrolled(self) -> int:
        """The iterations of the innermost loop over terms, if it is a window that is unrolled; 1 if not."""
        count = self.of_slice[self.inside[-1]] if self.inside else 1
        return count if count <= MOST_UNROLLED and count * self.rows * self.columns <= MOST_COPIES else 1

    def bytes(self, read: Read) -> int:
        return prod(read.lengths(self.of_slice)) * read.bytes

    @cached_property
    def shared(self) -> int:
        return (1 + self.ahead) * sum(map(self.bytes, self.sums.reads))

    @cached_property
    def wanted_registers(self) -> int:
        """The registers that a thread needs in order not to spill."""
        return self.sums.words * (self.held + self.rows + self.columns) + OTHER_REGISTERS

    @cached_property
    def registers(self) -> int:
        """The registers that a thread has: few enough for several blocks, unless threads hold very many sums."""
        return SHARED_OUT if self.held * self.sums.words <= MOST_SHARED_OUT else min(255, self.wanted_registers)

    @property
    def held(self) -> int:
        """The sums of a thread."""
        return self.rows * self.columns

    def lanes_of_copy(self, read: Read) -> int:
        """The number of elements of a factor that a thread copies at once."""
        last = len(read.indices) - 1
        is_row = read.stored(self.sums.row, self.sums.column, tuple(self.block))[-1] == last
        lanes = max(1, LONGEST_ACCESS // read.bytes)
        fits = [c for _, c in read.indices[-1]] == [1] and read.lengths(self.of_slice)[-1] % lanes == 0
        return lanes if is_row and fits else 1

    def padding(self, read: Read) -> int:
        """The padding of each row of a copy with which the threads that store it have the fewest bank conflicts."""
        order = read.stored(self.sums.row, self.sums.column, tuple(self.block))
        if order == list(range(len(order))) or order[-1] == len(order) - 1:
            return 0
        is_whole = self.rows % FOUR == 0 or read.loops & {self.sums.column}
        lengths = read.lengths(self.of_slice)
        row_length = lengths[order[-1]]
        choices = range(-row_length % FOUR, MOST_PADDING + 1, FOUR) if is_whole else range(MOST_PADDING)
        return min(choices, key=lambda n: _passes(_stored_at(order, lengths, n), read.bytes), default=0)

    def cycles(self, gpu: Gpu) -> float:
        """Predict the cycles of one multiprocessor."""
        s = self.sums
        warps = self.count // WARP_SIZE
        loads, passes = self._loads()
        copied = sum(prod(r.lengths(self.of_slice)) / self.lanes_of_copy(r) for r in s.reads)
        issued = self.terms * (s.words * self.rows * self.columns + loads) * warps
        issued += COPY_INSTRUCTIONS * copied / WARP_SIZE
        served = self.terms * passes * warps
        of_slice = max(issued / SCHEDULERS, served) + OVERLAPPED * min(issued / SCHEDULERS, served)
        blocks = prod(-(-n // self.block.get(d, 1)) for d, n in s.dims)
        rounds = -(-blocks // gpu.multiprocessors)
        resident = gpu.occupancy(self.count, self.shared, self.registers).blocks
        if not resident:
            return float("inf")
        at_once = min(resident, rounds)
        busy: float = min(1.0, at_once * warps / ENOUGH_WARPS)
        of_slice += SLICE_CYCLES if at_once > 1 else SLICE_CYCLES + ALONE_CYCLES
        of_slice *= max(1.0, self.wanted_registers / self.registers)  # some registers are spilled
        from_l2 = sum(map(self.bytes, s.reads)) / L2_BYTES
        return rounds * self.slices * max(of_slice / math.sqrt(busy), from_l2)

    def _loads(self) -> tuple[float, float]:
        """The instructions that load from shared memory for one term, and the passes of a warp through it."""
        lanes, left = dict[str, int](), WARP_SIZE
        for d, n in reversed(self.threads):
            lanes[d] = min(n, left)
            left //= lanes[d]
        loads = passes = 0.0
        for read in self.sums.reads:
            wide = max(1, BANK_WIDTH // read.bytes)
            reach, is_vector = self._reach(read)
            for axis in (self.sums.row, self.sums.column):
                if axis in read.loops:
                    count = reach[axis] / FOUR if is_vector[axis] else reach[axis]
                    words = lanes.get(axis, 1) * (FOUR if is_vector[axis] else 1) / wide
                    others = prod(n for d, n in lanes.items() if d in read.loops and d != axis)
                    step = 1 if axis == self.sums.column else self.own[axis]
                    conflicts = 1 if is_vector[axis] else _passes([k * step for k in range(lanes.get(axis, 1))], 4)
                    loads += count
                    passes += count * max(conflicts, -(-words * others // BANKS))
        return loads, passes

    def _reach(self, read: Read) -> tuple[dict[str, float], dict[str, bool]]:
        """The number of entries of a factor that a thread loads for a term along rows and columns, and whether it loads
        four at once. Neighbouring terms of a window share entries."""
        reach, is_vector = dict[str, float](), dict[str, bool]()
        for steps in read.indices:
            of = dict(steps)
            for axis in (self.sums.row, self.sums.column):
                if axis in of:
                    window = self.unrolled if self.inside and self.inside[-1] in of else 1
                    span = abs(of[axis]) * (self.own[axis] - 1) + window
                    reach[axis] = min(span, window * self.own[axis]) / window
                    is_vector[axis] = len(of) == 1 and of[axis] == 1 and self.own[axis] % FOUR == 0
        return reach, is_vector


def _stored_at(order: Sequence[int], lengths: Sequence[int], padding: int) -> list[int]:
    """The positions at which the first warp stores elements that it reads in their own order."""
    strides, stride = [0] * len(order), 1
    for k, axis in enumerate(reversed(order)):
        strides[axis] = stride
        stride *= lengths[axis] + (padding if k == 0 else 0)
    places = []
    for lane in range(min(WARP_SIZE, prod(lengths))):
        at, rest = 0, lane
        for axis in reversed(range(len(lengths))):
            at += strides[axis] * (rest % lengths[axis])
            rest //= lengths[axis]
        places.append(at)
    return places


def _passes(elements: Sequence[int], size: int) -> int:
    """The passes in which shared memory serves one access of a warp: the most distinct words in one bank."""
    words = {k * size // BANK_WIDTH for k in elements}
    banks = [w % BANKS for w in words]
    return max(map(banks.count, set(banks)), default=1)


@lru_cache(maxsize=1024)
def best_tile(gpu: Gpu, sums: Sums) -> StagedTile | None:
    """The tile that takes the fewest cycles, if any fits."""
    best, least = None, float("inf")
    for rows, columns, threads in _shapes(sums):
        if _fewest_cycles(gpu, sums, rows * columns, dict(threads), {sums.row: rows, sums.column: columns}) < least:
            tile = _sliced(gpu, sums, rows, columns, threads)
            if tile is not None and (cycles := tile.cycles(gpu)) < least:
                best, least = tile, cycles
    return best


def _fewest_cycles(gpu: Gpu, sums: Sums, held: int, threads: Mapping[str, int], own: Mapping[str, int]) -> float:
    """The cycles that the products alone take: a lower bound."""
    blocks = prod(-(-n // (threads.get(d, 1) * own.get(d, 1))) for d, n in sums.dims)
    terms = prod(n for _, n, _ in sums.reductions)
    warps = prod(threads.values()) / WARP_SIZE
    return -(-blocks // gpu.multiprocessors) * terms * sums.words * held * warps / SCHEDULERS


def _shapes(sums: Sums) -> Iterator[tuple[int, int, tuple[tuple[str, int], ...]]]:
    """Yield rows and columns of a thread, and threads of a block along each dim."""
    extents = dict(sums.dims)
    others = [d for d, n in sums.dims if d not in (sums.row, sums.column) and n > 1]
    for rows, columns in product(ROWS, COLUMNS):
        if not FEWEST_SUMS <= sums.words * rows * columns <= MOST_SUMS:
            continue
        for of_row, of_column in product(LANES, LANES):
            if rows * of_row > extents[sums.row] or columns * of_column > extents[sums.column]:
                continue
            for count in THREADS:
                rest = count // (of_row * of_column)
                if rest < 1:
                    continue
                for other in others if rest > 1 else [""]:
                    if other and rest > extents[other]:
                        continue
                    threads = {other: rest} if other else {}
                    threads |= {sums.row: of_row, sums.column: of_column}
                    yield rows, columns, tuple(threads.items())


def _sliced(gpu: Gpu, sums: Sums, rows: int, columns: int, threads: tuple[tuple[str, int], ...]) -> StagedTile | None:
    """The tile with the longest slices of the longest loop that fit."""
    has = gpu.multiprocessor
    count = prod(n for _, n in threads)
    wanted = -(-WANTED_WARPS * WARP_SIZE // count)
    # If an array is smaller than a block, the sums cannot be kept by threads and are in shared memory, too.
    held = 4 * sums.words * rows * columns * count
    room = min(has.shared_per_block - held, has.shared // wanted - has.shared_reserved)
    known = [(r, n) for r, n, is_known in sums.reductions if is_known]
    sliced, extent = max(((r, n) for r, n, _ in sums.reductions), key=lambda r: (r[1], r[0]))
    inside = [(r, n) for r, n in known if r != sliced]
    while inside and prod(n for _, n in inside) > MOST_TERMS:
        inside.pop(0)
    for n in SLICES:
        if n <= extent and n * prod(m for _, m in inside) <= MOST_TERMS:
            for ahead in (2, 1):
                tile = StagedTile(sums, rows, columns, threads, sliced, n, tuple(r for r, _ in inside), ahead)
                if tile.shared <= room and tile.slices > ahead:
                    return tile
    return None
