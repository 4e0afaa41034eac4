"""Machines as schedulers and cost models see them: frozen values, detected (`detect`) or given by name (`named`).

A machine is a `Cpu` or a `Gpu` (`multiprocessor.py`). Rates of a CPU are those of one core that runs alone, unless
stated otherwise; sizes are in bytes, bandwidths in bytes per second.

The costs of instructions and of starting loops are the constants of the cost model, measured by `pantile calibrate`.
They are in cycles of one core per instruction on a whole vector, when many instructions are in flight. The defaults are
those of a Neoverse N1, which differ little from those of other cores of its decade.
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
    """The costs of instructions, in cycles unless stated otherwise; `Issue` covers arithmetic, loads and stores."""

    mul: Rate = 2.0  # of integers
    shift: Rate = 0.6
    widen: Rate = 0.6  # to the next wider type, or the next narrower one
    convert: Rate = 1.7  # between floats and integers
    div: Rate = 6.0
    sqrt: Rate = 6.0
    idiv: Rate = 5.5  # of integers, per element
    shuffle: Rate = 0.5
    gather: Rate = 1.8  # per element, one by one
    lookup: Rate | None = None  # per element at data-dependent indices, if one instruction gathers a whole vector
    scalar: Rate = 0.36  # an operation on one element
    latency: Rate = 2.0  # of adding to a sum
    iteration: Rate = 2.5  # instructions of loop control per iteration of an innermost loop
    row: Rate = 6.0  # to begin an innermost loop
    stage: Rate = 20.0  # to begin a stage
    line: Rate = 65.0  # until a line arrives from the shared cache, if it is not prefetched
    far_line: Rate = 150.0  # until a line arrives from memory, if it is not prefetched
    stream: Rate = 40.0  # to begin a long contiguous run of elements from the shared cache
    far_stream: Rate = 80.0  # to begin one from memory
    store_line: Rate = 4.0  # to store to a line that is in L2
    task_s: Rate = 5e-8  # per task of a parallel loop, in seconds
    region_s: Rate = 4e-6  # to begin a parallel loop, in seconds
    call_s: Rate = 1.5e-5
    dispatch: Rate = 3.2  # instructions per cycle, of all kinds
    window: Rate = 110.0  # instructions in flight at a time, at most

    def __post_init__(self) -> None:
        check_fields(self)


USUAL = Costs()
_LARGE = {"shuffle": 1.0}  # on cores with the longest vectors, which a single unit shuffles
_GATHERING = {"lookup": 0.8}  # on cores with fast gather instructions


def of_core(measured: Mapping[str, float], vector_bits: int, gathers: bool = False) -> Costs:
    """Costs with the measured fields, and otherwise the usual ones for a core with such vectors and instructions."""
    usual = (_LARGE if vector_bits >= 512 else {}) | (_GATHERING if gathers else {})
    return Costs(**{**usual, **measured})


Cores = Annotated[int, Between(1, 1 << 20)]


@dataclass(frozen=True)
class Cache:
    """A data cache."""

    size: Bytes
    line: Count
    ways: Count  # associativity
    shared_by: Cores  # the number of cores that share one
    bandwidth: Annotated[float, Between(0, FASTEST)]  # at which one core reads from it; 0 if unknown

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def per_core(self) -> int:
        """The share of the cache that each of its cores can count on."""
        return max(1, self.size // self.shared_by)


@dataclass(frozen=True)
class Issue:
    """The maximum number of vector instructions that a core issues per cycle, by kind."""

    fma: Rate  # multiplications, additions and multiply-adds of floats
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
        """Create a machine of this class. `Cpu` was once called `Machine`, so `Machine(...)` still creates a `Cpu`."""
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
    threads: Cores  # hardware threads of all cores
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
        """The second-level cache, or the first-level one if there is no second."""
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
        """The number of elements of this width that fill a vector."""
        return self.target.lanes(bits)

    def memory_bandwidth(self, cores: int) -> float:
        """The memory bandwidth that this number of cores reaches together."""
        return min(self.bandwidth, cores * self.core_bandwidth)

    def operations(self, kind: str, bits: int, cores: int) -> float:
        """Operations per second of a kind of `analysis.work`. A multiply-add counts as two operations, any other
        floating-point operation as one."""
        per_cycle = self.issue.int if kind == "int" else self.issue.fma * (2 if kind == "fma" else 1)
        return per_cycle * self.vector_bits / bits * self.ghz * 1e9 * cores
