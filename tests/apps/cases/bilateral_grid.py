"""Means over pixels that are near in space and brightness, weighted through a coarse grid of both."""

from __future__ import annotations

import itertools

import numpy as np

from ..case import Array, Case

CELL, BINS = 8, 10


def bilateral_grid(img: Array) -> Array:
    """Pixels count in the cell whose centre is nearest; edges repeat for ever."""
    light = np.clip(img, 0, 1)
    cells = [(n - 1) // CELL + 2 for n in img.shape]  # those that pixels are read from
    rim = 2  # the blur reaches this far
    around = [(rim * CELL + CELL // 2, (c + rim) * CELL - CELL // 2 - n) for c, n in zip(cells, img.shape, strict=True)]
    pixels = np.pad(light, around, mode="edge")
    level = (pixels * np.float32(BINS) + np.float32(0.5)).astype(int)
    grid = histograms(pixels, level + rim, BINS + 2 + 2 * rim)
    return sliced(blurred(grid), light)


def histograms(pixels: Array, level: Array, levels: int) -> Array:
    """Sum and number of the pixels of every cell and level: [2, y, x, z]."""
    grid = np.zeros((2, *(n // CELL for n in pixels.shape), levels))
    y, x = np.indices(pixels.shape) // CELL
    np.add.at(grid[0], (y, x, level), pixels)
    np.add.at(grid[1], (y, x, level), 1)
    return grid


def blurred(grid: Array) -> Array:
    """Weights 1 4 6 4 1 along the last three axes, where all five points exist."""
    for axis in (1, 2, 3):
        grid = np.apply_along_axis(np.convolve, axis, grid, [1, 4, 6, 4, 1], "valid")
    return grid


def sliced(grid: Array, light: Array) -> Array:
    """The mean at every pixel, by trilinear interpolation of sums and numbers."""
    y, x = np.indices(light.shape) / CELL
    sums = sum(weight * grid[(slice(None), *corner)] for weight, corner in corners(y, x, light * np.float32(BINS)))
    return sums[0] / sums[1]


def corners(*place: Array) -> list[tuple[Array, tuple[Array, ...]]]:
    """The weights and indices of the grid points around every place."""
    low = [np.floor(p).astype(int) for p in place]
    found = []
    for step in itertools.product((0, 1), repeat=len(place)):
        parts = zip(place, low, step, strict=True)
        weight = np.prod([p - i if up else 1 - (p - i) for p, i, up in parts], axis=0)
        found.append((weight, tuple(i + up for i, up in zip(low, step, strict=True))))
    return found


CASES = {
    "bilateral_grid": Case(
        bilateral_grid,
        odd=({"img": (1, 1)}, {"img": (3, 70)}, {"img": (17, 5)}, {"img": (25, 107)}),
        large={"img": (701, 333)},
    ),
}
