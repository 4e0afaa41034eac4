"""Per-direction reuse (halide-autoscheduler §4.1): how much of what is read at one iteration is read again at the next.

    overlaps(facts, ("blur_y",), "blur_y")  ->  {"y": 2 rows of blur_x, "x": 0}

Both iterations are strips, one thick along the loop and as long as the tile along all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ...analysis.regions import Box
from ...dataclass import cached_property
from .facts import PipelineFacts
from .footprint import Footprint
from .shared_intervals import SharedIntervals

Numbers = Any


def overlaps(
    facts: PipelineFacts, members: Collection[str], output: str, tile: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Per loop of the output, the values of members and of what they read that two adjacent strips share."""
    return GroupOverlaps(facts, members, output, tile).with_others(())


class GroupOverlaps:
    """The overlaps of a group, alone and with others that join it."""

    def __init__(
        self,
        facts: PipelineFacts,
        members: Collection[str],
        output: str,
        tile: Mapping[str, int] | None = None,
        shared: SharedIntervals | None = None,
    ) -> None:
        self.output = output
        self.loops = {loop: min(n, (tile or {}).get(loop, n)) for loop, n in facts.every_loop(output).items()}
        # All strips at once: of thickness 1 and 2 along each loop in turn.
        strips = {loop: np.tile([n, n], len(self.loops)) for loop, n in self.loops.items()}
        for k, loop in enumerate(self.loops):
            strips[loop][2 * k : 2 * k + 2] = 1, 2
        self.footprint = Footprint(facts, members, output, strips, shared=shared)

    def with_others(self, others: Collection[str]) -> dict[str, float]:
        """The values that strips share if others join, which only these themselves and the group read."""
        total = self._alone.copy()
        for name, box in self.footprint.joined(others).items():
            total += self._shared(box)
            if name in self._terms:
                total -= self._terms[name]
        return dict(zip(self.loops, map(float, total), strict=True))

    @cached_property
    def _alone(self) -> Numbers:
        return sum(self._terms.values(), np.zeros(len(self.loops)))

    @cached_property
    def _terms(self) -> dict[str, Numbers]:
        return {name: self._shared(box) for name, box in self.footprint.boxes.items() if name != self.output}

    def _shared(self, box: Box) -> Numbers:
        return self.footprint.shared.counted(box, self._strips_share)

    def _strips_share(self, box: Box) -> Numbers:
        count = self.footprint.shared.points(box)
        if not np.shape(count):
            count = np.full(2 * len(self.loops), count)
        return np.maximum(0, 2 * count[::2] - count[1::2])
