"""Halide as a rival.

Its bindings often belong to another Python than Pantile's (Debian installs them for the system's interpreter): one that
has them is looked for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..contender import Task, Unavailable
from .process import ProcessContender

SCHEDULES = ("manual", "mullapudi2016", "adams2019")
GPU_SCHEDULES = ("manual", "mullapudi2016", "li2018", "anderson2021")

INSTALL_HINT = (
    "no Python with Halide's bindings was found; install them with `apt install python3-halide` or `pip install halide`"
)

# The folder goes last on the path, where none of its modules can hide another's.
WORKER_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from rivals.halide_worker import main; main()"
GPU_WORKER_PROGRAM = WORKER_PROGRAM.replace("halide_worker", "halide_gpu_worker")


@cache
def find_python() -> Path:
    """An interpreter that can import `halide`; raises `Unavailable` if there is none."""
    for candidate in _candidate_pythons():
        probe = subprocess.run([candidate, "-c", "import halide"], capture_output=True, check=False)
        if probe.returncode == 0:
            return candidate
    raise Unavailable(INSTALL_HINT)


def _candidate_pythons() -> Iterator[Path]:
    yield Path(sys.executable)
    for name in ("python3", "/usr/bin/python3"):
        path = shutil.which(name)
        if path is not None:
            yield Path(path)


def enter(task: Task) -> ProcessContender:
    """Compile one of Halide's programs under one of its schedules."""
    return ProcessContender("halide", task, find_python(), WORKER_PROGRAM)


def enter_on_gpu(task: Task) -> ProcessContender:
    """Enter Halide on a GPU."""
    return ProcessContender("halide", task, find_python(), GPU_WORKER_PROGRAM)
