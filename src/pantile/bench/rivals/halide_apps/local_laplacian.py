"""Local Laplacian filter of a planar colour image: eight levels of brightness, pyramids of eight levels."""

from collections.abc import Mapping
from typing import Any

import halide as hl

BEAM_SIZE = 1
LEVELS = 8
DEPTH = 8
FINE = 4  # the levels beyond are computed without vectors
STEPS = 256
LANES = 8
GPU_TILE, SMALL_GPU_TILE, LARGE_LEVELS = (32, 8), (4, 4), 5
CURVE_TILE = 32
ALPHA = 1 / (LEVELS - 1)
BETA = 1.0

X, Y, C, K = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("k")


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the filtered ``images["img"]``, of the same shape."""
    # Parameters as published; constants for autoschedulers, which need estimates: the bindings take none of ints.
    levels = hl.Param(hl.Int(32), "levels", LEVELS) if manual else hl.i32(LEVELS)
    alpha = hl.Param(hl.Float(32), "alpha", ALPHA) if manual else hl.f32(ALPHA)
    beta = hl.Param(hl.Float(32), "beta", BETA) if manual else hl.f32(BETA)
    steps = hl.f32(levels - 1)

    curve = hl.Func("curve")
    t = hl.f32(X) / hl.f32(STEPS)
    curve[X] = alpha * t * hl.exp(-t * t / hl.f32(2))

    padded = hl.BoundaryConditions.repeat_edge(images["img"])
    colour, gray = hl.Func("colour"), hl.Func("gray")
    colour[X, Y, C] = hl.f32(padded[X, Y, C]) / hl.f32(65535)
    gray[X, Y] = hl.f32(0.299) * colour[X, Y, 0] + hl.f32(0.587) * colour[X, Y, 1] + hl.f32(0.114) * colour[X, Y, 2]

    level = K * (hl.f32(1) / steps)
    place = hl.clamp(hl.i32(gray[X, Y] * steps * hl.f32(STEPS)), 0, (levels - 1) * STEPS)
    remapped = hl.Func("remapped_0")
    remapped[X, Y, K] = beta * (gray[X, Y] - level) + level + curve[place - STEPS * K]
    gaussian, brightness = [remapped], [gray]
    for j in range(1, DEPTH):
        gaussian.append(_down(gaussian[-1], f"gaussian_{j}", K))
        brightness.append(_down(brightness[-1], f"brightness_{j}"))

    results: list[hl.Func] = []
    for j in reversed(range(DEPTH)):
        laplacian = gaussian[j]
        if j < DEPTH - 1:
            laplacian = hl.Func(f"laplacian_{j}")
            laplacian[X, Y, K] = gaussian[j][X, Y, K] - _up(gaussian[j + 1], K)[X, Y, K]
        v = brightness[j][X, Y] * steps
        below = hl.clamp(hl.i32(v), 0, levels - 2)
        part = v - hl.f32(below)
        chosen, result = hl.Func(f"chosen_{j}"), hl.Func(f"result_{j}")
        chosen[X, Y] = (hl.f32(1) - part) * laplacian[X, Y, below] + part * laplacian[X, Y, below + 1]
        result[X, Y] = _up(results[-1])[X, Y] + chosen[X, Y] if results else chosen[X, Y]
        results.append(result)
    results.reverse()

    output = hl.Func("output")
    toned = results[0][X, Y] * (colour[X, Y, C] + hl.f32(0.01)) / (gray[X, Y] + hl.f32(0.01))
    output[X, Y, C] = hl.u16(hl.clamp(toned, hl.f32(0), hl.f32(1)) * hl.f32(65535))

    if manual and target.has_gpu_feature():
        gpu_expert(output, curve, brightness, gaussian, results)
    elif manual:
        _schedule(output, curve, brightness, gaussian, results)
    return output


def _schedule(
    output: hl.Func, curve: hl.Func, brightness: list[hl.Func], gaussian: list[hl.Func], results: list[hl.Func]
) -> None:
    strip = hl.Var("strip")
    curve.compute_root()
    output.reorder(C, X, Y).split(Y, strip, Y, 64).parallel(strip).vectorize(X, LANES)
    results[0].compute_at(output, Y).vectorize(X, LANES)
    for j in range(FINE + 1):
        brightness[j].compute_root().parallel(Y, 32).vectorize(X, LANES)
    for j in range(1, FINE + 1):
        gaussian[j].compute_root().reorder_storage(X, K, Y).reorder(K, Y).parallel(Y, 8).vectorize(X, LANES)
        results[j].store_at(output, strip).compute_at(output, Y).fold_storage(Y, 4).vectorize(X, LANES)
    for j in range(FINE + 1, DEPTH):
        brightness[j].compute_root()
        gaussian[j].compute_root().parallel(K)
        results[j].compute_root()


def gpu_expert(
    output: hl.Func, curve: hl.Func, brightness: list[hl.Func], gaussian: list[hl.Func], results: list[hl.Func]
) -> None:
    """A kernel per level of each pyramid, in tiles of pixels. The curve is made on the GPU, too, not as published: a
    copy from the processor would keep the kernels waiting, and keep them out of a graph.
    """
    inner_x, inner_y = hl.Var("inner_x"), hl.Var("inner_y")
    curve.compute_root().gpu_tile(X, inner_x, CURVE_TILE)
    output.gpu_tile(X, Y, inner_x, inner_y, *GPU_TILE)
    for j in range(DEPTH):
        tile = GPU_TILE if j < LARGE_LEVELS else SMALL_GPU_TILE
        if j > 0:
            brightness[j].compute_root().gpu_tile(X, Y, inner_x, inner_y, *tile)
            gaussian[j].compute_root().reorder(K, X, Y).gpu_tile(X, Y, inner_x, inner_y, *tile)
        results[j].compute_root().gpu_tile(X, Y, inner_x, inner_y, *tile)


def _down(f: hl.Func, name: str, *rest: hl.Var) -> hl.Func:
    """Weigh by 1 3 3 1 along x and then along y, at every other pixel."""
    across, down = hl.Func(f"{name}_x"), hl.Func(name)

    def at(column: Any, row: Any) -> Any:
        return (column, row, *rest)

    across[at(X, Y)] = _weighted([f[at(2 * X + d, Y)] for d in range(-1, 3)])
    down[at(X, Y)] = _weighted([across[at(X, 2 * Y + d)] for d in range(-1, 3)])
    return down


def _weighted(taps: list[hl.Expr]) -> hl.Expr:
    return (taps[0] + hl.f32(3) * (taps[1] + taps[2]) + taps[3]) / hl.f32(8)


def _up(f: hl.Func, *rest: hl.Var) -> hl.Func:
    """Twice the size: three quarters of the nearest pixel and one of the next."""
    across, up = hl.Func(f"{f.name()}_up_x"), hl.Func(f"{f.name()}_up")

    def at(column: Any, row: Any) -> Any:
        return (column, row, *rest)

    across[at(X, Y)] = hl.lerp(f[at((X + 1) / 2, Y)], f[at((X - 1) / 2, Y)], _weight(X))
    up[at(X, Y)] = hl.lerp(across[at(X, (Y + 1) / 2)], across[at(X, (Y - 1) / 2)], _weight(Y))
    return up


def _weight(z: hl.Var) -> hl.Expr:
    """Of the coarse pixel before `z`: a quarter at even ones, where it is the second nearest."""
    return hl.f32(2 * (z % 2) + 1) / hl.f32(4)
