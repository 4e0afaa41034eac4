"""Per-direction reuse (halide-autoscheduler §4.1): how much of what is read at one iteration is read again at the next.

    overlaps(facts, ("blur_y",), "blur_y")  ->  {"y": 2 rows of blur_x, "x": 0}

Both iterations are strips, one thick along the loop and as long as the tile along all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from . import footprint
from .facts import Facts


def overlaps(
    facts: Facts, members: Collection[str], output: str, tile: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Per loop of the output, the values of members and of what they read that two adjacent strips share."""
    return {loop: _overlap(facts, members, output, loop, tile or {}) for loop in facts.every_loop(output)}


def _overlap(facts: Facts, members: Collection[str], output: str, loop: str, tile: Mapping[str, int]) -> float:
    one, two = (footprint.boxes(facts, members, output, {**tile, loop: thickness}) for thickness in (1, 2))
    shared = [2 * footprint.points(one[n]) - footprint.points(two[n]) for n in one if n != output]
    return float(sum(max(0, int(s)) for s in shared))
