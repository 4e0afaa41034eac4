"""Transposes of a matrix (kernels `tp` and `tpm` of Sioutas' thesis on schedule optimization, chapter 4).

    tp    out[y, x] = img[x, y]                  tpm    out[y, x] = img[x, y] & mask[y, x]

The idea of the schedule: a tile of `img` is copied into the L1 cache, line by line, and turned in registers on its way
out, again into whole lines, which need not be read before they are written. Turning it on the way in would store parts
of lines, and rows of `img` that lie a power of two apart would displace each other in the cache. Tiles go down the rows
of `img`, so that the rows of `out` they fill stay within reach of the address translation.

On two cores of a Neoverse-N1, matrices of 4096 by 4096 are moved at 0.5 (tp) and 0.43 (tpm) of the speed of a copy, and
by the best C tried at 0.53 (tp). Copying tiles line by line in this order, not turning them, gets to 0.6, and to 0.75
in the best order found: runs of 512 bytes, each in another page, are too short for the full speed, and longer ones need
more rows of `out` than the address translation holds.
"""

from __future__ import annotations

import functools

import pantile as pt
from pantile.target import Target

from .app import App, integers


def build(masked: bool = False) -> pt.Pipeline:
    """img[x, y] -> out[y, x], through a mask or not."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint32", ndim=2)
    rows, out = pt.Func("rows"), pt.Func("out")
    rows[x, y] = img[x, y]
    out[y, x] = rows[x, y] & pt.Input("mask", "uint32", ndim=2)[y, x] if masked else rows[x, y]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]), name="tpm" if masked else "tp")


def expert(target: Target, cores: int, masked: bool = False) -> pt.Schedule:
    """Tiles of 64 rows of `img`; fewer columns where rows of a mask, too, take part in the address translation.

    Rows are too short for a processor to see the next one coming, so both inputs are asked for ahead of time: 2 KB of
    `img`, and what the next tile reads of the mask.
    """
    line, square = target.line // 4, target.lanes(32)
    columns, ahead = (64, 8) if masked else (128, 4)
    out = (
        pt.on("out")
        .tile("y", "x", "strip", "tile", "yi", "xi", columns, 64)
        .unroll("yi", square)
        .vectorize("xi", line)
        .reorder("yi", "xi", "yi_u", "xi_v")
        .parallel("strip")
        .nontemporal()
    )
    return pt.Schedule(
        out.prefetch("mask", "tile", 1) if masked else out,
        pt.on("rows").compute_at("out", "tile").vectorize("y", line).prefetch("img", "x", ahead),
    )


def on_gpu() -> pt.Schedule:
    """A square goes through shared memory: whole lines come in and go out, and columns are in different banks."""
    return pt.Schedule(
        pt.on("out")
        .tile("y", "x", "yb", "xb", "yi", "tx", 32, 32)
        .split("yi", "row", "ty", 8)
        .reorder("yb", "xb", "ty", "tx", "row")
        .block("yb", "xb")
        .thread("ty", "tx")
        .unroll("row"),
        pt.on("rows").compute_at("out", "xb").store_in("shared").pad_storage("y", 1).thread("x", "y"),
    )


APPS = (
    App(
        "tp",
        "transpose of a matrix, uint32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (4096, 4096)}},
        integers,
        on_gpu=on_gpu,
    ),
    App(
        "tpm",
        "transpose of a matrix under a mask, uint32",
        functools.partial(build, masked=True),
        functools.partial(expert, masked=True),
        {"small": {"img": (200, 300), "mask": (300, 200)}, "paper": {"img": (4096, 4096), "mask": (4096, 4096)}},
        integers,
        on_gpu=on_gpu,
    ),
)
