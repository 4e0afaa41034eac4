"""Compilation targets, as the whole compiler knows them.

kinds         of loops and of memory: those that schedules name, that plans and loop IR have
description   the value: architecture, vectors, registers, cache line, indices, and which of those kinds it has
gpu           what all of NVIDIA's GPUs have in common
known         this machine's, and others by name
"""

from __future__ import annotations

from .description import CPUS, GPUS, NAMED, Target, host, named
from .kinds import Kind, Memory

__all__ = ["CPUS", "GPUS", "NAMED", "Kind", "Memory", "Target", "host", "named"]
