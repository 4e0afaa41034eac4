"""Products of matrices on GPUs with tensor cores: a block computes a part of the result in registers of its warps.

    for each slice of the inner index:          both factors' parts of a later one go to shared memory meanwhile,
        for each 16 k of the slice:             each warp multiplies 64 rows of one by 64 columns of the other,
            sums[16, 8] += left[16] * right[8]  16 by 8 at a time

Rows of a slice are padded by 16 bytes, so that the eight rows that `ldmatrix` loads at once lie in different banks.

Where warpgroups multiply, a warp has 16 rows and all columns of the block, and one instruction multiplies 64 rows by
these. Slices lie as it reads them, in columns of 16 bytes, which are padded likewise for the threads that copy rows.
"""

from __future__ import annotations

from typing import NamedTuple

import pantile as pt

from .packed import Factor

LANES = (8, 4)  # of a warp, along rows and columns of what an instruction computes
ACCESS = 8  # numbers of 16 bits that are copied at once, which is also how much rows are padded by


class Tiles(NamedTuple):
    """How a product is cut: sizes are rows and columns, those of `tile` also terms."""

    block: tuple[int, int]
    warp: tuple[int, int]
    tile: tuple[int, int, int]  # of an instruction, or several
    slice: int  # terms
    ahead: int  # slices that are on their way
    in_cores: bool  # whether slices lie in core matrices


OF_WARPS = Tiles((128, 128), (64, 64), (16, 16, 16), 64, 1, in_cores=False)
# Four slots: two slices on their way, and two that are multiplied. It takes 1.8 times as long as the other on an H200.
OF_WARPGROUPS = Tiles((128, 256), (16, 256), (16, 256, 64), 64, 2, in_cores=True)


def product(
    name: str,
    result: str,
    left: Factor = ("a", "i", "k"),
    right: Factor = ("b", "k", "j"),
    tiles: Tiles = OF_WARPS,
) -> pt.Schedule:
    """Of an output that is sums of left[i, k] * right[k, j] and nothing else; `name`: what the sums are called."""
    out = pt.on(result).copy_out(name).tile("i", "j", "ib", "jb", "i_in", "j_in", *tiles.block)
    sums = pt.on(name).compute_at(result, "jb").store_in("register")
    rows, columns, terms = tiles.tile
    return pt.Schedule(
        _of_lanes(out, tiles, "ib", "jb", of="_in").block("ib", "jb"),
        _of_warps(_of_lanes(sums, tiles).update().split("r.k", "slice", "in_slice", tiles.slice, tail="peel"), tiles)
        .split("of_warp_i", "tile_i", "row", rows)
        .split("of_warp_j", "tile_j", "column", columns)
        .split("in_slice", "tile_k", "term", terms)
        .reorder("slice", "warp_j", "warp_i", "tile_k", "tile_i", "tile_j", "row", "column", "term")
        .warp("warp_j", "warp_i")
        .unroll("tile_k")
        .unroll("tile_i")
        .unroll("tile_j")
        .tensor_core("row", "column", "term"),
        pt.on(str(left[0])).copy_in(name, f"{name}_left", *left[1:]),
        _copied(f"{name}_left", name, "i", "k", tiles),
        pt.on(str(right[0])).copy_in(name, f"{name}_right", *right[1:]),
        _copied(f"{name}_right", name, "k", "j", tiles),
    )


def _of_warps(stage: pt.StageSchedule, tiles: Tiles, of: str = "") -> pt.StageSchedule:
    """Rows and columns of a block shared by warps."""
    for dim, size in zip("ij", tiles.warp, strict=True):
        stage = stage.split(dim + of, f"warp_{dim}", f"of_warp_{dim}", size)
    return stage


def _of_lanes(stage: pt.StageSchedule, tiles: Tiles, *around: str, of: str = "") -> pt.StageSchedule:
    """What a warp has, shared by its lanes as an instruction has it: two columns side by side in each."""
    lanes_i, lanes_j = LANES
    return (
        _of_warps(stage, tiles, of)
        .split("of_warp_i", "rows", "lane_i", lanes_i)
        .split("of_warp_j", "columns", "in_columns", 2 * lanes_j)
        .split("in_columns", "lane_j", "two", 2)
        .reorder(*around, "warp_j", "warp_i", "rows", "columns", "lane_i", "lane_j", "two")
        .warp("warp_j", "warp_i")
        .lane("lane_i", "lane_j")
        .unroll("rows")
        .unroll("columns")
        .vectorize("two")
    )


def _copied(factor: str, name: str, outer: str, inner: str, tiles: Tiles) -> pt.StageSchedule:
    """A slice of a factor in shared memory, copied by rows."""
    stage = pt.on(factor).compute_at(name, "slice").store_in("shared").compute_ahead(tiles.ahead)
    if tiles.in_cores:
        stage = stage.split_storage(inner, "core", "of_core", ACCESS).reorder_storage("core", outer, "of_core")
        stage = stage.pad_storage(outer, 1)
    else:
        stage = stage.pad_storage(inner, ACCESS)
    return stage.split(inner, "parts", "part", ACCESS, tail="guard").thread(outer, "parts").vectorize("part")
