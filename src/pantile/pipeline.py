"""`Pipeline`, which is built from output Funcs, takes NumPy arrays, and returns them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from . import backends, explain
from .analysis.messages import readable
from .analysis.ranges import with_ranges
from .analysis.rounding import EXACT, Rounding, roundings
from .analysis.work import Work
from .autoschedule import Problem, Report, Strategy
from .backends import target_named
from .compile import Options, to_assembly, to_kernels, to_llvm, trace_of
from .cost_model import Cost, limits
from .entry_points import USER_ERRORS, marked, of_user
from .errors import UserError, UserTypeError, shown
from .explain import Explanation, Timing
from .expr.depth import on_deep_stack, rare_collections
from .graph.names import identifier
from .graph.nodes import Graph
from .graph.outputs import separate_outputs
from .graph.show import show
from .graph.verify import verified, verify
from .ir.show import show_program
from .lang.build import build, counted
from .lang.func import Func
from .lang.variables import Param
from .machine import Machine
from .parameters import plain
from .reference.stages import evaluate
from .runtime.threads import checked_num_threads, get_num_threads
from .schedule.schedule import Schedule
from .scheduled_pipeline import ScheduledPipeline
from .scheduling import Scheduling, checked_estimates
from .target import Target, host
from .target.description import CUDA


class Pipeline:
    """An image pipeline: called with arrays and params by name, returns arrays. It is compiled on its first call.

        blur = pt.Pipeline(blur_y, shape=(img.shape[0] - 2, img.shape[1] - 2))
        result = blur(img=picture)

    outputs   a Func or several. A Func with several values returns several arrays.
    shape     the output's shape (for several outputs a list of shapes): integers, and expressions of params and input
              shapes. The default is the shape of the first input of equal rank.
    schedule  a pt.Schedule (stages that it does not name are scheduled by default), the name of a strategy such as
              "greedy" (or a value of pt.autoschedule with parameters), or "plain", which does not search. The default
              is the value of PANTILE_SCHEDULE, or else "auto".
    estimates what a strategy optimizes for: shapes of inputs and values of params by name, as for `compile`. Without
              estimates, it runs on the first call, for the arrays of that call.
    machine   the machine that a strategy schedules for: by default this one, or any CPU or GPU of `pt.machine`.
    name      the name for messages and listings; by default that of the first output.
    strict    compute floats exactly as written, without fused or reordered operations.
    debug     check every memory access at run time; slow.
    algebra   rewrite formulas to fewer operations if the result is the same; False computes them as written.
    target    what to compile for: "cuda" is the GPU of this machine, and calls then also take its arrays; or one of
              `pantile.target.NAMED`, to look at the code.
    """

    _counts: _StepCounts | None  # set if the numbers of steps are arguments of calls

    def __init__(
        self,
        outputs: Func | Sequence[Func],
        shape: Any = None,
        *,
        schedule: Schedule | Strategy | str | None = None,
        estimates: Mapping[str, Any] | None = None,
        machine: Machine | None = None,
        name: str | None = None,
        strict: bool = False,
        debug: bool = False,
        algebra: bool = True,
        target: str | None = None,
    ) -> None:
        name = None if name is None else identifier(name, "a Pipeline")
        options = _options(strict, debug, algebra, target)
        params = counted(outputs)
        self._set_up(
            _StepCounts(params, partial(_build_graph, outputs, shape, name)), options, schedule, estimates, machine
        )

    @classmethod
    def from_graph(
        cls,
        graph: Graph,
        *,
        schedule: Schedule | Strategy | str | None = None,
        estimates: Mapping[str, Any] | None = None,
        machine: Machine | None = None,
        strict: bool = False,
        debug: bool = False,
        algebra: bool = True,
        target: str | None = None,
    ) -> Pipeline:
        """Build a pipeline from the graph of another front end. The other parameters are those of `Pipeline`.

        `docs/design.md` has an example. A graph that violates an invariant of `graph.verify` is rejected.
        """
        if not isinstance(graph, Graph):
            raise UserTypeError(
                f"{shown(graph)} is not a pantile.graph.nodes.Graph; pt.Pipeline(func, shape=...) takes Funcs"
            )
        options = _options(strict, debug, algebra, target)
        verify(graph, error=UserError)
        return cls._of(Scheduling(_prepare(graph), options, schedule, estimates, machine))

    @classmethod
    def _of(cls, scheduling: Scheduling) -> Pipeline:
        pipeline = object.__new__(cls)
        pipeline._set(scheduling)
        return pipeline

    def _set_up(
        self,
        counts: _StepCounts,
        options: Options,
        schedule: Schedule | Strategy | str | None,
        estimates: Mapping[str, Any] | None,
        machine: Machine | None,
    ) -> None:
        estimates = checked_estimates(estimates)
        counts.defaults = counts.numbers(dict(zip(counts.names, counts.defaults, strict=True)) | (estimates or {}))
        graph = counts.graph(counts.defaults)
        expected = None if estimates is None else counts.without(estimates, graph)
        self._set(Scheduling(graph, options, schedule, expected, machine))
        if counts.params:
            self._counts = counts
            counts.pipelines[counts.defaults] = self

    def _changed(
        self,
        options: Options,
        schedule: Schedule | Strategy | str | None,
        estimates: Mapping[str, Any] | None,
        machine: Machine | None,
    ) -> Pipeline:
        """This pipeline with other options, another schedule, estimates or machine."""
        if self._counts is None:
            return self._of(Scheduling(self.graph, options, schedule, estimates, machine))
        pipeline = object.__new__(type(self))
        pipeline._set_up(self._counts.copy(), options, schedule, estimates, machine)
        return pipeline

    def _member(self, arguments: Mapping[str, Any]) -> tuple[Pipeline, Mapping[str, Any]]:
        """The pipeline that runs a call, which may be one for certain numbers of steps, and the arguments for it."""
        if self._counts is None:
            return self, arguments
        counts, scheduling = self._counts, self._scheduling
        numbers = counts.numbers(arguments)
        if numbers not in counts.pipelines:
            requested = None if scheduling.by_default else scheduling.requested
            counts.pipelines[numbers] = self._of(
                Scheduling(counts.graph(numbers), self.options, requested, None, scheduling.machine)
            )
        member = counts.pipelines[numbers]
        return member, counts.without(arguments, member.graph)

    def _set(self, scheduling: Scheduling) -> None:
        self._scheduling, self._calls = scheduling, scheduling.calls
        self._find, self._run = scheduling.find, scheduling.calls.run  # cached for each call
        self._counts = None
        self._usual_size: Pipeline | None = None  # this pipeline for pictures of a usual size, once it is shown

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph and the schedule. The copy is compiled, or found in the cache, in the process that uses it.
        If the target is this machine, it becomes the machine where the pipeline is unpickled."""
        if self._counts is not None:
            raise UserError(
                f"the number of steps of {self.graph.name} is Param {self._counts.params[0].name!r}, so that it cannot "
                "be copied or sent to another process; make it there, or pass a number to pt.iterate"
            )
        options, f = self.options, self._scheduling
        target = None if options.target == host() else options.target
        flags = (options.strict, options.debug, options.algebra)
        scheduled = (f.requested, f.estimates, f.machine, f.results, f.by_default)
        return _unpickled, (type(self), self.graph, target, flags, scheduled)

    # ---- running

    @marked
    def __call__(self, /, *positional: Any, out: Any = None, num_threads: int | None = None, **arguments: Any) -> Any:
        """Run the pipeline: `p(img=picture, gain=1.5)` returns an array, or a tuple of arrays for several outputs.

        Arrays may have any strides; they are read in place. `out=` takes an array (or a sequence with one per output,
        None for a new one) of the right shape and type, which is written in place and returned. If arrays are PyTorch
        tensors, so are the results. `num_threads=` overrides `pt.set_num_threads` for this call. Everything is checked
        before anything is written.
        """
        __tracebackhide__ = True
        try:
            if positional:
                _by_name(positional)
            if self._counts is not None:
                member, given = self._member(arguments)
                if member is not self:
                    return member(out=out, num_threads=num_threads, **given)
                arguments = dict(given)
            results = self._run(arguments, out, num_threads, self._find)
        except USER_ERRORS as error:
            raise of_user(error) from error.__cause__
        return results[0] if len(results) == 1 else tuple(results)

    def reference(self, /, *positional: Any, **arguments: Any) -> Any:
        """Evaluate the pipeline's definition in plain NumPy, which is slow but always correct."""
        _by_name(positional)
        member, given = self._member(arguments)
        return _single(evaluate(member.graph, *member._calls.check(given)))

    def compile(self, /, **arguments: Any) -> Pipeline:
        """Compile the code for such a call, and return the pipeline.

        `p.compile(img=(1080, 1920, 3), gain=1.0)`: a shape stands for an array in C order. Without arguments, compile
        the code for large arrays in C order.
        """
        member, given = self._member(arguments) if arguments else (self, arguments)
        if member is not self:
            member.compile(**given)
        elif given:
            self._scheduling.find(given)
            self._calls.compile(given)
        else:
            shown = self._scheduled()
            shown.kernel(shown.variants.usual)
        return self

    def work(self, /, **arguments: Any) -> Work:
        """The amount of work of such a call under any schedule: bytes to move, and operations by kind and width.

        `p.work(img=(1080, 1920, 3), gain=1.0)`: a shape stands for an array.
        """
        member, given = self._member(arguments)
        return member._calls.work(given)

    def predict(self, /, num_threads: int | None = None, **arguments: Any) -> Cost | backends.LaunchReport:
        """The predicted time of such a call under the pipeline's schedule, and its causes; nothing is compiled or run.

        `p.predict(img=(1080, 1920, 3), gain=1.0).seconds`: a shape stands for an array. `print` shows the causes. The
        prediction is for the machine that the pipeline is scheduled for, and for all of its threads unless
        `num_threads=` is given. On GPUs the result lists the launched kernels: the time of each and what limits it,
        blocks, threads, memory, and the bytes that it moves.
        """
        member, given = self._member(arguments)
        if member is not self:
            return member.predict(num_threads, **given)
        self._scheduling.find(given)
        if self.options.target.has_blocks:
            return self._calls.launched(given).report(self._scheduling.for_gpu)
        machine = self._scheduling.for_cpu
        threads = machine.threads if num_threads is None else checked_num_threads(num_threads)
        return self._calls.predict_cost(given, machine, threads)

    def problem(self, /, **arguments: Any) -> Problem:
        """The problem for a strategy: the stages to compute, the sizes, and the machine."""
        member, given = self._member(arguments)
        return member._scheduling.problem(given)

    # ---- looking inside

    @property
    def graph(self) -> Graph:
        """The pipeline as written: inputs, params, stages and outputs."""
        return self._calls.graph

    @property
    def rewritten(self) -> Graph:
        """The stages that are actually computed, with fewer operations, unless a schedule is hand-written."""
        return self._calls.rewritten.graph

    @property
    def options(self) -> Options:
        """The target, and whether code is strict, checked, and computed from rewritten formulas."""
        return self._calls.options

    @property
    def rounding(self) -> tuple[Rounding, ...]:
        """The effect of rounding on each output, which bounds the differences between schedules."""
        graph = self.graph
        roundings_of = {} if self.options.strict else roundings(graph)
        return tuple(roundings_of.get(o.stage, EXACT) for o in graph.outputs for _ in graph.stage[o.stage].dtypes)

    @property
    def schedule(self) -> Schedule:
        """The schedule, with defaults for all other stages. It prints as Python code."""
        return self._for_display._scheduled().schedule

    @property
    def strategy(self) -> Strategy | None:
        """The strategy that finds its schedules; None if the schedule is hand-written."""
        requested = self._scheduling.requested
        return requested if isinstance(requested, Strategy) else None

    @property
    def report(self) -> Report | None:
        """The strategy's report on the first schedule that it found; None if the schedule is hand-written."""
        shown = self._for_display
        if shown is not self:
            return shown.report
        self._scheduled()
        return next((found.report for found in self._scheduling.results.values()), None)

    @property
    def estimates(self) -> Mapping[str, Any] | None:
        """The expected arguments of calls, for which a strategy optimizes."""
        return self._scheduling.estimates

    def explain(self, /, html: str | os.PathLike[str] | None = None, **arguments: Any) -> str:
        """The time of a call and its causes, the schedule and its reasons, and the runners-up.

        The time is that of the latest call, or of the estimates; `p.explain(img=(1080, 1920, 3))` explains such a call,
        as for `predict`. `html=FILE` also writes a page with diagrams of the stages, tiles and windows, and with the
        loops.
        """
        member, given = self._member(arguments) if arguments else (self, arguments)
        if member is not self:
            return member.explain(html, **given)
        if self.options.target.has_blocks:
            return self._explain(self._on_gpu(given), html)
        if given:
            self._scheduling.find(given)
        elif self._for_display is not self:
            return self._for_display.explain(html)
        shown, report, timing = self._scheduled(), self.report, self._timing(given)
        call_class = None if timing is None else self._calls.class_of(timing.arguments)
        if call_class in self._scheduling.results:  # other sizes may have other schedules
            shown, report = self._calls.scheduled(call_class), self._scheduling.results[call_class].report
        return self._explain(Explanation(self.graph.name, shown, report, self._calls.rewritten, timing), html)

    def _explain(self, explanation: Explanation, html: str | os.PathLike[str] | None) -> str:
        if html is not None:
            explain.write_page(
                html, explain.as_page(explanation, on_deep_stack(show_program)(explanation.scheduled.program()))
            )
        return explain.as_text(explanation)

    def _on_gpu(self, arguments: Mapping[str, Any]) -> Explanation:
        """The explanation of calls on a GPU. The simulator's times are not shown."""
        latest = None if arguments else self._calls.latest
        given = arguments if latest is None else latest.like
        given = given or self._scheduling.estimates or {}
        if not given and latest is None:
            return Explanation(self.graph.name, self._scheduled(), self.report, self._calls.rewritten, None)
        self._scheduling.find(given)
        call_class, launched = self._calls.class_of(given), self._calls.launched(given).report(self._scheduling.for_gpu)
        found, shown = self._scheduling.results.get(call_class), self._calls.scheduled(call_class)
        measured = None if latest is None or self.options.target.architecture != CUDA else latest.clock.measured
        measured = measured if measured is not None and measured.calls else None
        report = None if found is None else found.report
        return Explanation(self.graph.name, shown, report, self._calls.rewritten, None, launched, measured)

    def _timing(self, arguments: Mapping[str, Any]) -> Timing | None:
        """The timing of such calls, of the latest call, or of the estimates; None if there are none."""
        latest = None if arguments else self._calls.latest
        given = arguments if latest is None else latest.like
        given = given or self._scheduling.estimates or {}
        if not given and latest is None:
            return None
        machine = self._scheduling.for_cpu
        threads = get_num_threads() if self._scheduling.machine is None else machine.threads
        measured = None
        if latest is not None and self._scheduling.machine is None:
            measured = latest.clock.measured
            threads = measured.threads
        cost, work = self._calls.predict_cost(given, machine, threads), self._calls.work(given, self.rewritten)
        sizes = self._calls.sizes(given)
        return Timing(self._calls.like(given), *sizes, threads, cost, limits(work, cost, machine, threads), measured)

    def with_schedule(
        self,
        schedule: Schedule | Strategy | str,
        *,
        estimates: Mapping[str, Any] | None = None,
        machine: Machine | None = None,
    ) -> Pipeline:
        """A copy of the pipeline with another schedule. The parameters are those of Pipeline."""
        return self._changed(self.options, schedule, estimates, machine)

    def with_options(
        self,
        *,
        strict: bool | None = None,
        debug: bool | None = None,
        algebra: bool | None = None,
        target: str | None = None,
    ) -> Pipeline:
        """A copy of the pipeline with other options. Options that are not given stay the same."""
        now, scheduling = self.options, self._scheduling
        options = Options(
            now.target if target is None else target_named(target),
            now.strict if strict is None else strict,
            now.debug if debug is None else debug,
            now.algebra if algebra is None else algebra,
        )
        requested = None if scheduling.by_default else scheduling.requested  # the default may depend on the target
        return self._changed(options, requested, scheduling.estimates, scheduling.machine)

    def _scheduled(self) -> ScheduledPipeline:
        """The scheduled pipeline to show; an error if a strategy has not run yet, because sizes are unknown."""
        for call_class in self._scheduling.results:
            return self._calls.scheduled(call_class)
        requested = self._scheduling.requested
        if isinstance(requested, Strategy):
            raise UserError(
                f"{self.graph.name} is scheduled ({requested.name}) at its first call, for the sizes of that call; "
                "call it first, or state the expected sizes, such as estimates={" + _shapes(self.graph) + "}"
            )
        return self._calls.general

    @property
    def _for_display(self) -> Pipeline:
        """The pipeline to show: this one, or one for usual pictures if the default strategy has not run yet."""
        scheduling = self._scheduling
        if scheduling.results or not scheduling.by_default or not isinstance(scheduling.requested, Strategy):
            return self
        if self._usual_size is None:
            shapes = _usual_shapes(self.graph)
            try:
                usual = Scheduling(
                    self.graph, self.options, scheduling.requested, shapes, scheduling.machine, by_default=True
                )
                self._usual_size = self._of(usual) if usual.results else self
            except UserError:
                self._usual_size = self
        return self._usual_size

    @property
    def timings(self) -> dict[str, float]:
        """The seconds per step of the last compilation. PANTILE_TIMINGS=1 prints them after every compilation."""
        return dict(self._calls.timings)

    def loops(self) -> str:
        """The loop nest as pseudo-code."""
        return on_deep_stack(show_program)(self._for_display._scheduled().program())

    def llvm(self) -> str:
        """The code as LLVM text, before LLVM optimizes it."""
        return _llvm(self._for_display._scheduled())

    def asm(self, target: str | None = None) -> str:
        """The machine code as assembly, by default for the pipeline's own target."""
        of = self if target is None else self.with_options(target=target)
        shown = of._for_display._scheduled()
        return to_assembly(_llvm(shown), shown.options)

    def __str__(self) -> str:
        return readable(show(self.graph)).rstrip()

    def __repr__(self) -> str:
        takes = [f"{i.name}: {i.dtype}[{', '.join(':' * i.ndim)}]" for i in self.graph.arguments]
        takes += [f"{p.name}: {p.dtype}" for p in self.graph.params]
        gives = [f"{a.name}: {a.dtype}[{', '.join(':' * a.ndim)}]" for a in self._calls.outputs]
        return f"<Pipeline {self.graph.name}({', '.join(takes)}) -> {', '.join(gives)}>"


