"""What schedulers and cost models know of a machine: a frozen value, detected (`detect`) or given by name (`named`).

A machine is a `Cpu`, or a `Gpu` (`multiprocessor.py`). Rates of a CPU are of one core that runs alone, unless they say
otherwise; sizes are in bytes, bandwidths in bytes per second.

The costs of instructions and of starting loops are the constants of the cost model, measured by `pantile calibrate`.
Cycles are of one core, per instruction on a whole vector, when many are in flight at once. The defaults are those of a
Neoverse N1, which differ little from those of other cores of its decade.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from ..dataclass import cached_property, dataclass, hashed_once
from ..errors import UserError
from ..parameters import FASTEST, SLOWEST, Between, Bytes, Count, OneOf, Rate, check_fields
from ..target.description import Target, cpu_target

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Costs:
    """The costs of instructions, in cycles unless they say otherwise; `Issue` has arithmetic, loads and stores."""

    mul: Rate = 2.0  # of integers
    shift: Rate = 0.6
    widen: Rate = 0.6  # to the next wider type, or the next narrower one
    convert: Rate = 1.7  # between floats and integers
    div: Rate = 6.0
    sqrt: Rate = 6.0
    idiv: Rate = 5.5  # of integers, per element
    shuffle: Rate = 0.5
    gather: Rate = 1.8  # per element, one by one
    lookup: Rate | None = None  # the same at places that data decide, if one instruction loads all of a vector
    scalar: Rate = 0.36  # an operation on one element
    latency: Rate = 2.0  # until a sum can be added to
    iteration: Rate = 2.5  # instructions of an innermost loop that count and go on
    row: Rate = 6.0  # to begin an innermost loop
    stage: Rate = 20.0  # to begin a stage
    line: Rate = 65.0  # until a line comes from the cache that cores share, if nothing is sent ahead
    far_line: Rate = 150.0  # the same from memory
    stream: Rate = 40.0  # to begin a long run of elements from the cache that cores share
    far_stream: Rate = 80.0  # the same from memory
    store_line: Rate = 4.0  # to store to a line that the second cache has
    task_s: Rate = 5e-8  # of a parallel loop, in seconds
    region_s: Rate = 4e-6  # to begin a parallel loop
    call_s: Rate = 1.5e-5
    dispatch: Rate = 3.2  # instructions per cycle, of all kinds
    window: Rate = 110.0  # instructions that are under way at a time, at most

    def __post_init__(self) -> None:
        check_fields(self)


USUAL = Costs()
_LARGE = {"shuffle": 1.0}  # of cores with the longest vectors, which one unit shuffles
_GATHERING = {"lookup": 0.8}  # of those that load such elements by one instruction


def of_core(measured: Mapping[str, float], vector_bits: int, gathers: bool = False) -> Costs:
    """What was measured, by names of fields, and all else as usual on a core with such vectors and instructions."""
    usual = (_LARGE if vector_bits >= 512 else {}) | (_GATHERING if gathers else {})
    return Costs(**{**usual, **measured})


Cores = Annotated[int, Between(1, 1 << 20)]


@dataclass(frozen=True)
class Cache:
    """A cache of data."""

    size: Bytes
    line: Count
    ways: Count  # associativity
    shared_by: Cores  # cores that share one
    bandwidth: Annotated[float, Between(0, FASTEST)]  # at which one core reads what is in it; 0: unknown

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def per_core(self) -> int:
        """The part of it that one of the cores that share it can count on."""
        return max(1, self.size // self.shared_by)


@dataclass(frozen=True)
class Issue:
    """The most vector instructions that a core starts per cycle."""

    fma: Rate  # multiplications, additions and both in one, of floats
    int: Rate
    load: Rate
    store: Rate

    def __post_init__(self) -> None:
        check_fields(self)


class Machine:
    """A CPU or a GPU, each with its memory."""

    name: str

    @property
    @abstractmethod
    def target(self) -> Target:
        """The target that schedules for the machine are made for."""

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """A machine of the class. `Machine(...)` itself was the name of `Cpu(...)`, and still makes one."""
        if cls is not Machine:
            return super().__new__(cls)
        warnings.warn("pt.machine.Machine(...) is now pt.machine.Cpu(...)", DeprecationWarning, stacklevel=2)
        return super().__new__(Cpu)  # type: ignore[return-value]


@hashed_once
@dataclass(frozen=True)
class Cpu(Machine):
    """A CPU and its memory."""

    name: str
    architecture: str
    cores: Cores
    threads: Cores  # that its cores run at a time
    ghz: Rate
    vector_bits: Annotated[int, OneOf(32, 64, 128, 256, 512, 1024, 2048)]
    issue: Issue
    caches: tuple[Cache, ...]  # nearest first, at least one
    core_bandwidth: Rate  # of memory, for one core
    bandwidth: Rate  # of memory, for all cores
    costs: Costs = USUAL  # the other constants of the cost model

    def __post_init__(self) -> None:
        check_fields(self)
        if any(cache.bandwidth < SLOWEST for cache in self.caches):
            raise UserError(f"Cpu(caches=...): a cache has less than {SLOWEST:g} bytes a second; pass what it has")

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

    @cached_property
    def target(self) -> Target:
        """The target that schedules for the machine are made for."""
        return cpu_target(self.architecture, self.vector_bits, self.l1.line)

    def for_target(self, target: Target) -> Cpu:
        """A machine with these cores, caches and memory, and the instruction set of `target`."""
        mine = self.target
        if (mine.architecture, mine.vector_bits) == (target.architecture, target.vector_bits):
            return self
        return replace(self, architecture=target.architecture, vector_bits=target.vector_bits)

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return self.target.registers

    def lanes(self, bits: int) -> int:
        """The number of elements of a type that fill a vector."""
        return self.target.lanes(bits)

    def memory_bandwidth(self, cores: int) -> float:
        """The memory bandwidth of so many cores together."""
        return min(self.bandwidth, cores * self.core_bandwidth)

    def operations(self, kind: str, bits: int, cores: int) -> float:
        """Per second, by kinds of `analysis.work`: a multiply-add is two, everything else on floats is one."""
        per_cycle = self.issue.int if kind == "int" else self.issue.fma * (2 if kind == "fma" else 1)
        return per_cycle * self.vector_bits / bits * self.ghz * 1e9 * cores
