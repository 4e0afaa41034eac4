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
from ..expr.types import INDEX
from ..expr.visit import same
from ..graph.nodes import Graph, InputInfo, Stage


def computable_anywhere(graph: Graph, stage: Stage, k: int, facts: Facts) -> bool:
    """Whether no input is read beyond its extents, and no stage beyond its stated domain, wherever dim `k` is."""
    here: Box = tuple(Interval.point(var(dim)) for dim in stage.dims)
    anywhere = tuple(EVERYTHING if j == k else side for j, side in enumerate(here))
    usual, boxes = (required(graph, {stage.name: box}, {}) for box in (here, anywhere))
    defined = all(graph.stage[n].domain is None for n in boxes if n in graph.stage)
    return defined and all(_inside(boxes[i.name], usual[i.name], i, facts) for i in graph.inputs if i.name in boxes)


def _inside(box: Box, usual: Box, source: InputInfo, facts: Facts) -> bool:
    """Whether each side of the box is the usual one, and so does not depend on the dim, or inside the input."""
    for axis, (side, other) in enumerate(zip(box, usual, strict=True)):
        if not side.bounded:
            return False
        low, high, *others = (expr(e, INDEX) for e in (side.low, side.high, other.low, other.high))
        if all(map(same, (low, high), others)):
            continue
        if not (facts.ge(low, const(0, INDEX)) and facts.ge(var(source.extent(axis)) - 1, high)):
            return False
    return True
