"""Transposes of a matrix (kernels `tp` and `tpm` of Sioutas' thesis on schedule optimization, chapter 4).

    tp    out[y, x] = img[x, y]                  tpm    out[y, x] = img[x, y] & mask[y, x]

The idea of the schedule: memory is read and written in long runs, and only a tile in the L1 cache sees short ones. Each
tile of `img` is turned, a few rows by one cache line at a time in registers, into a buffer; the buffer's rows then
become parts of rows of `out`. A task walks along some rows of `img`.
"""

from __future__ import annotations

import functools

import pantile as pt

from .app import App
from .data import integers


def build(masked: bool = False) -> pt.Pipeline:
    """img[x, y] -> out[y, x], through a mask or not."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint32", ndim=2)
    turned, out = pt.Func("turned"), pt.Func("out")
    turned[y, x] = img[x, y]
    out[y, x] = turned[y, x] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else turned[y, x]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]), name="tpm" if masked else "tp")


def expert(vector_bits: int, masked: bool = False) -> pt.Schedule:
    """Tiles of 256 by 64 numbers: 1 KB of every row that is read, 256 bytes of every row that is written.

    Runs of the mask are as short as those of the result, too short for a processor to see them coming.
    """
    line, square = 512 // 32, vector_bits // 32
    out = (
        pt.on("out")
        .tile("y", "x", "tile", "band", "yi", "xi", 256, 64)
        .reorder("band", "tile", "yi", "xi")
        .vectorize("xi", line)
        .parallel("band")
        .nontemporal()
    )
    return pt.Schedule(
        out.prefetch("mask", "yi", 8) if masked else out,
        pt.on("turned")
        .compute_at("out", "tile")
        .tile("y", "x", "y", "x", "column", "row", line, square)
        .reorder("x", "y", "column", "row")
        .unroll("column")
        .vectorize("row"),
    )


APPS = (
    App(
        "tp",
        "transpose of a matrix, uint32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (4096, 4096)}},
        integers,
    ),
    App(
        "tpm",
        "transpose of a matrix under a mask, uint32",
        functools.partial(build, masked=True),
        functools.partial(expert, masked=True),
        {"small": {"img": (200, 300), "mask": (300, 200)}, "paper": {"img": (4096, 4096), "mask": (4096, 4096)}},
        integers,
    ),
)
