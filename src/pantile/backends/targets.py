"""Targets by name, as users write them: "cuda" is the GPU at hand."""

from __future__ import annotations

from importlib import import_module

from ..forks import importing
from ..target import Target, named
from ..target.description import gpu_target
from ..target.known import CUDA_GPU


def target_named(name: str) -> Target:
    """A target by name; without a GPU, "cuda" is a baseline that most GPUs can run."""
    if not isinstance(name, str) or name != CUDA_GPU:
        return named(name)
    with importing:
        device = import_module("pantile.runtime.cuda.device")
    return gpu_target(device.capability())
