"""What schedulers and cost models know of a GPU, and what a multiprocessor of it has: frozen values.

A GPU is given by name (`named`) or told by the driver, a multiprocessor by compute capability (`capabilities`) or told
by the driver. Words are those of the CUDA programming guide. Sizes are in bytes, registers have 32 bits, and
`bandwidth` is in bytes per second.

A multiprocessor holds as many blocks of a kernel at a time as its warps, shared memory and registers leave room for.
The rules are those of NVIDIA's occupancy calculator, for all compute capabilities: registers are given to warps, in
units, and each sub-partition of a multiprocessor has a part of them; shared memory is given to blocks, in units, with
what the system takes of each.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

from ..dataclass import cached_property, dataclass, hashed_once
from ..parameters import Amount, Between, Bytes, Count, Rate, check_fields
from ..target import gpu
from ..target.description import Target, gpu_target
from ..target.gpu import MOST_THREADS, WARP_SIZE
from ..target.mma import COLUMNS, ROWS, TERMS
from .description import Machine

_CHECKED = 4
Numbers = Any  # one, or an array of them


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix multiplication that tensor cores do by one instruction: m by k times k by n, added to m by n."""

    m: Count
    n: Count
    k: Count
    operands: str  # the type of both factors, such as float16
    accumulator: str
    fmas: Count  # fused multiply-adds that a multiprocessor does per cycle by such instructions

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor (SM) has, and how that is given to blocks: facts of a compute capability."""

    cores: Count  # FP32 lanes: fused multiply-adds of floats per cycle
    warps: Count  # resident at a time, at most
    blocks: Count  # likewise
    registers: Count
    registers_per_block: Count  # at most
    registers_per_thread: Count  # at most
    register_unit: Count  # registers are given to warps in multiples of this
    sub_partitions: Count  # each has an equal part of the registers, and a warp lies in one of them
    shared: Bytes  # shared memory
    shared_per_block: Bytes  # at most, for a kernel that opts in to more than it has otherwise
    shared_reserved: Amount  # bytes of shared memory that the system takes for each block
    shared_unit: Count  # shared memory is given to blocks in multiples of this
    shared_per_cycle: Rate  # bytes of shared memory that are read or written per cycle
    matrix_instructions: tuple[MatrixInstruction, ...] | tuple[()] = ()  # for tensor cores, where there are some

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def mma_per_cycle(self) -> float:
        """The products of 16 by 16 with 16 by 8 floats of 16 bits, as `target.mma` has them, that its tensor cores do
        per cycle at most; those of integers of 8 bits have twice as many terms in the same time."""
        of_halves = [i.fmas for i in self.matrix_instructions if (i.operands, i.accumulator) == ("float16", "float32")]
        return max(of_halves, default=1) / (ROWS * COLUMNS * TERMS)

    @property
    def threads(self) -> int:
        """The most threads that are resident at a time."""
        return self.warps * WARP_SIZE


class Occupancy(NamedTuple):
    """Blocks that a multiprocessor holds, what share of its warps these are, and what keeps more of them out."""

    blocks: int
    share: float
    limit: str  # blocks, threads, shared memory or registers


def occupancy(has: Multiprocessor, threads: int, shared: int, registers: int) -> Occupancy:
    """The occupancy of blocks of so many threads, bytes of shared memory, and registers per thread. Blocks that do not
    fit at all are none, by the limit that they exceed."""
    warps = _units(threads, WARP_SIZE)
    room = {
        "blocks": has.blocks,
        "threads": has.warps // warps if threads <= MOST_THREADS else 0,
        "shared memory": _by_shared_memory(has, shared),
        "registers": _by_registers(has, warps, max(1, registers)),
    }
    limit = min(room, key=lambda name: room[name])
    return Occupancy(room[limit], room[limit] * warps / has.warps, limit)


def _by_shared_memory(has: Multiprocessor, shared: int) -> int:
    return 0 if shared > has.shared_per_block else int(blocks_by_shared_memory(has, max(1, shared)))


def _by_registers(has: Multiprocessor, warps: int, registers: int) -> int:
    # A launch is checked as if a block took as many registers in each of four sub-partitions, also where there are two.
    of_block = _registers_of_warp(has, registers) * _units(warps, _CHECKED) * _CHECKED
    if registers > has.registers_per_thread or of_block > has.registers_per_block:
        return 0
    return int(blocks_by_registers(has, warps, registers))


def blocks_by_shared_memory(has: Multiprocessor, shared: Numbers) -> Numbers:
    """How many blocks of so many bytes, one at least, a multiprocessor has shared memory for."""
    return quotient(has.shared, _units(shared + has.shared_reserved, has.shared_unit) * has.shared_unit)


def blocks_by_registers(has: Multiprocessor, warps: Numbers, registers: Numbers) -> Numbers:
    """How many blocks of so many warps, whose threads have so many registers, it has registers for."""
    of_warp = _registers_of_warp(has, registers)
    return quotient(quotient(has.registers // has.sub_partitions, of_warp) * has.sub_partitions, warps)


def quotient(a: Numbers, b: Numbers) -> Numbers:
    """How many times `b` goes into `a`, neither of which is negative. NumPy divides integers several times as fast as
    floats, which are exact up to 2**53."""
    return a // b if isinstance(b, int) else (a / b).astype(int)


def _registers_of_warp(has: Multiprocessor, registers: Numbers) -> Numbers:
    return _units(registers * WARP_SIZE, has.register_unit) * has.register_unit


def _units(amount: Numbers, unit: int) -> Numbers:
    """How many units hold an amount."""
    return -(-amount // unit)


@dataclass(frozen=True)
class GpuCosts:
    """Constants of the cost model for GPUs. Rates are those of a multiprocessor, per cycle; instructions are those of
    whole warps. `integers`, `l1_bytes`, `memory_rate`, `latency` and `launch_s` were fitted to times on an H200."""

    integers: Rate = 3.0  # instructions on integers, comparisons and selections
    conversions: Rate = 1.0  # between numbers of different types
    approximations: Rate = 0.5  # of reciprocals, roots, powers of two
    accesses: Rate = 1.0  # loads, stores and shuffles
    matrix_products: Rate = 0.6  # part of the rate of tensor cores that `mma.sync` reaches
    warpgroup_products: Rate = 0.8  # and `wgmma`
    l1_bytes: Rate = 96.0  # that L1 serves
    memory_rate: Rate = 0.71  # part of the peak bandwidth of global memory that kernels reach
    l2_rate: Rate = 1.43  # bandwidth of L2 in that of global memory
    l2_share: Rate = 0.5  # part of L2 in which data of one launch remain for the next one
    latency: Rate = 0.55  # part of the time that a warp would take alone for which it keeps others waiting
    launch_s: Rate = 1.5e-6  # until the blocks of a launch begin

    def __post_init__(self) -> None:
        check_fields(self)


@hashed_once
@dataclass(frozen=True)
class Gpu(Machine):
    """A GPU and its memory."""

    name: str
    capability: tuple[Annotated[int, Between(1, 99)], Annotated[int, Between(0, 9)]]  # compute capability
    multiprocessors: Count
    multiprocessor: Multiprocessor  # what each of them has
    ghz: Rate
    l2: Bytes  # size of the L2 cache
    bandwidth: Rate  # of global memory
    costs: GpuCosts = GpuCosts()  # the constants of the cost model

    warp_size: ClassVar[int] = gpu.WARP_SIZE
    threads_per_block: ClassVar[int] = gpu.MOST_THREADS
    shared_without_opt_in: ClassVar[int] = gpu.SHARED_WITHOUT_OPT_IN
    banks: ClassVar[int] = gpu.BANKS
    bank_width: ClassVar[int] = gpu.BANK_WIDTH
    sector: ClassVar[int] = gpu.SECTOR  # the size of a transaction with global memory
    line: ClassVar[int] = gpu.LINE

    def __post_init__(self) -> None:
        check_fields(self)

    @cached_property
    def target(self) -> Target:
        """The target that schedules for the machine are made for."""
        return gpu_target("sm_{}{}".format(*self.capability))

    def occupancy(self, threads: int, shared: int, registers: int) -> Occupancy:
        """How many blocks of so many threads, bytes of shared memory, and registers per thread a multiprocessor holds
        at a time, and what keeps more of them out."""
        return occupancy(self.multiprocessor, threads, shared, registers)

    def resident_blocks(self, threads: int, shared: int, registers: int) -> int:
        """How many of these blocks all multiprocessors hold at a time, at least one."""
        return self.multiprocessors * max(1, self.occupancy(threads, shared, registers).blocks)
