"""The number of rows of a buffer that one value reads: graph + inlined stages -> stage -> dim -> the maximum over
buffers.

Rows of different planes are distinct; the channels of a pixel are in one row.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from ..expr.nodes import Const
from ..expr.visit import key, names
from ..graph.nodes import Definition, Graph, Stage


def rows_read(graph: Graph, inlined: Collection[str]) -> dict[str, dict[str, int]]:
    """Stage -> dim -> an upper bound on the distinct places of a buffer that are read along it."""
    rows: dict[str, dict[str, int]] = {}
    for s in graph.stages:
        counts_of: dict[str, dict[str, int]] = {dim: {} for dim in s.dims}
        for d in s.definitions:
            for (dim, buffer), count in _places(graph, s, d, rows, inlined).items():
                counts_of[dim][buffer] = counts_of[dim].get(buffer, 0) + count
        rows[s.name] = {dim: max(counts.values(), default=1) for dim, counts in counts_of.items()}
    return rows


def _places(
    graph: Graph, s: Stage, d: Definition, rows: dict[str, dict[str, int]], inlined: Collection[str]
) -> dict[tuple[str, str], int]:
    """Dim and buffer -> the number of places that a definition reads."""
    seen: set[tuple[str, str, object]] = set()
    count: dict[tuple[str, str], int] = {}
    for e in d.loads:
        producer = graph.producer.get(e.buffer)
        if producer is s:
            continue
        plane = tuple(key(i) for i in e.indices[:-1] if isinstance(i, Const))
        for axis, i in enumerate(e.indices):
            for dim in names(i) & set(s.dims):
                place = (dim, e.buffer, (key(i), *plane))
                if place not in seen:
                    seen.add(place)
                    through = producer is not None and producer.name in inlined
                    behind = rows[producer.name][producer.dims[axis]] if producer is not None and through else 1
                    count[dim, e.buffer] = count.get((dim, e.buffer), 0) + behind * _terms(d, names(i))
    return count


def _terms(d: Definition, used: Collection[str]) -> int:
    """The number of places over which reduction loops of constant extent move an index that uses these variables."""
    return math.prod(int(r.extent.value) for r in d.domain if r.name in used and isinstance(r.extent, Const))