def _llvm(s: ScheduledPipeline) -> str:
    trace = trace_of(s.options)
    return to_llvm(to_kernels(s.program(), s.options, trace), s.options, trace)


def _options(strict: bool, debug: bool, algebra: bool, target: str | None) -> Options:
    return Options(target_named("host" if target is None else target), strict, debug, algebra)


class _StepCounts:
    """The numbers of steps of `pt.iterate` that Params give, and the pipelines that were made for such numbers."""

    def __init__(self, params: Sequence[Param], build: Callable[[Mapping[str, int]], Graph]) -> None:
        self.params = params
        self.names = [p.name for p in params]
        self.defaults = tuple(1 if p.default is None else int(p.default) for p in params)
        self.pipelines: dict[tuple[int, ...], Pipeline] = {}
        self._build = build

    def copy(self) -> _StepCounts:
        """A copy for the same Params, without pipelines."""
        counts = _StepCounts(self.params, self._build)
        counts.defaults = self.defaults
        return counts

    def graph(self, numbers: tuple[int, ...]) -> Graph:
        """The graph with these numbers of steps."""
        return self._build(dict(zip(self.names, numbers, strict=True)))

    def numbers(self, given: Mapping[str, Any]) -> tuple[int, ...]:
        """The numbers of steps of a call, or the defaults of the Params."""
        return tuple(_count(p, given.get(p.name, p.default)) for p in self.params)

    def without(self, given: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
        """The arguments without Params that only give numbers of steps."""
        unused = set(self.names) - {p.name for p in graph.params}
        return {name: value for name, value in given.items() if name not in unused}


def _count(param: Param, given: Any) -> int:
    value = plain(given)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 0 <= value <= param.dtype.max:
        says = "is not given" if given is None else f"is {shown(given)}"
        raise (UserError if whole else UserTypeError)(
            f"Param {param.name!r} (from {param.where}) is the number of steps of pt.iterate, and {says}; pass a "
            f"number that is not negative, like {param.name}=3"
        )
    return int(value)


def _build_graph(outputs: Any, shape: Any, name: str | None, counts: Mapping[str, int]) -> Graph:
    with rare_collections():
        return _prepare(build(outputs, shape, name, counts))


def _prepare(graph: Graph) -> Graph:
    """Prepare a graph as all later steps expect it."""
    return verified(with_ranges(separate_outputs(graph)), "build")


def _unpickled(
    kind: type[Pipeline], graph: Graph, target: Target | None, flags: tuple[bool, ...], scheduled: tuple[Any, ...]
) -> Pipeline:
    """Restore a pipeline from its graph, its target (None for this machine), and the other arguments that it was made
    with."""
    return kind._of(Scheduling(graph, Options(target or host(), *flags), *scheduled))


def _shapes(graph: Graph) -> str:
    return ", ".join(f'"{name}": {shape}' for name, shape in _usual_shapes(graph).items())


def _usual_shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs for a typical picture, in which unknown extents are those of 1080 x 1920 x 3."""

    def shape(known: tuple[int | None, ...]) -> tuple[int, ...]:
        usual = iter((1080, 1920, 3, *(4,) * len(known)))
        return tuple([next(usual) if n is None else n for n in known])

    return {i.name: shape(i.known or (None,) * i.ndim) for i in graph.arguments}


def _by_name(positional: tuple[Any, ...]) -> None:
    if positional:
        raise UserTypeError("a pipeline takes arrays and params by name; pass them like img=<array>")


def _single(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)
