"""Stages over concrete boxes: first every box is planned from consumers to producers, then values are computed.

The box of a producer follows from evaluating the indices of its reads. For an index that depends on data, planning
computes that data at once, over the box required so far; a box that turns out to be too small is computed again,
larger. An empty box requires nothing, whatever its stage would read or promise elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import prod

import numpy as np

from ..dataclass import dataclass
from ..errors import InternalError, UserError
from ..expr.nodes import Expr, Load, Number, Op
from ..expr.show import as_written
from ..expr.visit import walk
from ..graph.nodes import Definition, Graph, InputInfo, ParamInfo, Stage
from .boxes import Array, Box, hull, sized, spanned
from .expressions import PointEvaluator
from .operations import from_bfloat_bits, held, rounded, to_bfloat_bits
from .updates import Points, reads_itself, run_update

_LARGEST = 1 << 28  # pixels of one stage; more come from an unbounded index
_ROUNDS = 100  # iterations of extending the box of a stage that reads itself


@dataclass
class StageValues:
    """A stage's arrays, one per value, over a box."""

    box: Box
    arrays: list[Array]

    def at(self, which: int, indices: tuple[Array, ...]) -> Array:
        shape = np.broadcast_shapes(*(i.shape for i in indices))
        array = self.arrays[which]
        if array.size == 0:
            return np.zeros(shape, array.dtype)
        places = tuple(i - low for i, low in zip(indices, self.box.low, strict=True))
        return np.broadcast_to(array[places], shape)


class StageEvaluator:
    """All stages of a graph, for given inputs and scalars."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Array], scalars: Mapping[str, Array]) -> None:
        self._graph = graph
        self._scalars = scalars
        self._inputs = {name: StageValues(sized(a.shape), [a]) for name, a in inputs.items()}
        self._planned: dict[str, Box] = {}
        self._computed: dict[str, StageValues] = {}

    def number(self, e: Expr) -> int:
        """The value of an expression of params and extents alone."""
        return int(PointEvaluator({}, self._scalars, _no_data, _keep).value(e))

    def plan(self, requested: Iterable[tuple[str, Box]]) -> None:
        """Record the required boxes of all stages for the requested boxes."""
        for name, box in requested:
            self._extend(name, box)
        for stage in reversed(self._graph.stages):
            if stage.name in self._planned:
                self._planned[stage.name], needed = self._needs(stage, self._planned[stage.name])
                for name, box in needed.items():
                    self._extend(name, box)

    def read(self, buffer: str, indices: tuple[Array, ...]) -> Array:
        """The values of an input or a finished stage; indices outside of its bounds are clamped."""
        if buffer in self._inputs:
            values, which = self._inputs[buffer], 0
            return values.at(which, values.box.clip(indices))
        stage = self._graph.producer[buffer]
        which = stage.buffers.index(buffer)
        indices = self._held_to_domain(stage, indices)
        box = spanned(indices)
        if box is None:
            return np.zeros(np.broadcast_shapes(*(i.shape for i in indices)), held(stage.dtypes[which]))
        return self._values(stage, box).at(which, indices)

    def _extend(self, name: str, box: Box) -> None:
        self._planned[name] = hull(self._planned.get(name), box)

    def _held_to_domain(self, stage: Stage, indices: tuple[Array, ...]) -> tuple[Array, ...]:
        if stage.domain is None:
            return indices
        low = tuple(self.number(m) for m, _ in stage.domain)
        high = tuple(first + self.number(n) - 1 for first, (_, n) in zip(low, stage.domain, strict=True))
        return Box(low, high).clip(indices)

    def _needs(self, stage: Stage, box: Box) -> tuple[Box, dict[str, Box]]:
        """The stage's box, extended by what its own updates read, and the boxes of the stages that it then reads."""
        if box.is_empty:
            return box, {}
        for _ in range(_ROUNDS):
            _check_size(stage, box)
            needed: dict[str, Box] = {}
            for definition in stage.definitions:
                self._collect(stage, definition, box, needed)
            own = hull(box, needed.pop(stage.name, box))
            if box.covers(own):
                return box, needed
            box = own
        raise UserError(f"the reads of {stage.name} by its own updates have no end", stage.where)

    def _collect(self, stage: Stage, definition: Definition, box: Box, needed: dict[str, Box]) -> None:
        """Add the boxes that a definition reads; indices that depend on its own values are resolved while it runs."""
        points = self._points(stage, definition, box)
        if 0 in points.extents:
            return
        evaluator = PointEvaluator(points.all(), self._scalars, lambda load, i: self.read(load.buffer, i), _clip)
        for load in _loads(definition):
            if load.buffer in self._inputs:
                continue
            producer = self._graph.producer[load.buffer]
            if any(reads_itself(stage, i) for i in load.indices):
                if producer is stage:
                    raise UserError(
                        f"{stage.name} reads itself at a place that depends on its own values; keep the places in a "
                        "Func of their own",
                        definition.where,
                    )
                continue
            indices = tuple(evaluator.value(i) for i in load.indices)
            read = spanned(self._held_to_domain(producer, indices))
            if read is not None:
                needed[producer.name] = hull(needed.get(producer.name), read)

    def _values(self, stage: Stage, box: Box) -> StageValues:
        known = self._computed.get(stage.name)
        if known is None or not known.box.covers(box):
            wanted = hull(self._planned.get(stage.name), hull(known.box if known else None, box))
            known = self._computed[stage.name] = self._compute(stage, self._needs(stage, wanted)[0])
        return known

    def _compute(self, stage: Stage, box: Box) -> StageValues:
        values = StageValues(box, [np.empty(box.shape, held(t)) for t in stage.dtypes])
        pure = self._evaluator(stage, stage.pure, values, dict(zip(stage.dims, box.coordinates(), strict=True)))
        for array, e in zip(values.arrays, stage.pure.values, strict=True):
            array[...] = pure.value(e)
        for update in stage.updates:
            evaluator_at = partial(self._evaluator, stage, update, values)
            run_update(stage, update, self._points(stage, update, box), box, values.arrays, evaluator_at)
        return values

    def _points(self, stage: Stage, definition: Definition, box: Box) -> Points:
        reduction = [(d.name, self.number(d.min), self.number(d.extent)) for d in definition.domain]
        return Points.of(stage, definition, box, reduction)

    def _evaluator(
        self, stage: Stage, definition: Definition, own: StageValues, coordinates: Mapping[str, Array]
    ) -> PointEvaluator:
        def fetch(load: Load, indices: tuple[Array, ...]) -> Array:
            if load.buffer in stage.buffers:
                return own.at(stage.buffers.index(load.buffer), self._held_to_domain(stage, indices))
            return self.read(load.buffer, indices)

        def promise(e: Op, value: Array, low: Array, high: Array) -> Array:
            # An empty range promises that the value is not used, as a folded edge does around an empty array. Whether
            # it is used is checked at the call; here every branch of a select is computed.
            broken = np.asarray(((value < low) | (value > high)) & (low <= high))
            if broken.any():
                example = np.broadcast_to(value, broken.shape)[broken].flat[0]
                raise UserError(
                    f"{stage.name}: {as_written(e)} promised a value that is not: {example}; widen the range or use "
                    "pt.clamp",
                    definition.where,
                )
            return value

        return PointEvaluator(coordinates, self._scalars, fetch, promise)


