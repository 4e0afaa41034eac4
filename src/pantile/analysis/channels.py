"""How many channels the pixels of each stage have: the extent of its last dim, where that is a small constant.

    out[y, x, c] = up[y, x, c] over [h, w, 3];  up[y, x, c] = ...     ->  {"out": 3, "up": 3}
    gray[y, x] = lab[y, x, 0] + lab[y, x, 2]                          ->  {"lab": 3}

Only last dims are followed, from consumers to producers, in ints: whatever else an index depends on has any value.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..expr.nodes import Const, Expr
from ..expr.visit import names
from ..graph.nodes import Definition, Graph, Output, Stage
from .interval import EVERYTHING, Interval, interval

MOST_CHANNELS = 4
LEAST_AXES = 3  # of a picture whose last axis may be channels


def channels(graph: Graph) -> dict[str, int]:
    """Stage -> the points that are needed of it along its last dim, if it is a picture and they are a few."""
    ends: dict[str, Interval] = {o.stage: _shape_end(o) for o in graph.outputs if o.shape}
    for stage in reversed(graph.stages):
        if stage.name not in ends:
            continue
        for d in stage.updates:
            for e in _written_and_read(stage, d):
                ends[stage.name] = ends[stage.name].hull(_values(e, stage, d, ends[stage.name]))
        for d in stage.definitions:
            for load in d.loads:
                producer = graph.producer.get(load.buffer)
                if producer is not None and producer is not stage and load.indices:
                    end = _values(load.indices[-1], stage, d, ends[stage.name])
                    ends[producer.name] = ends[producer.name].hull(end) if producer.name in ends else end
    counts = {name: end.high - end.low + 1 for name, end in ends.items() if _is_known(end)}
    return {n: k for n, k in counts.items() if 1 <= k <= MOST_CHANNELS and graph.stage[n].ndim >= LEAST_AXES}


def _shape_end(o: Output) -> Interval:
    extent = o.shape[-1]
    return Interval(0, int(extent.value) - 1) if isinstance(extent, Const) else EVERYTHING


def _is_known(end: Interval) -> bool:
    return isinstance(end.low, int) and isinstance(end.high, int)


def _written_and_read(stage: Stage, d: Definition) -> Iterator[Expr]:
    """The last indices at which an update meets its own stage, apart from its pure coordinate."""
    if stage.dims:
        yield d.indices[-1]
        yield from (e.indices[-1] for e in d.loads if e.buffer in stage.buffers)


def _values(index: Expr, stage: Stage, d: Definition, end: Interval) -> Interval:
    """Of a last index, while the last dim of the stage ranges over `end`."""
    scope = dict.fromkeys(names(index), EVERYTHING)
    for r in d.domain:
        if isinstance(r.min, Const) and isinstance(r.extent, Const):
            scope[r.name] = Interval(int(r.min.value), int(r.min.value) + int(r.extent.value) - 1)
    if stage.dims:
        scope[stage.dims[-1]] = end
    return interval(index, scope)
