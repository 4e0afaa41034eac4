"""Multi-scale interpolation (Halide's apps/interpolate): pixels without colour are filled in from those around them.

Colours are weighted by alpha and made coarser nine times; then, from the coarsest level back to the finest, each takes
from the level below what its own alpha leaves open. PolyMage's paper has a formulation of its own, with other taps and
zeros around every level.

The idea of the schedule: the fine levels of the way down in strips, two rows at a time; the coarse ones serially, being
small. The way up is computed from the coarsest level on, the last two levels at once: two rows of the picture need one
new row of the level below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, App, Layout, Photo, between
from .threads import in_block, in_thread, inlined, pixels

DEPTH = 10
FINE = 3  # the last level that is worth more than one thread
MIDDLE = 5  # the last one that is worth vectors
COARSE = 6  # the first one of those that are one kernel on GPUs
MIDWAY = 2  # the finest one that another kernel ends with

c, y, x = pt.vars("c y x")
Step = Callable[[pt.Func, int], pt.Func]  # a level and its number -> the next


def build(formulation: str = "halide", depth: int = DEPTH) -> pt.Pipeline:
    """img[c, y, x], red, green, blue and alpha -> the three colours."""
    img = pt.Input("img", "float32", ndim=3)
    return _polymage(img, depth) if formulation == "polymage" else _halide(img, depth)


def _halide(img: pt.Input, depth: int) -> pt.Pipeline:
    """Edges are repeated; those of level 3 once more, lest the coarse levels reach too far."""
    source, weighted = pt.edge(img, axes=(1, 2)), pt.Func("d0")
    weighted[c, y, x] = pt.select(c < 3, source[c, y, x] * source[3, y, x], source[3, y, x])

    def down(f: pt.Func, level: int) -> pt.Func:
        def before(row: Any, column: Any) -> Any:
            if level == 4:
                row, column = (pt.clamp(z, 0, n // 8) for z, n in ((row, img.shape[1]), (column, img.shape[2])))
            return f[c, row, column]

        across, result = pt.Func(f"d{level}_x"), pt.Func(f"d{level}")
        across[c, y, x] = _weighted(*(before(y, 2 * x + k) for k in (-1, 0, 1)))
        result[c, y, x] = _weighted(*(across[c, 2 * y + k, x] for k in (-1, 0, 1)))
        return result

    def up(f: pt.Func, level: int) -> pt.Func:
        across, result = pt.Func(f"u{level}_x"), pt.Func(f"u{level}")
        across[c, y, x] = (f[c, y, x // 2] + f[c, y, (x + 1) // 2]) / 2
        result[c, y, x] = (across[c, y // 2, x] + across[c, (y + 1) // 2, x]) / 2
        return result

    filled, out = _filled(depth, weighted, down, up, lambda level: pt.Func(f"i{level}")), pt.Func("out")
    out[c, y, x] = filled[c, y, x] / filled[3, y, x]
    return pt.Pipeline(out, shape=(3, *img.shape[1:]), name="interpolate")


def _polymage(img: pt.Input, depth: int) -> pt.Pipeline:
    """A level's rows and columns count from 1 and have zeros around them; so img has a ring around what is filled."""
    height, width = img.shape[1] - 2, img.shape[2] - 2

    def bounded(name: str, level: int) -> pt.Func:
        return pt.Func(name, domain=[(0, 4), *((1, (n + 2**level - 1) // 2**level) for n in (height, width))])

    weighted = bounded("d0", 0)
    weighted[c, y, x] = img[c, y, x] * img[3, y, x]

    def down(f: pt.Func, level: int) -> pt.Func:
        along, result, around = pt.Func(f"d{level}_x"), bounded(f"d{level}", level), pt.constant(f, 0, axes=(1, 2))
        along[c, y, x] = _weighted(*(around[c, 2 * y + k, x] for k in (-2, -1, 0)))
        result[c, y, x] = _weighted(*(along[c, y, 2 * x + k] for k in (-2, -1, 0)))
        return result

    def up(f: pt.Func, level: int) -> pt.Func:
        along, result, around = pt.Func(f"u{level}_x"), pt.Func(f"u{level}"), pt.constant(f, 0, axes=(1, 2))
        along[c, y, x] = (around[c, (y + 1) // 2, x] + around[c, (y + 2) // 2, x]) / 2
        result[c, y, x] = (along[c, y, (x + 1) // 2] + along[c, y, (x + 2) // 2]) / 2
        return result

    filled, out = _filled(depth, weighted, down, up, lambda level: bounded(f"i{level}", level)), pt.Func("out")
    out[c, y, x] = filled[c, y + 1, x + 1] / filled[3, y + 1, x + 1]
    return pt.Pipeline(out, shape=(3, height, width), name="interpolate_polymage")


def _filled(depth: int, weighted: pt.Func, down: Step, up: Step, level_func: Callable[[int], pt.Func]) -> pt.Func:
    """The finest level, what is missing taken from the coarser ones."""
    levels = [weighted]
    for level in range(1, depth):
        levels.append(down(levels[-1], level))
    filled = levels[-1]
    for level in reversed(range(depth - 1)):
        coarse, filled = up(filled, level), level_func(level)
        finer = levels[level]
        filled[c, y, x] = finer[c, y, x] + (1 - finer[3, y, x]) * coarse[c, y, x]
    return filled


def _weighted(a: Any, b: Any, c: Any) -> Any:
    return (a + 2 * b + c) / 4


def expert(target: Target, cores: int, depth: int = DEPTH) -> pt.Schedule:
    """Two rows of the picture at a time, and one new row of the level below."""
    lanes = target.lanes(32)

    def in_strips(name: str) -> pt.StageSchedule:
        strips = pt.on(name).compute_root().split("y", "strip", "yi", 16)
        return strips.parallel("strip") if int(name[1:]) <= FINE else strips

    def all_channels(stage: pt.StageSchedule) -> pt.StageSchedule:
        """They share alpha."""
        return stage.vectorize("x", lanes).unroll("c", 4).reorder("c", "x", "c_u", "x_v")

    def coarse(name: str) -> pt.StageSchedule:
        return pt.on(name).compute_root().partition("x", "never")

    stages = [
        pt.on("out")
        .split("y", "strip", "yi", 64)
        .split("yi", "yi", "row", 2)
        .vectorize("x", 2 * lanes)
        .reorder("strip", "yi", "row", "x", "c", "x_v")
        .unroll("row")
        .unroll("c")
        .parallel("strip"),
        all_channels(pt.on("i1").store_at("out", "strip").compute_at("out", "yi").reorder("y", "c", "x")),
    ]
    for n in range(1, MIDDLE + 1):
        across = pt.on(f"d{n}_x").store_at(f"d{n}", "strip").compute_at(f"d{n}", "yi").reorder("y", "c", "x")
        stages += [in_strips(f"d{n}").vectorize("x", lanes).reorder("strip", "yi", "c", "x"), all_channels(across)]
    stages += [all_channels(in_strips(f"i{n}").reorder("strip", "yi", "c", "x")) for n in range(2, MIDDLE + 1)]
    stages += [coarse(name) for n in range(MIDDLE + 1, depth) for name in (f"d{n}_x", f"d{n}")]
    stages += [coarse(f"i{n}") for n in range(MIDDLE + 1, depth - 1)]
    inlined = ["d0", "i0", *(f"u{n}{part}" for n in range(depth - 1) for part in ("", "_x"))]
    return pt.Schedule(*stages, *(pt.on(name).compute_inline() for name in inlined))


def on_gpu(depth: int = DEPTH) -> pt.Schedule:
    """Kernels for the fine levels, on the way down. One for all coarse levels, down and up: each of its blocks computes
    whatever its tile needs of them. One for the middle levels on the way up, and one for the finest two."""
    coarse = pt.on(f"i{COARSE}").tile("y", "x", "yo", "xo", "ty", "tx", 8, 8).reorder("yo", "xo", "ty", "tx", "c")
    stages = [_level("d1", 8, 32), *(_level(f"d{n}") for n in range(2, COARSE))]
    stages += [coarse.block("yo", "xo").thread("ty", "tx", "c").reorder_storage("y", "x", "c")]
    stages += [_in_block(f"d{n}", f"i{COARSE}") for n in range(COARSE, depth)]
    stages += [_in_block(f"i{n}", f"i{COARSE}") for n in range(COARSE + 1, depth - 1)]
    stages += [_level(f"i{MIDWAY}", 8, 32), *(_in_block(f"i{n}", f"i{MIDWAY}") for n in range(MIDWAY + 1, COARSE))]
    stages += [_in_block(f"i{n}", "out") for n in range(1, MIDWAY)]
    return pt.Schedule(pixels("out", (8, 16), (1, 4), channels="c"), *stages, *_around_levels(depth))


def on_gpu_by_levels(depth: int = DEPTH) -> pt.Schedule:
    """A kernel for each level, on the way down and up."""
    stages = [_level(f"d{n}") for n in range(1, depth)] + [_level(f"i{n}") for n in range(1, depth - 1)]
    return pt.Schedule(pixels("out", (4, 32), (1, 4), channels="c"), *stages, *_around_levels(depth))


def _level(name: str, rows: int = 4, columns: int = 32) -> pt.StageSchedule:
    """A level whose pixels are vectors of four channels, a thread for each."""
    stage = pt.on(name).compute_root().split("y", "yo", "ty", rows).split("x", "xo", "tx", columns)
    return _vectors(stage.reorder("yo", "xo", "ty", "tx", "c").block("yo", "xo").thread("ty", "tx"))


def _in_block(name: str, consumer: str) -> pt.StageSchedule:
    """What a block needs of a level."""
    return _vectors(in_block(name, consumer).reorder("y", "x", "c"))


def _vectors(stage: pt.StageSchedule) -> pt.StageSchedule:
    return stage.vectorize("c", 4).reorder_storage("y", "x", "c")


def _around_levels(depth: int) -> list[pt.StageSchedule]:
    """What is not stored; a thread holds what the coarser level gives its pixels, as vectors."""
    inner = [f"u{n}{part}" for n in range(1, depth - 1) for part in ("", "_x")] + [f"d{n}_x" for n in range(1, depth)]
    coarser = in_thread("u0", "out").reorder("y", "x", "c").vectorize("c", 4)
    return [coarser, *inlined("d0", "i0", "u0_x", *inner)]


PHOTO = Photo({"img": Layout("rgba", "float32")}, gives=FLOAT_RGB)

APPS = (
    App(
        "interpolate",
        "multi-scale interpolation, float32 planar RGBA",
        build,
        expert,
        {"small": {"img": (4, 200, 300)}, "paper": {"img": (4, 2560, 1536)}},
        between(0.1, 1),
        photo=PHOTO,
        on_gpu=on_gpu,
    ),
    App(
        "interpolate_polymage",
        "multi-scale interpolation as in PolyMage's paper",
        functools.partial(build, "polymage"),
        expert,
        {"small": {"img": (4, 202, 302)}, "paper": {"img": (4, 2562, 1538)}},
        between(0.1, 1),
        photo=PHOTO,
        on_gpu=on_gpu_by_levels,
    ),
)
