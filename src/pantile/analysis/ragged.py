"""Ragged reduction loops, whose bounds depend on data and differ from point to point: the rows of a sparse matrix.

    own = blocks.where((blocks.e >= start[i]) & (blocks.e < start[i + 1]))
    out[i] = pt.sum(k[own.e] * now[column[own.e]], over=own)

For one i the loop runs from start[i] to start[i + 1] (`lower/trim`). For a vector of them it would have to run over all
blocks that there are, with most lanes doing nothing.
"""

from __future__ import annotations

from ..expr.nodes import Expr, Op, Var
from ..expr.visit import conjuncts, loaded, names
from ..graph.nodes import Definition

_BELOW, _ABOVE = {"lt", "le"}, {"gt", "ge"}


def ragged(definition: Definition) -> dict[str, frozenset[str]]:
    """Loop whose bounds both depend on data -> the coordinates at which these data are read."""
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
