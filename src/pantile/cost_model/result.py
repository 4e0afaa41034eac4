"""A predicted cost: the seconds, what they are spent on, and the stages that take most of them; also as text.

Each thing that a call does gives a lower bound of its time: the time of this at full rate, if all else were free.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import NamedTuple

from ..analysis.work import Work
from ..dataclass import dataclass
from ..machine.description import Cpu

MOST_STAGES = 12


class Causes(NamedTuple):
    """Seconds by cause, summed over all cores, except `imbalance`: the time until the last core is done."""

    arithmetic: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    shuffles: float = 0.0
    gathers: float = 0.0
    stalls: float = 0.0  # on results of the previous iteration, and on decoding
    traffic: float = 0.0  # that does not overlap with computation
    overhead: float = 0.0  # of starting rows, boxes, tasks and parallel loops
    imbalance: float = 0.0

    def __add__(self, other: Causes) -> Causes:  # type: ignore[override]
        return Causes._make(map(add, self, other))

    @property
    def seconds(self) -> float:
        working = self.arithmetic + self.loads + self.stores + self.shuffles + self.gathers + self.stalls
        return working + self.traffic + self.overhead + self.imbalance


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage: wall-clock seconds, what they are spent on, and what is computed and moved."""

    name: str
    seconds: float
    causes: Causes
    points: float  # that are computed
    redundant: float  # the fraction of these that is computed again, at the borders of tiles
    bytes: tuple[float, ...]  # from each cache except L1, and from memory last


@dataclass(frozen=True)
class Cost:
    """A predicted time, and its causes."""

    name: str
    seconds: float
    causes: Causes
    stages: tuple[StageCost, ...]
    bytes: tuple[float, ...]
    instructions: int  # in the code: how much there is to compile
    compile_seconds: float

    def __str__(self) -> str:
        return _show(self)

    __repr__ = __str__


def _show(p: Cost) -> str:
    lines = [f"{p.name}: {time(p.seconds)} predicted", *_causes(p.causes)]
    moved = [f"{n / 1e6:.1f} MB from {level}" for n, level in zip(p.bytes, levels(p), strict=True) if n >= 5e4]
    if moved:
        lines.append(f"  moved      {', '.join(moved)}")
    lines.append(f"  code       about {p.instructions:,} instructions, {p.compile_seconds:.2g} s to compile")
    stages = sorted(p.stages, key=lambda s: -s.seconds)
    width = max((len(s.name) for s in stages), default=0)
    for s in stages[:MOST_STAGES]:
        again = f", {100 * s.redundant:.0f}% of it computed again" if s.redundant >= 0.005 else ""
        largest = sorted(named(s.causes), key=lambda c: -c[1])[:3]
        why = ", ".join(name for name, seconds in largest if seconds > 0.15 * s.causes.seconds)
        lines.append(f"  {s.name:<{width}}  {time(s.seconds):>9}  {why}{again}")
    if len(stages) > MOST_STAGES:
        rest = sum(s.seconds for s in stages[MOST_STAGES:])
        lines.append(f"  and {len(stages) - MOST_STAGES} stages of {time(rest)} together")
    return "\n".join(lines)


def levels(p: Cost) -> list[str]:
    """The sources of bytes: each cache except L1, and memory last."""
    return [*(f"L{k}" for k in range(2, len(p.bytes) + 1)), "memory"]


def _causes(causes: Causes) -> list[str]:
    total = max(causes.seconds, 1e-12)
    return [f"  {name:<10} {100 * s / total:5.1f} %" for name, s in named(causes) if s >= 0.005 * total]


def named(causes: Causes) -> list[tuple[str, float]]:
    """Causes by name."""
    return list(causes._asdict().items())


def time(seconds: float) -> str:
    """A time as readable text, such as 12.3 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


@dataclass(frozen=True)
class Limits:
    """Seconds by what they are spent on: "arithmetic", "L2", ..., "memory"."""

    seconds: Mapping[str, float]

    @property
    def by(self) -> str:
        """The resource that takes longest, which bounds the call."""
        return max(self.seconds, key=lambda what: self.seconds[what])

    @property
    def least(self) -> float:
        """The least time that the call takes under its schedule."""
        return self.seconds[self.by]


def limits(work: Work, cost: Cost, machine: Cpu, threads: int) -> Limits:
    """Return the limits of a call. Operations are those of the definitions, each once; bytes are those that the
    schedule moves."""
    seconds = {"arithmetic": arithmetic_seconds(work, machine, threads)}
    rates = [c.bandwidth * threads for c in machine.caches[1:]] + [machine.memory_bandwidth(threads)]
    for level, moved, rate in zip(levels(cost), cost.bytes, rates, strict=True):
        seconds[level] = moved / rate
    return Limits(seconds)


def arithmetic_seconds(work: Work, machine: Cpu, threads: int) -> float:
    """The seconds of all operations if all lanes of all units are busy."""
    return sum(n / machine.operations(kind, bits, threads) for (kind, bits), n in work.operations.items())
