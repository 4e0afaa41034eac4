"""Overlapped tiles of warps: polymage-gpu §4, and the tiles and blocks of its search (§7.1).

    tiles of 8 x 4, blocks of 16 x 8 threads    ->    warps of 16 x 2, which have tiles of 128 x 8

A tile is what one thread computes: along each dim its points are as far apart as its warp is wide, so that consecutive
threads have consecutive points. Sizes are in the order x, y, z, the innermost dim first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, product
from math import ceil, prod
from typing import Any

import numpy as np

from ...dataclass import cached_property, dataclass
from ...target.gpu import MOST_THREADS, WARP_SIZE

Numbers = Any
Sizes = Sequence[Numbers]  # along x, y, z

MOST_DIMS = 3
LARGEST = 32  # tile, along one dim (§7.1)
TINY = 1e-9  # what fractions are rounded by


def warp_sizes(block: Sizes) -> tuple[Numbers, ...]:
    """W_x, W_y, W_z: the threads of a warp along each dim of its block."""
    sizes, left = [], np.asarray(WARP_SIZE)
    for threads in block:
        sizes.append(np.minimum(threads, left))
        left = left // sizes[-1]
    return tuple(sizes)


def warp_tile(tile: Sizes, warp: Sizes) -> tuple[Numbers, ...]:
    """The points of a warp overlapped tile along each dim, without its overlap."""
    return tuple(t * w for t, w in zip(tile, warp, strict=True))


@dataclass(frozen=True)
class Blocks:
    """Blocks of threads and the tiles of their threads, many at once. Without `per_warp` all warps of a block have one
    overlapped tile together."""

    tile: Sizes
    block: Sizes
    per_warp: bool = True

    @cached_property
    def warp(self) -> tuple[Numbers, ...]:
        return warp_sizes(self.block)

    @cached_property
    def threads(self) -> Numbers:
        return prod(self.block)

    @cached_property
    def points(self) -> Numbers:
        """The points that one thread computes, of a tile without its overlap."""
        return prod(self.tile)

    def of_single_warps(self, overlapping: Sequence[bool]) -> Blocks:
        """Those whose warps need nothing of each other, for stages that overlap along some dims: where warps are one
        thread wide, there are no tiles of single warps, so that a block is one thread wide as well."""
        alone = np.ones_like(self.points, dtype=bool)
        for threads, width in compress(zip(self.block, self.warp, strict=True), overlapping):
            alone &= (width > 1) | (threads == 1)
        return self[alone]

    @cached_property
    def tiles(self) -> tuple[Numbers, ...]:
        """The overlapped tiles of a block along each dim. Along dims in which warps are one thread wide there are none
        of single warps (the last paragraph of §4)."""
        dims = zip(self.block, self.warp, strict=True)
        return tuple(np.where(self.per_warp & (w > 1), -(-b // w), 1) for b, w in dims)

    @cached_property
    def extents(self) -> tuple[Numbers, ...]:
        """The points of each of them along each dim, without its overlap."""
        return tuple(t * b // n for t, b, n in zip(self.tile, self.block, self.tiles, strict=True))

    @cached_property
    def warp_kinds(self) -> list[tuple[int, ...]]:
        """The different warp sizes."""
        first, _ = self._kinds
        return list(zip(*(n[first].tolist() for n in self.warp), strict=True))

    @cached_property
    def warp_kind(self) -> Numbers:
        """Which of them each block has."""
        return self._kinds[1]

    @cached_property
    def _kinds(self) -> tuple[Numbers, Numbers]:
        """One block of each kind, and the kind of each: a number with the sizes as its digits."""
        number = sum(n * (2 * WARP_SIZE) ** k for k, n in enumerate(self.warp))
        _, first, which = np.unique(number, return_index=True, return_inverse=True)
        return first, which

    def in_picture(self, extents: Sequence[int]) -> Numbers:
        """How many blocks the output has, those of the rest along each dim included."""
        return prod(-(-n // (t * b)) for n, t, b in zip(extents, self.tile, self.block, strict=True))

    @cached_property
    def count(self) -> Numbers:
        """The overlapped tiles of a block."""
        return prod(self.tiles)

    def computed(self, density: Sequence[float | None], overlap: Sequence[float]) -> Numbers:
        """The points of a stage that a block computes, the size of its scratchpad: its points per point of the output,
        None along dims that it lacks, and O_x, O_y, O_z, in points of the output."""
        points: Numbers = self.count
        for n, dense, beyond in zip(self.extents, density, overlap, strict=True):
            if dense is not None:
                points = points * (np.ceil(n * dense) + ceil(beyond * dense))
        return points

    def __getitem__(self, which: Numbers) -> Blocks:
        """Some of them."""
        return Blocks(tuple(n[which] for n in self.tile), tuple(n[which] for n in self.block), self.per_warp)

    @cached_property
    def split_dim(self) -> Numbers:
        """The first dim along which a thread has more than one point; how many dims there are where none is."""
        several = np.stack([points > 1 for points in self.tile])
        return np.where(several.any(axis=0), several.argmax(axis=0), len(self.tile))

    def whole_tiles(self, fraction: Numbers) -> Numbers:
        """R of Algorithm 1: the points of a thread that are in registers along the split dim, for several fractions of
        them."""
        points = np.select([self.split_dim == k for k in range(len(self.tile))], self.tile, 0)
        return np.floor(points[:, None] * fraction + TINY)

    def in_registers(self, density: Sequence[float | None], overlap: Sequence[float]) -> tuple[Numbers, Numbers]:
        """The points of a stage that a block has in registers for each of the points of a thread that are there, and
        the registers for them, of which lanes share whole ones. What a tile overlaps along the split dim is in shared
        memory."""
        points = registers = self.count.astype(np.float64)
        for k, (n, width, dense, beyond) in enumerate(zip(self.extents, self.warp, density, overlap, strict=True)):
            is_split = self.split_dim == k
            each = np.ones_like(n) if dense is None else np.ceil(n * dense) + ceil(beyond * dense)
            along = 0 if dense is None else width
            points = points * np.where(is_split, along, each)
            registers = registers * np.where(is_split, along, np.ceil(each / width) * width)
        is_split = self.split_dim < len(self.tile)
        return np.where(is_split, points, 0), np.where(is_split, registers, 0)


def candidates(extents: Sequence[int], *, per_warp: bool, is_last: bool) -> Blocks:
    """Tiles and blocks to try for such extents, those with few points per thread first: tile sizes from 1 to 32, powers
    of two while grouping or where three dims are tiled, and blocks of whole warps, powers of two along each dim."""
    each = [_tile_sizes(n, every=is_last and len(extents) < MOST_DIMS) for n in extents]
    tiles = np.array(sorted(product(*each), key=lambda tile: (prod(tile), tile[::-1])), dtype=np.int64)
    blocks = np.array(list(_block_sizes(extents)), dtype=np.int64).reshape(-1, len(extents))
    tile, block = np.repeat(tiles, len(blocks), axis=0), np.tile(blocks, (len(tiles), 1))
    smaller = np.all(tile * block < np.array(extents), axis=1)
    return Blocks(tuple(tile[smaller].T), tuple(block[smaller].T), per_warp)


def _tile_sizes(extent: int, *, every: bool) -> list[int]:
    sizes = range(1, LARGEST + 1) if every else [1 << k for k in range(LARGEST.bit_length())]
    return [n for n in sizes if n <= extent]


def _block_sizes(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Long rows of threads first."""
    powers = [[1 << k for k in range(MOST_THREADS.bit_length()) if 1 << k < max(2, n)] for n in extents]
    for block in product(*(p[::-1] for p in powers)):
        if WARP_SIZE <= prod(block) <= MOST_THREADS:
            yield block
