"""Kinds of targets behind one door: what passes run, how kernels are emitted, what comes out, how it is launched."""

from __future__ import annotations

from ..target import Target
from .backend import Backend, Loaded, Ready
from .cpu import Cpu

__all__ = ["Backend", "Loaded", "Ready", "backend_of"]

_CPU = Cpu()


def backend_of(target: Target) -> Backend:
    """The one that makes and runs code for a target."""
    return _CPU
