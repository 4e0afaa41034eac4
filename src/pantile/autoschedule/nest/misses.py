"""Cache misses of tiled loops where the prefetchers fetch all lines of a row but the first (sioutas-thesis §4.3).

for ii, kk, jj over tiles: for i, k, j inside a tile: C[i, j] += A[i, k] * B[k, j]

one iteration of i touches T_j + T_k + T_k * T_j elements (4.1), and misses 1 + 1 + T_k times (4.3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from ..common.facts import Extents
from .references import Numbers, Reference, product

Tile = Mapping[str, Numbers]


def working_set(references: Iterable[Reference], tile: Tile) -> Numbers:
    """Bytes that a tile touches: equation 4.6, and 4.1 for a tile of one iteration of the outermost intra-tile loop."""
    return sum(r.points(tile) * r.bytes for r in references)


def without(tile: Tile, loop: str) -> Tile:
    """A tile of one iteration of a loop."""
    return {n: t for n, t in tile.items() if n != loop}


def tile_counts(extents: Extents, tile: Tile) -> dict[str, Numbers]:
    """The number of tiles along each loop, B / T."""
    return {n: np.ceil(extent / tile[n]) for n, extent in extents.items()}


def l1_misses(references: Iterable[Reference], extents: Extents, tile: Tile, outermost: str) -> Numbers:
    """Equation 4.5. A row is one miss (4.3); what the outermost intra-tile loop does not move is reused (4.4)."""
    each = without(tile, outermost)
    misses = sum(r.rows(each) * (tile[outermost] if outermost in r.loops else 1) for r in references)
    return misses * product(tile_counts(extents, tile).values())


def l2_misses(references: Iterable[Reference], extents: Extents, tile: Tile, innermost: str) -> Numbers:
    """Equation 4.10. What the innermost inter-tile loop does not move is reused by all of its iterations (4.9)."""
    counts = tile_counts(extents, tile)
    misses = sum(r.rows(tile) * (counts[innermost] if innermost in r.loops else 1) for r in references)
    return misses * product(count for n, count in counts.items() if n != innermost)


def order_cost(extents: Extents, tile: Mapping[str, int], inter: Sequence[str], intra: Sequence[str]) -> float:
    """Equation 4.12: iterations between the inter-tile loop and the intra-tile loop of each dimension."""
    counts = tile_counts(extents, tile)
    total = 0.0
    for loop in extents:
        between = [counts[n] for n in inter[inter.index(loop) + 1 :]] + [tile[n] for n in intra[: intra.index(loop)]]
        total += prod(float(n) for n in between)
    return total
