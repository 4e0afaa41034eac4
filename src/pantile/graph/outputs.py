"""Outputs that other stages read as well are split in two: the stage, and a copy of it that the caller gets.

The required region of a stage may be larger than the caller's array, because other stages read it, or because updates
write outside of that shape, which is decided call by call (`calls`).
"""

from __future__ import annotations

from dataclasses import replace

from ..expr.nodes import Load, Var, coordinate
from .nodes import Definition, Graph, Output, Stage


def separate_outputs(graph: Graph) -> Graph:
    """The graph with a copy stage, called stage.out, for every output that another stage reads."""
    return _separated(graph, {o.stage for o in graph.outputs if graph.consumers[o.stage]})


def with_crops(graph: Graph) -> Graph:
    """The graph with a copy stage for every output whose updates write at computed indices."""
    return _separated(graph, {o.stage for o in graph.outputs if _scatters(graph.stage[o.stage])})


def _scatters(s: Stage) -> bool:
    indices = ((i, dim) for d in s.updates for i, dim in zip(d.indices, s.dims, strict=True))
    return any(not (isinstance(i, Var) and i.name == dim) for i, dim in indices)


def _separated(graph: Graph, shared: set[str]) -> Graph:
    if not shared:
        return graph
    stages: list[Stage] = []
    for s in graph.stages:
        stages.append(s)
        if s.name in shared:
            stages.append(_copy(s))
    outputs = tuple(Output(f"{o.stage}.out", o.shape) if o.stage in shared else o for o in graph.outputs)
    return replace(graph, stages=tuple(stages), outputs=outputs)


def _copy(s: Stage) -> Stage:
    point = tuple(coordinate(d) for d in s.dims)
    values = tuple(Load(t, 1, b, point) for b, t in zip(s.buffers, s.dtypes, strict=True))
    return Stage(f"{s.name}.out", s.dims, s.dtypes, Definition(point, values, (), None, s.where), (), s.where)
