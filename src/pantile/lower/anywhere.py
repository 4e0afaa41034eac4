"""Whether a stage can be computed at any position along a dim, also where nobody needs it.

A clamped input can be read anywhere, a plain one only where the caller's array is. What slides several rows at a time
may begin with rows that nobody needs if it can be computed anywhere; then every step computes equally many.
"""

from __future__ import annotations

from ..analysis.interval import EVERYTHING, Interval
from ..analysis.regions import required
from ..analysis.touched import Box
from ..expr.build import expr
from ..expr.linear import Facts
from ..expr.nodes import const, var
from ..expr.types import INT64
from ..graph.nodes import Graph, InputInfo, Stage
from .widen import Lowered


def computable_anywhere(graph: Graph, stage: Stage, k: int, facts: Facts) -> bool:
    """Whether no input is read beyond its extents, and no stage beyond its stated domain, wherever dim `k` is."""
    place = tuple(EVERYTHING if j == k else Interval.point(var(dim)) for j, dim in enumerate(stage.dims))
    boxes = required(graph, {stage.name: place}, {})
    defined = all(graph.stage[n].domain is None for n in boxes if n in graph.stage)
    return defined and all(_inside(boxes[i.name], i, facts) for i in graph.inputs if i.name in boxes)


def _inside(box: Box, source: InputInfo, facts: Facts) -> bool:
    """Whether each side of the box is a single position, which then does not depend on the dim, or inside the input."""
    for axis, side in enumerate(box):
        if side.is_point:
            continue
        if not side.bounded:
            return False
        low, high = (Lowered({}).index(expr(end, INT64)) for end in (side.low, side.high))
        if not (facts.ge(low, const(0, INT64)) and facts.ge(var(source.extent(axis)) - 1, high)):
            return False
    return True
