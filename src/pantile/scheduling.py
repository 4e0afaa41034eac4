"""The schedule of a pipeline: a hand-written one, or one that a strategy finds when a call first needs it.

A user requests a schedule, a strategy, or the name of one. The default is the value of PANTILE_SCHEDULE, or else
`auto`. "plain" is the schedule that names no stage (`schedule.default`): it needs no search, and is the same for all
sizes. A strategy schedules for CPUs, for GPUs or for both. The variable has no effect on targets for which the strategy
that it names cannot schedule.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from . import autoschedule, schedule_cache
from . import machine as machines
from .autoschedule import STRATEGIES, Auto, Found, Problem, Strategy
from .calls import Calls
from .compile import Options
from .cost_model import Cost
from .errors import UserError, UserTypeError, shown
from .expr.depth import rare_collections
from .expr.nodes import Number
from .forks import Lock, importing
from .graph.nodes import Graph
from .machine import Cpu, Machine, detect
from .progress import doing
from .schedule.schedule import Schedule
from .schedule_reuse import reuse_schedule
from .scheduled_pipeline import CallClass, ScheduledPipeline
from .target import Target
from .target.description import CUDA
from .target.gpu import MOST_SHARED

if TYPE_CHECKING:
    from .machine import Gpu

TUNING_RUNS = 3
VARIABLE = "PANTILE_SCHEDULE"
PLAIN = "plain"


class Scheduling:
    """The requested schedule or strategy, the schedules that were found so far, and the calls that use them."""

    @rare_collections()
    def __init__(
        self,
        graph: Graph,
        options: Options,
        schedule: Schedule | Strategy | str | None,
        estimates: Mapping[str, Any] | None,
        machine: Machine | None,
        results: Mapping[CallClass, Found] | None = None,
        by_default: bool = False,
    ) -> None:
        self.requested, self.by_default = requested(schedule, options.target), by_default or schedule is None
        self.estimates, self.machine = checked_estimates(estimates), _checked_machine(machine, options.target)
        self.results: dict[CallClass, Found] = dict(results or {})  # in the order in which they were found
        self._lock = Lock()
        # Until a strategy has found a schedule, the default schedule is used for everything except running.
        by_hand = isinstance(self.requested, Schedule)
        by_size = isinstance(self.requested, Strategy) and self.requested.by_size and self.estimates is None
        first = self.requested if isinstance(self.requested, Schedule) else Schedule()
        self.calls = Calls(graph, first, options, by_hand, by_size=by_size)
        for call_class, result in self.results.items():
            self.calls.adopt(call_class, result.schedule)
        if self.estimates is not None:
            self.find(self.estimates)

    def find(self, arguments: Mapping[str, Any]) -> None:
        """Find a schedule for these arguments, unless the schedule is hand-written or already found. Each number of
        channels is a pipeline of its own. All sizes share one schedule. However, if the strategy is by size and there
        are no estimates, only the sizes of one class share it, and smaller ones if the schedule serves them."""
        if isinstance(self.requested, Schedule):
            return
        call_class = self.calls.class_of(arguments)
        if call_class in self.results:
            return
        with self._lock, rare_collections():
            if call_class in self.results:
                return
            problem = self.problem(arguments)
            if any(0 in shape for shape in problem.shapes.values()):
                return
            self.results[call_class] = self._reuse(call_class, self.requested, problem, arguments) or self._adopt(
                call_class, self.requested, problem
            )

    def problem(self, arguments: Mapping[str, Any]) -> Problem:
        """The problem for a strategy: the stages to compute, the sizes, and the machine."""
        shapes, scalars = self.calls.sizes(arguments)
        graph = self.calls.graph_for(self.calls.known(arguments))
        measure = partial(self._seconds, graph, arguments)
        refused = partial(refusals, self.calls.options, self.for_machine, scalars)
        options, predicted = self.calls.options, None
        if options.target.has_blocks:
            predicted = _predictions(graph, options, self.for_gpu, arguments)
        return Problem(graph, shapes, scalars, self.for_machine, options.strict, measure, refused, predicted)

    def _reuse(
        self, call_class: CallClass, strategy: Strategy, problem: Problem, arguments: Mapping[str, Any]
    ) -> Found | None:
        """Use the schedule of larger calls, trying the nearest size first, for this class of calls if it serves them.
        Return it, or None."""
        if not strategy.reuse_within or self.calls.options.target.has_blocks:
            return None
        extents, size = call_class
        for other in sorted(c for c in self.results if c[0] == extents and c[1] > size):
            larger = self.results[other]
            if larger.sizes is not None and self.calls.serves(other, arguments):
                result = reuse_schedule(larger, self.calls.scheduled(other), problem, strategy.reuse_within)
                if result is not None:
                    self.calls.share(other, call_class)
                    return result
        return None

    def _adopt(self, call_class: CallClass, strategy: Strategy, problem: Problem) -> Found:
        """Find a schedule for a class of calls and use it. If the default strategy fails, it is the plain schedule."""
        try:
            result = replace(schedule_cache.find_schedule(strategy, problem), sizes=problem.sizes)
            self.calls.adopt(call_class, result.schedule)
        except Exception as failure:
            if not self.by_default:
                raise
            result = schedule_cache.plain_instead(strategy, problem, failure)
            self.calls.adopt(call_class, result.schedule)
        return result

    @property
    def for_machine(self) -> Machine:
        """The machine to schedule for."""
        return self.for_gpu if self.calls.options.target.has_blocks else self.for_cpu

    @property
    def for_gpu(self) -> Gpu:
        """The GPU to schedule for: the given one, or else that of this machine, or else a known one for the target."""
        given = self.machine
        is_missing = given is None or isinstance(given, Cpu)
        return _gpu_for(self.calls.options.target) if is_missing else cast("Gpu", given)

    @property
    def for_cpu(self) -> Cpu:
        """The CPU to schedule for: the given one, or else this one."""
        given = self.machine
        return given if isinstance(given, Cpu) else _this_machine().for_target(self.calls.options.target)

    def _seconds(self, graph: Graph, arguments: Mapping[str, Any], schedule: Schedule) -> float:
        """The shortest time of several runs, for strategies that measure."""
        calls = Calls(graph, schedule, replace(self.calls.options, algebra=False))  # this graph is already rewritten
        given = self.calls.example(arguments)
        out = calls.run(given, None, None)
        times = []
        for _ in range(TUNING_RUNS):
            start = time.perf_counter()
            calls.run(given, out, None)
            times.append(time.perf_counter() - start)
        return min(times)


def refusals(
    options: Options,
    machine: Machine,
    scalars: Mapping[str, Number],
    graph: Graph,
    schedule: Schedule,
    asked: Collection[str],
) -> dict[str, str]:
    """The reasons why blocks of a GPU cannot have the memory that a schedule requires, by the stage that they compute,
    for the stages in `asked` and for inputs with these extents in C order."""
    most = machine.multiprocessor.shared_per_block if isinstance(machine, machines.Gpu) else MOST_SHARED
    refused = {}
    for stage, needed in ScheduledPipeline(graph, schedule, options, {}).memory_of_blocks(scalars, asked).items():
        if isinstance(needed, UserError):
            refused[stage] = needed.reason
        elif needed > most:
            has = f"and one of {machine.name} has {most:,} at most; make its tiles smaller"
            refused[stage] = f"a block would need {needed:,} bytes of shared memory, {has}"
    return refused


def _predictions(graph: Graph, options: Options, gpu: Gpu, arguments: Mapping[str, Any]) -> Callable[[Schedule], Cost]:
    """A function that predicts the cost of a schedule, for a graph that is already rewritten."""
    with importing:  # programs without a GPU do not need this module
        predictions = import_module("pantile.launch_predictions").LaunchPredictions
    cost: Callable[[Schedule], Cost] = predictions(graph, options, gpu, arguments).cost
    return cost


def checked_estimates(estimates: Any) -> dict[str, Any] | None:
    """Check the expected arguments of calls. Raise an error if they are not arguments by name."""
    if estimates is None:
        return None
    if not isinstance(estimates, Mapping) or not all(isinstance(name, str) for name in estimates):
        raise UserTypeError(
            f"estimates={shown(estimates)} are not arguments by name; pass shapes of inputs and values of params, "
            'such as {"img": (1080, 1920), "gain": 1.5}'
        )
    return dict(estimates)


def _this_machine() -> Cpu:
    with doing("measuring this machine"):
        return detect()


def _gpu_for(target: Target) -> Gpu:
    """The GPU of this machine, or else one that is known by name and has the target's compute capability."""
    with importing:  # programs without a GPU do not need these modules
        gpus = import_module("pantile.machine.capabilities")
        described = import_module("pantile.runtime.cuda.machine")
    found: Gpu | None = described.at_hand() if target.architecture == CUDA else None
    usual: Gpu = gpus.of_target(target)
    return found or usual


