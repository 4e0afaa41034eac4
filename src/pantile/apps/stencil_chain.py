"""A chain of 32 stencils of 5x5 on 16-bit pixels (Halide's apps/stencil_chain): weights (i + 3)(j + 3), sums wrap.

Only the input has repeated edges; every stage reads two pixels more on each side than the next one.

A stage adds up weighted sums along x; four rows of it, computed together, share those of eight rows. The idea of the
schedule: every stage as a whole. Arithmetic takes longer than a trip through the shared cache, so that the margins
which tiles would compute again cost more than fusing stages would save.
"""

from __future__ import annotations

from typing import Any

import pantile as pt
from pantile.target import Target

from .app import App, Layout, Photo, words
from .threads import inlined, pixels

STAGES = 32


def build(stages: int = STAGES) -> pt.Pipeline:
    """img[y, x] -> the last stage, of the same shape."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint16", ndim=2)
    source = pt.Func("source")
    source[y, x] = pt.edge(img)[y, x]

    def stencil(before: pt.Func) -> pt.Func:
        def along(dy: int) -> Any:
            return sum((dx + 3) * before[y + dy, x + dx] for dx in range(-2, 3))

        after = pt.Func("stencil")
        after[y, x] = sum((dy + 3) * along(dy) for dy in range(-2, 3))
        return after

    return pt.Pipeline(pt.iterate(source, stencil, times=stages), shape=img.shape, name="stencil_chain")


def expert(target: Target, cores: int, stages: int = STAGES) -> pt.Schedule:
    """Four rows by two vectors at a time; one loop over columns each, not two, for the sake of compile time."""

    def whole(name: str) -> pt.StageSchedule:
        return (
            pt.on(name)
            .compute_root()
            .split("y", "y", "row", 4)
            .vectorize("x", 2 * target.lanes(16))
            .reorder("y", "x", "row", "x_v")
            .unroll("row")
            .parallel("y", 16)
            .partition("x", "never")
        )

    padded = pt.on("source").compute_root().parallel("y", 64).vectorize("x", target.lanes(16))
    return pt.Schedule(padded, *(whole(f"stencil_{k}") for k in range(1, stages + 1)))


WORDS = Layout("each", "uint16", white=65535)


def on_gpu(stages: int = STAGES) -> pt.Schedule:
    """A kernel for each stage, whose threads go down eight rows of two columns."""
    return pt.Schedule(*inlined("source"), *(pixels(f"stencil_{k}", (4, 32), (8, 2)) for k in range(1, stages + 1)))


APPS = (
    App(
        "stencil_chain",
        "32 stencils of 5x5, uint16",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (2560, 1536)}},
        words,
        photo=Photo({"img": WORDS}, gives=WORDS),
        on_gpu=on_gpu,
    ),
)
