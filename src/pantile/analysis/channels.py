"""Finds the number of channels of each stage's pixels: the extent of the last dim, if it is a small constant.

    out[y, x, c] = up[y, x, c] over [h, w, 3];  up[y, x, c] = ...     ->  {"out": 3, "up": 3}
    gray[y, x] = lab[y, x, 0] + lab[y, x, 2]                          ->  {"lab": 3}

It also finds the number of planes: the extent of the dim before rows and columns. Only dims at this position are
followed, from consumers to producers, as integers: all other parts of an index may have any value.

Planes are numbered if each has a different formula, which the first coordinate selects:

    part[k, y, x] = select(k == 0, img[2*y, x] - img[2*y + 1, x], select(k == 1, img[2*y + 1, x], ...))

In an unrolled loop over planes, each plane evaluates only its own formula, and common subexpressions of the formulas
are computed once. In a loop that is not unrolled, all formulas would be computed for every value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..expr.nodes import Const, Expr, Op, Var
from ..expr.visit import names, walk_values
from ..graph.nodes import Definition, Graph, Output, Stage
from .interval import EVERYTHING, Interval, interval

MOST_CHANNELS = 4
LEAST_AXES = 3  # of a picture whose last axis may be channels
LAST, PLANE = -1, -3  # the axes of channels and of planes
# The known extents of stages by axis, cached because every schedule of a graph uses them.
_KNOWN: WeakKeyDictionary[Graph, dict[int, dict[str, int]]] = WeakKeyDictionary()
MOST_NUMBERED = 32  # numbered planes that are unrolled, at most


def few_along(shape: tuple[Any, ...]) -> int | None:
    """The axis of a picture's channels, or else of its planes, if there are only a few of them; otherwise None."""
    few = [type(n) is int and 1 <= n <= MOST_CHANNELS for n in shape]
    if few[LAST]:
        return LAST
    return PLANE if few[PLANE] and not any(few[PLANE + 1 :]) else None


def channels(graph: Graph) -> dict[str, int]:
    """Map picture stages to the extent of their required region along the last dim, if that is small."""
    return _few(graph, LAST)


def planes(graph: Graph, interleaved: Collection[str]) -> dict[str, int]:
    """Map picture stages without channels to the extent of their region along the dim before rows and columns, if that
    is small."""
    return {name: count for name, count in _few(graph, PLANE).items() if name not in interleaved}


def _few(graph: Graph, axis: int) -> dict[str, int]:
    return {name: count for name, count in extents(graph, axis).items() if count <= MOST_CHANNELS}


def extents(graph: Graph, axis: int) -> dict[str, int]:
    """Map picture stages to the extent of their required region along an axis, if that is known."""
    known = _KNOWN.setdefault(graph, {})
    if axis not in known:
        has_pictures = any(s.ndim >= LEAST_AXES for s in graph.stages)
        known[axis] = _known_extents(graph, axis) if has_pictures else {}
    return known[axis]


def _known_extents(graph: Graph, axis: int) -> dict[str, int]:
    ends: dict[str, Interval] = {o.stage: _shape_end(o, axis) for o in graph.outputs}
    for stage in reversed(graph.stages):
        if stage.name not in ends:
            continue
        for d in stage.updates:
            for e in _written_and_read(stage, d, axis):
                ends[stage.name] = ends[stage.name].hull(_values(e, stage, d, axis, ends[stage.name]))
        for d in stage.definitions:
            for load in d.loads:
                producer = graph.producer.get(load.buffer)
                if producer is not None and producer is not stage:
                    is_long = len(load.indices) >= -axis
                    end = _values(load.indices[axis], stage, d, axis, ends[stage.name]) if is_long else EVERYTHING
                    ends[producer.name] = ends[producer.name].hull(end) if producer.name in ends else end
    counts = {name: end.high - end.low + 1 for name, end in ends.items() if _is_known(end)}
    return {n: k for n, k in counts.items() if k >= 1 and graph.stage[n].ndim >= LEAST_AXES}


def _shape_end(o: Output, axis: int) -> Interval:
    extent = o.shape[axis] if len(o.shape) >= -axis else None
    return Interval(0, int(extent.value) - 1) if isinstance(extent, Const) else EVERYTHING


def _is_known(end: Interval) -> bool:
    return isinstance(end.low, int) and isinstance(end.high, int)


def _written_and_read(stage: Stage, d: Definition, axis: int) -> Iterator[Expr]:
    """The indices along an axis at which an update writes or reads its own stage."""
    if stage.ndim >= -axis:
        yield d.indices[axis]
        yield from (e.indices[axis] for e in d.loads if e.buffer in stage.buffers)


def _values(index: Expr, stage: Stage, d: Definition, axis: int, end: Interval) -> Interval:
    """The values of an index, while the stage's dim at this axis ranges over `end`."""
    scope = dict.fromkeys(names(index), EVERYTHING)
    for r in d.domain:
        if isinstance(r.min, Const) and isinstance(r.extent, Const):
            scope[r.name] = Interval(int(r.min.value), int(r.min.value) + int(r.extent.value) - 1)
    if stage.ndim >= -axis:
        scope[stage.dims[axis]] = end
    return interval(index, scope)


def numbered(graph: Graph) -> dict[str, int]:
    """Map stages to their number of planes, if these are numbered planes, or reductions of such, and more than a
    few."""
    able = [s for s in graph.stages if s.ndim >= LEAST_AXES]
    able = [s for s in able if s.ndim > LEAST_AXES or s.name not in channels(graph)]  # their first dim is rows
    chosen = {s.name for s in able if _chooses(s)}
    if not chosen:
        return {}
    chosen |= {s.name for s in able if any(_keeps_apart(s, d, chosen) for d in s.updates)}
    counts = {s.name: extents(graph, -s.ndim).get(s.name, 0) for s in able if s.name in chosen}
    return {name: count for name, count in counts.items() if MOST_CHANNELS < count <= MOST_NUMBERED}


def _chooses(stage: Stage) -> bool:
    """Whether some select tests only the first coordinate for equality."""
    values = () if stage.updates else walk_values(*stage.pure.values)
    conditions = [e.args[0] for e in values if isinstance(e, Op) and e.op == "select"]
    return any(isinstance(c, Op) and c.op == "eq" and names(c) == {stage.dims[0]} for c in conditions)


def _keeps_apart(stage: Stage, update: Definition, chosen: set[str]) -> bool:
    first = [e.indices[0] for e in update.loads if e.buffer in chosen]
    return any(isinstance(i, Var) and i.name == stage.dims[0] for i in first)