def _loads(definition: Definition) -> list[Load]:
    roots = [*definition.indices, *definition.values]
    if definition.condition is not None:
        roots.append(definition.condition)
    return [e for e in walk(*roots) if isinstance(e, Load)]


def _check_size(stage: Stage, box: Box) -> None:
    if prod(box.shape) > _LARGEST:
        raise UserError(
            f"the reads of {stage.name} span {box.shape} pixels; bound the index with pt.clamp or pt.within",
            stage.where,
        )


def _no_data(load: Load, indices: tuple[Array, ...]) -> Array:
    raise InternalError(f"a shape or the size of a reduction depends on {load}")


def _keep(e: Op, value: Array, low: Array, high: Array) -> Array:
    return value


def _clip(e: Op, value: Array, low: Array, high: Array) -> Array:
    """Clip a promised value while planning: points that a condition excludes later need not keep the promise."""
    return np.clip(value, low, high)


def evaluate(graph: Graph, inputs: Mapping[str, Array], params: Mapping[str, Number]) -> list[Array]:
    """The arrays of all values of each output, in order. Arrays of bfloat16 are passed and returned as uint16 bits."""
    arrays = {i.name: _input(i, inputs) for i in graph.inputs}
    scalars = {p.name: _param(p, params) for p in graph.params}
    for info in graph.inputs:
        for axis, extent in enumerate(arrays[info.name].shape):
            scalars[info.extent(axis)] = np.asarray(extent, np.int64)
    with np.errstate(all="ignore"):
        stages = StageEvaluator(graph, arrays, scalars)
        return [a for name, box in _outputs(graph, stages) for a in _values(graph, stages, name, box)]


def _input(info: InputInfo, inputs: Mapping[str, Array]) -> Array:
    if info.table is not None:
        return info.table
    if info.name not in inputs:
        raise UserError(f"input {info.name} is missing; pass {info.name}=<array of {info.dtype}>", info.where)
    array = np.asarray(inputs[info.name])
    if array.ndim != info.ndim or array.dtype != info.dtype.numpy:
        raise UserError(
            f"input {info.name} is {array.ndim}-dimensional {array.dtype}, but {info.ndim} dimensions of "
            f"{info.dtype.numpy} are declared",
            info.where,
        )
    return from_bfloat_bits(array) if info.dtype.kind == "bfloat" else array


def _param(info: ParamInfo, params: Mapping[str, Number]) -> Array:
    value = params.get(info.name, info.default)
    if value is None:
        raise UserError(f"param {info.name} is missing; pass {info.name}=<{info.dtype}>", info.where)
    number = np.asarray(value)
    return rounded(number, info.dtype) if info.dtype.is_float else number.astype(held(info.dtype))


def _outputs(graph: Graph, stages: StageEvaluator) -> list[tuple[str, Box]]:
    """The outputs and their boxes, after the boxes of all stages that they need were planned."""
    outputs = [(o.stage, sized(stages.number(n) for n in o.shape)) for o in graph.outputs]
    stages.plan(outputs)
    return outputs


def _values(graph: Graph, stages: StageEvaluator, name: str, box: Box) -> list[Array]:
    stage = graph.stage[name]
    arrays = [stages.read(buffer, tuple(box.coordinates())) for buffer in stage.buffers]
    return [to_bfloat_bits(a) if t.kind == "bfloat" else a for a, t in zip(arrays, stage.dtypes, strict=True)]
