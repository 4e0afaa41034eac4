"""The cost of a group, and its tile sizes: polymage-plus §4 (Algorithm 2) and §5.2 (Algorithm 4).

`dp_machines` describes how the paper's text and its tables differ about the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import inf, prod, sqrt

from ...dataclass import cached_property, dataclass, memoized
from .aligned_group import AlignedGroup
from .alignment import StageGraph
from .dag import Group
from .dp_machines import SCALED, XEON, Terms, TileLimits, Weights
from .expression_inlining import FULL
from .overlapped_tiles import OverlappedTiles, Tile


@dataclass(frozen=True)
class CostedGroup:
    """A group with its cost: COST(H), tileSizes, and the stages that Algorithm 3 inlines."""

    cost: float
    output: str = ""
    members: tuple[str, ...] = ()  # the other stages that are computed
    inlined: tuple[str, ...] = ()
    levels: tuple[Tile, ...] = ()  # outermost first
    terms: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class TileModel:
    """COST(H) for all groups of the stages of a pipeline."""

    stages: StageGraph
    limits: TileLimits
    weights: Weights = XEON.weights
    inlining: str = FULL
    multi_level: bool = True
    terms: str = SCALED

    def cost(self, group: Group) -> float:
        return self.costed(group).cost

    def is_hopeless(self, group: Group) -> bool:
        return self.stages.is_hopeless(group)

    @memoized
    def costed(self, group: Group) -> CostedGroup:
        """MULTILEVELCOST(H) if several levels are wanted, else COST(H)."""
        names = self.stages.members(group)
        if len(names) == 1 and not self.stages.can_be_fused(names[0]):
            live = self._live(group)
            terms = {"live data / computation": live / self.limits.l1}
            why = "not a function with known limits: scheduled on its own"
            return CostedGroup(self.weights.w1 * live / self.limits.l1, names[0], terms=terms, remark=why)
        # One stage at most can be read from outside: others would have to be computed both in tiles and as a whole.
        if (
            self.stages.live_outs(group) != names[-1:]
            or len(self.stages.separate(group)) > 1
            or self.is_hopeless(group)
        ):
            return CostedGroup(inf)  # lines 2-3
        aligned = self.stages.aligned(group)
        return CostedGroup(inf) if aligned is None else self._tiled(group, aligned)

    def _tiled(self, group: Group, aligned: AlignedGroup) -> CostedGroup:
        shape = OverlappedTiles(aligned, self.inlining)
        fused = _InlinedGroup(aligned, shape, Terms(self.terms, shape, self._live(group)), self.weights, self.limits)
        chosen = fused.for_cache(self.limits.l1)
        inner: Tile = {}
        if chosen.overlap > chosen.volume:  # line 5; Algorithm 4, line 6
            chosen = fused.for_cache(self.limits.l2)
            inner = fused.slab(chosen.tile) if self.multi_level and shape.members else {}
        levels = tuple(tile for tile in (chosen.tile, inner) if tile)
        return CostedGroup(chosen.cost, aligned.output, shape.members, shape.inlined, levels, chosen.terms)

    def _live(self, group: Group) -> int:
        """The bytes of live-ins and live-outs."""
        return sum(self.stages.size[n] for n in (*self.stages.live_ins(group), *self.stages.live_outs(group)))


@dataclass(frozen=True)
class _TileSizes:
    """The result of COSTFORCACHESIZE."""

    tile: Tile
    overlap: float  # bytes that both a tile and its neighbours compute
    volume: float  # TILEVOLUME
    terms: Mapping[str, float]

    @property
    def cost(self) -> float:
        return sum(self.terms.values())


@dataclass(frozen=True)
class _InlinedGroup:
    """A group, some of whose stages are inlined."""

    group: AlignedGroup
    shape: OverlappedTiles
    terms: Terms
    weights: Weights
    limits: TileLimits

    def for_cache(self, cache_size: int) -> _TileSizes:
        """COSTFORCACHESIZE: lines 10-23."""
        size, cores, w = self.group.stages.size, self.limits.cores, self.weights
        total = sum(size[name] for name in self.shape.buffers)  # lines 11-12
        footprint = min(total / cores, cache_size)  # line 13
        tile = self.tile_sizes(footprint)  # line 14
        overlap = self.shape.overlap(tile)  # line 19
        terms = {  # line 22
            "w1 live data / computation": w.w1 * self.terms.live_ratio(tile, footprint),
            "w2 cleanup tiles": -w.w2 * self.terms.cleanup_tiles(total / footprint, cores),
            "w3 overlap": w.w3 * overlap / footprint,
            "w4 dim sizes": w.w4 * self._dim_difference(),
        }
        return _TileSizes(tile, overlap, self.terms.tile_volume(tile), terms)

    # ---- tile sizes

    def tile_sizes(self, footprint: float) -> Tile:
        """COMPUTETILESIZES: lines 25-38. Dims that are not in the result are whole."""
        if not self.shape.long:
            return {}
        volume = footprint / self.shape.bytes_per_point  # line 26, for buffers of different types and resolutions
        *outer, innermost = self.shape.long
        sizes = {innermost: min(self.group.extents[innermost], self.limits.innermost)}  # line 30
        if outer:
            reuse = [self._reuse[k] / max(self._reuse[j] for j in outer) for k in outer]  # line 32
            tau = (volume / sizes[innermost] / prod(reuse)) ** (1 / len(outer))  # lines 31-35
            for k, ratio in zip(outer, reuse, strict=True):  # lines 36-37
                sizes[k] = min(self.group.extents[k], self._whole(k, tau * ratio))
        return {self.group.dims[k]: sizes[k] for k in self.shape.long}

    def slab(self, outer: Tile) -> Tile:
        """L1 tiles within L2 tiles: one more loop t, along the outermost dim (§5.2)."""
        if len(self.shape.long) < 2:
            return {}
        first, *others = (self.group.dims[k] for k in self.shape.long)
        rest = prod(outer[d] for d in others)
        rows = self._whole(self.shape.long[0], self.limits.l1 / self.shape.bytes_per_point / rest)
        return {first: rows} if rows < outer[first] else {}

    def _whole(self, k: int, size: float) -> int:
        """Round a size in points of the scaled space down to whole points of the coarsest stage, unless it is smaller
        than one."""
        step = max(round(1 / self.group.output_space.density[name].get(k, 1.0)) for name in self.shape.buffers)
        return int(size / step) * step or max(1, int(size))

    @cached_property
    def _reuse(self) -> list[int]:
        """getDimensionalReuse: the sums of the scores of all stages of the group, plus one so that none is zero."""
        scores = [1] * len(self.group.dims)
        for name in self.group.names:
            for dim, axis in self.group.output_space.axes[name].items():
                scores[axis] += self.group.stages.reuse[name][dim]
        return scores

    def _dim_difference(self) -> float:
        """dimSizeStandardDeviation: that of the extents of corresponding dims, summed over all dims."""
        along = [self.group.output_space.along[name] for name in self.group.names]
        return sum(_deviation([sizes[k] for sizes in along if k in sizes]) for k in self.shape.long)


def _deviation(values: list[int]) -> float:
    mean = sum(values) / len(values)
    return sqrt(sum((v - mean) ** 2 for v in values) / len(values))
