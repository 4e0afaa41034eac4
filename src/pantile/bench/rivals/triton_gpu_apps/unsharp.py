"""Unsharp masking in two kernels: luma and its vertical sums, down sixteen rows; then all the rest."""

import math

import torch
import triton
import triton.language as tl

from ..gpu_worker import Inputs, Program, Shapes, Tensor

SIGMA = 1.5
ROWS, COLUMNS = 16, 256
WEIGHTS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]


@triton.jit
def _luma(image, x, y, height, width):  # type: ignore[no-untyped-def]
    """Of a row, or of the nearest one there is."""
    plane = height * width
    at = image + tl.minimum(tl.maximum(y, 0), height - 1) * width + x
    red = tl.load(at, mask=x < width, other=1.0)
    green = tl.load(at + plane, mask=x < width, other=1.0)
    blue = tl.load(at + 2 * plane, mask=x < width, other=1.0)
    return 0.299 * red + 0.587 * green + 0.114 * blue


@triton.jit
def _down(image, down, height, width, w0, w1, w2, w3, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    y = tl.program_id(1) * ROWS
    a = _luma(image, x, y - 3, height, width)
    b = _luma(image, x, y - 2, height, width)
    c = _luma(image, x, y - 1, height, width)
    d = _luma(image, x, y, height, width)
    e = _luma(image, x, y + 1, height, width)
    f = _luma(image, x, y + 2, height, width)
    for i in tl.static_range(ROWS):
        g = _luma(image, x, y + i + 3, height, width)
        total = w0 * d + w1 * (c + e) + w2 * (b + f) + w3 * (a + g)
        tl.store(down + (y + i) * width + x, total, mask=(x < width) & (y + i < height))
        a = b
        b = c
        c = d
        d = e
        e = f
        f = g


@triton.jit
def _tap(down, x, y, width):  # type: ignore[no-untyped-def]
    """Of a column, or of the nearest one there is."""
    return tl.load(down + y * width + tl.minimum(tl.maximum(x, 0), width - 1))


@triton.jit
def _sharpen(image, down, result, height, width, w0, w1, w2, w3, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    y = tl.program_id(1)
    total = w0 * _tap(down, x, y, width)
    total += w1 * (_tap(down, x - 1, y, width) + _tap(down, x + 1, y, width))
    total += w2 * (_tap(down, x - 2, y, width) + _tap(down, x + 2, y, width))
    total += w3 * (_tap(down, x - 3, y, width) + _tap(down, x + 3, y, width))
    gray = _luma(image, x, y, height, width)
    ratio = (2.0 * gray - total) / gray
    at = y * width + x
    for c in tl.static_range(3):
        place = c * height * width + at
        tl.store(result + place, ratio * tl.load(image + place, mask=x < width, other=0.0), mask=x < width)


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    image = inputs["img"]
    _, height, width = shapes[0]
    result, down = torch.empty_like(image), torch.empty_like(image[0])
    blocks = triton.cdiv(width, COLUMNS)

    def compute() -> Tensor:
        _down[blocks, triton.cdiv(height, ROWS)](image, down, height, width, *WEIGHTS, ROWS=ROWS, COLUMNS=COLUMNS)
        _sharpen[blocks, height](image, down, result, height, width, *WEIGHTS, COLUMNS=COLUMNS)
        return result

    return compute
