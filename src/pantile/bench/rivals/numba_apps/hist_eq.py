"""Histograms of strips of rows in parallel, their sums, then all rows in parallel."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program
from ._gray import BLUE, GREEN, RED

STRIP = 64
RED_OF_R = np.float32(1.4 * 0.713)
GREEN_OF_B, GREEN_OF_R = np.float32(0.343 * 0.564), np.float32(0.711 * 0.713)
BLUE_OF_B = np.float32(1.765 * 0.564)
DARK, BRIGHT = np.float32(0), np.float32(255)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    counts = np.empty(((img.shape[1] + STRIP - 1) // STRIP, 256), np.int32)

    def compute() -> None:
        _count(img, counts)
        below = np.cumsum(counts.sum(axis=0)).astype(np.float32)
        _equalize(img, np.clip(below * np.float32(255 / (img.shape[1] * img.shape[2])), DARK, BRIGHT), out)

    return compute


@njit
def _luma(img: Array, y: int, x: int) -> np.float32:
    return RED * np.float32(img[0, y, x]) + GREEN * np.float32(img[1, y, x]) + BLUE * np.float32(img[2, y, x])


@njit(parallel=True)
def _count(img: Array, counts: Array) -> None:
    _, rows, columns = img.shape
    for strip in prange(counts.shape[0]):
        counts[strip] = 0
        levels = np.empty(columns, np.uint8)
        for y in range(strip * STRIP, min(strip * STRIP + STRIP, rows)):
            for x in range(columns):
                levels[x] = np.uint8(min(max(_luma(img, y, x), DARK), BRIGHT))
            for x in range(columns):
                counts[strip, levels[x]] += 1


@njit(parallel=True)
def _equalize(img: Array, equal: Array, out: Array) -> None:
    _, rows, columns = img.shape
    for y in prange(rows):
        even = np.empty(columns, np.float32)
        luma = np.empty(columns, np.float32)
        for x in range(columns):
            luma[x] = _luma(img, y, x)
        for x in range(columns):
            even[x] = equal[np.uint8(min(max(luma[x], DARK), BRIGHT))]
        for x in range(columns):
            more_red, more_blue = np.float32(img[0, y, x]) - luma[x], np.float32(img[2, y, x]) - luma[x]
            out[0, y, x] = _byte(even[x] + RED_OF_R * more_red)
            out[1, y, x] = _byte(even[x] - GREEN_OF_B * more_blue - GREEN_OF_R * more_red)
            out[2, y, x] = _byte(even[x] + BLUE_OF_B * more_blue)


@njit
def _byte(value: np.float32) -> np.uint8:
    return np.uint8(min(max(value, DARK), BRIGHT))
