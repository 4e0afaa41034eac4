"""Brightness, which several programs start from."""

import numpy as np
from numba import njit

from ..library_worker import Array

RED, GREEN, BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)


@njit(fastmath=True)
def gray_row(img: Array, y: int, target: Array) -> None:
    """One row of a planar float picture."""
    red, green, blue = img[0, y], img[1, y], img[2, y]
    for x in range(target.shape[0]):
        target[x] = RED * red[x] + GREEN * green[x] + BLUE * blue[x]
