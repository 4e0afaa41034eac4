"""Pyramid blending of two planar colour images by a mask, with four levels. Halide publishes no program for it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import halide as hl

BEAM_SIZE = 1
LEVELS = 4
DOWN_ROWS, STRIP_ROWS = 16, 8
GPU_TILE = (32, 8)

X, Y, C = hl.Var("x"), hl.Var("y"), hl.Var("c")


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return ``images["a"]`` where ``images["mask"]`` is 1 and ``images["b"]`` where it is 0, of the same shape."""
    width, height = images["a"].dim(0).extent(), images["a"].dim(1).extent()
    sizes = [((width + 2**j - 1) // 2**j, (height + 2**j - 1) // 2**j) for j in range(LEVELS)]
    pyramids = [_pyramid("a", images, sizes, C), _pyramid("b", images, sizes, C), _pyramid("mask", images, sizes)]
    a, b, mask = ([level.values for level in pyramid] for pyramid in pyramids)

    results: list[hl.Func] = []
    for j in reversed(range(LEVELS)):
        details = [p[j][X, Y, C] - _up(p[j + 1], sizes[j + 1]) if j < LEVELS - 1 else p[j][X, Y, C] for p in (a, b)]
        mixed = mask[j][X, Y] * details[0] + (hl.f32(1) - mask[j][X, Y]) * details[1]
        result = hl.Func(f"result_{j}")
        result[X, Y, C] = _up(results[-1], sizes[j + 1]) + mixed if results else mixed
        results.append(result)
    results.reverse()

    if manual and target.has_gpu_feature():
        gpu_expert([*a[1:], *b[1:]], mask[1:], results)
    elif manual:
        _schedule([level for p in pyramids for level in p[1:]], results, target.natural_vector_size(hl.Float(32)))
    return results[0]


def _schedule(levels: list["_Level"], results: list[hl.Func], lanes: int) -> None:
    """Every level in strips of rows, on the way up in squares of four pixels, which share what they read; sums along
    rows are stored for a strip, all else is inlined.
    """
    strip, inner_x, inner_y = hl.Var("strip"), hl.Var("inner_x"), hl.Var("inner_y")
    for level in levels:
        down = level.values
        down.compute_root().split(Y, strip, Y, DOWN_ROWS).parallel(strip).vectorize(X, lanes)
        if down.dimensions() == 3:
            down.reorder(X, C, Y, strip)
        level.across.store_at(down, strip).compute_at(down, Y).vectorize(X, lanes)
    for result in results:
        result.compute_root().bound(C, 0, 3).split(Y, strip, Y, STRIP_ROWS).parallel(strip)
        result.split(Y, Y, inner_y, 2).split(X, X, inner_x, 2).reorder(inner_x, inner_y, X, C, Y, strip)
        result.unroll(inner_x).unroll(inner_y).vectorize(X, lanes)


def gpu_expert(pyramids: list[hl.Func], masks: list[hl.Func], results: list[hl.Func]) -> None:
    """A kernel per level of each pyramid, in tiles of pixels, as the pyramids of Halide's own programs."""
    inner_x, inner_y = hl.Var("inner_x"), hl.Var("inner_y")
    for down in pyramids:
        down.compute_root().reorder(X, Y, C).gpu_tile(X, Y, inner_x, inner_y, *GPU_TILE)
    for mask in masks:
        mask.compute_root().gpu_tile(X, Y, inner_x, inner_y, *GPU_TILE)
    for result in results:
        result.compute_root().bound(C, 0, 3).reorder(C, X, Y).gpu_tile(X, Y, inner_x, inner_y, *GPU_TILE).unroll(C)


class _Level(NamedTuple):
    """A level of a pyramid, and the sums along rows that it is made of."""

    values: Any
    across: Any = None


def _edges(f: Any, size: tuple[Any, Any]) -> hl.Func:
    return hl.BoundaryConditions.repeat_edge(f, [hl.Range(0, size[0]), hl.Range(0, size[1])])


def _pyramid(
    name: str, images: Mapping[str, hl.ImageParam], sizes: list[tuple[Any, Any]], *rest: hl.Var
) -> list[_Level]:
    """The image, and ever smaller ones: 1 4 6 4 1 along x and then along y, at every other pixel."""
    levels = [_Level(images[name])]

    def at(column: Any, row: Any) -> Any:
        return (column, row, *rest)

    for j in range(1, LEVELS):
        f, across, down = _edges(levels[-1].values, sizes[j - 1]), hl.Func(f"{name}_{j}_x"), hl.Func(f"{name}_{j}")
        across[at(X, Y)] = _weighted([f[at(2 * X + d, Y)] for d in range(-2, 3)])
        down[at(X, Y)] = _weighted([across[at(X, 2 * Y + d)] for d in range(-2, 3)])
        levels.append(_Level(down, across))
    return levels


def _weighted(taps: list[hl.Expr]) -> hl.Expr:
    return (taps[0] + taps[4] + hl.f32(4) * (taps[1] + taps[3]) + hl.f32(6) * taps[2]) / hl.f32(16)


def _up(f: hl.Func, size: tuple[Any, Any]) -> hl.Expr:
    """The value at twice the size, along x and then along y: even pixels weigh 1 6 1, odd ones lie in the middle."""
    padded, across = _edges(f, size), hl.Func(f"{f.name()}_up_x")
    across[X, Y, C] = _between(X, [padded[X // 2 + d, Y, C] for d in (-1, 0, 1)])
    return _between(Y, [across[X, Y // 2 + d, C] for d in (-1, 0, 1)])


def _between(z: hl.Var, taps: list[hl.Expr]) -> hl.Expr:
    before, here, after = taps
    return hl.select(z % 2 == 0, (before + hl.f32(6) * here + after) / hl.f32(8), (here + after) / hl.f32(2))
