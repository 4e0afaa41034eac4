"""Prefetch: one request per cache line of a box that will be read later."""

from __future__ import annotations

import itertools
import math

from ...analysis.load_boxes import Box
from ...expr.linear import Facts, simplify
from ...ir.nodes import Prefetch

_MOST = 64


def prefetches(buffer: str, box: Box, element: int, line: int, facts: Facts) -> list[Prefetch]:
    """Requests for the box, its last dim taken as contiguous; none where its size is unknown or large."""
    counts = []
    for k, side in enumerate(box):
        extent = facts.upper(simplify(side.high - side.low + 1, facts))
        if extent is None:
            return []
        counts.append(extent if k < len(box) - 1 else max(1, extent * element // line))
    if math.prod(counts) > _MOST:
        return []
    steps = [1] * (len(box) - 1) + [line // element]
    places = itertools.product(*map(range, counts))
    return [
        Prefetch(buffer, tuple(simplify(s.low + i * n, facts) for s, i, n in zip(box, at, steps, strict=True)))
        for at in places
    ]
