"""How much memory compiling an app takes, as the peak of a process that does nothing else; and how much there is."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from ..apps import APPS
from .contender import Unavailable

STATUS = Path("/proc/self/status")
MACHINE = Path("/proc/meminfo")


def peak_megabytes(app: str, schedule: str, size: str) -> float:
    """Of a new process that builds, schedules and compiles the app, with nothing cached and no arrays."""
    if app not in APPS:
        raise Unavailable("it is measured for apps, not for pipelines in files")
    program = f"from {__name__} import main; main(*{(app, schedule, size)!r})"
    environment = {**os.environ, "PANTILE_CACHE_DIR": os.devnull, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    if finished.returncode != 0:
        raise Unavailable(finished.stderr.strip().splitlines()[-1])
    return float(finished.stdout) / 1e6


def main(app: str, schedule: str, size: str) -> None:
    """Compile, and print the bytes."""
    pipeline = APPS[app].build()
    chosen = APPS[app].schedule(schedule, pipeline.options.target)
    pipeline.with_schedule(chosen).compile(**APPS[app].sizes[size])
    print(peak_bytes())


def peak_bytes() -> int:
    """The most memory this process has held; `ru_maxrss` includes that of the process it was forked from."""
    kilobytes = _kilobytes(STATUS, "VmHWM")
    if kilobytes is not None:
        return kilobytes << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def free_bytes() -> int | None:
    """What processes can still get, where the system tells."""
    kilobytes = _kilobytes(MACHINE, "MemAvailable")
    return None if kilobytes is None else kilobytes << 10


def _kilobytes(file: Path, key: str) -> int | None:
    """The number behind `key:` in one of Linux's files."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), None)
