"""What schedulers and cost models know of a GPU: a frozen value, given by name (`named`) or told by the driver.

Words are those of the CUDA programming guide. Sizes are in bytes, and `bandwidth` is in bytes per second.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ..dataclass import cached_property, dataclass, hashed_once
from ..parameters import Between, Bytes, Count, Rate, check_fields
from ..target import gpu
from ..target.description import Target, gpu_target
from .description import Machine
from .multiprocessor import Multiprocessor, Occupancy, occupancy


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
