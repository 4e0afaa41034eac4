"""What schedulers and cost models know of a machine: a frozen value, detected (`detect`) or given by name (`named`).

Rates are of one core that runs alone, unless they say otherwise; sizes are in bytes, bandwidths in bytes per second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cache:
    """A cache of data."""

    size: int
    line: int
    ways: int  # associativity
    shared_by: int  # cores that share one
    bandwidth: float  # at which one core reads what is in it

    @property
    def per_core(self) -> int:
        """The part of it that one of the cores that share it can count on."""
        return self.size // self.shared_by


@dataclass(frozen=True)
class Issue:
    """Vector instructions that a core starts per cycle, at most."""

    fma: float  # multiplications, additions and both in one, of floats
    int: float
    load: float
    store: float


@dataclass(frozen=True)
class Machine:
    """A CPU and its memory."""

    name: str
    architecture: str
    cores: int
    threads: int  # that its cores run at a time
    ghz: float
    vector_bits: int
    issue: Issue
    caches: tuple[Cache, ...]  # nearest first, at least one
    core_bandwidth: float  # of memory, for one core
    bandwidth: float  # of memory, for all cores

    @property
    def l1(self) -> Cache:
        return self.caches[0]

    @property
    def l2(self) -> Cache:
        """The first cache where there is no second one."""
        return self.caches[min(1, len(self.caches) - 1)]

    @property
    def last(self) -> Cache:
        return self.caches[-1]

    def lanes(self, bits: int) -> int:
        """Elements of a type that fill a vector."""
        return max(1, self.vector_bits // bits)

    def memory_bandwidth(self, cores: int) -> float:
        """Of so many cores."""
        return min(self.bandwidth, cores * self.core_bandwidth)

    def operations(self, kind: str, bits: int, cores: int) -> float:
        """Per second, by kinds of `analysis.work`: a multiply-add is two, everything else on floats is one."""
        per_cycle = self.issue.int if kind == "int" else self.issue.fma * (2 if kind == "fma" else 1)
        return per_cycle * self.vector_bits / bits * self.ghz * 1e9 * cores
