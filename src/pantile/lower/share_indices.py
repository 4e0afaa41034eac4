"""Share indices: equal index expressions of a definition become one node, which passes process once. (graph -> graph)

before:  f[y, x] = g[y + 1, x] + g[y + 1, x + 1]        four indices
after:   the same, of three: a stage that reads a thousand pixels around its own reads a few rows and columns
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from ..expr.nodes import Expr, Load
from ..expr.visit import Key, key, loaded, transform
from ..graph.nodes import Definition, Graph


def share_indices(graph: Graph) -> Graph:
    """Share equal index expressions between the loads of a stage."""
    return replace(graph, stages=tuple(s.changed(_definition) for s in graph.stages))


def _definition(d: Definition) -> Definition:
    known: dict[Key, Expr] = {}
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        places = tuple([known.setdefault(key(i), i) for i in e.indices])
        return None if all(map(is_, places, e.indices)) else Load(e.dtype, e.lanes, e.buffer, places, e.mask)

    values = tuple([transform(e, change, memo, loaded) for e in d.values])
    return d if all(map(is_, values, d.values)) else replace(d, values=values)
