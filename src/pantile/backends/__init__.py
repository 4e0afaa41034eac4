"""Kinds of targets behind one door: what passes run, how kernels are emitted, what comes out, how it is launched."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..forks import importing
from ..target import Target
from ..target.description import CUDA, SIMULATED
from .backend import Backend, Loaded, Ready
from .cpu import CpuBackend

__all__ = ["Backend", "Loaded", "Ready", "backend_of"]

_CPU = CpuBackend()


def backend_of(target: Target) -> Backend:
    """The one that makes and runs code for a target."""
    if target.architecture not in _OF_GPUS:
        return _CPU
    return _of_gpus(*_OF_GPUS[target.architecture])


_OF_GPUS = {CUDA: ("cuda", "Cuda"), SIMULATED: ("cuda_sim", "SimulatedCuda")}


@cache
def _of_gpus(module: str, name: str) -> Backend:
    """Imported when somebody asks for it."""
    with importing:
        backend: Backend = getattr(import_module(f"{__name__}.{module}"), name)()
    return backend
