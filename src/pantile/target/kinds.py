"""The kinds of loops and of memory, each named once. A target says which of them it has."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    BLOCK = "block"  # its iterations are blocks of threads, in any order or at once
    THREAD = "thread"  # the threads of a block take its iterations in turn
    WARP = "warp"  # the warps of a block, of 32 threads each, take its iterations in turn
    LANE = "lane"  # the threads of a warp take one iteration each
    TENSOR_CORE = "tensor_core"  # a warp executes the iterations of three such loops by matrix instructions
    VECTOR = "vector"
    UNROLL = "unroll"

    def __str__(self) -> str:
        return self.value


class Memory(str, Enum):
    """Where a buffer lives. AUTO becomes STACK or HEAP when storage is planned."""

    AUTO = "auto"
    HEAP = "heap"  # outside any parallel loop: the caller's arena; on a GPU its global memory
    SHARED = "shared"  # of a block: all its threads see it, at a planned offset
    SCRATCH = "scratch"  # inside a parallel loop: that thread's arena, at a planned offset
    STACK = "stack"
    REGISTER = "register"  # a stack buffer with constant indices after unrolling; promoted by LLVM

    def __str__(self) -> str:
        return self.value


class CacheOperator(str, Enum):
    """Where a GPU caches what it loads from global memory, as PTX names it."""

    ALL = "ca"  # in L1 and L2
    GLOBAL = "cg"  # in L2 alone
    STREAMING = "cs"  # in both, and evicted first

    def __str__(self) -> str:
        return self.value


# Loops whose iterations several threads run concurrently.
AT_ONCE = (Kind.PARALLEL, Kind.BLOCK, Kind.THREAD, Kind.WARP, Kind.LANE, Kind.TENSOR_CORE)
# Loops that run iteration by iteration, and loops that are expanded in the code, whose extents are constant.
ITERATED = (Kind.SERIAL, *AT_ONCE)
WRITTEN_OUT = (Kind.VECTOR, Kind.UNROLL)
# Loops that are apart from what a split leaves over after its whole blocks.
OF_WHOLE_BLOCKS = (*WRITTEN_OUT, Kind.TENSOR_CORE)

CPU_LOOPS = (Kind.SERIAL, Kind.PARALLEL, *WRITTEN_OUT)
GPU_LOOPS = (Kind.SERIAL, Kind.BLOCK, Kind.THREAD, Kind.WARP, Kind.LANE, Kind.TENSOR_CORE, *WRITTEN_OUT)
CPU_MEMORIES = (Memory.AUTO, Memory.HEAP, Memory.SCRATCH, Memory.STACK, Memory.REGISTER)
GPU_MEMORIES = (Memory.AUTO, Memory.HEAP, Memory.SHARED, Memory.STACK, Memory.REGISTER)
