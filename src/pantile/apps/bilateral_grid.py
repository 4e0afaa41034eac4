"""Edge-preserving smoothing through a bilateral grid (Halide's apps/bilateral_grid).

Space and brightness are cut into cells; each holds the sum and the number of its pixels. The grid is blurred along its
three axes and read back at every pixel by trilinear interpolation: pixels across an edge lie in distant cells.

The idea of the schedule: sum and number of a cell lie side by side, so that counting a pixel is one load, one addition
and one store of a pair. A strip of cells per task: rows of the grid are counted, blurred along z and x, and slide
through the blur along y. To read back, a row of pixels first blends the two rows of cells that it lies between; then
each pixel finds all that it needs of a cell, sum and number at two levels, in one vector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_CHANNELS, App, Photo, floats
from .threads import inlined

CELL = 8  # pixels along each side of a cell
BINS = 10  # cells for brightness 0 to 1
y, x, z, c = pt.vars("y x z c")


def build(formulation: str = "halide") -> pt.Pipeline:
    """img[y, x] in 0..1 -> smoothed image of the same shape.

    "halide" counts a pixel in the cell whose centre is nearest, and repeats the image's edges; "polymage" counts it in
    the cell that it lies in, and knows only cells that lie in the image.
    """
    img = pt.Input("img", "float32", ndim=2)
    if formulation == "halide":
        grid, depth, ends = _nearest_cells(img), pt.clamp(img[y, x], 0, 1) * BINS, None
    else:
        grid, depth, ends = _whole_cells(img), img[y, x] * BINS, (img.shape[0] // CELL, img.shape[1] // CELL, BINS)
    total, count = _read_back(_blurred(grid), depth, ends)
    out = pt.Func("out")
    out[y, x] = total / count if ends is None else pt.select(count > 0, total / count, img[y, x])
    return pt.Pipeline(out, name="bilateral_grid")


def _nearest_cells(img: pt.Input) -> pt.Func:
    """Sum (channel 0) and number (channel 1) of the pixels nearest to each cell's centre."""
    pixel, grid = pt.Func("pixel"), pt.Func("grid")
    light = pt.clamp(pt.edge(img)[y, x], 0, 1)
    pixel[y, x] = (light, pt.cast("int32", light * BINS + 0.5))
    r = pt.RDom((0, CELL), (0, CELL), names="y x")
    value, level = pixel[CELL * y + r.y - CELL // 2, CELL * x + r.x - CELL // 2]
    grid[y, x, z, c] = 0.0
    grid[y, x, pt.within(level, 0, BINS), c] += pt.select(c == 0, value, 1)
    return grid


def _whole_cells(img: pt.Input) -> pt.Func:
    """Sum and number of the pixels in each cell; the number is 0 outside of the image."""
    pixel, grid = pt.Func("pixel"), pt.Func("grid")
    pixel[y, x] = (img[y, x], _level(img[y, x] * BINS))
    r = pt.RDom((0, CELL), (0, CELL), names="y x")
    rows, columns = img.shape[0] // CELL, img.shape[1] // CELL
    inside = r.where((y >= 0) & (y < rows) & (x >= 0) & (x < columns))
    value, level = pixel[CELL * y + inside.y, CELL * x + inside.x]
    grid[y, x, z, c] = 0.0
    grid[y, x, pt.within(level, 0, BINS - 1), c] += pt.select(c == 0, value, 1)
    return grid


def _level(depth: Any) -> Any:
    return pt.clamp(pt.cast("int32", depth), 0, BINS - 1)


def _blurred(grid: pt.Func) -> pt.Func:
    """Binomial weights, not normalised: sum and number of pixels grow alike."""

    def smooth(tap: Callable[[int], Any]) -> Any:
        return tap(-2) + tap(2) + 4 * (tap(-1) + tap(1)) + 6 * tap(0)

    blur_z, blur_x, blur_y = pt.Func("blur_z"), pt.Func("blur_x"), pt.Func("blur_y")
    blur_z[y, x, z, c] = smooth(lambda k: grid[y, x, z + k, c])
    blur_x[y, x, z, c] = smooth(lambda k: blur_z[y, x + k, z, c])
    blur_y[y, x, z, c] = smooth(lambda k: blur_x[y + k, x, z, c])
    return blur_y


def _read_back(grid: pt.Func, depth: Any, ends: tuple[Any, ...] | None) -> tuple[Any, Any]:
    """Sum and number at every pixel: between the cells around it along y, then x, then z."""
    place, row, column = pt.Func("place"), pt.Func("row"), pt.Func("column")
    near = pt.cast("int32", depth) if ends is None else _level(depth)
    place[y, x] = (near, depth - near)
    level, above = place[y, x]
    level = pt.within(level, 0, BINS)

    def blend(axis: int, cell: Any, fraction: Any, tap: Callable[[int], Any]) -> Any:
        weights = [1 - fraction, fraction]
        if ends is not None:
            weights = [pt.select(cell + k < ends[axis], w, 0) for k, w in enumerate(weights)]
        return tap(0) * weights[0] + tap(1) * weights[1]

    def part(v: Any) -> Any:
        return pt.cast("float32", v % CELL) * (1 / CELL)

    row[y, x, z, c] = blend(0, y // CELL, part(y), lambda k: grid[y // CELL + k, x, z, c])
    column[y, x, z, c] = blend(1, x // CELL, part(x), lambda k: row[y, x // CELL + k, level + z, c])
    total = blend(2, level, above, lambda k: column[y, x, k, 0])
    count = blend(2, level, above, lambda k: column[y, x, k, 1])
    return total, count


def expert(target: Target, cores: int) -> pt.Schedule:
    """Vectors run over brightness and channel together, which are dense in memory."""
    lanes = target.lanes(32)

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


def on_gpu() -> pt.Schedule:
    """Two kernels. A thread counts a cell, in shared memory where it and its neighbours never want the same bank, and
    blurs it along brightness. Then blocks of 32 by 32 pixels blur the cells that they lie between along x and y, blend
    these for each of their rows, all in shared memory, and each pixel finds sum and number side by side."""

    def of_block(name: str) -> pt.StageSchedule:
        return pt.on(name).compute_at("out", "xo").store_in("shared")

    def counts(name: str) -> pt.StageSchedule:
        return pt.on(name).compute_at("blur_z", "xo").store_in("shared").reorder_storage("z", "c", "y", "x")

    return pt.Schedule(
        pt.on("out")
        .split("y", "yo", "yi", 32, tail="guard")
        .split("yi", "ty", "row", 4)
        .split("x", "xo", "tx", 32, tail="guard")
        .reorder("yo", "xo", "ty", "tx", "row")
        .block("yo", "xo")
        .thread("ty", "tx")
        .unroll("row"),
        pt.on("column").compute_at("out", "tx").unroll("y").unroll("x").unroll("z").vectorize("c", 2),
        of_block("row")
        .split("y", "cells", "row", CELL, tail="guard")
        .reorder("cells", "x", "z", "c", "row")
        .thread("cells", "x", "z", "c")
        .unroll("row"),
        of_block("blur_y")
        .split("y", "cells", "cell", 5, tail="guard")
        .reorder("cells", "x", "z", "c", "cell")
        .thread("cells", "x", "z", "c")
        .unroll("cell"),
        of_block("blur_x").thread("y", "x", "z", "c"),
        pt.on("blur_z")
        .split("x", "xo", "tx", 16)
        .split("y", "yo", "ty", 2)
        .split("z", "all", "zi", 12, tail="guard")
        .reorder("yo", "xo", "ty", "tx", "all", "zi", "c")
        .block("yo", "xo")
        .thread("ty", "tx")
        .unroll("zi")
        .unroll("c", 2),
        counts("grid")
        .reorder("z", "c", "y", "x")
        .thread("z", "c", "y", "x")
        .update()
        .reorder("y", "x", "r.y", "r.x", "c")
        .thread("y", "x")
        .unroll("r.x")
        .unroll("c"),
        *inlined("pixel", "place"),
    )


APPS = (
    App(
        "bilateral_grid",
        "bilateral grid, float32",
        build,
        expert,
        {"small": {"img": (200, 300)}, "paper": {"img": (2560, 1536)}},
        floats,
        photo=Photo({"img": FLOAT_CHANNELS}, gives=FLOAT_CHANNELS),
        on_gpu=on_gpu,
    ),
    App(
        "bilateral_grid_polymage",
        "bilateral grid of whole cells, float32",
        partial(build, "polymage"),
        expert,
        {"small": {"img": (200, 304)}, "paper": {"img": (2560, 1536)}},
        floats,
        photo=Photo({"img": FLOAT_CHANNELS}, gives=FLOAT_CHANNELS),
    ),
)
