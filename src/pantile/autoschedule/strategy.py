"""Strategies: frozen values of their parameters that turn a problem into a schedule and a report.

Problem   = a pipeline, the expected sizes, a machine
Strategy  = find(Problem) -> Found; its fields are its parameters, all with defaults
Found     = the Schedule, as a person would write it, and the Report of why
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar, cast

from ..analysis.channels import LEAST_AXES, MOST_CHANNELS
from ..analysis.inlining import substituted, without_unread
from ..cost_model import Cost, Sizes, predict_cost
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

if TYPE_CHECKING:
    from ..machine.multiprocessor import Gpu


def size_class(elements: int) -> int:
    """A class of sizes within a factor of four, which fit the same caches."""
    return (elements.bit_length() + 1) // 2


@dataclass(frozen=True, eq=False)
class Problem:
    """A pipeline to schedule. Sizes are estimates: any schedule is correct for all sizes."""

    graph: Graph
    shapes: Mapping[str, tuple[int, ...]]  # of the outputs, by stage
    scalars: Mapping[str, Number]  # params by name, input extents as "img.shape.0"
    machine: Machine
    strict: bool = False
    measure: Callable[[Schedule], float] | None = None  # the measured seconds of a run
    # On a GPU, why lowering cannot give blocks the memory that a schedule requests, by the stage that they compute, for
    # the stages that are asked about.
    refusals: Callable[[Graph, Schedule, Collection[str]], Mapping[str, str]] | None = None
    predicted: Callable[[Schedule], Cost] | None = None  # the cost of a schedule on a GPU, by lowering its kernels

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
        """The default schedules of single stages."""
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
        """The axis of a stage or input along which its rows, and vectors, run: the last one, or the one before
        channels."""
        extents = self.facts.extents(name) if name in self.graph.input else ()
        is_picture = len(extents) >= LEAST_AXES and extents[-1] <= MOST_CHANNELS
        return -2 if name in self.channels or is_picture else -1

    def seconds(self, schedule: Schedule) -> float:
        """The measured time of the pipeline under a schedule, for strategies that tune."""
        if self.measure is None:
            raise UserError("tuning runs the pipeline, and this problem comes without one; use pt.Pipeline")
        return self.measure(schedule)

    def check_predicted(self) -> None:
        """Refuse a problem for a GPU that comes without a pipeline: predictions need its kernels."""
        if self.predicted is None:
            raise UserError("the cost of a GPU's kernels is predicted from a pipeline; use pt.Pipeline.problem")

    def cost(self, schedule: Schedule) -> Cost:
        """The predicted cost of a schedule; an error if it is not legal."""
        if self.predicted is not None:
            return self.predicted(schedule)
        return predict_cost(self.graph, schedule, self.sizes, self.cpu, strict=self.strict, known=self.drafts)

    def inlined(self, names: Collection[str]) -> Problem:
        """The problem that remains when these stages are inlined. Stages that nobody reads any more have no region to
        schedule."""
        return self._without(frozenset(names)) if names else self

    @memoized
    def _without(self, names: frozenset[str]) -> Problem:
        return self.with_graph(without_unread(substituted(self.graph, names)))

    def with_graph(self, graph: Graph) -> Problem:
        """The problem with another graph, which computes the same values in other stages."""
        return replace(self, graph=graph)


@dataclass(frozen=True)
class Found:
    """What a strategy returns."""

    schedule: Schedule
    report: Report
    sizes: Sizes | None = None  # the sizes for which it was found


class Strategy(ABC):
    """Subclasses are frozen dataclasses, one per file. A parameter that is None is chosen for the machine.

    The annotation of a parameter says which values are allowed (`parameters`).
    """

    name: ClassVar[str]
    for_cpus: ClassVar[bool] = True
    for_gpus: ClassVar[bool] = False
    measures: ClassVar[bool] = False  # runs candidates, so that the result may differ from time to time
    by_size: ClassVar[bool] = False  # is asked again for calls of another size class than before
    # Unless what it found for a larger class is predicted to take at most this many times what it is expected to find.
    reuse_within: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def find(self, problem: Problem) -> Found:
        """Find a legal schedule of any pipeline; the same one every time."""


@dataclass(frozen=True)
class GroupReport:
    """Stages that run together. `costs` are the strategy's terms, by the names its paper gives them."""

    output: str
    members: tuple[str, ...] = ()  # the other stages, producers first
    levels: tuple[Mapping[str, int], ...] = ()  # of tiles, outermost first: loop -> extent
    costs: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """A schedule that was considered and lost: its origin, its predicted time, and the cause on which it would spend
    more time than the winner."""

    name: str
    schedule: Schedule
    seconds: float
    why: str = ""


@dataclass(frozen=True)
class Report:
    """The decisions of a strategy, what it counted, and what it could not do."""

    strategy: str
    machine: str
    parameters: Mapping[str, object]
    groups: tuple[GroupReport, ...]
    inlined: tuple[str, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)  # such as "states explored"
    remarks: tuple[str, ...] = ()  # such as stages scheduled on their own, and why
    alternatives: tuple[Alternative, ...] = ()  # the best ones that lost, cheapest first

    def __str__(self) -> str:
        lines = [f"{self.strategy} for {self.machine}: {_number(len(self.groups), 'group')}"]
        lines += _listed("parameters", [f"{k}={v}" for k, v in self.parameters.items()])
        lines += _listed("inlined", self.inlined)
        lines += _listed("counts", [f"{k} {_short(v)}" for k, v in self.counts.items()])
        short = all(len(g.costs) <= 1 and not g.remarks for g in self.groups)
        for k, group in enumerate(self.groups, 1):
            lines += ["; ".join(map(str.strip, _group(k, group)))] if short else ["", *_group(k, group)]
        return "\n".join([*lines, *([""] if self.remarks else []), *self.remarks])


def _group(number: int, group: GroupReport) -> list[str]:
    lines = [f"group {number}: {', '.join([*group.members, group.output])}"]
    for k, level in enumerate(group.levels, 1):
        sizes = " x ".join(f"{loop} {extent}" for loop, extent in level.items())
        lines.append(f"  tiles{f' of level {k}' if len(group.levels) > 1 else ''}: {sizes}")
    if not group.levels:
        lines.append("  not tiled")
    lines += [f"  {name}: {_short(value)}" for name, value in group.costs.items()]
    return [*lines, *(f"  {remark}" for remark in group.remarks)]


def _listed(title: str, parts: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{title}: {', '.join(parts)}"] if parts else []


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"
