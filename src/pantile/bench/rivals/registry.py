"""The rivals by name.

Python libraries run under Pantile's own interpreter, in a process without Pantile.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec

from ..contender import Rival, Task, Unavailable
from . import halide
from .process import ProcessContender, programs

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


RIVALS: dict[str, Rival] = {
    "halide": Rival(halide.SCHEDULES, programs("halide"), halide.find_python, halide.enter),
    "opencv": library("opencv", "cv2", "opencv-python-headless"),
    "numba": library("numba", "numba", "numba", schedule="loops"),
    "torch": library("torch", "torch", "torch"),
    "numpy": library("numpy", "numpy", "numpy"),
    "scipy": library("scipy", "scipy", "scipy"),
    "skimage": library("skimage", "skimage", "scikit-image"),
}

GPU_RIVALS: dict[str, Rival] = {
    "halide": Rival(halide.GPU_SCHEDULES, programs("halide"), halide.find_python, halide.enter_on_gpu),
    "torch": on_gpu("torch", "torch", "torch", schedule="compile"),
    "cupy": on_gpu("cupy", "cupy", "cupy-cuda13x", schedule="kernels"),
    "triton": on_gpu("triton", "triton", "triton", schedule="kernels"),
}
