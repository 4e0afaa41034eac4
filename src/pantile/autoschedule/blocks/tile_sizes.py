"""Which dims of a group's output are tiled, and the tile sizes to try (sioutas-thesis §6.4, lines 4488-4541).

y 1536, x 2560, c 3    ->    y and x are tiled, by 8, 16, 32 and 8, 16, 32, 64; in the last pass by 8, 10, 12, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ...target.gpu import MOST_THREADS
from ..common.facts import PipelineFacts

FEW = 64  # iterations: shorter loops are not tiled
MANY = 1024
MOST_DIMS = 3  # that a grid of blocks has

Sizes = Mapping[str, np.ndarray[Any, Any]]  # sizes by dim, one per tile to try


def tiled_dims(facts: PipelineFacts, output: str) -> tuple[str, ...]:
    """Return the dims that are not short, or the longest one if all are."""
    extents = dict(zip(facts.graph.stage[output].dims, facts.extents(output), strict=True))
    able = facts.tileable(output)
    long = tuple(d for d in able if extents[d] >= FEW)[-MOST_DIMS:]
    return long or tuple(sorted(able, key=lambda d: -extents[d])[:1])


def bounds(extent: int, count: int) -> tuple[int, int]:
    """Return T_min and T_max along a dim, if `count` dims are tiled."""
    low = 8 if extent >= FEW else 2
    high = extent // (128 if count == 1 else 32) if extent >= MANY else extent // 2
    return min(low, extent), min(max(low, high), extent)


def tile_sizes(facts: PipelineFacts, output: str, *, is_last: bool) -> Sizes:
    """All combinations of tile sizes for which a block has enough threads. Sizes are powers of two times T_min; in the
    last pass, every second number."""
    dims = tiled_dims(facts, output)
    extents = dict(zip(facts.graph.stage[output].dims, facts.extents(output), strict=True))
    limits = {d: bounds(extents[d], len(dims)) for d in dims}
    each = []
    for dim, (low, high) in limits.items():
        most = MOST_THREADS // prod(limits[d][0] for d in dims if d != dim)
        high = max(low, min(high, most))
        each.append(range(low, high + 1, 2) if is_last else [low << k for k in range((high // low).bit_length())])
    grid = np.meshgrid(*(np.array(sizes) for sizes in each), indexing="ij")
    flat = {d: sizes.ravel() for d, sizes in zip(dims, grid, strict=True)}
    fits = np.prod([*flat.values()], axis=0) <= MOST_THREADS
    return {d: sizes[fits] for d, sizes in flat.items()}
