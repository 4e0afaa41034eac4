"""From the raw pixels of a camera to a picture (the Frankencamera's pipeline, as in Halide's apps/camera_pipe).

Hot pixels are suppressed, the Bayer mosaic (green, red; blue, green) becomes three colours per pixel, a matrix corrects
them for the colour temperature, a table applies gamma and contrast, and an unsharp mask sharpens the result. All of it
in 8- and 16-bit integers. Interpolation works on the four half-size images of the mosaic: green at red and blue sites
along the direction of the smaller difference, then red and blue by the differences to green.

The idea of the schedule: a strip of rows per task, two rows at a time through it. Half-size rows of the mosaic and of
the two greens are kept in rings. From them each block of columns makes all three colours of its pixels up to the table
in registers; whatever depends on the parity of a pixel is computed at half size and interleaved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import BYTES_RGB, App, Array, Layout, Photo, Shape
from .threads import in_block, inlined, pixels

# Colour matrices, the last column added, at 3200 and at 7000 kelvin.
MATRICES = {
    "matrix_3200": [
        [1.6697, -0.2693, -0.4004, -42.4346],
        [-0.3576, 1.0615, 1.5949, -37.1158],
        [-0.2175, -1.8751, 6.9640, -26.6970],
    ],
    "matrix_7000": [
        [2.2997, -0.4478, 0.1706, -39.0923],
        [-0.3826, 1.5906, -0.2080, -25.4311],
        [-0.0888, -0.7344, 2.2832, -20.0826],
    ],
}

y, x, c, i = pt.vars("y x c i")


def build(formulation: str = "halide") -> pt.Pipeline:
    """raw[y, x] -> picture[c, y, x], smaller by a margin on every side.

    "polymage" has signed pixels, clamps hot pixels from both sides, rounds averages down, does not sharpen, and puts
    blue first.
    """
    return _halide() if formulation == "halide" else _polymage()


def _halide() -> pt.Pipeline:
    raw = pt.Input("raw", "uint16", ndim=2)
    sharpen = pt.Param("sharpen", "float32", default=1.0)
    black = pt.Param("black", "int32", default=25)
    white = pt.Param("white", "int32", default=1023)

    denoised = pt.Func("denoised")
    here, around = _around(raw, 12, 16)
    denoised[y, x] = pt.minimum(here, functools.reduce(pt.maximum, around))
    colours = _demosaic(denoised, pt.rounding_halving_add)
    corrected = _correct(colours)
    level = (i - black) / pt.cast("float32", white - black)
    curve = pt.Func("curve")
    curve[i] = pt.case((i <= black, 0), (i > white, 255), otherwise=_to_byte(255 * _contrast(level) + 0.5))
    curved = _curved(curve, corrected, 1023)
    sharpened = _sharpen(curved, sharpen)
    shape = (3, (raw.shape[0] - 24) // 32 * 32, (raw.shape[1] - 32) // 32 * 32)
    return pt.Pipeline(sharpened, shape=shape, name="camera_pipe")


def _polymage() -> pt.Pipeline:
    raw = pt.Input("raw", "int16", ndim=2)
    denoised = pt.Func("denoised")
    here, around = _around(raw, 24, 32)
    denoised[y, x] = pt.clamp(here, functools.reduce(pt.minimum, around), functools.reduce(pt.maximum, around))
    colours = _demosaic(denoised, pt.halving_add)
    corrected = _correct(colours)
    curve = pt.Func("curve")
    curve[i] = _to_byte(256 * _contrast(i / 1024))
    curved = _curved(curve, corrected, 1024)
    picture = pt.Func("picture")
    picture[c, y, x] = curved[2 - c, y, x]
    return pt.Pipeline(picture, shape=(3, raw.shape[0] - 48, raw.shape[1] - 64), name="camera_pipe")


def _around(raw: Any, top: int, left: int) -> tuple[pt.Expr, list[pt.Expr]]:
    """A pixel inside the margin, and its four neighbours of the same colour."""
    row, column = y + top, x + left
    return raw[row, column], [raw[row + dy, column + dx] for dy, dx in ((0, -2), (0, 2), (-2, 0), (2, 0))]


def _demosaic(pixels: pt.Func, average: Callable[[pt.Expr, pt.Expr], pt.Expr]) -> pt.Func:
    """Red, green and blue of every pixel, as int16."""
    mosaic, green, others = (pt.Func(n) for n in ("mosaic", "green", "others"))
    mosaic[y, x] = tuple(pixels[2 * y + dy, 2 * x + dx] for dy in (0, 1) for dx in (0, 1))

    def plane(f: pt.Func, k: int) -> Callable[..., pt.Expr]:
        """A half-size image, by its offset from the place at hand."""
        return lambda dy=0, dx=0: f[y + dy, x + dx][k]

    gr, r, b, gb = (plane(mosaic, k) for k in range(4))  # greens are named after the row they share with a colour
    gr_, gb_ = gr(), gb()

    def along(a: tuple[pt.Expr, pt.Expr], b: tuple[pt.Expr, pt.Expr], if_a: pt.Expr, if_b: pt.Expr) -> pt.Expr:
        """The first value where the first pair differs less."""
        return pt.select(pt.absd(*a) < pt.absd(*b), if_a, if_b)

    def smoother(a: tuple[pt.Expr, pt.Expr], b: tuple[pt.Expr, pt.Expr]) -> pt.Expr:
        return along(a, b, average(*a), average(*b))

    green[y, x] = (
        smoother((gr(0, 1), gr_), (gb(-1, 0), gb_)),  # at red
        smoother((gb(0, -1), gb_), (gr(1, 0), gr_)),  # at blue
    )
    g_r, g_b = plane(green, 0), plane(green, 1)

    def corrected(value: pt.Expr, guide: tuple[pt.Expr, pt.Expr], pair: tuple[pt.Expr, pt.Expr]) -> pt.Expr:
        """Green here, less green there, plus the other colour there."""
        return value - average(*guide) + average(*pair)

    def across(value: pt.Expr, guide: Callable[..., pt.Expr], colour: Callable[..., pt.Expr], s: int) -> pt.Expr:
        """A colour at the opposite one's sites, along one of the two diagonals."""
        falling, rising = (colour(), colour(s, -s)), (colour(0, -s), colour(s, 0))
        return along(
            falling,
            rising,
            corrected(value, (guide(), guide(s, -s)), falling),
            corrected(value, (guide(0, -s), guide(s, 0)), rising),
        )

    others[y, x] = (
        corrected(gr_, (g_r(), g_r(0, -1)), (r(0, -1), r())),  # red and blue at the green between reds
        corrected(gr_, (g_b(), g_b(-1, 0)), (b(), b(-1, 0))),
        across(g_r(), g_b, b, -1),  # blue at red
        across(g_b(), g_r, r, 1),  # red at blue
        corrected(gb_, (g_r(), g_r(1, 0)), (r(), r(1, 0))),  # red and blue at the green between blues
        corrected(gb_, (g_b(), g_b(0, 1)), (b(), b(0, 1))),
    )
    return _interleaved(mosaic, green, others)


