"""Bands of columns, then bands of rows turned into columns, in parallel; the innermost loop runs across a band."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program

ALPHA = np.float32(0.5)
BAND = 32


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    turned = out.transpose(0, 2, 1)

    def compute() -> None:
        _filter_columns(img, out)
        _filter_columns(turned, turned)

    return compute


@njit(parallel=True, fastmath=True)
def _filter_columns(source: Array, target: Array) -> None:
    """Both may be views with their last two axes swapped, and may be the same array."""
    channels, height, width = source.shape
    bands = (width + BAND - 1) // BAND
    for task in prange(channels * bands):
        c, first = task // bands, task % bands * BAND
        last = min(first + BAND, width)
        local = np.empty((height, BAND), np.float32)
        for y in range(height):
            for x in range(first, last):
                local[y, x - first] = source[c, y, x]
        _scan(local)
        for y in range(height):
            for x in range(first, last):
                target[c, y, x] = local[y, x - first]


@njit(fastmath=True)
def _scan(band: Array) -> None:
    """Down, then up."""
    keep = np.float32(1) - ALPHA
    for y in range(1, band.shape[0]):
        for x in range(BAND):
            band[y, x] = keep * band[y - 1, x] + ALPHA * band[y, x]
    for y in range(band.shape[0] - 2, -1, -1):
        for x in range(BAND):
            band[y, x] = keep * band[y + 1, x] + ALPHA * band[y, x]
