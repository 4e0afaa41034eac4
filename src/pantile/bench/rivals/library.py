"""Python libraries as rivals: they run under Pantile's own interpreter, in a process without Pantile."""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec

from ..contender import Unavailable
from .process import ProcessContender, programs
from .rival import Rival, Task

WORKER_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from rivals.library_worker import main; main(sys.argv[2])"
GPU_WORKER_PROGRAM = WORKER_PROGRAM.replace("library_worker", "gpu_worker")


def library(system: str, module: str, package: str, schedule: str = "library") -> Rival:
    """The rival `system`: programs that import `module`, which installing `package` brings."""
    enter = partial(_enter, system, WORKER_PROGRAM)
    return Rival((schedule,), programs(system), partial(_require, module, package), enter)


def on_gpu(system: str, module: str, package: str, schedule: str) -> Rival:
    """The rival `system` on a GPU."""
    enter = partial(_enter, system, GPU_WORKER_PROGRAM)
    return Rival((schedule,), programs(f"{system}_gpu"), partial(_require, module, package), enter)


def _require(module: str, package: str) -> None:
    if find_spec(module) is None:
        raise Unavailable(f"it is not installed; install it with `pip install {package}`")


def _enter(system: str, worker: str, task: Task) -> ProcessContender:
    return ProcessContender(system, task, sys.executable, worker)
