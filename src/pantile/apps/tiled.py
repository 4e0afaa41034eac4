"""Products of matrices on GPUs: a block computes a square of the result in registers of its threads.

    for each slice of the inner index:            both factors' parts of it are copied into shared memory,
        for each k of the slice:                  then each thread multiplies 8 of one by 4 + 4 of the other
            sums[8, 4 + 4] += left[8] * right[4 + 4]
"""

from __future__ import annotations

import pantile as pt

from .packed import Factor

THREADS = 16  # along each side of the square
ROWS, COLUMNS = 8, 4  # of a thread, which has two groups of such columns
SLICE = 16


def product(name: str, result: str, left: Factor = ("a", "i", "k"), right: Factor = ("b", "k", "j")) -> pt.Schedule:
    """Of an output that is sums of left[i, k] * right[k, j] and nothing else; `name`: what the sums are called."""
    out = pt.on(result).copy_out(name).tile("i", "j", "ib", "jb", "i_in", "j_in", THREADS * ROWS, 2 * THREADS * COLUMNS)
    sums = _of_threads(pt.on(name).compute_at(result, "jb").store_in("register"))
    return pt.Schedule(
        _of_threads(out, "ib", "jb", of="_in").block("ib", "jb"),
        _of_threads(sums.update().split("r.k", "ko", "ki", SLICE), "ko", inside=("ki",)),
        pt.on(str(left[0])).copy_in(name, f"{name}_left", *left[1:]),
        _copied(name, "left", "k", "i").reorder_storage("k", "i").unroll("part"),
        pt.on(str(right[0])).copy_in(name, f"{name}_right", *right[1:]),
        _copied(name, "right", "j", "k").reorder("k", "parts", "part").vectorize("part"),
    )


def _of_threads(
    stage: pt.StageSchedule, *around: str, inside: tuple[str, ...] = (), of: str = ""
) -> pt.StageSchedule:
    """Rows and columns of a square shared by threads: eight rows each, and four columns of each half."""
    return (
        stage.split("i" + of, "ti", "row", ROWS)
        .split("j" + of, "half", "quarter", THREADS * COLUMNS)
        .split("quarter", "tj", "column", COLUMNS)
        .reorder(*around, "ti", "tj", *inside, "row", "half", "column")
        .thread("ti", "tj")
        .unroll("row")
        .unroll("half")
        .unroll("column")
    )


def _copied(name: str, factor: str, along: str, across: str) -> pt.StageSchedule:
    """A slice of a factor in shared memory, four elements of it at a time."""
    stage = pt.on(f"{name}_{factor}").compute_at(name, "ko").store_in("shared")
    return stage.split(along, "parts", "part", 4, tail="guard").reorder("parts", across, "part").thread("parts", across)
