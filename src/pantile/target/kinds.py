"""The kinds of loops and of memory, each named once. Which of them there are, a target says."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTOR = "vector"
    UNROLL = "unroll"

    def __str__(self) -> str:
        return self.value


class Memory(str, Enum):
    """Where a buffer lives. AUTO becomes STACK or HEAP when storage is planned."""

    AUTO = "auto"
    HEAP = "heap"  # outside any parallel loop: the caller's arena
    SCRATCH = "scratch"  # inside a parallel loop: that thread's arena, at a planned offset
    STACK = "stack"
    REGISTER = "register"  # a stack buffer with constant indices after unrolling; promoted by LLVM

    def __str__(self) -> str:
        return self.value


# What code goes through, iteration by iteration, and what is written out in it, whose extents are constant.
ITERATED = (Kind.SERIAL, Kind.PARALLEL)
WRITTEN_OUT = (Kind.VECTOR, Kind.UNROLL)

CPU_LOOPS = (*ITERATED, *WRITTEN_OUT)
CPU_MEMORIES = (Memory.AUTO, Memory.HEAP, Memory.SCRATCH, Memory.STACK, Memory.REGISTER)
