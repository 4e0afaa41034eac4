"""Overlapped tiles of warps: polymage-gpu §4, and the tiles and blocks of its search (§7.1).

    tiles of 8 x 4, blocks of 16 x 8 threads    ->    warps of 16 x 2, which have tiles of 128 x 8

A tile is what one thread computes. Along each dim, its points are as far apart as its warp is wide, so that consecutive
threads have consecutive points. Sizes are in the order x, y, z, the innermost dim first. Many blocks have overlapped
tiles of the same shape; `group_tiles` evaluates each shape once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from itertools import compress, product
from math import prod
from typing import Any

import numpy as np

from ...dataclass import cached_property, dataclass
from ...machine.multiprocessor import quotient
from ...target.gpu import MOST_THREADS, WARP_SIZE

Numbers = Any
Sizes = Sequence[Numbers]  # along x, y, z

MOST_DIMS = 3
LARGEST = 32  # tile, along one dim (§7.1)
TINY = 1e-9  # added before fractions are rounded down


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


@dataclass(frozen=True, eq=False)
class TileShapes:
    """Many shapes of overlapped tiles at once: the points along each dim without overlap, the lanes of a warp along
    each dim, and the first dim along which a thread has more than one point (the number of dims if there is none)."""

    extents: Sizes
    warp: Sizes
    split_dim: Numbers

    @cached_property
    def warp_kinds(self) -> list[tuple[int, ...]]:
        """The different warp sizes."""
        first, _ = self._kinds
        return list(zip(*(n[first].tolist() for n in self.warp), strict=True))

    @cached_property
    def warp_kind(self) -> Numbers:
        """The index of each shape's warp in `warp_kinds`."""
        return self._kinds[1]

    @cached_property
    def _kinds(self) -> tuple[Numbers, Numbers]:
        return _kinds(self.warp)

    @property
    def boxes(self) -> Sizes:
        """The different points along each dim: what warps are like does not count."""
        return self._boxes[0]

    @property
    def box(self) -> Numbers:
        """Which of them each shape has."""
        return self._boxes[1]

    @cached_property
    def _boxes(self) -> tuple[Sizes, Numbers]:
        first, box = _kinds(self.extents)
        return tuple(n[first] for n in self.extents), box

    def __getitem__(self, which: Numbers) -> TileShapes:
        """Return the selected shapes."""
        extents, warp = (tuple(n[which] for n in sizes) for sizes in (self.extents, self.warp))
        return TileShapes(extents, warp, self.split_dim[which])


