"""A generated picture for the demo: a roof of pantiles under an evening sky, with grain and slightly soft.

It has the features of a photograph: smooth gradients, texture, hard edges, fine print and noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .writing import Pixels

Array = np.ndarray[Any, Any]  # of float32

_TERRACOTTA = (0.66, 0.30, 0.20)
_MOSS = (0.35, 0.38, 0.20)
_ROWS, _COLUMNS = 9, 17  # of tiles on the roof
_EAVES = 0.46  # the roof begins at this part of the height


def scenery(height: int, width: int, seed: int = 1) -> Pixels:
    """The picture; equal seeds give equal pictures."""
    rng = np.random.default_rng(seed)
    y, x = np.meshgrid(np.linspace(0, 1, height, dtype="f4"), np.linspace(0, 1, width, dtype="f4"), indexing="ij")
    picture = _sky(y, x, rng)
    _hills(picture, y, x, rng)
    _chimney(picture, y, x, rng)
    roof = y > _EAVES + 0.02 * np.abs(x - 0.5)
    picture[roof] = _roof(y, x, rng)[roof]
    picture = _soften(picture)
    picture += 0.012 * rng.standard_normal(picture.shape, dtype="f4")
    return (picture.clip(0, 1) * 255).astype(np.uint8)


def _colour(*channels: float) -> Array:
    return np.array(channels, "f4")


def _mix(a: Array, b: Array, weight: Array) -> Array:
    mixed: Array = a + (b - a) * weight[..., None]
    return mixed


def _clouds(shape: tuple[int, ...], rng: np.random.Generator, octaves: int, cells: int = 3) -> Array:
    """Smooth noise of about -1 to 1: random grids, each twice as fine and half as strong as the previous one."""
    total = np.zeros(shape, "f4")
    for k in range(octaves):
        n = cells << k
        grid = rng.uniform(-1, 1, (n + 2, n + 2)).astype("f4")
        (iy, fy), (ix, fx) = (_cells(extent, n) for extent in shape)
        rows = grid[iy] + (grid[iy + 1] - grid[iy]) * fy[:, None]
        left, step = rows[:, ix], np.diff(rows)[:, ix]
        total += (left + step * fx) / 2**k
    return total


def _cells(extent: int, count: int) -> tuple[Array, Array]:
    """The grid cell of each pixel, and its eased position in the cell."""
    place = np.linspace(0, count, extent, endpoint=False, dtype="f4")
    whole = place.astype(np.intp)
    part = place - whole
    return whole, (part * part * (3 - 2 * part)).astype("f4")


def _sky(y: Array, x: Array, rng: np.random.Generator) -> Array:
    sky = _mix(_colour(0.30, 0.48, 0.78), _colour(0.98, 0.80, 0.62), (y / _EAVES).clip(0, 1) ** 1.3)
    sun = np.exp(-((x - 0.72) ** 2 * 1.8 + (y - 0.30) ** 2) * 60)
    clouds = (_clouds(y.shape, rng, 5) * 0.5 + 0.1).clip(0, 0.6)
    return _mix(_mix(sky, _colour(0.97, 0.93, 0.92), clouds), _colour(1.0, 0.95, 0.80), sun)


def _hills(picture: Array, y: Array, x: Array, rng: np.random.Generator) -> None:
    woods = 1 + 0.12 * _clouds(y.shape, rng, 5, 24)[..., None]
    for level, tint in ((0.33, (0.55, 0.56, 0.68)), (0.39, (0.38, 0.42, 0.46)), (0.43, (0.25, 0.33, 0.27))):
        ridge = level + 0.05 * _clouds((1, x.shape[1]), rng, 7, 2)
        hill = y > ridge
        picture[hill] = _colour(*tint) * woods[hill]


def _chimney(picture: Array, y: Array, x: Array, rng: np.random.Generator) -> None:
    inside = (np.abs(x - 0.24) < 0.06) & (y > 0.20)
    course, column = np.floor(y * 70).astype(int), np.floor(x * 60 + 0.5 * (np.floor(y * 70) % 2)).astype(int)
    mortar = (y * 70 % 1 < 0.18) | ((x * 60 + 0.5 * (course % 2)) % 1 < 0.1)
    bricks = rng.uniform(0.75, 1.1, (71, 62)).astype("f4")[course.clip(0, 70), column.clip(0, 61)]
    wall = np.where(mortar[..., None], _colour(0.62, 0.58, 0.54), _colour(0.55, 0.25, 0.19) * bricks[..., None])
    wall *= (1.15 - 4 * np.abs(x - 0.22))[..., None]
    picture[inside] = wall[inside]
    _sign(picture, y, x, rng)


def _sign(picture: Array, y: Array, x: Array, rng: np.random.Generator) -> None:
    """A plate on the chimney with lines of print too small to read."""
    inside = (np.abs(x - 0.24) < 0.042) & (np.abs(y - 0.32) < 0.055)
    column, row = ((x - 0.198) / 0.084 * 72).astype(int), ((y - 0.265) / 0.11 * 56).astype(int)
    print_here = (column % 6 < 5) & (row % 8 < 6) & (column > 2) & (column < 68) & (row > 3) & (row < 52)
    ink = (rng.random((57, 73)) < 0.5)[row.clip(0, 56), column.clip(0, 72)] & print_here
    picture[inside] = np.where(ink[..., None], _colour(0.15, 0.15, 0.2), _colour(0.93, 0.91, 0.85))[inside]


def _roof(y: Array, x: Array, rng: np.random.Generator) -> Array:
    """Rows of S-shaped tiles, each of which overlaps the row below."""
    down = (y - _EAVES) / (1 - _EAVES) * _ROWS
    row = np.floor(down)
    across = (x - 0.5) * (0.75 + 0.25 * y) * _COLUMNS + 40 + 0.5 * (row % 2)
    column = np.floor(across)
    v, u = down - row, across - column
    tile = rng.uniform(0.78, 1.12, (_ROWS + 2, 128)).astype("f4")[row.astype(int).clip(0), column.astype(int)]
    profile = 0.72 + 0.30 * np.sin(2 * np.pi * (u - 0.12)) * (0.6 + 0.4 * v)
    shadow = 1 - 0.60 * np.exp(-v * 9) - 0.25 * np.exp(-np.abs(u - 0.02) * 26)
    lip = 1 + 0.35 * np.exp(-(((v - 0.93) / 0.03) ** 2))
    grain = 1 + 0.10 * _clouds(y.shape, rng, 4, 96)
    moss = (_clouds(y.shape, rng, 6, 8) - 0.55).clip(0, 0.5) * (1.2 - v)
    clay = _mix(_colour(*_TERRACOTTA) * (tile * 1.25)[..., None], _colour(*_MOSS), moss)
    shaded: Array = clay * (profile * shadow * lip * grain)[..., None]
    return shaded


def _soften(picture: Array) -> Array:
    """Blur a little in both directions, as a lens does."""
    padded = np.pad(picture, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = padded[:-2] * 0.25 + padded[1:-1] * 0.5 + padded[2:] * 0.25
    return rows[:, :-2] * 0.25 + rows[:, 1:-1] * 0.5 + rows[:, 2:] * 0.25
