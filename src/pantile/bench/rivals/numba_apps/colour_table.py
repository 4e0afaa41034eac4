"""Rows in parallel; the eight colours around that of a pixel, whose channels lie side by side."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, table, (out,) = inputs["img"], inputs["table"], outputs
    return lambda: _graded(img, table, out)


@njit(parallel=True, fastmath=True, error_model="numpy")
def _graded(img: Array, table: Array, out: Array) -> None:
    rows, columns, _ = img.shape
    last = table.shape[0] - 2
    scale = np.float32((table.shape[0] - 1) / 255)
    for y in prange(rows):
        for x in range(columns):
            red, green, blue = img[y, x, 0] * scale, img[y, x, 1] * scale, img[y, x, 2] * scale
            i, j, k = min(int(red), last), min(int(green), last), min(int(blue), last)
            u, v, w = red - np.float32(i), green - np.float32(j), blue - np.float32(k)
            for c in range(3):
                a = table[i, j, k, c] + w * (table[i, j, k + 1, c] - table[i, j, k, c])
                b = table[i, j + 1, k, c] + w * (table[i, j + 1, k + 1, c] - table[i, j + 1, k, c])
                d = table[i + 1, j, k, c] + w * (table[i + 1, j, k + 1, c] - table[i + 1, j, k, c])
                e = table[i + 1, j + 1, k, c] + w * (table[i + 1, j + 1, k + 1, c] - table[i + 1, j + 1, k, c])
                dark, light = a + v * (b - a), d + v * (e - d)
                value = (dark + u * (light - dark)) * np.float32(255) + np.float32(0.5)
                out[y, x, c] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))
