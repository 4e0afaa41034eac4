"""Depth from two views, and a lens that is in focus at one depth."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import halide as hl

BEAM_SIZE = 1
SLICES, FOCUS, BLUR_PER_SLICE, SAMPLES = 32, 13, 0.5, 32
LEVELS = 8
RADIUS = int(max(SLICES - FOCUS, FOCUS) * BLUR_PER_SLICE)  # of the largest circle
GPU_TILE, GPU_BOX = (32, 4), (16, 8, 1)

X, Y, Z, C = hl.Var("x"), hl.Var("y"), hl.Var("z"), hl.Var("c")


class _Stages(NamedTuple):
    """All that a schedule names."""

    matching: list[hl.Func]
    pushed: list[hl.Func]
    pulled: list[hl.Func]
    depth: hl.Func
    worst: list[hl.Func]
    rgba: hl.Func
    sampling: list[hl.Func]
    sums: hl.Func
    sample: hl.RDom
    output: hl.Func


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return ``images["left"]`` out of focus where its depth, seen from ``images["right"]``, is another."""
    left, right = images["left"], images["right"]
    view, other = hl.BoundaryConditions.repeat_edge(left), hl.BoundaryConditions.repeat_edge(right)

    cost, confidence = _matches(view, other)
    fine = hl.Func("weighed")
    fine[X, Y, Z, C] = hl.select(C == 0, cost[X, Y, Z] * confidence[X, Y], confidence[X, Y])
    pushed = [fine]
    width, height = left.width(), left.height()
    for level in range(1, LEVELS):
        width, height = width / 2, height / 2
        down = _down(pushed[-1], f"down_{level}")
        pushed.append(hl.BoundaryConditions.repeat_edge(down, [(0, width), (0, height)]))
    pulled = [pushed[-1]]
    for level in reversed(range(LEVELS - 1)):
        smoother = hl.Func(f"smooth_{level}")
        up = _up(pulled[-1], f"up_{level}")
        smoother[X, Y, Z, C] = hl.f32(0.5) * up[X, Y, Z, C] + hl.f32(0.5) * pushed[level][X, Y, Z, C]
        pulled.append(smoother)
    pulled.reverse()

    depth, radius = hl.Func("depth"), hl.Func("radius")
    slices = hl.RDom([(0, SLICES)])
    depth[X, Y] = hl.argmin(pulled[0][X, Y, slices.x, 0] / pulled[0][X, Y, slices.x, 1])[0]
    radius[X, Y] = hl.f32(hl.abs(depth[X, Y] - FOCUS)) * hl.f32(BLUR_PER_SLICE)
    worst_y, worst = hl.Func("worst_y"), hl.Func("worst")
    around = hl.RDom([(-RADIUS, 2 * RADIUS + 1)])
    worst_y[X, Y] = hl.maximum(radius[X, Y + around.x])
    worst[X, Y] = hl.maximum(worst_y[X + around.x, Y])

    rgba, places, seen = hl.Func("rgba"), hl.Func("places"), hl.Func("seen")
    rgba[X, Y, C] = hl.select(C < 3, hl.f32(view[X, Y, hl.clamp(C, 0, 2)]), hl.f32(255))
    places[X, Y, Z] = hl.Tuple([_sampled(which, worst[X, Y]) for which in (0, 1)])
    u, v = places[X, Y, Z][0], places[X, Y, Z][1]
    distance = hl.f32(u * u + v * v)
    reaches = (distance < radius[X, Y] * radius[X, Y]) | (depth[X + u, Y + v] < depth[X, Y])
    reached = distance < radius[X + u, Y + v] * radius[X + u, Y + v]
    seen[X, Y, Z] = hl.select(reaches & reached, hl.f32(1), hl.f32(0))

    sums, output = hl.Func("sums"), hl.Func("output")
    sample = hl.RDom([(0, SAMPLES)])
    there = places[X, Y, sample.x]
    sums[X, Y, C] = rgba[X, Y, C]
    sums[X, Y, C] += seen[X, Y, sample.x] * rgba[X + there[0], Y + there[1], C]
    output[X, Y, C] = sums[X, Y, C] / sums[X, Y, 3]

    if manual:
        schedule = gpu_expert if target.has_gpu_feature() else _schedule
        matching, around_depth, sampling = [cost, confidence], [worst_y, worst], [places, seen]
        schedule(_Stages(matching, pushed, pulled, depth, around_depth, rgba, sampling, sums, sample, output))
    return output


def _matches(view: hl.Func, other: hl.Func) -> tuple[hl.Func, hl.Func]:
    """How badly each shift fits, and the variance of that over all shifts."""
    cost, confidence = hl.Func("cost"), hl.Func("confidence")
    total: Any = hl.f32(0)
    for c in range(3):
        near = [hl.absd(view[X, Y, c], other[X + 2 * Z + d, Y, c]) for d in (0, 1)]
        difference = hl.f32(hl.min(*near))
        total = total + difference * difference
    cost[X, Y, Z] = total
    shifts = hl.RDom([(0, SLICES)])
    here = cost[X, Y, shifts.x]
    mean = hl.sum(here / hl.f32(SLICES))
    confidence[X, Y] = hl.sum(here * here / hl.f32(SLICES)) - mean * mean
    return cost, confidence


