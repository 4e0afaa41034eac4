"""What moves whole arrays (kernels `copy` and `mask` of Sioutas' thesis on schedule optimization, chapter 4).

    copy    out[y, x] = img[y, x]                mask    out[y, x] = img[y, x] & mask[y, x]

Nothing is used twice, so the idea of the schedule is to keep out of memory's way: long runs of rows per task, whole
cache lines, and stores that do not displace what the caches hold.
"""

from __future__ import annotations

import functools

import pantile as pt

from .app import App
from .data import integers


def build(masked: bool = False) -> pt.Pipeline:
    """img[y, x] -> out[y, x], through a mask or not."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint32", ndim=2)
    out = pt.Func("out")
    out[y, x] = img[y, x] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else img[y, x]
    return pt.Pipeline(out, shape=img.shape, name="mask" if masked else "copy")


def expert(vector_bits: int) -> pt.Schedule:
    """64 rows per task, a cache line at a time."""
    line = max(512, vector_bits) // 32
    return pt.Schedule(pt.on("out").parallel("y", 64).vectorize("x", line).nontemporal())


APPS = (
    App(
        "copy",
        "copy of a matrix, uint32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (4096, 4096)}},
        integers,
    ),
    App(
        "mask",
        "bitwise and of two matrices, uint32",
        functools.partial(build, masked=True),
        expert,
        {"small": {"img": (200, 300), "mask": (200, 300)}, "paper": {"img": (4096, 4096), "mask": (4096, 4096)}},
        integers,
    ),
)
