"""Machines by name: the CPUs on which the cited documents measure, and two current ones. GPUs are in `capabilities`.

Sizes, ways, sharing and clocks are from the documents where these give them (cited by short name), otherwise from the
vendors' specifications. Issue rates are from the vendors' optimization guides. Cache bandwidths are those of ports or
buses, and memory bandwidths are the peak bandwidths of the channels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, overload

from ..errors import UserError, shown
from ..forks import importing
from .description import Cache, Cpu, Issue, Machine, of_core

if TYPE_CHECKING:
    from .multiprocessor import Gpu

GpuName = Literal[
    "K40", "GTX TITAN", "Tegra K1", "GTX 1080 Ti", "Quadro P6000", "Tesla V100", "Jetson AGX Xavier", "RTX 2070",
    "RTX 2080 Ti", "A100", "H100", "H200",
]  # fmt: skip

_K, _M, _G = 1 << 10, 1 << 20, 1e9


def _caches(ghz: float, *levels: tuple[int, int, int, float]) -> tuple[Cache, ...]:
    """Caches with lines of 64 bytes. A level is its size, its ways, the cores that share it, and bytes per cycle."""
    return tuple([Cache(size, 64, ways, shared, per_cycle * ghz * _G) for size, ways, shared, per_cycle in levels])


def _intel(name: str, cores: int, threads: int, ghz: float, l3: int, sockets: int, memory: float) -> Cpu:
    """Haswell, Broadwell, Skylake (client): two 32-byte loads and one store per cycle, 64 bytes per cycle from L2."""
    caches = _caches(ghz, (32 * _K, 8, 1, 64), (256 * _K, 8, 1, 32), (l3, 20, cores // sockets, 16))
    issue = Issue(fma=2, int=2, load=2, store=1)
    return Cpu(name, "x86_64", cores, threads, ghz, 256, issue, caches, min(12 * _G, memory), memory)


NAMED = {
    m.name: m
    for m in (
        # polymage-plus §7.1: dual socket, hyperthreading disabled. Four channels of DDR4-1866 per socket.
        _intel("haswell-e5-2630-v3", 16, 16, 2.4, 20 * _M, 2, 118 * _G),
        # halide-autoscheduler §5.1: "six 2.4 GHz Haswell cores".
        _intel("haswell-e5-2620-v3", 6, 12, 2.4, 15 * _M, 1, 59 * _G),
        # sioutas-thesis Tables 4.3 and 5.2, which give its last-level cache as 12 MB.
        _intel("i7-5930k", 6, 12, 3.5, 12 * _M, 1, 68 * _G),
        # sioutas-thesis Table 4.3, which gives L2 eight ways (Intel: four). Two channels of DDR4-2133.
        _intel("i7-6700", 4, 8, 3.4, 8 * _M, 1, 34 * _G),
        # post-tiling-fusion §V: "a 32-core, dual-socket workstation". Four channels of DDR4-2400 per socket.
        _intel("broadwell-e5-2683-v4", 32, 64, 2.1, 40 * _M, 2, 153 * _G),
        # polymage-plus §7.1; AMD 15h optimization guide: a pair of cores shares two 128-bit FMA units and its L2.
        Cpu(
            "opteron-6386-se", "x86_64", 16, 16, 1.4, 256, Issue(fma=0.5, int=0.5, load=1, store=0.5),
            _caches(1.4, (16 * _K, 4, 1, 32), (2 * _M, 16, 2, 16), (12 * _M, 64, 8, 8)), 5 * _G, 25 * _G,
        ),
        # sioutas-thesis Tables 4.3 and 5.2: 512 KB of L2 per core, 2 MB in all. Arm Cortex-A15 TRM.
        Cpu(
            "cortex-a15", "armv7", 4, 4, 2.3, 128, Issue(fma=1, int=2, load=1, store=1),
            _caches(2.3, (32 * _K, 2, 1, 16), (2 * _M, 16, 4, 8)), 6 * _G, 15 * _G,
        ),
        # halide-autoscheduler §5.4: Tegra X1, "1.9 GHz, shared 2MB L2 cache". Arm Cortex-A57 optimization guide.
        Cpu(
            "cortex-a57", "aarch64", 4, 4, 1.9, 128, Issue(fma=2, int=2, load=1, store=1),
            _caches(1.9, (32 * _K, 2, 1, 16), (2 * _M, 16, 4, 16)), 8 * _G, 25 * _G,
        ),
        # AWS Graviton2: Arm Neoverse N1 optimization guide; eight channels of DDR4-3200.
        Cpu(
            "neoverse-n1", "aarch64", 64, 64, 2.5, 128, Issue(fma=2, int=2, load=2, store=1),
            _caches(2.5, (64 * _K, 4, 1, 32), (1 * _M, 8, 1, 16), (32 * _M, 16, 64, 8)), 15 * _G, 204 * _G,
        ),
        # Intel Xeon Platinum 8480+ (Sapphire Rapids), one socket: 8 channels of DDR5-4800.
        Cpu(
            "sapphire-rapids-8480", "x86_64", 56, 112, 2.0, 512, Issue(fma=2, int=2, load=2, store=1),
            _caches(2.0, (48 * _K, 12, 1, 128), (2 * _M, 16, 1, 64), (105 * _M, 15, 56, 16)),
            14 * _G, 307 * _G, of_core({}, 512, gathers=True),
        ),
    )
}  # fmt: skip


@overload
def named(name: GpuName) -> Gpu: ...  # type: ignore[overload-overlap]


@overload
def named(name: str) -> Cpu: ...


def named(name: str) -> Machine:
    """A CPU of `NAMED`, or a GPU of `GPUS`."""
    if isinstance(name, str) and name in NAMED:
        return NAMED[name]
    with importing:
        gpus: dict[str, Gpu] = import_module("pantile.machine.capabilities").GPUS  # which few programs need
    if not isinstance(name, str) or name not in gpus:
        known = ", ".join([*NAMED, *gpus])
        raise UserError(f"{shown(name)} is not a machine that is known by name; use one of {known}")
    return gpus[name]
