"""Blending two pictures by a mask, scale by scale (Burt and Adelson; a benchmark of PolyMage's paper).

Each picture becomes a Laplacian pyramid; each level is a mixture of the two by the mask made as coarse as it is, and
the levels are added up again. Edges are repeated on every level. PolyMage's formulation repeats none: its result is
smaller than the pictures by what the coarsest level reaches.

The idea of the schedule: every level of the way down in strips of rows, three channels one after the other; on the way
up, two rows at a time with all that is between two levels computed in registers.
"""

from __future__ import annotations

import functools
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import FLOAT_RGB, App, Layout, Photo, floats
from .threads import inlined, pixels

LEVELS = 4
MARGIN = 30  # of PolyMage's result
NAMES = ("a", "b", "mask")

c, y, x = pt.vars("c y x")


def build(formulation: str = "edges", levels: int = LEVELS) -> pt.Pipeline:
    """Pictures a and b, [c, y, x], and mask[y, x] from 0 (all b) to 1 (all a) -> a picture."""
    a, b = pt.Input("a", "float32", ndim=3), pt.Input("b", "float32", ndim=3)
    mask = pt.Input("mask", "float32", ndim=2)
    edges = formulation == "edges"
    pyramids = {f.name: _pyramid(f, a, edges, levels) for f in (a, b, mask)}

    result: Any = None
    for level in reversed(range(levels)):
        parts = {}
        for name in ("a", "b"):
            parts[name] = picture = pyramids[name][level]
            if level < levels - 1:
                coarser = _up(pyramids[name][level + 1], f"{name}{level}_up", edges)
                parts[name] = pt.Func(f"{name}{level}_detail")
                parts[name][c, y, x] = picture[c, y, x] - coarser[c, y, x]
        weight = pyramids["mask"][level][y, x]
        mixed = weight * parts["a"][c, y, x] + (1 - weight) * parts["b"][c, y, x]
        coarse, result = result, _level(f"o{level}", a, level)
        result[c, y, x] = mixed if coarse is None else _up(coarse, f"o{level}_up", edges)[c, y, x] + mixed

    if edges:
        return pt.Pipeline(result, shape=a.shape, name="pyramid_blend")
    out = pt.Func("out")
    out[c, y, x] = result[c, y + MARGIN, x + MARGIN]
    shape = (a.shape[0], a.shape[1] - 2 * MARGIN, a.shape[2] - 2 * MARGIN)
    return pt.Pipeline(out, shape=shape, name="pyramid_blend_polymage")


