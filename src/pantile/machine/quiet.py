"""Whether the machine is quiet: times measured beside other busy processes say little, even as ratios."""

from __future__ import annotations

import time
from pathlib import Path

STATISTICS = Path("/proc/stat")
NOTICEABLE = 0.2  # cores


def busy_cores(seconds: float = 0.25) -> float | None:
    """How many cores other processes keep busy while this one sleeps; None where the system does not tell."""
    try:
        busy_before, all_before, _ = _ticks()
        time.sleep(seconds)
        busy, all_ticks, cores = _ticks()
    except OSError:
        return None
    elapsed = all_ticks - all_before
    return cores * (busy - busy_before) / elapsed if elapsed else None


def _ticks() -> tuple[int, int, int]:
    """Clock ticks of all cores since the start, those spent working and all of them; and the number of cores."""
    first, *others = STATISTICS.read_text().splitlines()
    ticks = [int(word) for word in first.split()[1:9]]  # user nice system idle iowait irq softirq steal
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks), sum(line.startswith("cpu") for line in others)
