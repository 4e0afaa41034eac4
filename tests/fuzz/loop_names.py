"""Names for loops: of every kind that Python takes for an identifier, and some that nobody may take."""

from __future__ import annotations

import keyword

from pantile.graph.nodes import Graph

from .draws import Drawer

_ODD = ["_", "__", "__class__", "φ", "größe", "行", "ﬁ", "n" * 300, "ptr", "entry", "i64", "lo"]
_REFUSED = ["a.lo", "x.y", "a b", 'q"', "n\n", "", "1x", "x\0", "%a", "@main", "a'b", "a\\22", "\ud800", "x;y"]


def loop_name(d: Drawer, graph: Graph, plain: str) -> str:
    """`plain`, or now and then another: a keyword, something else's name, other alphabets, no identifier at all."""
    if not d.chance(15):
        return plain
    things = [*graph.stage, *graph.input, *(p.name for p in graph.params), *(v for s in graph.stages for v in s.dims)]
    return d.pick([d.pick(_ODD), d.pick(keyword.kwlist), d.pick(things), f"{plain}_{d.pick(_ODD)}", d.pick(_REFUSED)])
