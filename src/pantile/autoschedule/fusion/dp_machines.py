"""The machine parameters of dp: caches, cores, and numbers that the paper chooses for each machine, by trial.

The weights are those of equation 2 (polymage-plus §7.3, Table 2), INNERMOSTTILESIZE that of §7.1. Machines that were
not tried use the Xeon's numbers.

Neoverse-N1, tried one by one (CPU ms of one thread at the sizes of the suite):
- w1: its L1 has twice the Xeon's size, which halves the first term, so w1 is doubled (that of the Opteron, with half
  the size, is less than half). Unsharp mask 22.0 -> 18.8, camera pipeline 32.6 -> 31.8, interpolation 60.9 -> 61.5.
- Rows of 512 instead of 256: camera pipeline 36.8 -> 31.8, unsharp mask 20.2 -> 18.8, interpolation 65.2 -> 61.5.

Three quantities of Algorithm 2 (polymage-plus §4.1) do not fit its weights and tables as they are printed:

| | printed | scaled |
| --- | --- | --- |
| lines 15-17, live data over computation | of a tile, over a tile | of the whole group, over a tile |
| line 22, cleanup tiles | their number | their number as a fraction of the cores |
| line 5, TILEVOLUME | of all buffers | of one buffer, as tileVol in line 26 |

Scaled is the default, for two reasons:
- Per tile, the first term is about 1 to 3 whatever is grouped, and overlap costs hundreds: nothing that overlaps would
  be grouped, neither the unsharp mask of Table 6 nor the Harris corners of Table 7. Table 3 gives the first term 47
  times the influence of the second. The authors' published code (polymage-ppopp-2018-ae, dpfusion.cpp) divides data of
  the whole group by the bytes of a tile, and the cleanup tiles by the cores.
- Table 7 has Harris corners in tiles of 42 x 256 for L2. They have six buffers, and a tile for L1 overlaps by more than
  one of them but by less than all.
"""

from __future__ import annotations

from math import ceil

from ...dataclass import dataclass
from ...machine.description import Cpu
from ..common import footprint
from .overlapped_tiles import OverlappedTiles, Tile

TERMS = SCALED, PRINTED = "scaled", "printed"


@dataclass(frozen=True)
class Weights:
    """The weights of the four terms of equation 2 (Table 2, Intel Xeon)."""

    w1: float = 1.0
    w2: float = 100.0
    w3: float = 46_875.0
    w4: float = 1.5


@dataclass(frozen=True)
class TileLimits:
    """The machine parameters of Algorithm 2."""

    l1: int
    l2: int
    cores: int
    innermost: int = 256


@dataclass(frozen=True)
class _TrialParameters:
    """The parameters that were chosen by trial."""

    weights: Weights = Weights()
    innermost: int = 256


XEON = _TrialParameters()
_TRIED = {
    "opteron-6386-se": _TrialParameters(Weights(w1=0.3, w4=2.0), innermost=128),
    "neoverse-n1": _TrialParameters(Weights(w1=2.0), innermost=512),
}


def weights_for(machine: Cpu) -> Weights:
    return _TRIED.get(machine.name, XEON).weights


def limits_for(machine: Cpu) -> TileLimits:
    chosen = _TRIED.get(machine.name, XEON)
    return TileLimits(machine.l1.size, machine.l2.per_core, machine.cores, chosen.innermost)


@dataclass(frozen=True)
class Terms:
    """The sizes of one group, in bytes; `live` is that of its live-ins and live-outs."""

    how: str
    shape: OverlappedTiles
    live: int

    def live_ratio(self, tile: Tile, tile_footprint: float) -> float:
        """The ratio of live-in and live-out data to computation."""
        if self.how == SCALED:
            return self.live / tile_footprint
        return self._live_of(tile) / self.shape.bytes(tile)  # lines 15-17

    def _live_of(self, tile: Tile) -> float:
        """The bytes that a tile reads from other stages and inputs, and those that it writes."""
        group, facts = self.shape.group, self.shape.group.stages.facts
        boxes = footprint.boxes(facts, group.names, group.output, tile)
        live = [name for name in boxes if name not in group.names or name == group.output]
        return float(sum(footprint.size(facts, name, boxes[name]) for name in live))

    def cleanup_tiles(self, tiles: float, cores: int) -> float:
        """(n_tiles + NCORES - 1) % NCORES."""
        tiles_left = (ceil(tiles) + cores - 1) % cores
        return tiles_left / cores if self.how == SCALED else float(tiles_left)

    def tile_volume(self, tile: Tile) -> float:
        """TILEVOLUME: the volume that overlap is compared with."""
        whole = self.shape.bytes(tile)
        return whole / len(self.shape.buffers) if self.how == SCALED else whole
