"""Products of matrices on GPUs with tensor cores: a block computes a square of the result in registers of its warps.

    for each slice of the inner index:          both factors' parts of a later one go to shared memory meanwhile,
        for each 16 k of the slice:             each warp multiplies 64 rows of one by 32 columns of the other,
            sums[16, 8] += left[16] * right[8]  16 by 8 at a time

Rows of a slice are padded by 16 bytes, so that the eight rows that `ldmatrix` loads at once lie in different banks.
"""

from __future__ import annotations

import pantile as pt

from .packed import Factor

BLOCK = 128  # rows and columns
WARP = (64, 32)  # rows and columns
TILE = (16, 16, 16)  # rows, columns and terms: two instructions with a left factor in common
LANES = (8, 4)  # of a warp, along rows and columns of what an instruction computes
SLICE, AHEAD = 32, 3  # indices of a slice, and slices that are on their way: four slots, which `& 3` counts
ACCESS = 8  # numbers of 16 bits that are copied at once, which is also how much rows are padded by


def product(name: str, result: str, left: Factor = ("a", "i", "k"), right: Factor = ("b", "k", "j")) -> pt.Schedule:
    """Of an output that is sums of left[i, k] * right[k, j] and nothing else; `name`: what the sums are called."""
    out = pt.on(result).copy_out(name).tile("i", "j", "ib", "jb", "i_in", "j_in", BLOCK, BLOCK)
    sums = pt.on(name).compute_at(result, "jb").store_in("register")
    rows, columns, terms = TILE
    return pt.Schedule(
        _of_lanes(out, "ib", "jb", of="_in").block("ib", "jb"),
        _of_warps(_of_lanes(sums).update().split("r.k", "slice", "in_slice", SLICE, tail="peel"))
        .split("of_warp_i", "tile_i", "row", rows)
        .split("of_warp_j", "tile_j", "column", columns)
        .split("in_slice", "tile_k", "term", terms)
        .reorder("slice", "warp_i", "warp_j", "tile_k", "tile_i", "tile_j", "row", "column", "term")
        .warp("warp_i", "warp_j")
        .unroll("tile_k")
        .unroll("tile_i")
        .unroll("tile_j")
        .tensor_core("row", "column", "term"),
        pt.on(str(left[0])).copy_in(name, f"{name}_left", *left[1:]),
        _copied(f"{name}_left", name, "i", "k"),
        pt.on(str(right[0])).copy_in(name, f"{name}_right", *right[1:]),
        _copied(f"{name}_right", name, "k", "j"),
    )


def _of_warps(stage: pt.StageSchedule, of: str = "") -> pt.StageSchedule:
    """Rows and columns of a square shared by warps."""
    for dim, size in zip("ij", WARP, strict=True):
        stage = stage.split(dim + of, f"warp_{dim}", f"of_warp_{dim}", size)
    return stage


def _of_lanes(stage: pt.StageSchedule, *around: str, of: str = "") -> pt.StageSchedule:
    """What a warp has, shared by its lanes as an instruction has it: two columns side by side in each."""
    lanes_i, lanes_j = LANES
    return (
        _of_warps(stage, of)
        .split("of_warp_i", "rows", "lane_i", lanes_i)
        .split("of_warp_j", "columns", "in_columns", 2 * lanes_j)
        .split("in_columns", "lane_j", "two", 2)
        .reorder(*around, "warp_i", "warp_j", "rows", "columns", "lane_i", "lane_j", "two")
        .warp("warp_i", "warp_j")
        .lane("lane_i", "lane_j")
        .unroll("rows")
        .unroll("columns")
        .vectorize("two")
    )


def _copied(factor: str, name: str, outer: str, inner: str) -> pt.StageSchedule:
    """A slice of a factor in shared memory, copied by rows."""
    return (
        pt.on(factor)
        .compute_at(name, "slice")
        .store_in("shared")
        .compute_ahead(AHEAD)
        .pad_storage(inner, ACCESS)
        .split(inner, "parts", "part", ACCESS, tail="guard")
        .thread(outer, "parts")
        .vectorize("part")
    )
