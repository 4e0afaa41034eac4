"""Per-direction reuse (halide-autoscheduler §4.1): how much of what is read at one iteration is read again at the next.

    overlaps(facts, ("blur_y",), "blur_y")  ->  {"y": 2 rows of blur_x, "x": 0}

Both iterations are strips, one thick along the loop and as long as the tile along all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from . import footprint
from .facts import Facts


def overlaps(
    facts: Facts, members: Collection[str], output: str, tile: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Per loop of the output, the values of members and of what they read that two adjacent strips share."""
    loops = {loop: min(n, (tile or {}).get(loop, n)) for loop, n in facts.every_loop(output).items()}
    # All strips at once: of thickness 1 and 2 along each loop in turn.
    strips = {loop: np.tile([n, n], len(loops)) for loop, n in loops.items()}
    for k, loop in enumerate(loops):
        strips[loop][2 * k : 2 * k + 2] = 1, 2
    needed = footprint.boxes(facts, members, output, strips)
    shared: Any = np.zeros(len(loops))
    for name in needed:
        if name != output:
            points = np.broadcast_to(footprint.points(needed[name]), 2 * len(loops))
            shared += np.maximum(0, 2 * points[::2] - points[1::2])
    return dict(zip(loops, map(float, shared), strict=True))
