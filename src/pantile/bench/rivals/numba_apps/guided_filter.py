"""Strips of rows in parallel; in each, running sums down the columns and sums of windows along the row."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program
from ._window import clamped, repeat_ends, window_sums

STRIP = 125
RADIUS = 8
DOUBLINGS = 4  # 17 = 2**4 + 1
SCALE = np.float32(1 / (2 * RADIUS + 1) ** 2)
SMOOTHNESS = np.float32((0.1 * 255) ** 2)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    slope, offset = np.empty(img.shape, np.float32), np.empty(img.shape, np.float32)

    def compute() -> None:
        _fit(img, slope, offset)
        _predict(img, slope, offset, out)

    return compute


@njit(parallel=True)
def _fit(img: Array, slope: Array, offset: Array) -> None:
    rows, columns, channels = img.shape
    nothing = np.zeros(img[0].shape, np.uint8)
    for strip in prange((rows + STRIP - 1) // STRIP):
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        shape = (columns + 2 * RADIUS, channels)
        sums, squares = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        total, total_square = np.empty(sums.size, np.int32), np.empty(sums.size, np.int32)
        spare = np.empty(sums.size, np.int32)
        for y in range(first - RADIUS - 1, first + RADIUS):
            _slide_bytes(img[clamped(y, rows)], nothing, sums, squares)
        for y in range(first, last):
            _slide_bytes(img[clamped(y + RADIUS, rows)], img[clamped(y - RADIUS - 1, rows)], sums, squares)
            repeat_ends(sums, RADIUS)
            repeat_ends(squares, RADIUS)
            window_sums(sums.reshape(-1), DOUBLINGS, channels, total, spare)
            window_sums(squares.reshape(-1), DOUBLINGS, channels, total_square, spare)
            _line(total, total_square, slope[y].reshape(-1), offset[y].reshape(-1))


@njit(parallel=True)
def _predict(img: Array, slope: Array, offset: Array, out: Array) -> None:
    rows, columns, channels = img.shape
    nothing = np.zeros(img[0].shape, np.float32)
    for strip in prange((rows + STRIP - 1) // STRIP):
        first, last = strip * STRIP, min(strip * STRIP + STRIP, rows)
        shape = (columns + 2 * RADIUS, channels)
        slopes, offsets = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        total_slope, total_offset = np.empty(slopes.size, np.float32), np.empty(slopes.size, np.float32)
        spare = np.empty(slopes.size, np.float32)
        for y in range(first - RADIUS - 1, first + RADIUS):
            _slide(slope[clamped(y, rows)], nothing, slopes)
            _slide(offset[clamped(y, rows)], nothing, offsets)
        for y in range(first, last):
            new, old = clamped(y + RADIUS, rows), clamped(y - RADIUS - 1, rows)
            _slide(slope[new], slope[old], slopes)
            _slide(offset[new], offset[old], offsets)
            repeat_ends(slopes, RADIUS)
            repeat_ends(offsets, RADIUS)
            window_sums(slopes.reshape(-1), DOUBLINGS, channels, total_slope, spare)
            window_sums(offsets.reshape(-1), DOUBLINGS, channels, total_offset, spare)
            _value(total_slope, total_offset, img[y].reshape(-1), out[y].reshape(-1))


@njit
def _slide_bytes(new: Array, old: Array, sums: Array, squares: Array) -> None:
    """One row comes, another goes."""
    start = RADIUS * new.shape[1]
    a, b, s, q = new.reshape(-1), old.reshape(-1), sums.reshape(-1)[start:], squares.reshape(-1)[start:]
    for i in range(a.size):
        v, w = np.int32(a[i]), np.int32(b[i])
        s[i] += np.int32(v - w)
        q[i] += np.int32((v - w) * (v + w))


@njit
def _slide(new: Array, old: Array, sums: Array) -> None:
    a, b, s = new.reshape(-1), old.reshape(-1), sums.reshape(-1)[RADIUS * new.shape[1] :]
    for i in range(a.size):
        s[i] += a[i] - b[i]


@njit(fastmath=True, error_model="numpy")
def _line(total: Array, total_square: Array, slope: Array, offset: Array) -> None:
    for i in range(slope.size):
        mean = np.float32(total[i]) * SCALE
        variance = np.float32(total_square[i]) * SCALE - mean * mean
        a = variance / (variance + SMOOTHNESS)
        slope[i] = a
        offset[i] = mean * (np.float32(1) - a)


@njit(fastmath=True, error_model="numpy")
def _value(slopes: Array, offsets: Array, img: Array, out: Array) -> None:
    for i in range(img.size):
        value = (slopes[i] * np.float32(img[i]) + offsets[i]) * SCALE + np.float32(0.5)
        out[i] = np.uint8(np.int32(min(value, np.float32(255))))
