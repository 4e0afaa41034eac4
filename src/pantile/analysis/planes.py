"""Numbered planes: each has a different formula, and the first coordinate selects it.

    part[k, y, x] = select(k == 0, img[2*y, x] - img[2*y + 1, x], select(k == 1, img[2*y + 1, x], ...))

In an unrolled loop over planes, each plane evaluates only its own formula, and common subexpressions of formulas are
computed once; in a loop that is not unrolled, all formulas would be computed for every value.
"""

from __future__ import annotations

from ..expr.nodes import Op, Var
from ..expr.visit import names, walk_values
from ..graph.nodes import Definition, Graph, Stage
from .channels import LEAST_AXES, MOST_CHANNELS, channels, extents

MOST_NUMBERED = 32  # planes that are unrolled


def numbered(graph: Graph) -> dict[str, int]:
    """Stage -> its number of planes, if these are numbered planes or reductions of such, and more than a few."""
    able = [s for s in graph.stages if s.ndim >= LEAST_AXES]
    able = [s for s in able if s.ndim > LEAST_AXES or s.name not in channels(graph)]  # their first dim is rows
    chosen = {s.name for s in able if _chooses(s)}
    if not chosen:
        return {}
    chosen |= {s.name for s in able if any(_keeps_apart(s, d, chosen) for d in s.updates)}
    counts = {s.name: extents(graph, -s.ndim).get(s.name, 0) for s in able if s.name in chosen}
    return {name: count for name, count in counts.items() if MOST_CHANNELS < count <= MOST_NUMBERED}


def _chooses(stage: Stage) -> bool:
    """Whether some select compares the first coordinate, and nothing else, for equality."""
    values = () if stage.updates else walk_values(*stage.pure.values)
    conditions = [e.args[0] for e in values if isinstance(e, Op) and e.op == "select"]
    return any(isinstance(c, Op) and c.op == "eq" and names(c) == {stage.dims[0]} for c in conditions)


def _keeps_apart(stage: Stage, update: Definition, chosen: set[str]) -> bool:
    first = [e.indices[0] for e in update.loads if e.buffer in chosen]
    return any(isinstance(i, Var) and i.name == stage.dims[0] for i in first)
