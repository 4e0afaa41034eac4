"""Depth from two views, and a lens that is in focus at one depth (Halide's apps/lens_blur).

For each of 32 shifts between the views, the differences of colour are weighed by how much they tell the shifts apart,
smoothed over pyramids, and the best shift is the depth of a pixel. Then each pixel becomes the mean of those around it
whose circles of confusion reach it: 32 random samples of as large a square as any circle nearby.

The idea of the schedule: slices of the pyramids are independent of each other, so each task makes all coarse levels of
one slice, in its own cache. The finest level is never stored: a vector of pixels goes through all slices, keeping the
best. Samples are taken for a vector of pixels at a time; the four channels of a sample are neighbours in memory.
"""

from __future__ import annotations

from typing import Any

import pantile as pt
from pantile.target import Target

from .app import BYTES_RGB, FLOAT_RGB, App, Photo, octets
from .threads import in_block, inlined, pixels

SLICES = 32
FOCUS = 13
BLUR_PER_SLICE = 0.5
SAMPLES = 32
LEVELS = 8
VECTORIZED = 4  # the coarsest level that has vectors
COARSE = 4  # the finest of the levels that are one kernel on GPUs
RADIUS = int(max(SLICES - FOCUS, FOCUS) * BLUR_PER_SLICE)  # of the largest circle

z, y, x, c = pt.vars("z y x c")


def build(levels: int = LEVELS) -> pt.Pipeline:
    """left[c, y, x], right[c, y, x] -> out[c, y, x] in 0 .. 1, all of one shape."""
    left, right = (pt.Input(name, "uint8", ndim=3) for name in ("left", "right"))
    view, other = pt.edge(left, axes=(1, 2)), pt.edge(right, axes=(1, 2))
    depth = _depth(_smoothed(_matches(view, other), left.shape[1:], levels))
    out = pt.Func("out")
    *sums, count = _lens(view, depth)[y, x]
    out[c, y, x] = pt.case((c == 0, sums[0]), (c == 1, sums[1]), otherwise=sums[2]) / count
    return pt.Pipeline(out, shape=(3, *left.shape[1:]), name="lens_blur")


def _matches(view: pt.Func, other: pt.Func) -> pt.Func:
    """How badly each shift fits, weighed by confidence: the variance of that over all shifts; and the weight."""
    cost, moments, confidence, weighed = (pt.Func(n) for n in ("cost", "moments", "confidence", "weighed"))

    def squared(channel: int) -> pt.Expr:
        near = [pt.absd(view[channel, y, x], other[channel, y, x + 2 * z + d]) for d in (0, 1)]
        difference = pt.cast("uint16", pt.minimum(*near))
        return pt.cast("uint32", difference * difference)

    cost[z, y, x] = pt.cast("float32", squared(0) + squared(1) + squared(2))
    s = pt.RDom((0, SLICES), name="s", names="z")
    here = cost[s.z, y, x]
    moments[y, x] = (0.0, 0.0)
    moments[y, x] = (moments[y, x][0] + here / SLICES, moments[y, x][1] + here * here / SLICES)
    mean, mean_of_squares = moments[y, x]
    confidence[y, x] = mean_of_squares - mean * mean
    weighed[z, y, x] = (cost[z, y, x] * confidence[y, x], confidence[y, x])
    return weighed


