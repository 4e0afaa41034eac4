"""Facts that hold for all of NVIDIA's GPUs that code is made for, in the words of the CUDA programming guide.

What differs between compute capabilities, and between products, is in `machine.capabilities`.
"""

from __future__ import annotations

WARP_SIZE = 32  # threads
MOST_THREADS = 1024  # of a block
MOST_REGISTERS = 255  # of a thread, 32 bits each
REGISTERS = 1 << 16  # of a multiprocessor; a few before sm_70 have more
LONGEST_ACCESS = 16  # bytes that a thread loads or stores at once
SECTOR = 32  # bytes: global memory is moved in sectors
LINE = 128  # bytes of a cache line: four sectors
BANKS = 32  # of shared memory
BANK_WIDTH = 4  # bytes
SHARED_WITHOUT_OPT_IN = 48 << 10  # bytes of shared memory that a block has without opting in to more
MOST_SHARED = 227 << 10  # bytes that a block can opt in to on the GPU that has most
MOST_BLOCKS = (1 << 31) - 1  # of a launch

_FIRST_WITH_BFLOATS = (8, 0)
FIRST_WITH_ASYNCHRONOUS_COPIES = (8, 0)
OF_ONE_GENERATION = "a"  # the end of names in LLVM of GPUs with instructions that later ones do not have


def whole_warps(threads: int) -> int:
    """The number of threads, rounded up to whole warps."""
    return -(-threads // WARP_SIZE) * WARP_SIZE


def compute_capability(name: str) -> tuple[int, int]:
    """The compute capability of a GPU by its name in LLVM: sm_90 and sm_90a are (9, 0), sm_120 is (12, 0)."""
    digits = "".join(c for c in name if c.isdigit())
    return int(digits[:-1]), int(digits[-1])


def computes_bfloats(name: str) -> bool:
    """Whether a GPU has instructions for bfloat16, by its name in LLVM."""
    return compute_capability(name) >= _FIRST_WITH_BFLOATS


def copies_asynchronously(name: str) -> bool:
    """Whether a GPU copies global to shared memory without passing through registers (cp.async)."""
    return compute_capability(name) >= FIRST_WITH_ASYNCHRONOUS_COPIES
