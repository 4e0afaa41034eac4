"""The ranges that loops cover together. Taken one by one, the loops of a split would seem to cover more than their
dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..expr.nodes import Expr


@dataclass(frozen=True)
class Range:
    """The first and the last value (inclusive) of a loop that is to be built."""

    low: Expr
    high: Expr


@dataclass(frozen=True)
class CoveredRange:
    """The exact range that some loops cover together: the loops of one dim cover its range, a fused loop the ranges of
    its two dims.

    Dims are identified by name, since the same loops may be built several times, and one version's constants are not
    those of another.
    """

    range: Range
    loops: frozenset[str]


class Coverage:
    """The ranges of the coordinates of all loops built so far, by variable or let."""

    def __init__(self) -> None:
        self._whole: dict[str, CoveredRange] = {}
        self._early: dict[str, int] = {}  # loop -> most iterations by which a version starts early

    def add(self, covered: Mapping[str, CoveredRange]) -> None:
        self._whole.update(covered)

    def start_early(self, loop: str, iterations: int) -> None:
        """Note that the loop begins before its dim."""
        self._early[loop] = max(iterations, self._early.get(loop, 0))

    def get(self, name: str) -> CoveredRange | None:
        """The covered range. It is also None if another loop of the same dim starts early, since it is not known by how
        much."""
        covered = self._whole.get(name)
        if covered is None or covered.loops.isdisjoint(self._early):
            return covered
        if any(loop != name for loop in covered.loops.intersection(self._early)):
            return None
        return replace(covered, range=Range(covered.range.low - self._early[name], covered.range.high))
