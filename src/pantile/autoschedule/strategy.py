"""What a strategy is: a frozen value of its parameters that turns a problem into a schedule and a report.

Problem   = a pipeline, the sizes to expect, a machine
Strategy  = find(Problem) -> Found; its fields are its parameters, all with defaults
Found     = the Schedule, as a person would write it, and the Report of why
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, ClassVar, cast

from ..analysis.channels import LEAST_AXES, MOST_CHANNELS
from ..analysis.inlining import substituted, without_unread
from ..cost_model import Sizes
from ..dataclass import cached_property, dataclass, memoized
from ..errors import UserError
from ..expr.nodes import Number
from ..graph.nodes import Graph
from ..machine.description import Cpu, Machine
from ..parameters import check_fields
from ..schedule.draft import Drafts
from ..schedule.schedule import Schedule
from ..schedule.stage_default import StageDefaults
from ..target.description import Target
from .common.facts import PipelineFacts
from .report import Report

if TYPE_CHECKING:
    from ..machine.gpu import Gpu


def size_class(elements: int) -> int:
    """A class of sizes within a factor of four, which fit the same caches."""
    return (elements.bit_length() + 1) // 2


@dataclass(frozen=True, eq=False)
class Problem:
    """A pipeline to schedule. Sizes are estimates: any schedule is right for all of them."""

    graph: Graph
    shapes: Mapping[str, tuple[int, ...]]  # of the outputs, by stage
    scalars: Mapping[str, Number]  # params by name, input extents as "img.shape.0"
    machine: Machine
    strict: bool = False
    measure: Callable[[Schedule], float] | None = None  # seconds that a run takes here
    # Of lowering, on a GPU: why blocks cannot have the memory that a schedule wants of them, by the stage they compute.
    refusals: Callable[[Graph, Schedule], Mapping[str, str]] | None = None

    @property
    def cpu(self) -> Cpu:
        """The machine, for strategies that know only CPUs."""
        if not isinstance(self.machine, Cpu):
            raise UserError(f"{self.machine.name} is a GPU, and this strategy schedules for CPUs")
        return self.machine

    @property
    def gpu(self) -> Gpu:
        """The machine, for strategies that know only GPUs."""
        if isinstance(self.machine, Cpu):
            raise UserError(f"{self.machine.name} is a CPU, and this strategy schedules for GPUs")
        return cast("Gpu", self.machine)

    @property
    def sizes(self) -> Sizes:
        """The sizes, as the cost model takes them."""
        return Sizes(self.shapes, self.scalars)

    @property
    def target(self) -> Target:
        """The target that schedules are made for."""
        return self.machine.target

    @cached_property
    def facts(self) -> PipelineFacts:
        """The facts about the stages at these sizes."""
        return PipelineFacts(self.graph, self.shapes, self.scalars)

    @cached_property
    def alone(self) -> StageDefaults:
        """The schedules of single stages."""
        return StageDefaults(self.graph, self.target, strict=self.strict)

    @cached_property
    def drafts(self) -> Drafts:
        """The drafts of stages, shared by all schedules that are considered."""
        return Drafts(self.graph, self.strict, self.target)

    @property
    def channels(self) -> dict[str, int]:
        """The stages whose last dim is the few channels of their pixels, and how many these are."""
        return self.facts.channels

    @property
    def size_class(self) -> int:
        """The size class of all inputs together."""
        inputs = self.graph.arguments
        return size_class(sum(prod(int(self.scalars[i.extent(k)]) for k in range(i.ndim)) for i in inputs))

    def row(self, name: str) -> int:
        """The axis of a stage or input along which its rows, and vectors, go: the last one, or that before channels."""
        extents = self.facts.extents(name) if name in self.graph.input else ()
        is_picture = len(extents) >= LEAST_AXES and extents[-1] <= MOST_CHANNELS
        return -2 if name in self.channels or is_picture else -1

    def seconds(self, schedule: Schedule) -> float:
        """How long the pipeline runs under a schedule, measured: for strategies that tune."""
        if self.measure is None:
            raise UserError("tuning runs the pipeline, and this problem comes without one; use pt.Pipeline")
        return self.measure(schedule)

    def inlined(self, names: Collection[str]) -> Problem:
        """The problem that is left when these stages are inlined. What nobody reads then has no region to schedule."""
        return self._without(frozenset(names)) if names else self

    @memoized
    def _without(self, names: frozenset[str]) -> Problem:
        return self.with_graph(without_unread(substituted(self.graph, names)))

    def with_graph(self, graph: Graph) -> Problem:
        """The problem for a pipeline that computes the same in other stages."""
        return replace(self, graph=graph)


@dataclass(frozen=True)
class Found:
    """What a strategy returns."""

    schedule: Schedule
    report: Report
    sizes: Sizes | None = None  # that it was found for


class Strategy(ABC):
    """Subclasses are frozen dataclasses, one per file; None for a parameter means: from the machine.

    What a parameter may be is said in its annotation (`parameters`).
    """

    name: ClassVar[str]
    for_cpus: ClassVar[bool] = True
    for_gpus: ClassVar[bool] = False
    measures: ClassVar[bool] = False  # runs candidates, so that another time the answer may be another
    by_size: ClassVar[bool] = False  # is asked again when calls are of another size class than those before
    # Unless what it found for a larger class takes, as predicted, at most so many times what it is expected to find.
    reuse_within: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def find(self, problem: Problem) -> Found:
        """A legal schedule of any pipeline, the same one every time."""
