"""Products of matrices on GPUs: a block computes a square of the result in registers of its threads.

    for each slice of the inner index:            both factors' parts of a later one go to shared memory meanwhile,
        for each k of the slice:                  each thread multiplies 8 of one by 16 of the other
            sums[8, 16] += left[8] * right[16]

The 32 lanes of a warp have 4 by 8 such groups, so that what they load of each factor lies side by side. A thread's rows
and columns come in fours, each of which is one load; the fours of its neighbours are in between.

Products that are parts of others' formulas, in panels (`blocked`), are computed by threads on their own: each loads
what it multiplies from the cache of its multiprocessor, where its neighbours find it, too.
"""

from __future__ import annotations

import pantile as pt

from .packed import Factor

WARPS, LANES = (2, 2), (4, 8)  # of a block, and of a warp, along rows and columns
SUMS = (8, 16)  # sums of a thread
FOUR = 4
SLICE, AHEAD = 16, 2  # indices of a slice, and slices that are on their way
# Columns of the left factor, which is turned, lie in different banks of shared memory.
PADDING = 4


def product(name: str, result: str, left: Factor = ("a", "i", "k"), right: Factor = ("b", "k", "j")) -> pt.Schedule:
    """Of an output that is sums of left[i, k] * right[k, j] and nothing else; `name`: what the sums are called."""
    sides = [w * n * sums for w, n, sums in zip(WARPS, LANES, SUMS, strict=True)]
    out = pt.on(result).copy_out(name).tile("i", "j", "ib", "jb", "i_in", "j_in", *sides)
    sums = _of_threads(pt.on(name).compute_at(result, "jb").store_in("register"))
    return pt.Schedule(
        _of_threads(out, "ib", "jb", of="_in").block("ib", "jb"),
        _of_threads(sums.update().split("r.k", "ko", "ki", SLICE, tail="peel"), "ko", inside=("ki",)),
        pt.on(str(left[0])).copy_in(name, f"{name}_left", *left[1:]),
        _copied(name, "left").reorder_storage("k", "i").pad_storage("i", PADDING).reorder("i", "k").thread("i", "k"),
        pt.on(str(right[0])).copy_in(name, f"{name}_right", *right[1:]),
        _copied(name, "right")
        .split("j", "parts", "part", FOUR, tail="guard")
        .reorder("k", "parts", "part")
        .thread("k", "parts")
        .vectorize("part"),
    )


def _of_threads(stage: pt.StageSchedule, *around: str, inside: tuple[str, ...] = (), of: str = "") -> pt.StageSchedule:
    """Rows and columns of a square shared by warps, lanes, and what is one thread's."""
    for dim, lanes, sums in zip("ij", LANES, SUMS, strict=True):
        stage = (
            stage.split(dim + of, f"warp_{dim}", f"of_warp_{dim}", lanes * sums)
            .split(f"of_warp_{dim}", f"four_{dim}", f"of_four_{dim}", lanes * FOUR)
            .split(f"of_four_{dim}", f"lane_{dim}", f"one_{dim}", FOUR)
        )
    stage = stage.reorder(
        *around, "warp_i", "warp_j", "lane_i", "lane_j", *inside, "four_i", "one_i", "four_j", "one_j"
    ).thread("warp_i", "warp_j", "lane_i", "lane_j")
    return stage.unroll("four_i").unroll("one_i").unroll("four_j").unroll("one_j")


def _copied(name: str, factor: str) -> pt.StageSchedule:
    """A slice of a factor in shared memory."""
    return pt.on(f"{name}_{factor}").compute_at(name, "ko").store_in("shared").compute_ahead(AHEAD)


def in_panels(name: str, *outer: str, lanes: int = 8, copied: bool = False) -> list[pt.StageSchedule]:
    """A product of `blocked`, 8 rows by so many lanes of a panel per thread. `copied`: its left factor is computed
    first, not where it is read. `outer`: dims of many products by the same right factor."""
    rows = pt.on(f"{name}_rows")
    return [
        pt.on(name)
        .compute_root()
        .copy_out(f"{name}_sums")
        .split("i", "group", "row", SUMS[0])
        .split("group", "ib", "ti", 8)
        .split("p", "pb", "tp", 4)
        .split("lane", "tl", "one", lanes)
        .reorder(*outer, "ib", "pb", "ti", "tp", "tl", "row", "one")
        .block(*outer, "ib", "pb")
        .thread("ti", "tp", "tl")
        .unroll("row")
        .vectorize("one"),
        pt.on(f"{name}_sums")
        .compute_at(name, "tl")
        .store_in("register")
        .vectorize("lane")
        .unroll("i")
        .update()
        .split("r.k", "k", "step", FOUR)
        .reorder(*outer, "p", "k", "step", "i", "lane")
        .vectorize("lane")
        .unroll("step")
        .unroll("i"),
        pt.on(f"{name}_panels")
        .compute_root()
        .split("k", "kb", "tk", 16)
        .reorder("p", "kb", "tk", "lane")
        .block("p", "kb")
        .thread("tk", "lane"),
        points(f"{name}_rows", *outer, across="k") if copied else rows.compute_inline(),
    ]


def points(stage: str, *outer: str, down: str = "i", across: str = "j") -> pt.StageSchedule:
    """A thread for each number of a matrix."""
    return (
        pt.on(stage)
        .compute_root()
        .tile(down, across, "down_b", "across_b", "down_t", "across_t", 8, 32)
        .reorder(*outer, "down_b", "across_b", "down_t", "across_t")
        .block(*outer, "down_b", "across_b")
        .thread("down_t", "across_t")
    )