def _level(name: str, like: pt.Input, level: int, ndim: int = 3) -> pt.Func:
    """A Func that ends where that level of a pyramid does; all pictures are as large as one of them."""
    sizes = [like.shape[0], *((n + 2**level - 1) // 2**level for n in like.shape[1:])]
    return pt.Func(name, domain=[(0, n) for n in sizes[-ndim:]])


def _pyramid(source: pt.Input, like: pt.Input, edges: bool, count: int) -> list[Any]:
    """The picture, and ever smaller ones: 1 4 6 4 1 along x and then along y, at every other pixel."""
    rest = (c,) if source.ndim == 3 else ()

    def at(row: Any, column: Any) -> Any:
        return (*rest, row, column)

    levels: list[Any] = [source]
    for level in range(1, count):
        f = pt.edge(levels[-1], axes=(source.ndim - 2, source.ndim - 1)) if edges else levels[-1]
        across, down = pt.Func(f"{source.name}{level}_x"), _level(f"{source.name}{level}", like, level, source.ndim)
        across[at(y, x)] = _weighted(*(f[at(y, 2 * x + d)] for d in range(-2, 3)))
        down[at(y, x)] = _weighted(*(across[at(2 * y + d, x)] for d in range(-2, 3)))
        levels.append(down)
    return levels


def _weighted(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return (a + 4 * b + 6 * c + 4 * d + e) / 16


def _up(f: pt.Func, name: str, edges: bool) -> pt.Func:
    """Twice the size, along x and then along y."""
    source = pt.edge(f, axes=(1, 2)) if edges else f
    across, up = pt.Func(f"{name}_x"), pt.Func(name)
    across[c, y, x] = _between(x, *(source[c, y, x // 2 + d] for d in (-1, 0, 1)))
    up[c, y, x] = _between(y, *(across[c, y // 2 + d, x] for d in (-1, 0, 1)))
    return up


def _between(z: Any, before: Any, here: Any, after: Any) -> Any:
    """Even places weigh 1 6 1, odd ones lie in the middle."""
    return pt.select(z % 2 == 0, (before + 6 * here + after) / 8, (here + after) / 2)


def expert(target: Target, cores: int, last: str = "o0", levels: int = LEVELS) -> pt.Schedule:
    """Rows in pairs, every loop over x in vectors."""
    lanes = target.lanes(32)

    def in_strips(name: str, rows: int) -> pt.StageSchedule:
        return pt.on(name).compute_root().split("y", "strip", "yi", rows).parallel("strip")

    def pairs_of_rows(name: str, rows: int) -> pt.StageSchedule:
        pairs = in_strips(name, rows).split("yi", "yi", "row", 2).vectorize("x", 2 * lanes).unroll("row")
        return pairs.reorder("strip", "yi", "c", "x", "row", "x_v")

    stages = [pairs_of_rows(last, 64)]
    stages += [pairs_of_rows(f"o{level}", 16) for level in range(1, levels)]
    for level in range(1, levels):
        for name in NAMES:
            down = in_strips(f"{name}{level}", 16).vectorize("x", lanes)
            stages += [
                down if name == "mask" else down.reorder("strip", "yi", "c", "x"),
                pt.on(f"{name}{level}_x")
                .store_at(f"{name}{level}", "strip")
                .compute_at(f"{name}{level}", "yi")
                .vectorize("x", lanes),
            ]
    return pt.Schedule(*stages, *inlined(*_between_levels(last, levels)))


def on_gpu(last: str = "o0", levels: int = LEVELS) -> pt.Schedule:
    """A kernel for each level of each pyramid. On the way down a thread computes some rows of a column; on the way up
    some rows and two columns, which share what they read of the coarser level."""

    def mixed(name: str, rows: int) -> pt.StageSchedule:
        """All channels in a thread: they share the mask."""
        return (
            pt.on(name)
            .compute_root()
            .tile("y", "x", "yo", "xo", "yi", "xi", 4 * rows, 64)
            .split("yi", "ty", "row", rows)
            .split("xi", "tx", "column", 2)
            .unroll("c", 3)
            .reorder("yo", "xo", "ty", "tx", "c", "row", "c_u", "column")
            .block("yo", "xo")
            .thread("ty", "tx")
            .unroll("row")
            .vectorize("column")
        )

    stages = [mixed(last, 4), *(mixed(f"o{level}", 2) for level in range(1, levels))]
    for level in range(1, levels):
        rows = 4 if level == 1 else 2
        stages += [pixels(f"{name}{level}", (4, 32), (rows, 1), planes="c") for name in "ab"]
        stages += [pixels(f"mask{level}", (4, 32), (rows, 1))]
    across = [f"{name}{level}_x" for name in NAMES for level in range(1, levels)]
    return pt.Schedule(*stages, *inlined(*across, *_between_levels(last, levels)))


def _between_levels(last: str, levels: int) -> list[str]:
    """Stages that are never stored."""
    ups = [f"{name}{level}_up{part}" for name in "abo" for level in range(levels - 1) for part in ("", "_x")]
    details = [f"{name}{level}_detail" for name in "ab" for level in range(levels - 1)]
    return [*ups, *details, *(["o0"] if last != "o0" else [])]


def _sizes(height: int, width: int) -> dict[str, tuple[int, ...]]:
    return {"a": (3, height, width), "b": (3, height, width), "mask": (height, width)}


PHOTO = Photo({"a": FLOAT_RGB, "b": FLOAT_RGB, "mask": Layout("grey", "float32")}, gives=FLOAT_RGB)

APPS = (
    App(
        "pyramid_blend",
        "pyramid blending, float32 planar RGB",
        build,
        expert,
        {"small": _sizes(200, 300), "paper": _sizes(2160, 3840)},
        floats,
        photo=PHOTO,
        on_gpu=on_gpu,
    ),
    App(
        "pyramid_blend_polymage",
        "pyramid blending as in PolyMage's paper",
        functools.partial(build, "polymage"),
        functools.partial(expert, last="out"),
        {"small": _sizes(260, 360), "paper": _sizes(2220, 3900)},
        floats,
        photo=PHOTO,
        on_gpu=functools.partial(on_gpu, last="out"),
    ),
)