def _of_each(compute: Callable[[Blocks], Numbers]) -> Any:
    """Mark a property of each block. Blocks that were chosen from others look it up there, so that it is computed
    once."""

    @wraps(compute)
    def found(blocks: Blocks) -> Numbers:
        if blocks.chosen is None:
            return compute(blocks)
        source, which = blocks.chosen
        return getattr(source, compute.__name__)[which]

    return cached_property(found)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Many blocks of threads at once, with the tiles of their threads. Without `per_warp`, all warps of a block share
    one overlapped tile."""

    tile: Sizes
    block: Sizes
    per_warp: bool = True
    chosen: tuple[Blocks, Numbers] | None = None  # the blocks that these were chosen from, and the indices there
    known: tuple[TileShapes, Numbers] | None = None  # `shapes` and `shape`, if they have been found

    @cached_property
    def warp(self) -> tuple[Numbers, ...]:
        return warp_sizes(self.block)

    @_of_each
    def threads(self) -> Numbers:
        return prod(self.block)

    @_of_each
    def points(self) -> Numbers:
        """The points that one thread computes, without overlap."""
        return prod(self.tile)

    def of_single_warps(self, overlapping: Sequence[bool]) -> Blocks:
        """Return the blocks whose warps need nothing from each other, for stages that overlap along the `overlapping`
        dims. Along a dim in which a warp is one thread wide, warps have no tiles of their own, so the block must be one
        thread wide, too."""
        alone = np.ones_like(self.points, dtype=bool)
        for threads, width in compress(zip(self.block, self.warp, strict=True), overlapping):
            alone &= (width > 1) | (threads == 1)
        return self[alone]

    @cached_property
    def tiles(self) -> tuple[Numbers, ...]:
        """The number of overlapped tiles of a block along each dim. Along a dim in which a warp is one thread wide,
        warps have no tiles of their own (the last paragraph of §4)."""
        dims = zip(self.block, self.warp, strict=True)
        return tuple(np.where(self.per_warp & (w > 1), -(-b // w), 1) for b, w in dims)

    @cached_property
    def extents(self) -> tuple[Numbers, ...]:
        """The points of each overlapped tile along each dim, without its overlap."""
        return tuple(t * b // n for t, b, n in zip(self.tile, self.block, self.tiles, strict=True))

    @property
    def shapes(self) -> TileShapes:
        """The distinct shapes of the overlapped tiles."""
        return self._shapes[0]

    @property
    def shape(self) -> Numbers:
        """The index of each block's shape in `shapes`."""
        return self._shapes[1]

    @cached_property
    def _shapes(self) -> tuple[TileShapes, Numbers]:
        if self.known is not None:
            return self.known
        if self.chosen is not None:
            source, which = self.chosen
            return source.shapes, source.shape[which]
        first, shape = _kinds((*self.extents, *self.warp, self.split_dim))
        extents, warp = (tuple(n[first] for n in sizes) for sizes in (self.extents, self.warp))
        return TileShapes(extents, warp, self.split_dim[first]), shape

    @cached_property
    def _sizes(self) -> list[Numbers]:
        """The points of a block along each dim, without overlap."""
        return [t * b for t, b in zip(self.tile, self.block, strict=True)]

    def are_smaller(self, extents: Sequence[int]) -> Numbers:
        """Whether each block is smaller than a picture along all dims."""
        return np.logical_and.reduce([size < n for n, size in zip(extents, self._sizes, strict=True)])

    def in_picture(self, extents: Sequence[int]) -> Numbers:
        """The number of blocks that cover the output, partial ones included."""
        return prod(quotient(n - 1, size) + 1 for n, size in zip(extents, self._sizes, strict=True))

    @_of_each
    def count(self) -> Numbers:
        """The number of overlapped tiles of a block."""
        return prod(self.tiles)

    def __getitem__(self, which: Numbers) -> Blocks:
        """Return the selected blocks."""
        tile, block = (tuple(n[which] for n in sizes) for sizes in (self.tile, self.block))
        return Blocks(tile, block, self.per_warp, (self, which))

    def with_own_shapes(self) -> Blocks:
        """Return these blocks, with only those `shapes` that some block has."""
        used, shape = np.unique(self.shape, return_inverse=True)
        shapes = self.shapes if len(used) == len(self.shapes.split_dim) else self.shapes[used]
        return Blocks(self.tile, self.block, self.per_warp, known=(shapes, shape))

    @_of_each
    def split_dim(self) -> Numbers:
        """The first dim along which a thread has more than one point; the number of dims if there is none."""
        several = np.stack([points > 1 for points in self.tile])
        return np.where(several.any(axis=0), several.argmax(axis=0), len(self.tile))

    def whole_tiles(self, fraction: Numbers) -> Numbers:
        """R of Algorithm 1: the number of points of a thread along the split dim that are in registers, if this
        fraction of them is."""
        return np.floor(self._split_points * fraction + TINY)

    @_of_each
    def _split_points(self) -> Numbers:
        """The points of a thread along the split dim."""
        return np.select([self.split_dim == k for k in range(len(self.tile))], self.tile, 0)


def _kinds(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """Group equal rows of a table, given by its columns of non-negative numbers. Return the index of one row of each
    group, and the group of each row."""
    kind = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, kind = np.unique(kind * (column.max(initial=0) + 1) + column, return_inverse=True)
    return np.unique(kind, return_index=True)[1], kind


def candidates(extents: Sequence[int], *, per_warp: bool, is_last: bool) -> Blocks:
    """Return the tiles and blocks to try: those that are smaller than the extents. The last pass tries every tile size,
    unless three dims are tiled."""
    every = _all_candidates(len(extents), per_warp, every_size=is_last and len(extents) < MOST_DIMS)
    return every[every.are_smaller(extents)]


@cache
def _all_candidates(dims: int, per_warp: bool, every_size: bool) -> Blocks:
    """All tiles and blocks, those with few points per thread first. Tile sizes are 1 to 32, all of them or the powers
    of two. Blocks consist of whole warps and have powers of two along each dim."""
    sizes = range(1, LARGEST + 1) if every_size else [1 << k for k in range(LARGEST.bit_length())]
    tiles = np.array(sorted(product(sizes, repeat=dims), key=lambda tile: (prod(tile), tile[::-1])), dtype=np.int64)
    blocks = np.array(list(_block_sizes(dims)), dtype=np.int64)
    tile, block = np.repeat(tiles, len(blocks), axis=0), np.tile(blocks, (len(tiles), 1))
    return Blocks(tuple(np.ascontiguousarray(tile.T)), tuple(np.ascontiguousarray(block.T)), per_warp)


def _block_sizes(dims: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of blocks, long rows of threads first."""
    powers = [1 << k for k in reversed(range(MOST_THREADS.bit_length()))]
    for block in product(powers, repeat=dims):
        if WARP_SIZE <= prod(block) <= MOST_THREADS:
            yield block
