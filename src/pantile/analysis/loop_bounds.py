"""Finds conditions that become bounds of loops: inequalities between sums of coordinates, such as k > i.

    out[i, j] = pt.sum(a[k, i] * b[k, j], over=k where k > i)     for i: for k in i + 1..n

Along each loop, such a condition holds from some iteration on, or up to one, so the other iterations need not run.

The bounds of ragged reduction loops depend on data and differ from point to point, like those of the rows of a sparse
matrix.

    own = blocks.where((blocks.e >= start[i]) & (blocks.e < start[i + 1]))
    out[i] = pt.sum(k[own.e] * now[column[own.e]], over=own)

For one i, the loop runs from start[i] to start[i + 1] (`lower/trim`). For a vector of them, it would have to run over
all blocks, with most lanes inactive.
"""

from __future__ import annotations

from ..expr.linear import linear
from ..expr.nodes import Expr, Op, Var
from ..expr.visit import conjuncts, loaded, names
from ..graph.nodes import Definition

_ORDERED = ("lt", "le", "gt", "ge")
_BELOW, _ABOVE = {"lt", "le"}, {"gt", "ge"}


def bounding(condition: Expr | None) -> list[Op]:
    """The parts of a condition that bound loops."""
    parts = [] if condition is None else conjuncts(condition)
    return [c for c in parts if isinstance(c, Op) and c.op in _ORDERED and _is_linear(c)]


def only_bounds(condition: Expr) -> bool:
    """Whether all parts of a condition bound loops."""
    return len(bounding(condition)) == len(conjuncts(condition))


def _is_linear(e: Op) -> bool:
    parts = [linear(a) for a in e.args if a.dtype.is_int]
    return len(parts) == len(e.args) and all(isinstance(atom, Var) for p in parts for atom, _ in p.terms.values())


def ragged(definition: Definition) -> dict[str, frozenset[str]]:
    """Map the loops whose bounds both depend on data to the coordinates at which these data are read."""
    ends: dict[tuple[str, bool], frozenset[str]] = {}
    for c in conjuncts(definition.condition) if definition.condition is not None else ():
        if isinstance(c, Op) and c.op in _BELOW | _ABOVE:
            for (loop, end), is_first in ((c.args, True), (c.args[::-1], False)):
                if isinstance(loop, Var) and _is_data(end, loop.name):
                    ends[loop.name, (c.op in _BELOW) == is_first] = names(end)
    loops = [r.name for r in definition.domain]
    return {n: ends[n, True] | ends[n, False] for n in loops if (n, True) in ends and (n, False) in ends}


def _is_data(end: Expr, loop: str) -> bool:
    return bool(loaded(end)) and loop not in names(end)
