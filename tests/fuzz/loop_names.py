"""Names for loops: every kind of Python identifier, and some names that are not allowed."""

from __future__ import annotations

import keyword

from pantile.graph.nodes import Graph

from .draws import Drawer

_ODD = ["_", "__", "__class__", "φ", "größe", "行", "ﬁ", "n" * 300, "ptr", "entry", "i64", "lo"]
_REFUSED = ["a.lo", "x.y", "a b", 'q"', "n\n", "", "1x", "x\0", "%a", "@main", "a'b", "a\\22", "\ud800", "x;y"]


def loop_name(d: Drawer, graph: Graph, plain: str) -> str:
    """`plain`, or sometimes another name: a keyword, the name of something else, another alphabet, no identifier at
    all."""
    if not d.chance(15):
        return plain
    things = [*graph.stage, *graph.input, *(p.name for p in graph.params), *(v for s in graph.stages for v in s.dims)]
    return d.pick([d.pick(_ODD), d.pick(keyword.kwlist), d.pick(things), f"{plain}_{d.pick(_ODD)}", d.pick(_REFUSED)])
