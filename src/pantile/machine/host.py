"""The machine this process runs on: what its system reports, and its rates, which are measured once and kept on disk.

Times measured while other processes are busy say little, even as ratios.
"""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import llvmlite.binding as llvm

from .. import cache_directory, untrusted_json
from ..errors import UserError
from ..target import host
from .calibration import calibrated
from .description import Cache, Cpu, Issue, of_core
from .measure import Rates, measure

CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0")
CPU_INFO = Path("/proc/cpuinfo")
FILE_NAME = "machine.json"
_RATES = {
    "ghz": untrusted_json.NUMBER,
    "issue": dict.fromkeys(("fma", "int", "load", "store"), untrusted_json.NUMBER),
    "caches": [untrusted_json.NUMBER],
    "core_bandwidth": untrusted_json.NUMBER,
    "bandwidth": untrusted_json.NUMBER,
    "costs": {...: untrusted_json.NUMBER},
}
CAREFULLY = 24  # rounds

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# The caches assumed for a system that reports nothing about them.
_USUAL_CACHES = (Cache(32 << 10, 64, 8, 1, 0.0), Cache(512 << 10, 64, 8, 1, 0.0))
STATISTICS = Path("/proc/stat")
NOTICEABLE = 0.2  # cores


@functools.cache
def detect() -> Cpu:
    """The machine this process runs on. The first time that a user asks for it, it is measured, in a fraction of a
    second."""
    cores, caches = usable_cores(), data_caches() or _USUAL_CACHES
    bits = host().vector_bits
    rates = _rates(cache_directory.directory(), caches, cores, bits)
    return Cpu(
        name=cpu_name(),
        architecture=platform.machine(),
        cores=cores,
        threads=cores,
        ghz=rates.ghz,
        vector_bits=bits,
        issue=rates.issue,
        caches=tuple(replace(c, bandwidth=b) for c, b in zip(caches, rates.caches, strict=True)),
        core_bandwidth=rates.core_bandwidth,
        bandwidth=rates.bandwidth,
        costs=of_core(rates.costs, bits, host().gathers),
    )


def calibrate(report: Callable[[str], None] = lambda _: None) -> Cpu:
    """Measure all rates and costs of this machine, which should be idle, and keep them. `report` is called before each
    measurement."""
    cores, caches = usable_cores(), data_caches() or _USUAL_CACHES
    bits = host().vector_bits
    report("measuring clock, units and bandwidths")
    rates = measure([c.size for c in caches], cores, bits, CAREFULLY)
    costs = calibrated(host(), rates.ghz, rates.issue.int, report, CAREFULLY)
    _keep(cache_directory.directory(), _key(caches, cores, bits), replace(rates, costs=costs))
    detect.cache_clear()
    return detect()


def _rates(folder: Path | None, caches: tuple[Cache, ...], cores: int, bits: int) -> Rates:
    """The rates that were measured earlier. If there are none, measure them now."""
    key = _key(caches, cores, bits)
    before = _read(folder).get(key)
    if before and len(before.caches) == len(caches):
        return before
    rates = measure([c.size for c in caches], cores, bits)
    _keep(folder, key, rates)
    return rates


def _key(caches: tuple[Cache, ...], cores: int, bits: int) -> str:
    return f"{cpu_name()}, {bits} bits, {cores} cores, {', '.join(str(c.size) for c in caches)}"


def _keep(folder: Path | None, key: str, rates: Rates) -> None:
    untrusted_json.write_entries(folder, FILE_NAME, {k: asdict(r) for k, r in {**_read(folder), key: rates}.items()})


def _read(folder: Path | None) -> dict[str, Rates]:
    """The rates that were measured earlier; none if the file is missing or is not one of ours."""
    try:
        return {
            key: Rates(**{**r, "issue": Issue(**r["issue"]), "caches": tuple(r["caches"])})
            for key, r in untrusted_json.read_entries(folder, FILE_NAME, _RATES).items()
        }
    except (TypeError, UserError):  # TypeError: unknown names of costs
        return {}


# ---- what the system reports


def cpu_name() -> str:
    """The name of the CPU according to the kernel, or LLVM's name if the kernel reports only numbers (Linux on ARM) or
    nothing."""
    for line in (_text(CPU_INFO) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return str(llvm.get_host_cpu_name())


def usable_cores() -> int:
    """The number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def governor() -> str | None:
    """The name of the CPU frequency governor; None if the system does not report it."""
    return _text(CPU_FOLDER / "cpufreq" / "scaling_governor")


def data_caches() -> tuple[Cache, ...]:
    """The data caches of the first core, nearest first, with unknown bandwidths."""
    folders = (CPU_FOLDER / "cache").glob("index*")
    caches = [f for f in folders if _text(f / "type") in ("Data", "Unified") and _bytes(_text(f / "size"))]
    return tuple(_cache(f) for f in sorted(caches, key=lambda f: _number(f / "level", 1)))


def _cache(directory: Path) -> Cache:
    return Cache(
        size=_bytes(_text(directory / "size")),
        line=_number(directory / "coherency_line_size", 64),
        ways=_number(directory / "ways_of_associativity", 8),
        shared_by=_count(_text(directory / "shared_cpu_list") or "0"),
        bandwidth=0.0,
    )


def _count(cpus: str) -> int:
    """`_count("0-3,8")` is 5."""
    ranges = [part.split("-") for part in cpus.split(",")]
    return sum(int(r[-1]) - int(r[0]) + 1 for r in ranges)


def _bytes(text: str | None) -> int:
    """`_bytes("64K")` is 65536."""
    unit = _UNITS.get((text or "0")[-1:], 1)
    return int((text or "0").rstrip("KMG")) * unit


def _number(path: Path, otherwise: int) -> int:
    return int(_text(path) or 0) or otherwise


def _text(path: Path) -> str | None:
    """The text of a file, or None on systems that lack it or deny access."""
    try:
        return path.read_text().strip()
    except OSError:
        return None


def busy_cores(seconds: float = 0.25) -> float | None:
    """The number of cores that other processes keep busy while this one sleeps; None if the system does not report
    it."""
    try:
        busy_before, all_before, _ = _ticks()
        time.sleep(seconds)
        busy, all_ticks, cores = _ticks()
    except OSError:
        return None
    elapsed = all_ticks - all_before
    return cores * (busy - busy_before) / elapsed if elapsed else None


def _ticks() -> tuple[int, int, int]:
    """The busy clock ticks and all clock ticks of all cores since the system started, and the number of cores."""
    first, *others = STATISTICS.read_text().splitlines()
    ticks = [int(word) for word in first.split()[1:9]]  # user nice system idle iowait irq softirq steal
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks), sum(line.startswith("cpu") for line in others)
