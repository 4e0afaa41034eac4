"""Backends, which implement one interface: they make, emit, compile and launch kernels."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ..forks import importing
from ..lazy_imports import imported_later
from ..target import Target, named
from ..target.description import CUDA, CUDA_GPU, SIMULATED, gpu_target
from .backend import Backend, Executable, PreparedCall
from .cpu import CpuBackend

if TYPE_CHECKING:
    from .launch_report import LaunchReport, launched
else:
    __getattr__, __dir__ = imported_later(__name__, launch_report="LaunchReport launched")

__all__ = ["Backend", "Executable", "LaunchReport", "PreparedCall", "backend_of", "launched", "target_named"]

_CPU = CpuBackend()


def backend_of(target: Target) -> Backend:
    """The backend that compiles and runs code for a target."""
    if target.architecture not in _OF_GPUS:
        return _CPU
    return _gpu_backend(*_OF_GPUS[target.architecture])


_OF_GPUS = {CUDA: ("cuda", "Cuda"), SIMULATED: ("cuda_sim", "SimulatedCuda")}


@cache
def _gpu_backend(module: str, name: str) -> Backend:
    """A GPU backend, imported on demand."""
    with importing:
        backend: Backend = getattr(import_module(f"{__name__}.{module}"), name)()
    return backend


def target_named(name: str) -> Target:
    """A target by name. "cuda" is the GPU of this machine, or without one a baseline that most GPUs can run."""
    if not isinstance(name, str) or name != CUDA_GPU:
        return named(name)
    with importing:
        device = import_module("pantile.runtime.cuda.device")
    return gpu_target(device.capability())