def _interleaved(mosaic: pt.Func, green: pt.Func, others: pt.Func) -> pt.Func:
    """The colours of all pixels, from those of their places in the mosaic."""
    colours = pt.Func("colours")

    def half(f: pt.Func) -> Any:
        return f[y // 2, x // 2]

    (gr_, r_, b_, gb_), (g_r_, g_b_) = half(mosaic), half(green)
    r_gr, b_gr, b_r, r_b, r_gb, b_gb = half(others)

    def interleave(top_left: pt.Expr, top_right: pt.Expr, low_left: pt.Expr, low_right: pt.Expr) -> pt.Expr:
        left = x % 2 == 0
        value = pt.select(y % 2 == 0, pt.select(left, top_left, top_right), pt.select(left, low_left, low_right))
        return pt.cast("int16", value)

    colours[y, x] = (
        interleave(r_gr, r_, r_b, r_gb),
        interleave(gr_, g_r_, g_b_, gb_),
        interleave(b_gr, b_r, b_, b_gb),
    )
    return colours


def _correct(colours: pt.Func) -> pt.Func:
    """Colours multiplied by the matrix for the colour temperature, which lies between the two given ones."""
    temperature = pt.Param("temperature", "float32", default=3700.0)
    warm, cold = (pt.Input(name, "float32", ndim=2) for name in MATRICES)
    matrix, corrected = pt.Func("matrix"), pt.Func("corrected")
    alpha = (1 / temperature - 1 / 3200) / (1 / 7000 - 1 / 3200)
    matrix[c, i] = pt.cast("int16", 256 * (warm[c, i] * alpha + cold[c, i] * (1 - alpha)))

    def entry(column: int) -> pt.Expr:
        return pt.cast("int32", matrix[c, column])

    red, green, blue = colours[y, x]
    total = entry(3) + entry(0) * red + entry(1) * green + entry(2) * blue
    corrected[c, y, x] = pt.cast("int16", total // 256)
    return corrected


def _contrast(level: pt.Expr) -> pt.Expr:
    """A level in [0, 1], clamped first, after gamma and an S-shaped curve of two parabolas."""
    gamma = pt.Param("gamma", "float32", default=2.0)
    contrast = pt.Param("contrast", "float32", default=50.0)
    g = pt.pow(pt.clamp(level, 0, 1), 1 / gamma)
    b = 2 - pt.pow(2.0, contrast / 100)
    a = 2 - 2 * b
    return pt.select(g > 0.5, 1 - (a * (1 - g) * (1 - g) + b * (1 - g)), a * g * g + b * g)


def _to_byte(value: pt.Expr) -> pt.Expr:
    return pt.cast("uint8", pt.clamp(value, 0, 255))


def _curved(curve: pt.Func, corrected: pt.Func, last: int) -> pt.Func:
    """Colours looked up in the curve."""
    curved = pt.Func("curved")
    curved[c, y, x] = curve[pt.clamp(corrected[c, y, x], 0, last)]
    return curved


def _sharpen(curved: pt.Func, strength: pt.Expr) -> pt.Func:
    """An unsharp mask with weights 1 2 1, its averages rounded up."""
    blur_y, blur_x, sharpened, weight = (pt.Func(n) for n in ("blur_y", "blur_x", "sharpened", "weight"))

    def smooth(before: pt.Expr, here: pt.Expr, after: pt.Expr) -> pt.Expr:
        return pt.rounding_halving_add(pt.rounding_halving_add(before, after), here)

    weight[()] = pt.cast("int16", pt.cast("uint8", strength * 32))
    blur_y[c, y, x] = smooth(curved[c, y - 1, x], curved[c, y, x], curved[c, y + 1, x])
    blur_x[c, y, x] = smooth(blur_y[c, y, x - 1], blur_y[c, y, x], blur_y[c, y, x + 1])
    here = pt.cast("int16", curved[c, y, x])
    detail = here - pt.cast("int16", blur_x[c, y, x])
    sharpened[c, y, x] = pt.saturating_cast("uint8", here + detail * weight[()] // 32)
    return sharpened


def expert(target: Target, cores: int) -> pt.Schedule:
    """Two rows of the picture, that is one of the mosaic, at a time."""
    lanes = target.lanes(16)

    def sliding(name: str) -> pt.StageSchedule:
        return pt.on(name).store_at("sharpened", "strip").compute_at("sharpened", "pair")

    return pt.Schedule(
        pt.on("sharpened")
        .split("y", "strip", "pair", 96)
        .split("pair", "pair", "row", 2)
        .vectorize("x", 2 * lanes)
        .reorder("strip", "pair", "c", "row", "x", "x_v")
        .parallel("strip"),
        pt.on("blur_x").compute_inline(),
        pt.on("blur_y").compute_at("sharpened", "row").vectorize("x", 2 * lanes),
        sliding("curved")
        .split("y", "y", "row", 2)
        .unroll("c", 3)
        .vectorize("x", 2 * lanes)
        .reorder("c", "y", "x", "c_u", "row", "x_v")
        .unroll("row"),
        pt.on("corrected").compute_inline(),
        pt.on("colours").compute_at("curved", "x").unroll("y", 2).vectorize("x", 2 * lanes),
        pt.on("others").compute_inline(),
        sliding("green").vectorize("x", lanes),
        sliding("mosaic").vectorize("x", lanes),
        pt.on("denoised").compute_inline(),
        pt.on("weight").compute_root(),
        pt.on("matrix").compute_root(),
        pt.on("curve").compute_root().vectorize("i", lanes),
    )


def expert_polymage(target: Target, cores: int) -> pt.Schedule:
    """The schedule of PolyMage's formulation: no rows are kept for sharpening, and rows are computed in pairs."""
    lanes = target.lanes(16)

    def sliding(name: str) -> pt.StageSchedule:
        return pt.on(name).store_at("picture", "strip").compute_at("picture", "pair").vectorize("x", lanes)

    return pt.Schedule(
        pt.on("picture")
        .split("y", "strip", "pair", 96, tail="guard")  # strips start at even rows
        .split("pair", "pair", "row", 2, tail="guard")
        .vectorize("x", 2 * lanes)
        .reorder("strip", "pair", "x", "c", "row", "x_v")
        .unroll("c")
        .unroll("row")
        .parallel("strip"),
        *(pt.on(name).compute_inline() for name in ("curved", "corrected", "colours", "others", "denoised")),
        sliding("green"),
        sliding("mosaic"),
        pt.on("matrix").compute_root(),
        pt.on("curve").compute_root().vectorize("i", lanes),
    )


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    if name in MATRICES:
        return _MATRICES[name]
    return rng.integers(0, 1024, shape, dtype=np.uint16)


def _make_signed(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    made = _make(name, shape, rng)
    return made if name in MATRICES else made.astype(np.int16)


def _sizes(rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {"raw": (rows, columns), **dict.fromkeys(MATRICES, (3, 4))}


SENSOR = Layout("grbg", "uint16", white=1023, black=25, exponent=0.5)
_MATRICES = {name: np.array(values, np.float32) for name, values in MATRICES.items()}


def on_gpu() -> pt.Schedule:
    """All stages of a block of 32 rows by 64 columns in shared memory; a thread makes four pixels at a time."""

    def colours(name: str) -> pt.StageSchedule:
        return (
            pt.on(name)
            .compute_at("sharpened", "xo")
            .store_in("shared")
            .split("y", "yo", "row", 2)
            .split("x", "xo", "column", 2)
            .reorder("yo", "xo", "row", "column", "c")
            .thread("yo", "xo")
            .unroll("row")
            .unroll("column")
            .unroll("c", 3)
        )

    return pt.Schedule(
        pixels("sharpened", (8, 32), (4, 2), channels="c"),
        colours("curved"),
        in_block("green", "sharpened"),
        in_block("mosaic", "sharpened"),
        *inlined("blur_x", "blur_y", "corrected", "colours", "others", "denoised"),
        pt.on("weight").compute_root(),
        pt.on("matrix").compute_root().thread("c", "i"),
        pt.on("curve").compute_root().split("i", "io", "it", 64).block("io").thread("it"),
    )


APPS = (
    App(
        "camera_pipe",
        "raw uint16 to RGB uint8",
        build,
        expert,
        {"small": _sizes(216, 320), "paper": _sizes(1968, 2592), "thesis": _sizes(2584, 1568)},
        _make,
        photo=Photo({"raw": SENSOR}, gives=BYTES_RGB, fixed=_MATRICES),
        on_gpu=on_gpu,
    ),
    App(
        "camera_pipe_polymage",
        "raw int16 to BGR uint8, as in PolyMage",
        functools.partial(build, "polymage"),
        expert_polymage,
        {"small": _sizes(216, 320), "paper": _sizes(1968, 2592)},
        _make_signed,
        photo=Photo({"raw": replace(SENSOR, dtype="int16")}, gives=replace(BYTES_RGB, channels="bgr"), fixed=_MATRICES),
    ),
)