def _down(f: hl.Func, name: str) -> hl.Func:
    """Weigh by 1 3 3 1 along x and then along y, at every other pixel."""
    across, down = hl.Func(f"{name}_x"), hl.Func(name)
    across[X, Y, Z, C] = _weighted([f[2 * X + d, Y, Z, C] for d in range(-1, 3)])
    down[X, Y, Z, C] = _weighted([across[X, 2 * Y + d, Z, C] for d in range(-1, 3)])
    return down


def _weighted(taps: list[hl.Expr]) -> hl.Expr:
    return (taps[0] + hl.f32(3) * (taps[1] + taps[2]) + taps[3]) / hl.f32(8)


def _up(f: hl.Func, name: str) -> hl.Func:
    """Twice the size: three quarters of the nearest pixel, a quarter of the next."""
    across, up = hl.Func(f"{name}_x"), hl.Func(name)
    quarter, rest = hl.f32(0.25), hl.f32(0.75)
    across[X, Y, Z, C] = quarter * f[X / 2 - 1 + 2 * (X % 2), Y, Z, C] + rest * f[X / 2, Y, Z, C]
    up[X, Y, Z, C] = quarter * across[X, Y / 2 - 1 + 2 * (Y % 2), Z, C] + rest * across[X, Y / 2, Z, C]
    return up


def _sampled(which: int, worst: hl.Expr) -> hl.Expr:
    """How far sample Z of a pixel is from it, along x or along y: random, but the same in every run."""
    h = _mixed(hl.cast(hl.UInt(32), which + 1))
    for place in (X, Y, Z):
        h = _mixed(h ^ hl.cast(hl.UInt(32), place))
    random = hl.f32(h >> hl.cast(hl.UInt(32), 8)) * hl.f32(2.0**-24)
    return hl.clamp(hl.i32((random - hl.f32(0.5)) * hl.f32(2) * worst), -RADIUS, RADIUS)


def _mixed(h: hl.Expr) -> hl.Expr:
    def bits(value: int) -> hl.Expr:
        return hl.cast(hl.UInt(32), value - ((value >> 31) << 32))

    h = (h ^ (h >> bits(16))) * bits(0x7FEB352D)
    h = (h ^ (h >> bits(15))) * bits(0x846CA68B)
    return h ^ (h >> bits(16))


def gpu_expert(of: _Stages) -> None:
    """A kernel per level of each pyramid, and per stage around them; a thread takes all samples of a pixel."""
    xi, yi, zi = hl.Var("xi"), hl.Var("yi"), hl.Var("zi")
    of.pushed[0].compute_root().reorder(C, Z, X, Y).bound(C, 0, 2).unroll(C).gpu_tile(X, Y, xi, yi, *GPU_TILE)
    for stage in of.matching:
        stage.compute_at(of.pushed[0], xi)
    for level in [*of.pushed[1:], *of.pulled[1:-1]]:  # the coarsest is both
        x, y, z = level.args()[:3]
        level.compute_root().gpu_tile(x, y, z, xi, yi, zi, *GPU_BOX)
    for stage in (of.depth, *of.worst):
        stage.compute_root().gpu_tile(X, Y, xi, yi, *GPU_TILE)
    of.rgba.compute_root().reorder(C, X, Y).bound(C, 0, 4).unroll(C).gpu_tile(X, Y, xi, yi, *GPU_TILE)
    of.output.compute_root().reorder(C, X, Y).bound(C, 0, 3).unroll(C).gpu_tile(X, Y, xi, yi, *GPU_TILE)
    of.sums.compute_at(of.output, xi).bound(C, 0, 4)
    of.sums.update().reorder(C, X, of.sample.x).unroll(C)
    for stage in of.sampling:
        stage.compute_at(of.sums, X)


def _schedule(of: _Stages) -> None:
    xi, yi, task = hl.Var("xi"), hl.Var("yi"), hl.Var("task")
    of.pushed[0].compute_root().reorder(C, Z, X, Y).bound(C, 0, 2).unroll(C).vectorize(X, 16).parallel(Y, 4)
    for stage in of.matching:
        stage.compute_at(of.pushed[0], X).vectorize(X)
    for level in of.pushed[1:]:
        level.compute_at(of.pulled[1], task).vectorize(level.args()[0], 8)
    for level in of.pulled[2:-1]:
        level.compute_at(of.pulled[1], task).tile(X, Y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
    of.pulled[1].compute_root().fuse(Z, C, task).parallel(task).tile(X, Y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
    of.depth.compute_root().tile(X, Y, xi, yi, 8, 2).vectorize(xi).unroll(yi).parallel(Y, 8)
    of.rgba.compute_root().reorder(C, X, Y).bound(C, 0, 4).unroll(C).vectorize(X, 8).parallel(Y, 8)
    of.output.compute_root().reorder(C, X, Y).bound(C, 0, 3).unroll(C).vectorize(X, 8).parallel(Y)
    for stage in of.worst:
        stage.compute_at(of.output, Y).vectorize(X, 8)
    of.sums.compute_at(of.output, X).bound(C, 0, 4).vectorize(X)
    of.sums.update().reorder(C, X, of.sample.x).vectorize(X).unroll(C)
    places, seen = of.sampling
    places.compute_at(of.sums, X).vectorize(X)
    seen.compute_at(of.sums, X).unroll(X)
