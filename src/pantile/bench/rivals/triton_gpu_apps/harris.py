"""The corner response: down sixteen rows, with five columns of two rows of luma, and sums of two rows, at hand."""

import torch
import triton
import triton.language as tl

from ..gpu_worker import Inputs, Program, Shapes, Tensor

ROWS, COLUMNS = 16, 128


@triton.jit
def _luma(image, x, y, height, width):  # type: ignore[no-untyped-def]
    """At a pixel, or at the last one there is."""
    plane = height * width
    at = image + tl.minimum(y, height - 1) * width + tl.minimum(x, width - 1)
    return 0.299 * tl.load(at) + 0.587 * tl.load(at + plane) + 0.114 * tl.load(at + 2 * plane)


@triton.jit
def _row(image, x, y, height, width):  # type: ignore[no-untyped-def]
    """Luma two columns to both sides."""
    a = _luma(image, x - 2, y, height, width)
    b = _luma(image, x - 1, y, height, width)
    c = _luma(image, x, y, height, width)
    d = _luma(image, x + 1, y, height, width)
    e = _luma(image, x + 2, y, height, width)
    return a, b, c, d, e


@triton.jit
def _products(a0, a1, a2, b0, b1, b2, c0, c1, c2):  # type: ignore[no-untyped-def]
    """Of the gradient in the middle of three rows of three."""
    ix = ((a2 - a0) + 2.0 * (b2 - b0) + (c2 - c0)) / 12.0
    iy = ((c0 - a0) + 2.0 * (c1 - a1) + (c2 - a2)) / 12.0
    return ix * ix, iy * iy, ix * iy


@triton.jit
def _sums(a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, c0, c1, c2, c3, c4):  # type: ignore[no-untyped-def]
    """Products of three columns in the middle of three rows of five, added up."""
    xx0, yy0, xy0 = _products(a0, a1, a2, b0, b1, b2, c0, c1, c2)
    xx1, yy1, xy1 = _products(a1, a2, a3, b1, b2, b3, c1, c2, c3)
    xx2, yy2, xy2 = _products(a2, a3, a4, b2, b3, b4, c2, c3, c4)
    return xx0 + xx1 + xx2, yy0 + yy1 + yy2, xy0 + xy1 + xy2


@triton.jit
def _harris(image, result, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    height = rows + 6
    width = columns + 6
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    top = tl.program_id(1) * ROWS
    x = column + 3
    y = top + 3
    a0, a1, a2, a3, a4 = _row(image, x, y - 2, height, width)
    b0, b1, b2, b3, b4 = _row(image, x, y - 1, height, width)
    c0, c1, c2, c3, c4 = _row(image, x, y, height, width)
    xx0, yy0, xy0 = _sums(a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, c0, c1, c2, c3, c4)
    d0, d1, d2, d3, d4 = _row(image, x, y + 1, height, width)
    xx1, yy1, xy1 = _sums(b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, d0, d1, d2, d3, d4)
    for i in tl.static_range(ROWS):
        e0, e1, e2, e3, e4 = _row(image, x, y + i + 2, height, width)
        xx2, yy2, xy2 = _sums(c0, c1, c2, c3, c4, d0, d1, d2, d3, d4, e0, e1, e2, e3, e4)
        xx = xx0 + xx1 + xx2
        yy = yy0 + yy1 + yy2
        xy = xy0 + xy1 + xy2
        trace = xx + yy
        inside = (column < columns) & (top + i < rows)
        tl.store(result + (top + i) * columns + column, xx * yy - xy * xy - 0.04 * trace * trace, mask=inside)
        c0, c1, c2, c3, c4 = d0, d1, d2, d3, d4
        d0, d1, d2, d3, d4 = e0, e1, e2, e3, e4
        xx0, yy0, xy0 = xx1, yy1, xy1
        xx1, yy1, xy1 = xx2, yy2, xy2


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    image = inputs["img"]
    rows, columns = shapes[0]
    result = torch.empty(shapes[0], device=image.device)
    grid = (triton.cdiv(columns, COLUMNS), triton.cdiv(rows, ROWS))

    def compute() -> Tensor:
        _harris[grid](image, result, rows, columns, ROWS=ROWS, COLUMNS=COLUMNS)
        return result

    return compute
