"""Overlapped tiles of a group, shaped as in PolyMage (polymage-plus §2.1): their volume and their overlap.

A tile is bounded by hyperplanes that are the same for all stages: a stage that is h levels before the output is
computed over an extent that is larger by h times their slopes. The slopes are the longest dependences per level.

        | out    |            level 2
       /  b       \\           level 1
      /   a        \\          level 0
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...dataclass import cached_property, dataclass
from .aligned_group import AlignedGroup
from .alignment import SHORT
from .expression_inlining import ExpressionInlining

Tile = Mapping[str, int]  # dim of the output -> extent


@dataclass(frozen=True)
class OverlappedTiles:
    """The overlapped tiles of a group, some of whose stages may be inlined."""

    group: AlignedGroup
    inlining: str

    @cached_property
    def _flow(self) -> ExpressionInlining:
        return ExpressionInlining(self.group, self.inlining)

    @property
    def inlined(self) -> tuple[str, ...]:
        return tuple(self._flow.inlined)

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        """The intermediate buffers and, last, the live-out."""
        return tuple(n for n in self.group.names if n not in self._flow.inlined)

    @property
    def members(self) -> tuple[str, ...]:
        """The stages that are computed besides the output."""
        return self.buffers[:-1]

    @cached_property
    def long(self) -> list[int]:
        """The dims of the space that are tiled, the innermost last."""
        return [k for k, n in enumerate(self.group.extents) if n > SHORT]

    # ---- volume

    @cached_property
    def bytes_per_point(self) -> float:
        """The bytes of all buffers at one point of the dims that are tiled."""
        return sum(fixed for fixed, _ in self._parts.values())

    def bytes(self, tile: Tile) -> float:
        """The bytes of all buffers, without overlap."""
        points = self._points(self._sizes(tile))
        return sum(fixed * points[tiled] for fixed, tiled in self._parts.values())

    def _sizes(self, tile: Tile) -> dict[int, float]:
        return {k: float(tile[self.group.dims[k]]) for k in self.long}

    def _points(self, sizes: Mapping[int, float]) -> dict[tuple[int, ...], float]:
        """The points of a tile with these sizes along dims of the space, for each subset of dims that some buffer
        has."""
        return {tiled: prod(sizes[k] for k in tiled) for tiled in self._tilings}

    @cached_property
    def _tilings(self) -> list[tuple[int, ...]]:
        return list(dict.fromkeys(tiled for _, tiled in self._parts.values()))

    @cached_property
    def _parts(self) -> dict[str, tuple[float, tuple[int, ...]]]:
        """The bytes of each buffer at one point of the tiled dims, and which of these dims it has."""
        part, long = self.group.output_space.part, tuple(self.long)
        return {name: part[name, long] for name in self.buffers}

    # ---- overlap

    def overlap(self, tile: Tile) -> float:
        """OVERLAPSIZE: the bytes that both a tile and its neighbours compute."""
        sizes = self._sizes(tile)
        cut = {k for k, n in sizes.items() if n < self.group.extents[k]}
        points = self._points(sizes)
        wider: dict[int, dict[tuple[int, ...], float]] = {}  # by height
        total = 0.0
        for name in self.members:
            height = self._level[self.group.output] - self._level[name]
            if height not in wider:
                wider[height] = self._points(
                    {k: n + height * self.slopes[k] if k in cut else n for k, n in sizes.items()}
                )
            fixed, tiled = self._parts[name]
            total += fixed * wider[height][tiled] - fixed * points[tiled]
        return total

    def reach(self, name: str) -> list[float]:
        """How much more of a stage than of the output a tile computes along each dim, in points of the output."""
        height = self._level[self.group.output] - self._level[name]
        return [height * slope for slope in self.slopes]

    @cached_property
    def _level(self) -> dict[str, int]:
        """The length of the longest path to each stage from the sources of the group."""
        producers: dict[str, list[str]] = {name: [] for name in self.buffers}
        for p, c in self._flow.dependences:
            producers[c].append(p)
        levels: dict[str, int] = {}
        for name in self.buffers:
            levels[name] = max([levels[p] + 1 for p in producers[name]], default=0)
        return levels

    @cached_property
    def slopes(self) -> list[float]:
        """The slopes of the left and the right hyperplane together, in points of the output per level."""
        sides = [(0.0, 0.0) for _ in self.group.dims]
        for (p, c), distance in self._flow.dependences.items():
            levels = self._level[c] - self._level[p]
            for k, (low, high) in enumerate(distance):
                sides[k] = (min(sides[k][0], low / levels), max(sides[k][1], high / levels))
        return [right - left for left, right in sides]
