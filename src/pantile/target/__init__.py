"""Compilation targets, as the whole compiler knows them.

kinds         the kinds of loops and of memory that schedules, plans and loop IR name
description   `Target`: architecture, vectors, registers, cache line, index width, and the kinds that it supports;
              the host's target, and others by name
gpu           facts that hold for all NVIDIA GPUs
layout        which register of which thread holds an element
mma, wgmma    the matrix instructions of tensor cores
"""

from __future__ import annotations

from .description import CPUS, GPUS, NAMED, Target, host, named
from .kinds import Kind, Memory

__all__ = ["CPUS", "GPUS", "NAMED", "Kind", "Memory", "Target", "host", "named"]
