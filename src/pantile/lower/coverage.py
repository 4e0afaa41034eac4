"""The range that loops cover together; one by one, those of a split would seem to cover more than its dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..expr.nodes import Expr


@dataclass(frozen=True)
class Range:
    """First and last value of a loop-to-be (inclusive)."""

    low: Expr
    high: Expr


@dataclass(frozen=True)
class CoveredRange:
    """What some loops cover together, exactly: those of one dim its range, a fused loop the ranges of its two dims.

    Dims are identified by name: the same loops may be built several times, and one version's constants are not
    another's.
    """

    range: Range
    loops: frozenset[str]


class Coverage:
    """The ranges of the coordinates of all loops built so far, by variable or let."""

    def __init__(self) -> None:
        self._whole: dict[str, CoveredRange] = {}
        self._early: dict[str, int] = {}  # loop -> iterations by which it starts early, in some version

    def add(self, covered: Mapping[str, CoveredRange]) -> None:
        self._whole.update(covered)

    def start_early(self, loop: str, iterations: int) -> None:
        """Note that the loop begins before its dim does."""
        self._early[loop] = max(iterations, self._early.get(loop, 0))

    def get(self, name: str) -> CoveredRange | None:
        """The covered range; None also where another loop of its dim starts early, since it is not known how early."""
        covered = self._whole.get(name)
        if covered is None or covered.loops.isdisjoint(self._early):
            return covered
        if any(loop != name for loop in covered.loops.intersection(self._early)):
            return None
        return replace(covered, range=Range(covered.range.low - self._early[name], covered.range.high))
