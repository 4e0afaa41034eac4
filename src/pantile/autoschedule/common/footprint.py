"""What a tile of a group's output needs of every stage and input: one interval analysis prices many tile sizes at once.

    boxes(facts, {"blur_x", "out"}, "out", {"y": np.array([16, 32]), "x": 64})["blur_x"]  ->  extents ([18, 34], 64)

Tiles lie on the grid of their sizes, near the middle of the output, where clamps at the edges do not narrow them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ... import progress
from ...analysis.interval import Interval
from ...analysis.regions import with_own_updates
from ...analysis.touched import Box, hull
from .facts import Facts

# One number, or one per tile size.
Numbers = Any


def boxes(
    facts: Facts, members: Collection[str], output: str, tile: Mapping[str, Numbers],
    new: Callable[[str, Box], Box] | None = None,
) -> dict[str, Box]:  # fmt: skip
    """Boxes of the members, and of the stages and inputs that they read. `tile` is by loops of the output, its dims and
    reduction loops; those it does not name are whole. `new`: what of a member's box is computed, the rest being kept
    from before; all of it, if it is left out.
    """
    progress.count("groups of them priced")
    graph = facts.graph
    dims = graph.stage[output].dims
    parts = {r: _middle(whole, tile[r]) for r, whole in facts.reductions(output).items() if r in tile}
    found: dict[str, Box] = {
        output: tuple(_middle(r, tile[d]) if d in tile else r for d, r in zip(dims, facts.boxes[output], strict=True))
    }
    for stage in reversed(graph.stages):
        if stage.name not in members or stage.name not in found:
            continue
        box = found[stage.name]
        if stage.name != output:
            box = found[stage.name] = _within(with_own_updates(stage, box, facts.scope), facts.boxes[stage.name])
        computed = box if new is None else new(stage.name, box)
        for reads in facts.prepared_reads[stage.name]:
            for buffer, b in reads.boxes(computed, facts.scope, parts if stage.name == output else {}).items():
                name = facts.source(buffer)
                needed = hull(found[name], b) if name in found else b
                found[name] = _within(needed, facts.boxes[name])
    return found


def _middle(whole: Interval, size: Numbers) -> Interval:
    """The tile of this size, counted from the low end, that holds the middle."""
    count = whole.high - whole.low + 1
    low = whole.low + (count // 2) // np.asarray(size) * size
    return Interval(low, np.minimum(low + size - 1, whole.high))


def _within(box: Box, limits: Box) -> Box:
    return tuple(a.meet(b) for a, b in zip(box, limits, strict=True))


def points(box: Box) -> Numbers:
    """How many points a box has."""
    count: Numbers = 1
    for r in box:
        count = count * np.maximum(r.high - r.low + 1, 0)
    return count


def size(facts: Facts, name: str, box: Box) -> Numbers:
    """Bytes of a box of a stage or input."""
    return points(box) * facts.bytes_per_point(name)


def tiles(facts: Facts, output: str, tile: Mapping[str, Numbers]) -> Numbers:
    """How many tiles cover the output, along its reduction loops too."""
    extents = facts.every_loop(output)
    count: Numbers = 1
    for loop, size in tile.items():
        count = count * -(-extents[loop] // np.asarray(size))
    return count
