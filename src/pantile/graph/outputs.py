"""Outputs that other stages read as well are split in two: the stage, and a copy of it that the caller gets.

A stage may be needed over a larger box than the caller asked for; the caller's array has just the shape asked for.
"""

from __future__ import annotations

from dataclasses import replace

from ..expr.nodes import Load, coordinate
from .nodes import Definition, Graph, Output, Stage


def separate_outputs(graph: Graph) -> Graph:
    """The graph with a copy stage, called stage.out, for every output that another stage reads."""
    shared = {o.stage for o in graph.outputs if graph.consumers[o.stage]}
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
    at = tuple(coordinate(d) for d in s.dims)
    values = tuple(Load(t, 1, b, at) for b, t in zip(s.buffers, s.dtypes, strict=True))
    return Stage(f"{s.name}.out", s.dims, s.dtypes, Definition(at, values, (), None, s.where), (), s.where)
