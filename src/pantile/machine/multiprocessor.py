"""GPUs and their multiprocessors as schedulers and cost models see them: frozen values.

A GPU is known by name (`named`) or from the driver, a multiprocessor by compute capability (`capabilities`) or from the
driver. Terms are those of the CUDA programming guide. Sizes are in bytes, registers have 32 bits, and `bandwidth` is in
bytes per second.

The number of blocks that are resident on a multiprocessor is limited by its warps, shared memory and registers. The
rules are those of NVIDIA's occupancy calculator, for all compute capabilities. Registers are allocated to warps, in
units, and each sub-partition of a multiprocessor has an equal part of them. Shared memory is allocated to blocks, in
units, and the system reserves some for each block.
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
Numbers = Any  # a number, or an array of numbers


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix multiplication that tensor cores do in one instruction: m by k times k by n, added to m by n."""

    m: Count
    n: Count
    k: Count
    operands: str  # the type of both factors, such as float16
    accumulator: str
    fmas: Count  # fused multiply-adds per cycle and multiprocessor with such instructions

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Multiprocessor:
    """The resources of one multiprocessor (SM) and their allocation to blocks, which depend on compute capability."""

    cores: Count  # FP32 lanes: fused multiply-adds of floats per cycle
    warps: Count  # maximum number of resident warps
    blocks: Count  # maximum number of resident blocks
    registers: Count
    registers_per_block: Count  # at most
    registers_per_thread: Count  # at most
    register_unit: Count  # registers are allocated to warps in multiples of this
    sub_partitions: Count  # each has an equal part of the registers; a warp runs in one of them
    shared: Bytes  # shared memory
    shared_per_block: Bytes  # at most, for a kernel that opts in to more than the default
    shared_reserved: Amount  # bytes of shared memory that the system reserves for each block
    shared_unit: Count  # shared memory is allocated to blocks in multiples of this
    shared_per_cycle: Rate  # bytes of shared memory that are read or written per cycle
    matrix_instructions: tuple[MatrixInstruction, ...] | tuple[()] = ()  # of tensor cores, if there are any

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def mma_per_cycle(self) -> float:
        """The peak number of matrix products per cycle, each of 16 by 16 and 16 by 8 16-bit floats as in `target.mma`.
        Products of 8-bit integers have twice as many terms and take the same time."""
        of_halves = [i.fmas for i in self.matrix_instructions if (i.operands, i.accumulator) == ("float16", "float32")]
        return max(of_halves, default=1) / (ROWS * COLUMNS * TERMS)

    @property
    def threads(self) -> int:
        """The maximum number of resident threads."""
        return self.warps * WARP_SIZE


class Occupancy(NamedTuple):
    """The number of resident blocks of a multiprocessor, the share of its warps that they fill, and the resource that
    limits them."""

    blocks: int
    share: float
    limit: str  # blocks, threads, shared memory or registers


def occupancy(has: Multiprocessor, threads: int, shared: int, registers: int) -> Occupancy:
    """The occupancy of blocks with this number of threads, bytes of shared memory, and registers per thread. If not
    even one block fits, it is 0 blocks, and the limit is one that they exceed."""
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
    # A launch is checked as if a block took equally many registers in each of four sub-partitions, even if there are
    # only two.
    of_block = _registers_of_warp(has, registers) * _units(warps, _CHECKED) * _CHECKED
    if registers > has.registers_per_thread or of_block > has.registers_per_block:
        return 0
    return int(blocks_by_registers(has, warps, registers))


def blocks_by_shared_memory(has: Multiprocessor, shared: Numbers) -> Numbers:
    """The number of blocks of `shared` bytes, at least one byte, that a multiprocessor has shared memory for."""
    return quotient(has.shared, _units(shared + has.shared_reserved, has.shared_unit) * has.shared_unit)


def blocks_by_registers(has: Multiprocessor, warps: Numbers, registers: Numbers) -> Numbers:
    """The number of blocks of `warps` warps, with `registers` per thread, that a multiprocessor has registers for."""
    of_warp = _registers_of_warp(has, registers)
    return quotient(quotient(has.registers // has.sub_partitions, of_warp) * has.sub_partitions, warps)


def quotient(a: Numbers, b: Numbers) -> Numbers:
    """The quotient of two nonnegative integers, rounded down. Arrays are divided as floats, which NumPy does several
    times as fast as dividing integers, and which is exact up to 2**53."""
    return a // b if isinstance(b, int) else (a / b).astype(int)


def _registers_of_warp(has: Multiprocessor, registers: Numbers) -> Numbers:
    return _units(registers * WARP_SIZE, has.register_unit) * has.register_unit


def _units(amount: Numbers, unit: int) -> Numbers:
    """The number of units that hold an amount."""
    return -(-amount // unit)


@dataclass(frozen=True)
class GpuCosts:
    """Constants of the cost model for GPUs. Rates are per cycle and multiprocessor, and instructions are those of whole
    warps. `integers`, `l1_bytes`, `memory_rate`, `l2_rate`, `latency`, `last_wave` and `launch_s` were fitted to times
    on an H200; `code` and `fetch` were chosen by a dozen of them."""

    integers: Rate = 2.8  # instructions on integers, comparisons and selections
    conversions: Rate = 1.0  # between numbers of different types
    approximations: Rate = 0.5  # of reciprocals, roots, powers of two
    accesses: Rate = 1.0  # loads, stores and shuffles
    matrix_products: Rate = 0.6  # fraction of the peak rate of tensor cores that `mma.sync` reaches
    warpgroup_products: Rate = 0.8  # fraction that `wgmma` reaches
    l1_bytes: Rate = 180.0  # bytes that L1 serves
    memory_rate: Rate = 0.72  # fraction of the peak bandwidth of global memory that kernels reach
    l2_rate: Rate = 1.08  # bandwidth of L2, relative to the peak bandwidth of global memory
    l2_share: Rate = 0.5  # fraction of L2 in which data of one launch remain for the next one
    last_wave: Rate = 0.28  # fraction of the multiprocessors that a last wave leaves idle, for which it takes time
    code: Rate = 2500.0  # instructions, as they are counted, that caches hold
    fetch: Rate = 3.0  # time to fetch an instruction that they do not hold, relative to the time to issue it
    latency: Rate = 0.43  # fraction of a warp's stand-alone time during which it keeps other warps waiting
    launch_s: Rate = 1.5e-6  # seconds until the blocks of a launch begin

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
        """The occupancy of a multiprocessor by blocks with this number of threads, bytes of shared memory, and
        registers per thread."""
        return occupancy(self.multiprocessor, threads, shared, registers)

    def resident_blocks(self, threads: int, shared: int, registers: int) -> int:
        """The number of such blocks that are resident on the whole GPU, at least one per multiprocessor."""
        return self.multiprocessors * max(1, self.occupancy(threads, shared, registers).blocks)
