"""What moves whole arrays (kernels `copy` and `mask` of Sioutas' thesis on schedule optimization, chapter 4).

    copy    out[y, x] = img[y, x]                mask    out[y, x] = img[y, x] & mask[y, x]

Nothing is used twice, so the idea of the schedule is to keep out of memory's way: long runs of rows per task, whole
cache lines, and stores that do not displace what the caches hold.

On two cores of a Neoverse-N1, mask moves bytes at 0.83 of the speed of a copy, and at 0.86 to 0.9 in C by hand: it
reads twice what it writes, and these cores read more slowly than they write. Reading both inputs takes 0.85 of its time
even with nothing written.
"""

from __future__ import annotations

import functools

import pantile as pt
from pantile.target import Target

from .app import App, integers


def build(masked: bool = False) -> pt.Pipeline:
    """img[y, x] -> out[y, x], through a mask or not."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint32", ndim=2)
    out = pt.Func("out")
    out[y, x] = img[y, x] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else img[y, x]
    return pt.Pipeline(out, shape=img.shape, name="mask" if masked else "copy")


def expert(target: Target, cores: int, masked: bool = False) -> pt.Schedule:
    """256 rows per task, a cache line at a time, each asked for six lines ahead."""
    line = max(8 * target.line, target.vector_bits) // 32
    out = pt.on("out").parallel("y", 256).vectorize("x", line).nontemporal().prefetch("img", "x", 6)
    return pt.Schedule(out.prefetch("mask", "x", 6) if masked else out)


def on_gpu() -> pt.Schedule:
    """Sixteen bytes per thread, of four rows."""
    return pt.Schedule(
        pt.on("out")
        .tile("y", "x", "yb", "xb", "yi", "xi", 8, 512)
        .split("yi", "row", "ty", 2)
        .split("xi", "tx", "lane", 4)
        .reorder("yb", "xb", "ty", "tx", "row", "lane")
        .block("yb", "xb")
        .thread("ty", "tx")
        .unroll("row")
        .vectorize("lane")
    )


APPS = (
    App(
        "copy",
        "copy of a matrix, uint32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (4096, 4096)}},
        integers,
        on_gpu=on_gpu,
    ),
    App(
        "mask",
        "bitwise and of two matrices, uint32",
        functools.partial(build, masked=True),
        functools.partial(expert, masked=True),
        {"small": {"img": (200, 300), "mask": (200, 300)}, "paper": {"img": (4096, 4096), "mask": (4096, 4096)}},
        integers,
        on_gpu=on_gpu,
    ),
)
