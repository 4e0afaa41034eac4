"""A way of computing a stage that several schedules share."""

from __future__ import annotations

import pantile as pt


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
