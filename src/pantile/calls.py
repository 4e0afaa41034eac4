"""The calls of one scheduled pipeline. They are checked and compiled once per kind of call, then only packed and run.

Calls are of one kind if their arrays agree in shape, strides and type, and if the params that regions depend on have
equal values. All checks are made before the first call of a kind; only the overlap of `out=` arrays is checked at each
call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .algebra import RewrittenGraph, rewritten
from .analysis.bounds import check_regions, region_scalars
from .analysis.channels import LEAST_AXES, few_along
from .analysis.messages import OutOfRangeWrite, describe, readable
from .analysis.work import Work, count_work
from .autoschedule import size_class
from .backends import PreparedCall, backend_of
from .backends.backend import Enter, Values
from .compile import Options
from .cost_model import Cost, Sizes, predict_cost
from .dataclass import cached_property, dataclass, memoized
from .errors import UserError
from .graph.known_extents import with_extents
from .graph.nodes import Graph, InputInfo
from .graph.outputs import with_crops
from .launched_call import LaunchedCall
from .machine import Cpu
from .reference.stages import StageEvaluator
from .runtime.arguments import (
    AnyArray,
    Arguments,
    Array,
    NDArray,
    Number,
    check_array,
    is_far,
    known_strides,
)
from .runtime.arrays import Arrays, New
from .runtime.launches import WideIndicesNeeded
from .runtime.outputs import Shape, check_output, check_shape, stated_shape
from .runtime.threads import checked_num_threads, get_num_threads
from .schedule.schedule import Schedule
from .scheduled_pipeline import CallClass, Known, ScheduledPipeline, Timings
from .variant import Variant

_MOST_KINDS = 256  # a param that regions depend on may make any number of them
Kind = tuple[object, ...]
_NO_NUMBERS: list[bool | int | float] = []
Find = Callable[[Mapping[str, Any]], None]


class MeasuredTime(NamedTuple):
    """The number of calls of one kind on the same number of threads, and the shortest time."""

    threads: int = 0
    calls: int = 0
    seconds: float = inf


class CallClock:
    """Measures the times of one kind of call. There is no lock, because it would cost a tenth of a small call. The
    numbers are only for display, and if threads race, a call may be missing."""

    def __init__(self) -> None:
        self._threads, self._calls, self._seconds = MeasuredTime()

    @property
    def measured(self) -> MeasuredTime:
        return MeasuredTime(self._threads, self._calls, self._seconds)

    def note(self, threads: int, seconds: float) -> None:
        """Record a call. A change of the number of threads starts a new measurement."""
        if threads != self._threads:
            self._threads, self._calls, self._seconds = threads, 0, inf
        self._calls += 1
        if seconds < self._seconds:
            self._seconds = seconds


@dataclass(frozen=True)
class Call:
    """One kind of call, ready to run."""

    new: New  # arrays for its outputs
    ready: PreparedCall | None  # None if the outputs are empty
    enter: Enter | None  # the fast path for another call of this kind
    like: Mapping[str, Any]  # arguments that make such a call: shapes and numbers by name
    clock: CallClock


class Calls:
    """All calls of one scheduled pipeline."""

    def __init__(
        self,
        graph: Graph,
        requested: Schedule,
        options: Options,
        by_hand: bool = False,
        timings: Timings | None = None,
        by_size: bool = False,
    ) -> None:
        self.graph, self.options = graph, options
        self.arrays = backend_of(options.target).arrays
        # Cached, because each call needs them.
        self._given_outputs, self._check_apart = self.arrays.outputs, self.arrays.check_apart
        self._results, self._layouts = self.arrays.results, self.arrays.layouts
        self.arguments = Arguments(
            [_argument(i, self.arrays) for i in graph.inputs],
            [Number(p.name, p.dtype, p.default, p.where) for p in graph.params],
            self.arrays.converted,
        )
        self._arrays_of, self._takes_numbers = self.arguments.arrays_of, bool(graph.params)
        self._input_names = [a.name for a in self.arguments.arrays]
        self._tables = [a.table for a in self.arguments.arrays]
        self._known_names = frozenset([i.name for i in graph.arguments] + [p.name for p in graph.params])
        self.outputs = _outputs(graph)
        self.timings: Timings = {} if timings is None else timings
        self._requested, self._by_hand, self._by_size = requested, by_hand, by_size
        self.rewritten = self._rewritten()
        self._scheduled: dict[CallClass, ScheduledPipeline] = {}
        self.general = self.adopt(((), 0), requested, by_hand=by_hand)
        deciding = region_scalars(graph)
        self._deciding = [k for k, p in enumerate(graph.params) if p.name in deciding]
        self._kinds: dict[Kind, Call] = {}
        self._cropped: dict[CallClass, Calls] = {}
        self.latest: Call | None = None

    def _rewritten(self) -> RewrittenGraph:
        """The stages to compute: the user's own if a hand-written schedule names some, otherwise the rewritten ones."""
        changed = rewritten(self.graph, self.options.strict) if self.options.algebra else RewrittenGraph(self.graph)
        for_users_stages = self._by_hand and self._requested and changed.made.isdisjoint(self._requested)
        return RewrittenGraph(self.graph) if for_users_stages else changed

    def run(self, given: Mapping[str, Any], out: Any, num_threads: int | None, find: Find | None = None) -> list[Any]:
        """Run compiled code and return the output arrays. `find` finds a schedule for a new kind of call."""
        threads = get_num_threads() if num_threads is None else checked_num_threads(num_threads)
        latest = self.latest
        if latest is not None and latest.enter is not None:
            results = self._run_like(latest, given, out, threads)
            if results is not None:
                return results
        inputs = self._arrays_of(given)
        numbers = self.arguments.numbers_of(given) if self._takes_numbers else _NO_NUMBERS
        outputs = None if out is None else self._given_outputs(self.outputs, out)
        kind = self._layouts(inputs)
        if outputs is not None or self._deciding:
            kind = self._kind(kind, numbers, outputs)
        call = self._kinds.get(kind)
        if call is None:
            if find is not None:
                find(self._by_name(inputs, numbers))
            call = self._remember(kind, self._prepare(inputs, numbers, outputs))
        if outputs is not None:
            self._check_apart(self.outputs, outputs, self.arguments.arrays, inputs)
        filled = call.new(outputs, inputs)
        if call.ready is not None:
            start = perf_counter()
            try:
                has_waited = call.ready.run(inputs + filled, numbers, threads)
            except WideIndicesNeeded:
                call = self._remember(kind, self._prepare(inputs, numbers, outputs, far=True))
                assert call.ready is not None
                has_waited = call.ready.run(inputs + filled, numbers, threads)
            if has_waited:
                call.clock.note(threads, perf_counter() - start)
            self.latest = call  # for `explain`
        return self._results(self.outputs, filled, out, given)

    def _run_like(self, latest: Call, given: Mapping[str, Any], out: Any, threads: int) -> list[Any] | None:
        """Run a call whose arrays are like those of the latest call. Return None if they are not, or if they may
        overlap."""
        if self._deciding or not self._known_names.issuperset(given):
            return None
        arrays = list(map(given.get, self._input_names, self._tables))
        numbers = self.arguments.numbers_of(given) if self._takes_numbers else _NO_NUMBERS
        filled = latest.new(None if out is None else self._given_outputs(self.outputs, out), arrays)
        start = perf_counter()
        if not latest.enter(arrays + filled, numbers, threads):  # type: ignore[misc]  # the caller has tested it
            return None
        latest.clock.note(threads, perf_counter() - start)
        return self._results(self.outputs, filled, out, given)

    def _by_name(self, inputs: Sequence[AnyArray], numbers: Values) -> dict[str, Any]:
        """The arguments of a call by name."""
        arrays = zip(self.arguments.arrays, inputs, strict=True)
        given = {wanted.name: a for wanted, a in arrays if wanted.table is None}
        return given | {n.name: v for n, v in zip(self.arguments.numbers, numbers, strict=True)}

    def known(self, given: Mapping[str, Any]) -> Known:
        """The extents that are constant in the code for this call: small numbers of channels or planes. Shapes may
        stand for arrays."""
        return self._known(self.arguments.arrays_of(self._with_stand_ins(given)))

    def _known(self, inputs: Sequence[AnyArray]) -> Known:
        known = []
        for i, a in zip(self.graph.inputs, inputs, strict=True):
            if i.table is not None or i.ndim < LEAST_AXES or a.ndim != i.ndim:
                continue
            axis = few_along(a.shape)
            if axis is not None and not (i.known and i.known[axis]):
                known.append((i.extent(i.ndim + axis), a.shape[axis]))
        return tuple(known)

    def class_of(self, given: Mapping[str, Any]) -> CallClass:
        """The class of calls that share a schedule with this one: those with the same known extents and, for strategies
        by size, the same size class. A shape may stand for an array."""
        return self._class_of(self.arguments.arrays_of(self._with_stand_ins(given)))

    def _class_of(self, inputs: Sequence[AnyArray]) -> CallClass:
        given = zip(self.graph.inputs, inputs, strict=True)
        elements = sum(a.size for i, a in given if i.table is None) if self._by_size else 0
        return self._known(inputs), size_class(elements)

    @memoized
    def graph_for(self, known: Known) -> Graph:
        """The stages to compute for these known extents. Equal extents yield the same graph, because much is memoized
        with its expressions."""
        return with_extents(self.rewritten.graph, dict(known))

    def adopt(
        self, call_class: CallClass, schedule: Schedule, like: Schedule | None = None, *, by_hand: bool = False
    ) -> ScheduledPipeline:
        """Use a schedule, written by hand or found by a strategy, for the calls of a class."""
        scheduled = ScheduledPipeline(
            self.graph_for(call_class[0]), schedule, self.options, self.timings, like, by_hand
        )
        self._scheduled[call_class] = scheduled
        return scheduled

    def serves(self, call_class: CallClass, given: Mapping[str, Any]) -> bool:
        """Whether the code for a class of calls can run this call, which may be of another class."""
        inputs, numbers = self._match(given)
        try:
            self._checked(inputs, numbers, self.scheduled(call_class))
        except UserError:
            return False
        return True

    def share(self, call_class: CallClass, other: CallClass) -> None:
        """Use the schedule and the existing code of class `call_class` for calls of class `other`."""
        self._scheduled[other] = self.scheduled(call_class)

    def scheduled(self, call_class: CallClass) -> ScheduledPipeline:
        """The scheduled pipeline for a class of calls."""
        scheduled = self._scheduled.get(call_class)
        if scheduled is not None:
            return scheduled
        # Directives for some stages rely on which other stages are inlined, and on the loops of some of them.
        like = self.general.whole if self._requested else None
        try:
            return self.adopt(call_class, self._requested, like, by_hand=self._by_hand)
        except UserError:
            # A schedule that is legal for any extents may exceed a limit, such as threads, once some are known.
            if not self._requested:
                raise
            self._scheduled[call_class] = self.general
            return self.general

    def _scheduled_for(self, inputs: Sequence[AnyArray]) -> ScheduledPipeline:
        return self.scheduled(self._class_of(inputs))

    def check(self, given: Mapping[str, Any]) -> tuple[dict[str, NDArray], dict[str, Any]]:
        """Check the arguments of a call, and return arrays and numbers by name."""
        inputs, numbers = self.arguments.match(given)
        self._runner_of(inputs, numbers)
        names = self.arguments
        return (
            {a.name: self.arrays.on_host(array) for a, array in zip(names.arrays, inputs, strict=True)},
            {n.name: number for n, number in zip(names.numbers, numbers, strict=True)},
        )

    def compile(self, given: Mapping[str, Any], out: Any = None) -> None:
        """Compile for calls of this kind, with results written to `out`; a shape may stand for an array in C order."""
        inputs, numbers = self._match(given)
        outputs = None if out is None else self._given_outputs(self.outputs, out)
        kind = self._kind(self._layouts(inputs), numbers, outputs)
        if kind not in self._kinds:
            self._remember(kind, self._prepare(inputs, numbers, outputs))

    def sizes(self, given: Mapping[str, Any]) -> tuple[dict[str, Shape], dict[str, bool | int | float]]:
        """The output shapes of a call by stage, and its params and input extents. Shapes may stand for arrays."""
        inputs, numbers = self._match(given)
        self._runner_of(inputs, numbers, self.general)
        scalars = self._scalars(inputs, numbers)
        return self._shapes(scalars), scalars

    def example(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments to run with: shapes are replaced by arrays of small numbers."""
        shapes = {a.name: a for a in self.arguments.arrays if _is_shape(given.get(a.name))}
        return {
            name: np.resize(np.arange(128), value).astype(shapes[name].dtype.numpy) if name in shapes else value
            for name, value in given.items()
        }

    def like(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with arrays replaced by their shapes."""
        inputs, numbers = self._match(given)
        return self._like(inputs, numbers)

    def _like(self, inputs: Sequence[AnyArray], numbers: Values) -> dict[str, Any]:
        return {name: getattr(value, "shape", value) for name, value in self._by_name(inputs, numbers).items()}

    def work(self, given: Mapping[str, Any], graph: Graph | None = None) -> Work:
        """The amount of work of this call, by default for the user's stages. A shape may stand for an array."""
        inputs, numbers = self._match(given)
        self._runner_of(inputs, numbers, self.general)
        scalars = self._scalars(inputs, numbers)
        return count_work(graph or self.graph, self._shapes(scalars), scalars)

    def predict_cost(self, given: Mapping[str, Any], machine: Cpu, threads: int) -> Cost:
        """The predicted cost of this call on a number of threads of a machine. A shape may stand for an array."""
        inputs, numbers = self._match(given)
        by, _ = self._runner_of(inputs, numbers)
        scheduled, scalars = by._scheduled_for(inputs), by._scalars(inputs, numbers)
        sizes = Sizes(by._shapes(scalars), scalars)
        strict = self.options.strict
        return predict_cost(scheduled.graph, scheduled.schedule, sizes, machine, strict=strict, threads=threads)

    def launched(self, given: Mapping[str, Any]) -> LaunchedCall:
        """This call on a GPU, after its arguments have been checked. A shape may stand for an array."""
        inputs, numbers = self._match(given)
        by, shapes = self._runner_of(inputs, numbers)
        outputs = [_stand_in(o, s) for o, s in zip(by.outputs, shapes, strict=True)]
        names = [a.name for a in (*by.arguments.arrays, *by.outputs)]
        arrays = dict(zip(names, by.arrays.in_code([*inputs, *outputs]), strict=True))
        scheduled = by._scheduled_for(inputs)
        variant = partial(by._variant, scheduled, inputs, list(arrays.values()))
        is_empty = all(0 in shape for shape in shapes)
        return LaunchedCall(self.graph.name, scheduled, arrays, numbers, variant, is_empty)

    # ---- one kind of call

    def _kind(self, inputs: Kind, numbers: Values, outputs: Sequence[AnyArray | None] | None) -> Kind:
        """The key of a kind of call: layouts of inputs, layouts of `out=`, and the params that regions depend on."""
        given = () if outputs is None else self._layouts(outputs)
        return (*inputs, *given, *[numbers[k] for k in self._deciding])

    def _remember(self, kind: Kind, call: Call) -> Call:
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = call
        return call

    def _prepare(
        self, inputs: list[AnyArray], numbers: Values, outputs: Sequence[AnyArray | None] | None, far: bool = False
    ) -> Call:
        """Check everything, then compile. `far` says that memory between stages needs indices wider than 32 bits."""
        by, shapes = self._runner_of(inputs, numbers)
        if by is not self:
            return by._prepare(inputs, numbers, outputs, far)
        filled = []
        for wanted, shape, a in zip(self.outputs, shapes, outputs or [None] * len(shapes), strict=True):
            if a is not None:
                check_output(wanted, shape, a)
            filled.append(_stand_in(wanted, shape) if a is None else a)
        new = self.arrays.new(self.outputs, shapes)
        in_code = self.arrays.in_code(inputs), self.arrays.in_code(filled)
        if all(0 in shape for shape in shapes):
            return Call(new, None, None, {}, CallClock())
        scheduled = self._scheduled_for(inputs)
        variant = self._variant(scheduled, inputs, [*in_code[0], *in_code[1]], far)
        ready = scheduled.kernel(variant).prepare(*in_code, [n.dtype for n in self.arguments.numbers], self._labels)
        return Call(new, ready, ready.enter, self._like(inputs, numbers), CallClock())

    def _variant(
        self, scheduled: ScheduledPipeline, inputs: Sequence[AnyArray], arrays: Sequence[AnyArray], far: bool
    ) -> Variant:
        """The variant of the code for these arrays; `arrays` are inputs and outputs as the code will see them."""
        names = [a.name for a in (*self.arguments.arrays, *self.outputs)]
        strides = tuple((name, known_strides(a)) for name, a in zip(names, arrays, strict=True))
        aligned = self.arrays.aligned(arrays)
        multiples = tuple((name, n) for name, n in zip(names, aligned, strict=False) if n > 1)
        return scheduled.variants.of(strides, self._extents(inputs), multiples, far or any(map(is_far, arrays)))

    def _extents(self, inputs: Sequence[AnyArray]) -> dict[str, int]:
        infos = zip(self.graph.inputs, inputs, strict=True)
        return {info.extent(k): n for info, a in infos for k, n in enumerate(a.shape)}

    def _runner_of(
        self, inputs: Sequence[AnyArray], numbers: Values, scheduled: ScheduledPipeline | None = None
    ) -> tuple[Calls, list[Shape]]:
        """Check all arguments. Return the `Calls` object that runs this call, and the output shapes.

        If updates may write outside of an output, and the bounds of these writes are known, the Func is computed within
        these bounds and the output is a part of it. If the checks reject the rewritten stages, the user's stages are
        checked instead."""
        scheduled = scheduled or self._scheduled_for(inputs)
        try:
            return self, self._checked_shapes(inputs, numbers, scheduled)
        except UserError as refusal:
            if self.rewritten.changes:
                return self._as_written._runner_of(inputs, numbers)
            if not isinstance(refusal, OutOfRangeWrite):
                raise
            call_class = self._class_of(inputs)
            if call_class not in self._cropped:
                whole = with_crops(self.graph)
                self._cropped[call_class] = Calls(whole, scheduled.requested, self.options, self._by_hand, self.timings)
            cropped = self._cropped[call_class]
            try:
                return cropped, cropped._checked_shapes(inputs, numbers, cropped._scheduled_for(inputs))
            except UserError:
                raise refusal from None

    @cached_property
    def _as_written(self) -> Calls:
        """The calls of the user's own stages, without algebra."""
        return Calls(self.graph, Schedule(), replace(self.options, algebra=False), self._by_hand, self.timings)

    def _checked_shapes(self, inputs: Sequence[AnyArray], numbers: Values, scheduled: ScheduledPipeline) -> list[Shape]:
        """Check all arguments, and return the shapes of the outputs."""
        by_stage = self._checked(inputs, numbers, scheduled)
        return [by_stage[o.stage] for o in self.graph.outputs for _ in self.graph.stage[o.stage].buffers]

    def _checked(self, inputs: Sequence[AnyArray], numbers: Values, scheduled: ScheduledPipeline) -> dict[str, Shape]:
        """Check all arguments, and return the shapes of the outputs by stage."""
        for wanted, a in zip(self.arguments.arrays, inputs, strict=True):
            check_array(wanted, a)
        scalars = self._scalars(inputs, numbers)
        by_stage = self._shapes(scalars)
        check_regions(self.rewritten.graph, by_stage, scalars, scheduled.stored)
        if scheduled.computed is not None:
            check_regions(scheduled.computed, by_stage, scalars, scheduled.stored)
        return by_stage

    def _scalars(self, inputs: Sequence[AnyArray], numbers: Values) -> dict[str, bool | int | float]:
        return {n.name: v for n, v in zip(self.arguments.numbers, numbers, strict=True)} | self._extents(inputs)

    def _match(self, given: Mapping[str, Any]) -> tuple[list[AnyArray], Values]:
        """The arrays and numbers of a call; shapes may stand for arrays."""
        return self.arguments.match(self._with_stand_ins(given))

    def _with_stand_ins(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with shapes replaced by arrays."""
        shapes = {a.name: a for a in self.arguments.arrays if _is_shape(given.get(a.name))}
        return {
            name: _stand_in(shapes[name], stated_shape(shapes[name], value)) if name in shapes else value
            for name, value in given.items()
        }

    def _shapes(self, scalars: Mapping[str, Any]) -> dict[str, Shape]:
        values = StageEvaluator(self.graph, {}, {n: np.asarray(v) for n, v in scalars.items()})
        shapes = {}
        with np.errstate(all="ignore"):
            for o in self.graph.outputs:
                shape = shapes[o.stage] = tuple(values.number(e) for e in o.shape)
                stage = self.graph.stage[o.stage]
                written = f"({', '.join(map(readable, o.shape))}{',' if stage.ndim == 1 else ''})"
                check_shape(Array(o.stage, stage.dtypes[0], stage.ndim, stage.where, "output"), shape, written)
        return shapes

    @cached_property
    def _labels(self) -> dict[str, str]:
        """The labels of buffers in messages."""
        stages = {b: describe(s) for s in self.rewritten.graph.stages for b in s.buffers}
        return stages | {a.name: a.label for a in self.arguments.arrays}


def _argument(i: InputInfo, arrays: Arrays) -> Array:
    if i.table is None:
        return Array(i.name, i.dtype, i.ndim, i.where, "Input", None, i.known)
    return Array(i.name, i.dtype, i.ndim, i.where, "Table", arrays.constant(i.table), i.known)


def _outputs(graph: Graph) -> tuple[Array, ...]:
    stages = [graph.stage[o.stage] for o in graph.outputs]
    return tuple(
        Array(b, t, s.ndim, s.where, "output") for s in stages for b, t in zip(s.buffers, s.dtypes, strict=True)
    )


def _is_shape(value: Any) -> bool:
    """Whether a value is a shape that stands for an array; a tuple of rows is an array."""
    return isinstance(value, tuple) and not any(isinstance(n, (tuple, list, np.ndarray)) for n in value)


def _stand_in(wanted: Array, shape: Shape) -> NDArray:
    """An array of this shape in C order, for checks and layouts only: it has no memory for its elements."""
    dtype = wanted.dtype.numpy
    strides = [dtype.itemsize]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * max(1, n))
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides[: len(shape)])
