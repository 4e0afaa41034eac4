"""GPUs by name. What follows from their compute capability is in `capabilities`; what a product has is from NVIDIA's
data sheets and white papers: clocks are boost clocks, bandwidths of memory are those at peak.
"""

from __future__ import annotations

from dataclasses import replace

from ..target.description import Target
from ..target.gpu import compute_capability
from .capabilities import Capability, multiprocessor
from .gpu import Gpu
from .multiprocessor import Multiprocessor

_K, _M, _G = 1 << 10, 1 << 20, 1e9


def _gpu(name: str, capability: Capability, multiprocessors: int, ghz: float, l2: int, bandwidth: float) -> Gpu:
    return Gpu(name, capability, multiprocessors, multiprocessor(capability), ghz, l2, bandwidth * _G)


def of_geforce(has: Multiprocessor) -> Multiprocessor:
    """A multiprocessor of the GeForce cards, whose tensor cores add products of floats to float32 at half the rate."""
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
    """The GPU to schedule for where none is at hand: the last one here of those that run code for the target and are
    not newer."""
    most = compute_capability(target.cpu)
    nearest = max(g.capability for g in GPUS.values() if g.capability <= most)
    return [g for g in GPUS.values() if g.capability == nearest][-1]
