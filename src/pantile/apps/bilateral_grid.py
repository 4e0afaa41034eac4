"""Edge-preserving smoothing through a bilateral grid (Halide's apps/bilateral_grid).

Space and brightness are cut into cells; each holds the sum and the number of its pixels. The grid is blurred along its
three axes and read back at every pixel by trilinear interpolation: pixels across an edge lie in distant cells.

The idea of the schedule: sum and number of a cell lie side by side, so that counting a pixel is one load, one addition
and one store of a pair. A strip of cells per task: rows of the grid are counted, blurred along z and x, and slide
through the blur along y. To read back, a row of pixels first blends the two rows of cells that it lies between; then
each pixel finds all that it needs of a cell, sum and number at two levels, in one vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt

from .app import App
from .photo import FLOAT_CHANNELS, Photo

CELL = 8  # pixels along each side of a cell
BINS = 10  # cells for brightness 0 to 1


def build() -> pt.Pipeline:
    """img[y, x] in 0..1 -> smoothed image of the same shape."""
    y, x, z, c = pt.vars("y x z c")
    img = pt.Input("img", "float32", ndim=2)
    pixel, grid = pt.Func("pixel"), pt.Func("grid")
    light = pt.clamp(pt.edge(img)[y, x], 0, 1)
    pixel[y, x] = (light, pt.cast("int32", light * BINS + 0.5))

    r = pt.RDom((0, CELL), (0, CELL), names="y x")
    value, level = pixel[CELL * y + r.y - CELL // 2, CELL * x + r.x - CELL // 2]
    grid[y, x, z, c] = 0.0
    grid[y, x, pt.within(level, 0, BINS), c] += pt.select(c == 0, value, 1)

    blur_z, blur_x, blur_y = pt.Func("blur_z"), pt.Func("blur_x"), pt.Func("blur_y")
    blur_z[y, x, z, c] = _smoothed(lambda k: grid[y, x, z + k, c])
    blur_x[y, x, z, c] = _smoothed(lambda k: blur_z[y, x + k, z, c])
    blur_y[y, x, z, c] = _smoothed(lambda k: blur_x[y + k, x, z, c])

    # Between the cells around a pixel along y, then x, then z.
    place, row, column, out = pt.Func("place"), pt.Func("row"), pt.Func("column"), pt.Func("out")
    depth = pt.clamp(img[y, x], 0, 1) * BINS
    place[y, x] = (pt.cast("int32", depth), depth - pt.floor(depth))
    near, fraction = place[y, x]
    near = pt.within(near, 0, BINS)
    row[y, x, z, c] = pt.lerp(blur_y[y // CELL, x, z, c], blur_y[y // CELL + 1, x, z, c], _fraction(y))
    column[y, x, z, c] = pt.lerp(row[y, x // CELL, near + z, c], row[y, x // CELL + 1, near + z, c], _fraction(x))
    total, count = (pt.lerp(column[y, x, 0, c], column[y, x, 1, c], fraction) for c in (0, 1))
    out[y, x] = total / count
    return pt.Pipeline(out, name="bilateral_grid")


def _smoothed(tap: Any) -> Any:
    """Binomial weights, not normalised: sum and number of pixels grow alike."""
    return tap(-2) + tap(2) + 4 * (tap(-1) + tap(1)) + 6 * tap(0)


def _fraction(v: Any) -> Any:
    return pt.cast("float32", v % CELL) * (1 / CELL)


def expert(vector_bits: int) -> pt.Schedule:
    """Vectors run over brightness and channel together, which are dense in memory."""
    lanes = vector_bits // 32

    def cells(name: str) -> pt.StageSchedule:
        return pt.on(name).fuse("z", "c", "zc").vectorize("zc", 8)  # of 24, of 32 before the blur along z

    return pt.Schedule(
        pt.on("out")
        .split("y", "cell", "yi", CELL, tail="guard")
        .split("x", "tile", "xi", 256, tail="guard")
        .vectorize("xi", 2 * lanes)
        .reorder("cell", "tile", "yi", "xi", "xi_v")
        .parallel("cell"),
        pt.on("place").compute_at("out", "yi").vectorize("x", 2 * lanes),
        pt.on("column").compute_at("out", "yi").fuse("z", "c", "zc").vectorize("zc", 4).unroll("x", CELL),
        cells("row").compute_at("out", "yi"),
        cells("blur_y").split("y", "strip", "yi", 41).parallel("strip"),
        cells("blur_x").store_at("blur_y", "strip").compute_at("blur_y", "yi"),
        cells("blur_z").compute_at("blur_y", "yi"),
        cells("grid")
        .compute_at("blur_y", "yi")
        .update()
        .vectorize("c", 2)
        .split("x", "x", "xi", 16)
        .reorder("y", "x", "r.y", "xi", "r.x", "c_v")
        .unroll("r.x"),
        pt.on("pixel").compute_at("grid", "x").vectorize("x", 2 * lanes),
    )


def _make(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.random(shape, dtype=np.float32)


APPS = (
    App(
        "bilateral_grid",
        "bilateral grid, float32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (2560, 1536)}},
        _make,
        photo=Photo({"img": FLOAT_CHANNELS}, gives=FLOAT_CHANNELS),
    ),
)