def _smoothed(fine: pt.Func, shape: Any, levels: int) -> pt.Func:
    """The mean of a pyramid's levels, coarse ones counting half as much as the next finer."""
    pyramid = [fine]
    for i in range(1, levels):
        pyramid.append(_down(pyramid[-1], f"down{i}", [(0, SLICES), *((0, n // 2**i) for n in shape)]))
    result = pyramid[-1]
    for i in reversed(range(levels - 1)):
        smoother = pt.Func(f"smooth{i}")
        pairs = zip(_up(result, f"up{i}")[z, y, x], pyramid[i][z, y, x], strict=True)
        smoother[z, y, x] = tuple(0.5 * coarse + 0.5 * fine for coarse, fine in pairs)
        result = smoother
    return result


def _down(f: pt.Func, name: str, domain: Any) -> pt.Func:
    """Half the size, by 1 3 3 1 along x and then along y; beyond its domain as on the edge of it."""
    across, down = pt.Func(f"{name}_x"), pt.Func(name, domain=domain)

    def weigh(*taps: Any) -> tuple[Any, ...]:
        return tuple((a + 3 * (b + c) + d) / 8 for a, b, c, d in zip(*taps, strict=True))

    across[z, y, x] = weigh(*(f[z, y, 2 * x + d] for d in range(-1, 3)))
    down[z, y, x] = weigh(*(across[z, 2 * y + d, x] for d in range(-1, 3)))
    return pt.edge(down, axes=(1, 2))


def _up(f: pt.Func, name: str) -> pt.Func:
    """Twice the size: three quarters of the nearest pixel, a quarter of the next, along x and then along y."""
    across, up = pt.Func(f"{name}_x"), pt.Func(name)

    def mix(near: Any, before: Any, after: Any, place: Any) -> tuple[Any, ...]:
        sides = zip(near, before, after, strict=True)
        return tuple(0.75 * n + 0.25 * pt.select(place % 2 == 0, b, a) for n, b, a in sides)

    across[z, y, x] = mix(f[z, y, x // 2], f[z, y, x // 2 - 1], f[z, y, x // 2 + 1], x)
    up[z, y, x] = mix(across[z, y // 2, x], across[z, y // 2 - 1, x], across[z, y // 2 + 1, x], y)
    return up


def _depth(smooth: pt.Func) -> pt.Func:
    """The slice that fits best."""
    depth = pt.Func("depth")
    s = pt.RDom((0, SLICES), name="s", names="z")
    match, confidence = smooth[s.z, y, x]
    depth[y, x], _ = pt.argmin(match / confidence, over=s)
    return depth


def _lens(view: pt.Func, depth: pt.Func) -> pt.Func:
    """Sums of colours and of 255s over a pixel and its samples."""
    radius, worst_y, worst, rgba, sums = (pt.Func(n) for n in ("radius", "worst_y", "worst", "rgba", "sums"))
    r = pt.RDom((-RADIUS, 2 * RADIUS + 1), name="r", names="d")
    radius[y, x] = pt.abs(depth[y, x] - FOCUS) * BLUR_PER_SLICE
    worst_y[y, x] = pt.max(radius[y + r.d, x], over=r)
    worst[y, x] = pt.max(worst_y[y, x + r.d], over=r)
    rgba[y, x, c] = pt.case((c < 3, pt.cast("float32", view[pt.minimum(c, 2), y, x])), otherwise=255.0)

    s = pt.RDom((0, SAMPLES), name="s", names="i")
    v, u = (
        pt.clamp(pt.cast("int32", (_random(which, x, y, s.i) - 0.5) * 2 * worst[y, x]), -RADIUS, RADIUS)
        for which in (1, 0)
    )
    distance = pt.cast("float32", u * u + v * v)
    there = (y + v, x + u)
    in_front = depth[there] < depth[y, x]
    seen = ((distance < radius[y, x] * radius[y, x]) | in_front) & (distance < radius[there] * radius[there])
    sums[y, x] = tuple(rgba[y, x, k] for k in range(4))
    sums[y, x] = tuple(sums[y, x][k] + pt.select(seen, rgba[y + v, x + u, k], 0.0) for k in range(4))
    return sums


def _random(which: int, *place: Any) -> pt.Expr:
    """A number in [0, 1) that depends on the place alone."""
    h = _mixed(pt.cast("uint32", which + 1))
    for n in place:
        h = _mixed(h ^ pt.cast("uint32", n))
    return pt.cast("float32", h >> 8) * 2.0**-24


def _mixed(h: pt.Expr) -> pt.Expr:
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    return h ^ (h >> 16)


def expert(target: Target, cores: int, levels: int = LEVELS) -> pt.Schedule:
    """Tasks are rows, slices of the pyramids, rows again, and rows of the picture."""
    lanes = target.lanes(32)
    vector = 2 * lanes

    def strips(stage: pt.StageSchedule, rows: int) -> pt.StageSchedule:
        return stage.split("y", "strip", "yi", rows).parallel("strip")

    def at_row(name: str, consumer: str) -> pt.StageSchedule:
        return pt.on(name).compute_at(consumer, "yi").vectorize("x", vector)

    def searching(name: str, consumer: str) -> pt.StageSchedule:
        return at_row(name, consumer).update().vectorize("x", vector).reorder("x", "r.d", "x_v")

    return pt.Schedule(
        strips(pt.on("weighed"), 4).vectorize("x", vector).reorder("strip", "yi", "z", "x", "x_v"),
        at_row("cost", "weighed"),
        at_row("moments", "weighed").update().vectorize("x", vector).reorder("x", "s.z", "x_v"),
        at_row("confidence", "weighed"),
        *_coarse_levels(vector, levels),
        *(pt.on(name).compute_inline() for name in ("up0", "up0_x", "smooth0", "radius")),
        strips(pt.on("depth"), 8)
        .split("yi", "yi", "row", 2)
        .vectorize("x", vector)
        .reorder("strip", "yi", "x", "row", "x_v")
        .unroll("row"),
        pt.on("depth_argmin")
        .compute_at("depth", "x")
        .vectorize("x", vector)
        .unroll("y", 2)
        .update()
        .vectorize("x", vector)
        .unroll("y", 2)
        .reorder("y", "x", "s.z", "y_u", "x_v"),
        pt.on("rgba").parallel("y").vectorize("c", 4),
        strips(pt.on("out"), 8).vectorize("x", vector).reorder("strip", "yi", "x", "c", "x_v").unroll("c"),
        searching("worst_y", "out"),
        searching("worst", "out"),
        pt.on("sums")
        .compute_at("out", "x")
        .vectorize("x", vector)
        .update()
        .vectorize("x", vector)
        .reorder("y", "x", "s.i", "x_v"),
    )


def _coarse_levels(vector: int, levels: int) -> list[pt.StageSchedule]:
    """All levels but the finest, slice by slice; the smallest ones are not worth vectors."""
    stages = [pt.on("smooth1").parallel("z").vectorize("x", vector)]
    for i in range(1, levels):
        large = i <= VECTORIZED

        def in_slice(name: str, vectors: bool = large) -> pt.StageSchedule:
            stage = pt.on(name).compute_at("smooth1", "z")
            return stage.vectorize("x", vector) if vectors else stage.partition("x", "never")

        stages += [
            in_slice(f"down{i}"),
            in_slice(f"down{i}_x") if large else pt.on(f"down{i}_x").compute_inline(),
            pt.on(f"down{i}_edge").compute_inline(),
        ]
        if i < levels - 1:
            stages += [pt.on(f"up{i}_x").compute_inline(), pt.on(f"up{i}").compute_inline()]
            stages += [in_slice(f"smooth{i}")] if i > 1 else []
    return stages


def on_gpu(levels: int = LEVELS) -> pt.Schedule:
    """The finest level is never stored here, either. All coarse levels, down and up, are one kernel: each of its blocks
    computes whatever its tile needs of them; one more makes the next levels on the way up. A thread goes through all
    slices of a pixel, and through all samples of one."""

    def at_thread(name: str, consumer: str) -> pt.StageSchedule:
        return pt.on(name).compute_at(consumer, "tx").store_in("register")

    coarse, fine = f"smooth{COARSE}", "smooth1"
    return pt.Schedule(
        _slices("cost", 4, 32, each=8),
        pixels("confidence", (4, 32)),
        at_thread("moments", "confidence").update().unroll("s.z", 8),
        _slices("down1", 4, 32, each=4),
        *(_slices(f"down{i}", 4, 32) for i in range(2, COARSE)),
        _slices(coarse, 16, 16),
        *(_in_slice(f"down{i}_edge", coarse) for i in range(COARSE, levels)),
        *(_in_slice(f"smooth{i}", coarse) for i in range(COARSE + 1, levels - 1)),
        _slices(fine, 8, 32),
        *(_in_slice(f"smooth{i}", fine) for i in range(2, COARSE)),
        pixels("depth", (4, 32)),
        at_thread("depth_argmin", "depth").update().unroll("s.z", 4),
        pt.on("rgba")
        .tile("y", "x", "yo", "xo", "ty", "tx", 4, 32)
        .block("yo", "xo")
        .thread("ty", "tx")
        .vectorize("c", 4),
        pixels("out", (8, 32), channels="c"),
        in_block("worst_y", "out").update().reorder("y", "x", "r.d").thread("y", "x").unroll("r.d"),
        at_thread("worst", "out").update().unroll("r.d"),
        at_thread("sums", "out").update().unroll("s.i", 4),
        *inlined("weighed", "smooth0", "radius", *(f"down{i}_x" for i in range(1, levels))),
        *inlined(*(f"down{i}_edge" for i in range(1, COARSE)), *(f"down{i}" for i in range(COARSE, levels))),
        *inlined(*(f"up{i}{part}" for i in range(levels - 1) for part in ("", "_x"))),
    )


def _slices(name: str, rows: int, columns: int, each: int = 1) -> pt.StageSchedule:
    """Blocks of so many pixels, of each of which a thread computes some slices."""
    return (
        pt.on(name)
        .compute_root()
        .split("z", "zo", "zi", each)
        .tile("y", "x", "yo", "xo", "ty", "tx", rows, columns)
        .reorder("zo", "yo", "xo", "ty", "tx", "zi")
        .block("zo", "yo", "xo")
        .thread("ty", "tx")
        .unroll("zi")
    )


def _in_slice(name: str, consumer: str) -> pt.StageSchedule:
    """What a block needs of a level of its slice."""
    return in_block(name, consumer).reorder("z", "y", "x")


SIZES = {"small": (3, 130, 140), "paper": (3, 320, 192), "thesis": (3, 2560, 1536)}
APPS = (
    App(
        "lens_blur",
        "defocus by depth from two views, uint8 planar RGB to float32",
        build,
        expert,
        {name: dict.fromkeys(("left", "right"), shape) for name, shape in SIZES.items()},
        octets,
        photo=Photo({"left": BYTES_RGB, "right": BYTES_RGB}, gives=FLOAT_RGB, same={"right": "left"}),
        on_gpu=on_gpu,
    ),
)
