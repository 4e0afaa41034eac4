"""What a launch requests from global and shared memory, and how many instructions its warps execute, without running
it.

Some blocks are executed as by the simulator, with some iterations of long loops, different ones in each block; each of
these stands for others. Only indices and conditions are computed. If these depend on data, the numbers are upper
bounds: each thread requests a sector of its own, and both branches are taken. Loads are counted at the levels of
`instruction_counts`, so that redundant loads of a thread count once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from ..dataclass import dataclass
from ..expr.nodes import Const, Expr, Load, Number
from ..expr.types import DType
from ..expr.visit import loaded, names
from ..ir.nodes import Alloc, For, If, Kernel, Let, Stmt, Store
from ..ir.visit import children
from ..simulator.accesses import Entries, ThreadAccess
from ..simulator.active import Active, Array
from ..simulator.expressions import Expressions, Scope
from ..simulator.races import Epochs
from ..simulator.traffic import Traffic, sectors
from ..target.description import INDEX_BITS
from ..target.gpu import SECTOR, WARP_SIZE
from ..target.kinds import Kind, Memory
from .instruction_counts import Pipe, levels_of

_THREADS = 1 << 13  # in the sampled blocks, at least
_ACCESSES = 1 << 17  # in the sampled blocks, at least: a few blocks of a kernel with few accesses may do all the work
_ACCESSES_OF_LOOP = 1 << 19  # in the sampled iterations of a loop, by all threads
_ROOM = 1 << 6  # and by one thread
_KINDS = ("load", "store")
_RANDOM_PASSES = 3.5  # over the banks of shared memory, if threads access random words


@dataclass(frozen=True)
class Work:
    """The work of a launch, summed over its warps. It is an upper bound if `is_bound`, since some of it depends on
    data.

    `read` and `written` are the bytes of all sectors of global memory that are requested. `moved` is the sum of both
    for each buffer of the kernel, but counts at most the size of the buffer for each of them: anything beyond is
    requested again. `passes` are those over the banks of shared memory. `latency` is the sum of the cycles that each
    warp would take if it ran alone. `code` is the number of different instructions that a warp executes.
    """

    read: int
    written: int
    moved: tuple[int, ...]
    passes: float
    instructions: Mapping[Pipe, float]
    latency: float
    code: float
    is_bound: bool


def work_of(kernel: Kernel, scalars: Sequence[Number], sizes: Sequence[int], blocks: int) -> Work | None:
    """The work of a launch, given the captures of its kernel in order: the values of scalars, and the bytes of buffers.
    None if the number of accesses depends on data."""
    sample = _Sample(kernel, scalars, sizes, blocks)
    with np.errstate(all="ignore"):
        sample.run()
    if sample.is_unknown:
        return None
    requested = {kind: {b: round(n) * SECTOR for b, n in sample.sectors[kind].items()} for kind in _KINDS}
    read, written = (sum(requested[kind].values()) for kind in _KINDS)
    moved = tuple(
        sum(min(requested[kind].get(b.name, 0), size) for kind in _KINDS)
        for b, size in zip(kernel.buffers, sizes, strict=True)
    )
    return Work(read, written, moved, sample.passes, sample.instructions, sample.latency, sample.code, sample.is_bound)


class _Part(NamedTuple):
    """The active threads, how many blocks each sampled block stands for, and how many accesses of a loop may be
    sampled."""

    active: Active
    weight: Array
    room: int


class _Sample:
    """A sample of the blocks of a launch, executed in lockstep."""

    def __init__(self, kernel: Kernel, scalars: Sequence[Number], sizes: Sequence[int], blocks: int) -> None:
        self.sectors: dict[str, dict[str, float]] = {kind: defaultdict(float) for kind in _KINDS}
        self.passes = self.latency = 0.0
        self.instructions: dict[Pipe, float] = defaultdict(float)
        self.is_bound = self.is_unknown = False
        self.kernel_name, self.first_block, self.epoch = kernel.name, 0, 0
        self.last_entries: Entries | None = None
        self._random = np.random.default_rng(0)
        self._expressions = Expressions(INDEX_BITS)
        self._buffers = {b.name: (b.dtype.bytes, size) for b, size in zip(kernel.buffers, sizes, strict=True)}
        values = zip(kernel.scalars, scalars, strict=True)
        self._scalars = {v.name: self._expressions.number(n, v.dtype) for v, n in values}
        self._shared: dict[str, tuple[int, int]] = {}  # offsets of buffers in shared memory, and sizes of elements
        self._passes_of: dict[int, float] = {}
        self._levels = levels_of(kernel)
        self._executed: dict[int, float] = defaultdict(float)  # how many warps execute the body of a level
        self._accesses_of: dict[int, int] = {}
        threads = max(_THREADS, _ACCESSES // max(1, self._accesses(kernel.body)))
        number = max(1, min(blocks, threads // kernel.threads))
        warps = -(-kernel.threads // WARP_SIZE)
        self.epochs = Epochs(np.zeros(number, np.int64), np.zeros((number, warps), np.int64))
        self._kernel, self._blocks, self._shape = kernel, blocks, (number, kernel.threads)

    def run(self) -> None:
        everything = Active(np.ones(self._shape, np.bool_))
        number, first = self._shape[0], self._value(self._kernel.min, everything)
        chosen = self._spread(np.arange(number), np.full(number, self._blocks), number)
        self._scalars[self._kernel.var] = first + chosen.reshape(-1, 1)
        room = min(_ROOM, _ACCESSES_OF_LOOP // everything.count)
        self._body(self._kernel.body, _Part(everything, np.full(number, self._blocks / number), room))

    @property
    def code(self) -> float:
        """The instructions that a warp executes at least once, on average."""
        warps = self._blocks * -(-self._kernel.threads // WARP_SIZE)
        counts = {i: sum(self._levels[i].instructions.values()) for i in self._executed}
        return sum(min(1.0, self._executed[i] / warps) * count for i, count in counts.items())

    def _spread(self, part: Array | int, of: Array, parts: int) -> Array:
        """Random numbers below `of`, each from one of `parts` equal parts."""
        return ((part + self._random.random(len(of))) * of / parts).astype(np.int64)

    # ---- statements

    def _body(self, s: Stmt, part: _Part) -> None:
        """Go through the body of the kernel, a loop or a branch."""
        self._statement(s, part)
        level = self._levels[id(s)]
        self._loads(level.loads, part)
        warps = float(_warps(part) @ part.weight)
        self._executed[id(s)] += warps
        for pipe, number in level.instructions.items():
            self.instructions[pipe] += number * warps
        self.latency += level.latency * warps

    def _statement(self, s: Stmt, part: _Part) -> None:
        if isinstance(s, For):
            self._for(s, part)
        elif isinstance(s, If):
            self._if(s, part)
        else:
            if isinstance(s, Let) and self._is_known(s.value):
                self._scalars[s.name] = self._value(s.value, part.active)
            elif isinstance(s, Alloc) and s.memory is Memory.SHARED:
                self._shared[s.buffer] = (int(cast(Const, s.offset).value), s.dtype.bytes)
            elif isinstance(s, Store):
                self._access("store", s.buffer, s.indices[0], s.mask, s.value.dtype, part)
            for c in children(s):
                self._statement(c, part)

    def _if(self, s: If, part: _Part) -> None:
        branches = [(s.then, part.active), (s.otherwise, part.active)]
        if self._is_known(s.condition):
            holds = self._value(s.condition, part.active)
            branches = [(s.then, part.active.where(holds)), (s.otherwise, part.active.where(~holds))]
        else:
            self.is_bound = self.is_bound or self._accesses(s) > 0
        for branch, active in branches:
            if branch is not None and active.count:
                self._body(branch, part._replace(active=active))

    def _for(self, s: For, part: _Part) -> None:
        accesses = self._accesses(s.body)
        if not self._is_known(s.extent):
            self.is_unknown = self.is_unknown or accesses > 0
            return
        extent = np.broadcast_to(self._value(s.extent, part.active), self._shape)
        offset, step = (np.arange(self._shape[1]), self._shape[1]) if s.kind is Kind.THREAD else (0, 1)
        most = (np.where(part.active.mask, extent, 0).max(axis=1) + step - 1) // step  # the iterations of each block
        largest = int(most.max())
        rounds = min(largest, max(1, part.room // accesses) if accesses else 1)
        first = self._value(s.min, part.active) if self._is_known(s.min) else None
        for k in range(rounds):
            at = np.full(len(most), k) if rounds == largest else self._spread(k, most, rounds)
            value = at.reshape(-1, 1) * step + offset
            weight = part.weight if rounds == largest else part.weight * most / rounds
            if first is not None:
                self._scalars[s.var] = first + value
            active = part.active.where(value < extent)
            if active.count:
                self._body(s.body, _Part(active, weight, part.room // rounds))
        if largest:
            self._loads(self._levels[id(s.body)].hoisted, part._replace(active=part.active.where(extent > 0)))

    # ---- accesses

    def _loads(self, loads: Sequence[Load], part: _Part) -> None:
        for load in loads:
            self._access("load", load.buffer, load.indices[0], load.mask, load.dtype, part)

    def _accesses(self, s: Stmt) -> int:
        """The number of accesses to global memory in a statement, each counted once."""
        if id(s) not in self._accesses_of:
            loads = self._levels[id(s)].loads if id(s) in self._levels else ()
            own = sum(load.buffer in self._buffers for load in loads) + (
                isinstance(s, Store) and s.buffer in self._buffers
            )
            self._accesses_of[id(s)] = own + sum(map(self._accesses, children(s)))
        return self._accesses_of[id(s)]

    def _access(self, kind: str, buffer: str, index: Expr, mask: Expr | None, t: DType, part: _Part) -> None:
        if buffer in self._shared:
            self.passes += self._passes(buffer, index, mask, part) * float(_warps(part) @ part.weight)
            return
        if buffer not in self._buffers:
            return
        known = mask is None or self._is_known(mask)
        lanes = None if mask is None or not known else self._value(mask, part.active)
        self.is_bound = self.is_bound or not known
        if self._is_known(index):
            moved = sectors(ThreadAccess(self._value(index, part.active), lanes, index.lanes, part.active), t.bytes)
        else:
            self.is_bound = True
            threads = part.active.mask.reshape(-1, WARP_SIZE).sum(axis=1)
            moved = np.minimum(threads, -(-self._buffers[buffer][1] // SECTOR)) * index.lanes
        self.sectors[kind][buffer] += float(moved.reshape(len(part.weight), -1).sum(axis=1) @ part.weight)

    def _passes(self, buffer: str, index: Expr, mask: Expr | None, part: _Part) -> float:
        """The passes over the banks for an access to shared memory by a warp. Those of the first execution are used for
        all, since other iterations differ little. If the index depends on data, those of a random access are used."""
        if id(index) not in self._passes_of:
            passes = _RANDOM_PASSES * index.lanes
            if self._is_known(index) and (mask is None or self._is_known(mask)):
                lanes = None if mask is None else self._value(mask, part.active)
                access = ThreadAccess(self._value(index, part.active), lanes, index.lanes, part.active)
                traffic = Traffic()
                traffic.of_shared("load", access, *self._shared[buffer])
                passes = traffic.shared_passes.total() / int(_warps(part).sum())
            self._passes_of[id(index)] = passes
        return self._passes_of[id(index)]

    def _is_known(self, e: Expr) -> bool:
        """Whether an expression does not depend on data."""
        return not loaded(e) and names(e) <= self._scalars.keys()

    def _value(self, e: Expr, active: Active) -> Array:
        return self._expressions(e).value(Scope(self._scalars, {}, active, self))


def _warps(part: _Part) -> Array:
    """The number of warps of each block that have active threads."""
    warps: Array = part.active.mask.reshape(len(part.weight), -1, WARP_SIZE).any(axis=2).sum(axis=1)
    return warps
