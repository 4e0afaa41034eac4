"""Multiprocessors by compute capability, as in NVIDIA's CUDA C++ programming guide ("Technical Specifications per
Compute Capability", "Arithmetic Instructions"), with the units of allocation of its occupancy calculator.

Rates of matrix instructions are of dense matrices, from the white papers of the architectures. Shapes are those of PTX:
of `mma`, of `wgmma` for 9.0, and of `tcgen05.mma` for 10.x.
"""

from __future__ import annotations

from ..errors import UserError
from ..target.gpu import MOST_REGISTERS, REGISTERS, SHARED_WITHOUT_OPT_IN, compute_capability
from .multiprocessor import MatrixInstruction, Multiprocessor, Occupancy, occupancy

Capability = tuple[int, int]

# FP32 cores, resident warps and blocks, KiB of shared memory.
_SIZES = {
    (3, 2): (192, 64, 16, 48),
    (3, 5): (192, 64, 16, 48),
    (3, 7): (192, 64, 16, 112),
    (5, 0): (128, 64, 32, 64),
    (5, 2): (128, 64, 32, 96),
    (5, 3): (128, 64, 32, 64),
    (6, 0): (64, 64, 32, 64),
    (6, 1): (128, 64, 32, 96),
    (6, 2): (128, 64, 32, 64),
    (7, 0): (64, 64, 32, 96),
    (7, 2): (64, 64, 32, 96),
    (7, 5): (64, 32, 16, 64),
    (8, 0): (64, 64, 32, 164),
    (8, 6): (128, 48, 16, 100),
    (8, 7): (128, 48, 16, 164),
    (8, 9): (128, 48, 24, 100),
    (9, 0): (128, 64, 32, 228),
    (10, 0): (128, 64, 32, 228),
    (10, 3): (128, 64, 32, 228),
    (12, 0): (128, 48, 24, 100),
}
_MORE_REGISTERS = {(3, 7): 2 * REGISTERS}
_FEWER_PER_BLOCK = {(3, 2), (5, 3), (6, 2)}  # mobile ones, whose blocks have half of the registers at most
_FEWER_SUB_PARTITIONS = {(6, 0): 2}


def _of_floats(m: int, n: int, rate: int) -> tuple[MatrixInstruction, ...]:
    """Instructions for floats of all architectures from 8.0 on, by the rate of 16-bit ones."""
    return (
        MatrixInstruction(m, n, 16, "float16", "float16", rate),
        MatrixInstruction(m, n, 16, "float16", "float32", rate),
        MatrixInstruction(m, n, 16, "bfloat16", "float32", rate),
        MatrixInstruction(m, n, 8, "tfloat32", "float32", rate // 2),
    )


def _of_ampere(rate: int) -> tuple[MatrixInstruction, ...]:
    """Instructions of 8.x and 12.0, by the rate of 16-bit floats."""
    return (*_of_floats(16, 8, rate), MatrixInstruction(16, 8, 32, "int8", "int32", 2 * rate))


def _of_many_threads(m: int, rate: int) -> tuple[MatrixInstruction, ...]:
    """Instructions of 9.0 and 10.x, by the rate of 16-bit floats: several warps or one thread start them."""
    return (*_of_floats(m, 256, rate), MatrixInstruction(m, 256, 32, "float8", "float32", 2 * rate))


_OF_VOLTA = (
    MatrixInstruction(8, 8, 4, "float16", "float16", 512),
    MatrixInstruction(8, 8, 4, "float16", "float32", 512),
)
_SMALL_INTEGERS = MatrixInstruction(16, 8, 64, "int4", "int32", 2048)
_MATRIX_INSTRUCTIONS = {
    (7, 0): _OF_VOLTA,
    (7, 2): (*_OF_VOLTA, MatrixInstruction(16, 16, 16, "int8", "int32", 1024)),  # wmma
    (7, 5): (
        MatrixInstruction(16, 8, 8, "float16", "float16", 512),
        MatrixInstruction(16, 8, 8, "float16", "float32", 512),
        MatrixInstruction(8, 8, 16, "int8", "int32", 1024),
        MatrixInstruction(8, 8, 32, "int4", "int32", 2048),
    ),
    (8, 0): (
        *_of_ampere(1024),
        MatrixInstruction(16, 8, 64, "int4", "int32", 4096),
        MatrixInstruction(8, 8, 4, "float64", "float64", 64),
    ),
    (8, 6): (*_of_ampere(512), _SMALL_INTEGERS),
    (8, 7): (*_of_ampere(1024), MatrixInstruction(16, 8, 64, "int4", "int32", 4096)),
    (8, 9): (*_of_ampere(512), _SMALL_INTEGERS, MatrixInstruction(16, 8, 32, "float8", "float32", 1024)),
    (9, 0): (
        *_of_many_threads(64, 2048),
        MatrixInstruction(64, 256, 32, "int8", "int32", 4096),
        MatrixInstruction(16, 8, 16, "float64", "float64", 128),
    ),
    (10, 0): (
        *_of_many_threads(128, 4096),
        MatrixInstruction(128, 256, 32, "int8", "int32", 8192),
        MatrixInstruction(128, 256, 64, "float4", "float32", 16384),
    ),
    (10, 3): (*_of_many_threads(128, 4096), MatrixInstruction(128, 256, 64, "float4", "float32", 24576)),
    (12, 0): (
        *_of_ampere(512),
        MatrixInstruction(16, 8, 32, "float8", "float32", 1024),
        MatrixInstruction(16, 8, 64, "float4", "float32", 2048),
    ),
}


def _multiprocessor(capability: Capability) -> Multiprocessor:
    cores, warps, blocks, kib = _SIZES[capability]
    major, shared = capability[0], kib << 10
    reserved = 1 << 10 if major >= 8 else 0
    return Multiprocessor(
        cores=cores,
        warps=warps,
        blocks=blocks,
        registers=_MORE_REGISTERS.get(capability, REGISTERS),
        registers_per_block=REGISTERS // 2 if capability in _FEWER_PER_BLOCK else REGISTERS,
        registers_per_thread=MOST_REGISTERS,
        register_unit=256,
        sub_partitions=_FEWER_SUB_PARTITIONS.get(capability, 4),
        shared=shared,
        shared_per_block=shared - reserved if major >= 7 else SHARED_WITHOUT_OPT_IN,
        shared_reserved=reserved,
        shared_unit=128 if major >= 8 else 256,
        shared_per_cycle=256 if major == 3 else 128,  # the banks of Kepler give 8 bytes each
        matrix_instructions=_MATRIX_INSTRUCTIONS.get(capability, ()),
    )


MULTIPROCESSORS = {capability: _multiprocessor(capability) for capability in _SIZES}


def multiprocessor(capability: Capability) -> Multiprocessor:
    """The multiprocessor of GPUs of a compute capability, such as (7, 5)."""
    known = MULTIPROCESSORS.get(capability)
    if known is None:
        names = ", ".join(f"{major}.{minor}" for major, minor in MULTIPROCESSORS)
        raise UserError("nothing is known of compute capability {}.{}; known are {}".format(*capability, names))
    return known


def like(capability: Capability) -> Multiprocessor:
    """The multiprocessor of the newest known compute capability that is not newer, for GPUs not described yet."""
    return multiprocessor(max((c for c in MULTIPROCESSORS if c <= capability), default=capability))


def occupancy_of(name: str, threads: int, shared: int, registers: int) -> Occupancy:
    """The occupancy on a GPU, by its LLVM name, for threads and shared bytes per block and registers per thread."""
    return occupancy(multiprocessor(compute_capability(name)), threads, shared, registers)
