"""What the hardware is, as far as the operating system tells: processor, cores, caches, clock."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0")
CPU_INFO = Path("/proc/cpuinfo")

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cache:
    """One cache of the first core. `kind` is Data, Instruction or Unified; `cores` are those that share it."""

    level: int
    kind: str
    size_bytes: int
    line_bytes: int
    cores: str


@dataclass(frozen=True)
class Machine:
    """A host. What its system does not tell is empty or None."""

    cpu: str
    architecture: str
    cores: int  # that this process may run on
    caches: tuple[Cache, ...]
    governor: str | None
    max_mhz: float | None


def detect() -> Machine:
    """The machine this process runs on."""
    khz = _read(CPU_FOLDER / "cpufreq" / "cpuinfo_max_freq")
    return Machine(
        cpu=_cpu_name(),
        architecture=platform.machine(),
        cores=_usable_cores(),
        caches=_caches(),
        governor=_read(CPU_FOLDER / "cpufreq" / "scaling_governor"),
        max_mhz=int(khz) / 1000 if khz else None,
    )


def _cpu_name() -> str:
    """As the kernel prints it, or LLVM's name where it prints numbers only (Linux on ARM) or nothing."""
    for line in (_read(CPU_INFO) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return str(llvm.get_host_cpu_name())


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _caches() -> tuple[Cache, ...]:
    return tuple(_cache(folder) for folder in sorted((CPU_FOLDER / "cache").glob("index*")))


def _cache(folder: Path) -> Cache:
    return Cache(
        level=int(_read(folder / "level") or 0),
        kind=_read(folder / "type") or "",
        size_bytes=_bytes(_read(folder / "size") or "0"),
        line_bytes=int(_read(folder / "coherency_line_size") or 0),
        cores=_read(folder / "shared_cpu_list") or "",
    )


def _bytes(text: str) -> int:
    """`_bytes("64K")` is 65536."""
    unit = _UNITS.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


def _read(path: Path) -> str | None:
    """The text of a file that some systems do not have, or do not let one read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
