"""Facts that hold for all supported NVIDIA GPUs, in the terms of the CUDA programming guide.

Facts that differ between compute capabilities or between products are in `machine.capabilities`.
"""

from __future__ import annotations

WARP_SIZE = 32  # threads
MOST_THREADS = 1024  # per block
MOST_REGISTERS = 255  # per thread, of 32 bits each
REGISTERS = 1 << 16  # per multiprocessor; a few before sm_70 have more
LONGEST_ACCESS = 16  # bytes that a thread loads or stores at once
SECTOR = 32  # bytes; global memory moves in sectors
LINE = 128  # bytes of a cache line: four sectors
BANKS = 32  # of shared memory
BANK_WIDTH = 4  # bytes
SHARED_WITHOUT_OPT_IN = 48 << 10  # bytes of shared memory that a block may use without opting in to more
MOST_SHARED = 227 << 10  # bytes that a block can opt in to on the GPU with the most shared memory
MOST_BLOCKS = (1 << 31) - 1  # per launch

_FIRST_WITH_BFLOATS = (8, 0)
FIRST_WITH_ASYNCHRONOUS_COPIES = (8, 0)
OF_ONE_GENERATION = "a"  # suffix of the LLVM names of GPUs with instructions that later GPUs lack, as in sm_90a


def whole_warps(threads: int) -> int:
    """Round a number of threads up to whole warps."""
    return -(-threads // WARP_SIZE) * WARP_SIZE


def compute_capability(name: str) -> tuple[int, int]:
    """The compute capability of a GPU, given its LLVM name: sm_90 and sm_90a are (9, 0), sm_120 is (12, 0)."""
    digits = "".join(c for c in name if c.isdigit())
    return int(digits[:-1]), int(digits[-1])


def computes_bfloats(name: str) -> bool:
    """Whether a GPU, given by its LLVM name, has instructions for bfloat16."""
    return compute_capability(name) >= _FIRST_WITH_BFLOATS


def copies_asynchronously(name: str) -> bool:
    """Whether a GPU can copy global memory to shared memory without going through registers (cp.async)."""
    return compute_capability(name) >= FIRST_WITH_ASYNCHRONOUS_COPIES
