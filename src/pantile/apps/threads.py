"""Ways of computing stages that several schedules share: blocks of pixels on GPUs, of which each thread computes some,
and pairs of rows on CPUs."""

from __future__ import annotations

import pantile as pt


def pixels(
    name: str,
    threads: tuple[int, int],
    each: tuple[int, int] = (1, 1),
    planes: str | None = None,
    channels: str | None = None,
    vectors: bool = True,
) -> pt.StageSchedule:
    """Blocks of so many rows and columns of threads, each of which computes some rows and columns, and of these all
    channels; planes are blocks of their own. Its loops: yo and xo, ty and tx, row and column."""
    outer = () if planes is None else (planes,)
    inner = () if channels is None else (channels,)
    stage = (
        pt.on(name)
        .compute_root()
        .split("y", "yo", "yi", threads[0] * each[0])
        .split("yi", "ty", "row", each[0])
        .split("x", "xo", "xi", threads[1] * each[1])
        .split("xi", "tx", "column", each[1])
        .reorder(*outer, "yo", "xo", "ty", "tx", "row", *inner, "column")
        .block(*outer, "yo", "xo")
        .thread("ty", "tx")
        .unroll("row")
    )
    for loop in inner:
        stage = stage.unroll(loop)
    return stage.vectorize("column") if vectors else stage.unroll("column")


def lanes(name: str, tile: tuple[int, int], warps: int) -> pt.StageSchedule:
    """Blocks of some warps side by side, each of which goes down a tile of so many rows, as wide as it has lanes with
    something to store. Its loops: yo and xo, warp, row and lane."""
    return (
        pt.on(name)
        .compute_root()
        .split("y", "yo", "row", tile[0])
        .split("x", "xo", "xi", warps * tile[1])
        .split("xi", "warp", "lane", tile[1])
        .reorder("yo", "xo", "warp", "row", "lane")
        .block("yo", "xo")
        .warp("warp")
        .lane("lane")
        .unroll("row")
    )


def in_lanes(name: str, consumer: str) -> pt.StageSchedule:
    """The rows of a stage that a warp needs next, in the registers of its lanes, with those that it will need again."""
    return pt.on(name).compute_at(consumer, "row").store_at(consumer, "warp").unroll("y").lane("x")


def in_thread(name: str, consumer: str) -> pt.StageSchedule:
    """What a thread needs of a stage, in its registers."""
    return pt.on(name).compute_at(consumer, "tx").unroll("y").unroll("x")


def in_block(name: str, consumer: str) -> pt.StageSchedule:
    """What a block needs of a stage, in memory that its threads share."""
    return pt.on(name).compute_at(consumer, "xo").store_in("shared").thread("y", "x")


def columns_in_block(
    name: str, consumer: str, rows: int, at: str = "xo", before: tuple[str, ...] = ()
) -> pt.StageSchedule:
    """A stage in shared memory, computed by threads that each go down several rows of a column."""
    stage = pt.on(name).compute_at(consumer, at).store_in("shared").split("y", "rows", "row", rows, tail="guard")
    return stage.reorder(*before, "rows", "x", "row").thread("rows", "x").unroll("row")


def inlined(*names: str) -> list[pt.StageSchedule]:
    """Stages that take the place of their reads."""
    return [pt.on(name).compute_inline() for name in names]


def two_rows(name: str, consumer: str, loop: str, width: int) -> pt.StageSchedule:
    """Stage `name` inside a loop of `consumer`, two rows by `width` columns at a time.

    What both rows read is loaded once, and their operations fill the gaps that one row's would leave.
    """
    return (
        pt.on(name)
        .compute_at(consumer, loop)
        .split("y", "y", "row", 2)
        .vectorize("x", width)
        .reorder("y", "x", "row", "x_v")
        .unroll("row")
    )