def _checked_machine(machine: Any, target: Target) -> Machine | None:
    if machine is None or isinstance(machine, Cpu):
        return machine
    if isinstance(machine, Machine):
        if target.has_blocks:
            return machine
        raise UserError(
            f"machine={machine.name} is a GPU, and the pipeline is for {target}; leave machine= out, or write "
            "target='cuda' to run on a GPU"
        )
    raise UserTypeError(
        f"machine={shown(machine)} is not a machine; pass pt.machine.detect(), or one by name such as "
        "pt.machine.named('i7-6700')"
    )


def requested(schedule: Schedule | Strategy | str | None, target: Target) -> Schedule | Strategy:
    """The schedule or strategy that `schedule=` stands for."""
    if schedule is None:
        return _by_default(target)
    chosen = _named(schedule) if isinstance(schedule, str) else schedule
    if not isinstance(chosen, (Schedule, Strategy)):
        kind = UserError if isinstance(schedule, str) else UserTypeError
        raise kind(
            f"schedule={shown(schedule)} is not a schedule; pass pt.Schedule(pt.on(...)...), or one of {_names()}"
        )
    if isinstance(chosen, Strategy):
        _check_target(chosen, target)
    return chosen


def _check_target(strategy: Strategy, target: Target) -> None:
    """Raise an error for a strategy that cannot schedule for machines of the target's kind."""
    if target.has_blocks and not strategy.for_gpus:
        raise UserError(
            f"schedule={strategy.name!r} finds schedules for CPUs, and the pipeline is for {target}; pass "
            "'auto', 'greedy', 'posttile', 'autogpu' or 'polymage_gpu', 'plain' for a kernel per stage, or a "
            "pt.Schedule of block and thread loops"
        )
    if not target.has_blocks and not strategy.for_cpus:
        raise UserError(
            f"schedule={strategy.name!r} finds schedules for GPUs, and the pipeline is for {target}; write "
            "target='cuda' or target='cuda-sim', or pass another schedule"
        )


def _by_default(target: Target) -> Schedule | Strategy:
    name = os.environ.get(VARIABLE)
    if not name:
        return Auto()
    chosen = _named(name)
    if chosen is None:
        raise UserError(
            f"the environment variable {VARIABLE}={shown(name)} is not a schedule; set it to one of {_names()}, or "
            "unset it"
        )
    is_known = not isinstance(chosen, Strategy) or (chosen.for_gpus if target.has_blocks else chosen.for_cpus)
    return chosen if is_known else Auto()


def _named(name: str) -> Schedule | Strategy | None:
    if name == PLAIN:
        return Schedule()
    return STRATEGIES[name]() if name in STRATEGIES else autoschedule.VARIANTS.get(name)


def _names() -> str:
    return ", ".join(map(repr, (PLAIN, *STRATEGIES)))
