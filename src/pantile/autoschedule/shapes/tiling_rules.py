"""The parts of the algorithms that depend on the machine: which live-outs are tiled and how, what may be fused, how
tiles run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from ...dataclass import dataclass
from ..common.marking import Part, Style
from ..strategy import Problem
from .fused_space import FusedSpace
from .spaces import Space
from .tile_time import FusionLimits

FEWEST_POINTS = 16  # along a dim that is worth tiling
TILED_DIMS = 2  # as in Table I


class Parameters(Protocol):
    """The parameters of the strategy that the rules use."""

    @property
    def tile_sizes(self) -> tuple[int, ...] | None: ...
    @property
    def candidates(self) -> tuple[int, ...]: ...
    @property
    def most_recomputed(self) -> float: ...
    @property
    def most_recomputed_of_one(self) -> float: ...
    @property
    def most_stored(self) -> float | None: ...
    @property
    def parallel_loops(self) -> int | None: ...
    @property
    def threads(self) -> tuple[int, ...] | None: ...


@dataclass(frozen=True)
class TilingRules(ABC):
    """The rules of one kind of machine, for a problem."""

    parameters: Parameters
    problem: Problem
    most_stages: Mapping[str, int] = field(default_factory=dict)  # of the groups of some live-outs

    @property
    def limits(self) -> FusionLimits:
        p = self.parameters
        stored = self.most_stored if p.most_stored is None else p.most_stored
        return FusionLimits(p.most_recomputed, p.most_recomputed_of_one, stored)

    @property
    @abstractmethod
    def most_stored(self) -> float:
        """The bytes that a tile may store, unless a parameter gives them."""

    @abstractmethod
    def dims(self, output: str) -> tuple[str, ...]:
        """The parallel dims to tile, if the stage can be tiled."""

    @abstractmethod
    def parallel_loops(self, output: str) -> int:
        """m of Algorithm 1."""

    def why_untiled(self, liveout: Space) -> str:
        """Why a live-out cannot be tiled; nothing if it can (the last paragraphs of §III-C)."""
        if not self.problem.facts.tileable(liveout.output):
            return "none of its loops is parallel"
        return "" if self.dims(liveout.output) else "its parallel loops are short"

    def why_left_out(self, space: Space) -> str:
        """Why a space cannot be computed in the tiles of another one; nothing if it can."""
        return ""

    @abstractmethod
    def tile(self, liveout: Space, able: Sequence[Space]) -> dict[str, int]:
        """The tile sizes (line 3 of Algorithm 1), if the spaces in `able` may come to be fused."""

    @abstractmethod
    def style(self, fused: FusedSpace) -> Style:
        """The style in which tiles are marked."""

    def private(self, fused: FusedSpace, part: Part) -> Part:
        """Return the directives with some stages in private memory of threads, on machines that have it."""
        return part

    def long_dims(self, output: str, fewest: int) -> tuple[str, ...]:
        """The parallel dims of at least this number of points."""
        return tuple(d for d in self.problem.facts.tileable(output) if self.extents(output)[d] >= fewest)

    def extents(self, output: str) -> dict[str, int]:
        return dict(zip(self.problem.graph.stage[output].dims, self.problem.facts.extents(output), strict=True))
