"""The least time that a machine allows a call: each thing that it does at full rate, as if all else were free."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.work import Work
from ..dataclass import dataclass
from ..machine.description import Cpu
from .result import Cost, levels


@dataclass(frozen=True)
class Limits:
    """Seconds by what they are spent on: "arithmetic", "L2", ..., "memory"."""

    seconds: Mapping[str, float]

    @property
    def by(self) -> str:
        """What takes longest, which is what bounds the call."""
        return max(self.seconds, key=lambda what: self.seconds[what])

    @property
    def least(self) -> float:
        """The call takes at least so long, under its schedule."""
        return self.seconds[self.by]


def limits(work: Work, cost: Cost, machine: Cpu, threads: int) -> Limits:
    """The limits of a call. Operations are those of the definitions, each once; bytes those that the schedule moves."""
    seconds = {"arithmetic": arithmetic_seconds(work, machine, threads)}
    rates = [c.bandwidth * threads for c in machine.caches[1:]] + [machine.memory_bandwidth(threads)]
    for level, moved, rate in zip(levels(cost), cost.bytes, rates, strict=True):
        seconds[level] = moved / rate
    return Limits(seconds)


def arithmetic_seconds(work: Work, machine: Cpu, threads: int) -> float:
    """The seconds of all operations, with all lanes of all units busy."""
    return sum(n / machine.operations(kind, bits, threads) for (kind, bits), n in work.operations.items())
