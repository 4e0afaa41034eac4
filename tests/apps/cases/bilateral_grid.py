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
    total, count = looked_up(blurred(grid), light)
    return total / count


def bilateral_grid_polymage(img: Array) -> Array:
    """Pixels count in the cell that they lie in; cells outside of the image are 0, blurred or not."""
    rows, columns = (n // CELL for n in img.shape)
    level = np.minimum((img * np.float32(BINS)).astype(int), BINS - 1)
    whole = np.s_[: rows * CELL, : columns * CELL]
    grid = histograms(img[whole], level[whole], BINS)
    grid = blurred(np.pad(grid, ((0, 0), (2, 2), (2, 2), (2, 2))))
    total, count = looked_up(np.pad(grid, ((0, 0), (0, 2), (0, 2), (0, 1))), img)
    return np.where(count > 0, total / np.where(count > 0, count, 1), img)


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


def looked_up(grid: Array, light: Array) -> Array:
    """Sum and number at every pixel, by trilinear interpolation."""
    y, x = np.indices(light.shape) / CELL
    return sum(weight * grid[(slice(None), *corner)] for weight, corner in corners(y, x, light * np.float32(BINS)))


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
    "bilateral_grid_polymage": Case(
        bilateral_grid_polymage,
        odd=({"img": (1, 1)}, {"img": (9, 70)}, {"img": (24, 105)}),
        large={"img": (701, 333)},
    ),
}
