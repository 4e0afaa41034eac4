"""What a multiprocessor of a GPU has: a frozen value, by compute capability (`capabilities`) or told by the driver.

Words are those of the CUDA programming guide. Sizes are in bytes, registers have 32 bits.
"""

from __future__ import annotations

from ..dataclass import dataclass
from ..parameters import Amount, Bytes, Count, Rate, check_fields
from ..target.gpu import WARP_SIZE


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
    def threads(self) -> int:
        """The most threads that are resident at a time."""
        return self.warps * WARP_SIZE
