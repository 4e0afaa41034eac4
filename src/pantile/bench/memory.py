"""How much memory compiling an app takes: the peak of a process that does nothing else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from ..apps import APPS
from .contender import Unavailable
from .ours import SCHEDULES

STATUS = Path("/proc/self/status")


def peak_megabytes(app: str, schedule: str, size: str) -> float:
    """Of a new process that builds, schedules and compiles the app, with nothing cached and no arrays."""
    program = f"from {__name__} import main; main(*{(app, schedule, size)!r})"
    environment = {**os.environ, "PANTILE_CACHE_DIR": os.devnull, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    if finished.returncode != 0:
        raise Unavailable(finished.stderr.strip().splitlines()[-1])
    return float(finished.stdout) / 1e6


def main(app: str, schedule: str, size: str) -> None:
    """Compile, and print the bytes."""
    pipeline = APPS[app].build()
    pipeline.with_schedule(SCHEDULES[schedule](APPS[app], pipeline)).compile(**APPS[app].sizes[size])
    print(peak_bytes())


def peak_bytes() -> int:
    """The most memory this process has held so far.

    Linux tells it apart from that of the process it was forked from, which `ru_maxrss` includes.
    """
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
