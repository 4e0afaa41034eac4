"""Whether an expression may be computed outside of its required region, however far along a dim.

    pt.edge(img)[y - 3, x]    along y: yes, what is read of img is clamped
    img[y - 3, x]             no

The stages that it reads are computed farther, too; reads of an input, or of a stage with a stated domain, must not
depend on how far.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.interval import EVERYTHING, interval
from ..expr.nodes import Expr
from ..expr.visit import names, walk_loads
from ..graph.nodes import Graph

Moving = frozenset[str]  # unbounded dims


def reaches_beyond(graph: Graph, value: Expr, dim: str) -> bool:
    """Whether a value is computable anywhere along a dim."""
    pending: list[tuple[Iterable[Expr], Moving]] = [([value], frozenset({dim}))]
    seen: set[tuple[str, Moving]] = set()
    while pending:
        roots, moving = pending.pop()
        for load in walk_loads(*roots):
            far = [k for k, i in enumerate(load.indices) if _is_far(i, moving)]
            producer = graph.producer.get(load.buffer)
            if not far:
                continue
            if producer is None or producer.domain is not None:
                return False
            query = producer.name, frozenset(producer.dims[k] for k in far)
            if query not in seen:
                seen.add(query)
                pending += [(d.expressions, query[1]) for d in producer.definitions]
    return True


def _is_far(index: Expr, moving: Moving) -> bool:
    return not names(index).isdisjoint(moving) and not interval(index, dict.fromkeys(moving, EVERYTHING)).bounded
