"""Which box of every stage and input a pipeline needs, from the outputs' boxes backwards.

Generic in its scalars: ints for checking a call, NumPy arrays for pricing tiles, expressions for lowering.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..expr.nodes import Expr
from ..graph.nodes import Definition, Graph, Stage
from .interval import Interval, Scope, interval, refine
from .touched import Box, hull, touched


def expressions(d: Definition) -> list[Expr]:
    """Everything a definition evaluates."""
    return [*d.indices, *d.values, *([d.condition] if d.condition is not None else [])]


def definition_scope(stage: Stage, d: Definition, box: Box, scope: Scope) -> Scope:
    """Scope of one definition: its pure dims over the box, its reduction dims over their domain."""
    inner = {**scope, **dict(zip(stage.dims, box, strict=True))}
    for r in d.domain:
        low = interval(r.min, inner)
        extent = interval(r.extent, inner)
        high = None if low.high is None or extent.high is None else low.high + extent.high - 1
        inner[r.name] = Interval(low.low, high)
    return inner


def where_it_holds(d: Definition, scope: Scope) -> Scope:
    """The scope narrowed by the definition's condition."""
    return scope if d.condition is None else refine(scope, d.condition, True)


def with_own_updates(stage: Stage, box: Box, scope: Scope) -> Box:
    """The box extended by what the stage's updates write and read of the stage itself."""
    for d in stage.updates:
        inner = where_it_holds(d, definition_scope(stage, d, box, scope))
        written = tuple(interval(i, inner) for i in d.indices)
        box = _extend(box, written, stage, d)
        own = [b for name, b in touched(expressions(d), inner).items() if name in stage.buffers]
        for b in own:
            box = _extend(box, b, stage, d)
    return box


def _extend(box: Box, other: Box, stage: Stage, d: Definition) -> Box:
    """Hull, except along pure dims, where an update covers just the box asked for."""
    pure = [d.indices[k] for k in range(len(box))]
    return tuple(
        mine if getattr(index, "name", None) == dim else mine.hull(theirs)
        for mine, theirs, index, dim in zip(box, other, pure, stage.dims, strict=True)
    )


def stage_reads(stage: Stage, box: Box, scope: Scope) -> dict[str, Box]:
    """Boxes of the other buffers that computing the stage over `box` reads."""
    reads: dict[str, Box] = {}
    for d in stage.definitions:
        everywhere = definition_scope(stage, d, box, scope)
        tested = touched([] if d.condition is None else [d.condition], everywhere)
        for found in (tested, touched([*d.indices, *d.values], where_it_holds(d, everywhere))):
            for name, b in found.items():
                if name not in stage.buffers:
                    reads[name] = hull(reads[name], b) if name in reads else b
    return reads


def required(graph: Graph, outputs: Mapping[str, Box], scope: Scope) -> dict[str, Box]:
    """Boxes of all stages and inputs, by stage or input name."""
    boxes: dict[str, Box] = dict(outputs)
    for stage in reversed(graph.stages):
        if stage.name not in boxes:
            continue
        box = boxes[stage.name] = with_own_updates(stage, boxes[stage.name], scope)
        for buffer, b in stage_reads(stage, box, scope).items():
            name = graph.producer[buffer].name if buffer in graph.producer else buffer
            boxes[name] = hull(boxes[name], b) if name in boxes else b
    return boxes
