"""One stage after the other, rows in parallel; the window's weights are products, so columns first, then rows."""

import numpy as np
from numba import njit, prange

from ..library_worker import Array, Inputs, Outputs, Program

STAGES = 32


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Two images with margins for all stages, of which each stage computes two pixels less on every side."""
    img, (out,) = inputs["img"], outputs
    margin = 2 * STAGES
    images = [np.pad(img, margin, mode="edge") for _ in range(2)]

    def compute() -> None:
        images[0][:] = np.pad(img, margin, mode="edge")
        for stage in range(STAGES):
            _stencil(images[stage % 2], images[(stage + 1) % 2], 2 * (stage + 1))
        out[:] = images[STAGES % 2][margin:-margin, margin:-margin]

    return compute


@njit(parallel=True)
def _stencil(source: Array, target: Array, border: int) -> None:
    rows, columns = source.shape
    for y in prange(border, rows - border):
        down = np.empty(columns, np.uint16)
        _column_sums(source[y - 2], source[y - 1], source[y], source[y + 1], source[y + 2], down)
        _row_sums(down, target[y], border)


@njit
def _column_sums(a: Array, b: Array, c: Array, d: Array, e: Array, target: Array) -> None:
    for x in range(target.shape[0]):
        target[x] = np.uint16(a[x] + 2 * b[x] + 3 * c[x] + 4 * d[x] + 5 * e[x])


@njit
def _row_sums(down: Array, target: Array, border: int) -> None:
    for x in range(border, target.shape[0] - border):
        near = down[x - 2] + 2 * down[x - 1] + 3 * down[x]
        target[x] = np.uint16(near + 4 * down[x + 1] + 5 * down[x + 2])
