"""The time that a call takes at least on this machine: moving its bytes, or doing its operations, at the full rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pantile as pt

from ..cost_model import arithmetic_seconds


@dataclass(frozen=True)
class Bound:
    """Milliseconds to move the bytes, and to do the operations."""

    memory_ms: float
    arithmetic_ms: float

    @property
    def ms(self) -> float:
        """Both happen at once: the longer of the two."""
        return max(self.memory_ms, self.arithmetic_ms)

    @property
    def limit(self) -> str:
        """Which of the two it is."""
        return "memory" if self.memory_ms >= self.arithmetic_ms else "arithmetic"


def bound(pipeline: pt.Pipeline, arguments: Mapping[str, object], machine: pt.machine.Cpu, threads: int) -> Bound:
    """Of a call of the pipeline on so many threads."""
    work = pipeline.work(**arguments)
    memory = work.bytes / machine.memory_bandwidth(threads)
    return Bound(1e3 * memory, 1e3 * arithmetic_seconds(work, machine, threads))
