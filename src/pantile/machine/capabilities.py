"""Multiprocessors by compute capability, as in NVIDIA's CUDA C++ programming guide ("Technical Specifications per
Compute Capability", "Arithmetic Instructions"), with the allocation units of its occupancy calculator.

Rates of matrix instructions are for dense matrices, from the white papers of the architectures. Shapes are those of the
PTX instructions: `wgmma` for 9.0, `tcgen05.mma` for 10.x, and `mma` otherwise.

The other facts about products are from NVIDIA's data sheets and white papers: clocks are boost clocks, and memory
bandwidths are peak bandwidths.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import UserError
from ..target.description import Target
from ..target.gpu import MOST_REGISTERS, REGISTERS, SHARED_WITHOUT_OPT_IN, compute_capability
from .multiprocessor import Gpu, MatrixInstruction, Multiprocessor, Occupancy, occupancy

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
_FEWER_PER_BLOCK = {(3, 2), (5, 3), (6, 2)}  # mobile GPUs, whose blocks get at most half of the registers
_FEWER_SUB_PARTITIONS = {(6, 0): 2}
_K, _M, _G = 1 << 10, 1 << 20, 1e9


def _of_floats(m: int, n: int, rate: int) -> tuple[MatrixInstruction, ...]:
    """The floating-point instructions of all architectures from 8.0 on; `rate` is that of the 16-bit ones."""
    return (
        MatrixInstruction(m, n, 16, "float16", "float16", rate),
        MatrixInstruction(m, n, 16, "float16", "float32", rate),
        MatrixInstruction(m, n, 16, "bfloat16", "float32", rate),
        MatrixInstruction(m, n, 8, "tfloat32", "float32", rate // 2),
    )


def _of_ampere(rate: int) -> tuple[MatrixInstruction, ...]:
    """The instructions of 8.x and 12.0; `rate` is that of 16-bit floats."""
    return (*_of_floats(16, 8, rate), MatrixInstruction(16, 8, 32, "int8", "int32", 2 * rate))


def _of_many_threads(m: int, rate: int) -> tuple[MatrixInstruction, ...]:
    """The instructions of 9.0 and 10.x, which several warps or one thread issue; `rate` is that of 16-bit floats."""
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
        shared_per_cycle=256 if major == 3 else 128,  # each of Kepler's banks serves 8 bytes
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
    """The multiprocessor of the newest known compute capability up to this one, for GPUs that are not described
    here."""
    return multiprocessor(max((c for c in MULTIPROCESSORS if c <= capability), default=capability))


def occupancy_of(name: str, threads: int, shared: int, registers: int) -> Occupancy:
    """The occupancy on a GPU, given its LLVM name, for these threads and shared bytes per block and registers per
    thread."""
    return occupancy(multiprocessor(compute_capability(name)), threads, shared, registers)


def _gpu(name: str, capability: Capability, multiprocessors: int, ghz: float, l2: int, bandwidth: float) -> Gpu:
    return Gpu(name, capability, multiprocessors, multiprocessor(capability), ghz, l2, bandwidth * _G)


def of_geforce(has: Multiprocessor) -> Multiprocessor:
    """A GeForce variant of a multiprocessor, whose tensor cores accumulate in float32 at half the rate."""
    halved = ("float16", "bfloat16", "tfloat32", "float8")
    return replace(
        has,
        matrix_instructions=tuple(
            replace(i, fmas=i.fmas // 2) if i.operands in halved and i.accumulator == "float32" else i
            for i in has.matrix_instructions
        ),
    )


def _geforce(name: str, capability: Capability, multiprocessors: int, ghz: float, l2: int, bandwidth: float) -> Gpu:
    made = _gpu(name, capability, multiprocessors, ghz, l2, bandwidth)
    return replace(made, multiprocessor=of_geforce(made.multiprocessor))


GPUS = {
    g.name: g
    for g in (
        _gpu("K40", (3, 5), 15, 0.875, 1536 * _K, 288),
        _geforce("GTX TITAN", (3, 5), 14, 0.876, 1536 * _K, 288.4),
        _gpu("Tegra K1", (3, 2), 1, 0.852, 128 * _K, 14.9),  # as on the Jetson TK1
        _geforce("GTX 1080 Ti", (6, 1), 28, 1.582, 2816 * _K, 484),
        _gpu("Quadro P6000", (6, 1), 30, 1.645, 3 * _M, 432),
        _gpu("Tesla V100", (7, 0), 80, 1.530, 6 * _M, 900),  # SXM2
        _gpu("Jetson AGX Xavier", (7, 2), 8, 1.377, 512 * _K, 137),
        _geforce("RTX 2070", (7, 5), 36, 1.620, 4 * _M, 448),
        _geforce("RTX 2080 Ti", (7, 5), 68, 1.545, 5632 * _K, 616),
        _gpu("A100", (8, 0), 108, 1.410, 40 * _M, 1555),  # SXM4 with 40 GB
        _gpu("H100", (9, 0), 132, 1.980, 50 * _M, 3350),  # SXM5
        _gpu("H200", (9, 0), 132, 1.980, 50 * _M, 4800),  # SXM5
    )
}


def of_target(target: Target) -> Gpu:
    """The GPU to schedule for if the machine has none: the last one in `GPUS` with the nearest compute capability that
    is not above the target's."""
    most = compute_capability(target.cpu)
    nearest = max(g.capability for g in GPUS.values() if g.capability <= most)
    return [g for g in GPUS.values() if g.capability == nearest][-1]
