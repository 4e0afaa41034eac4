"""Evaluate a graph with concrete arguments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import UserError
from ..expr.nodes import Number
from ..graph.nodes import Graph, InputInfo, ParamInfo
from .boxes import Array, Box, sized
from .operations import from_bfloat_bits, held, rounded, to_bfloat_bits
from .stages import StageEvaluator


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
