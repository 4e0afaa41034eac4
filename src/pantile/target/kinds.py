"""The kinds of loops and of memory. A target lists the ones that it supports."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    BLOCK = "block"  # each iteration is a block of threads; they run in any order or concurrently
    THREAD = "thread"  # the iterations are distributed round-robin over the threads of a block
    WARP = "warp"  # the iterations are distributed round-robin over the warps of a block, of 32 threads each
    LANE = "lane"  # each thread of a warp executes one iteration
    TENSOR_CORE = "tensor_core"  # a warp executes three nested loops of this kind by matrix instructions
    VECTOR = "vector"
    UNROLL = "unroll"

    def __str__(self) -> str:
        return self.value


class Memory(str, Enum):
    """Where a buffer lives. AUTO becomes STACK or HEAP when storage is planned."""

    AUTO = "auto"
    HEAP = "heap"  # outside of parallel loops: the caller's arena; on a GPU, global memory
    SHARED = "shared"  # the memory that all threads of a block share, at a planned offset
    SCRATCH = "scratch"  # inside a parallel loop: the arena of the executing thread, at a planned offset
    STACK = "stack"
    REGISTER = "register"  # a stack buffer with constant indices after unrolling; promoted by LLVM

    def __str__(self) -> str:
        return self.value


class CacheOperator(str, Enum):
    """The caches that a GPU loads from global memory through, as PTX names them."""

    ALL = "ca"  # in L1 and L2
    GLOBAL = "cg"  # in L2 alone
    STREAMING = "cs"  # in both, and evicted first

    def __str__(self) -> str:
        return self.value


# Loops whose iterations run concurrently in several threads.
AT_ONCE = (Kind.PARALLEL, Kind.BLOCK, Kind.THREAD, Kind.WARP, Kind.LANE, Kind.TENSOR_CORE)
# `ITERATED` loops run iteration by iteration. `WRITTEN_OUT` loops are expanded in the code and have constant extents.
ITERATED = (Kind.SERIAL, *AT_ONCE)
WRITTEN_OUT = (Kind.VECTOR, Kind.UNROLL)
# Loops that run only over the whole blocks of a split; the remaining tail is a loop of its own.
OF_WHOLE_BLOCKS = (*WRITTEN_OUT, Kind.TENSOR_CORE)

CPU_LOOPS = (Kind.SERIAL, Kind.PARALLEL, *WRITTEN_OUT)
GPU_LOOPS = (Kind.SERIAL, Kind.BLOCK, Kind.THREAD, Kind.WARP, Kind.LANE, Kind.TENSOR_CORE, *WRITTEN_OUT)
CPU_MEMORIES = (Memory.AUTO, Memory.HEAP, Memory.SCRATCH, Memory.STACK, Memory.REGISTER)
GPU_MEMORIES = (Memory.AUTO, Memory.HEAP, Memory.SHARED, Memory.STACK, Memory.REGISTER)
