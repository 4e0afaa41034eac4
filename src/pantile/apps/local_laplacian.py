"""Local Laplacian filters (Paris, Hasinoff and Kautz; Halide's apps/local_laplacian): contrast, edge by edge.

The picture is remapped around K levels of brightness, each remapped picture becomes a Laplacian pyramid, and the
pyramid of the result takes its coefficients from the two levels that are nearest to the local brightness.

The idea of the schedule: the level k is the last coordinate of everything that has it. So the K values of a pixel are
one or two vectors, whatever is done along x and y, and the two levels that a pixel asks for are next to each other.
"""

from __future__ import annotations

from typing import Any

import pantile as pt
from pantile.target import Target

from .app import SIXTEEN_BITS, App, Photo, words
from .threads import in_block, inlined, pixels

LEVELS = 8  # of brightness
DEPTH = 8  # of the pyramids
STEPS = 256  # of the curve, from one level to the next
FINE = 4  # levels of the pyramids that are worth more than one thread

y, x, k, c, i = pt.vars("y x k c i")


def build(depth: int = DEPTH) -> pt.Pipeline:
    """img[c, y, x], 16 bits -> an image of the same shape and type."""
    img = pt.Input("img", "uint16", ndim=3)
    alpha = pt.Param("alpha", "float32", default=1 / (LEVELS - 1))
    beta = pt.Param("beta", "float32", default=1.0)

    colour, gray = pt.Func("colour"), pt.Func("gray")
    colour[c, y, x] = pt.edge(img, axes=(1, 2))[c, y, x] / 65535
    gray[y, x] = 0.299 * colour[0, y, x] + 0.587 * colour[1, y, x] + 0.114 * colour[2, y, x]

    curve, remapped, g0 = pt.Func("curve"), pt.Func("remapped"), pt.Func("g0")
    t = i / STEPS
    curve[i] = alpha * t * pt.exp(-t * t / 2)
    remapped[i, k] = curve[i - STEPS * k]
    level = k / (LEVELS - 1)
    top = STEPS * (LEVELS - 1)
    place = pt.clamp(pt.cast("int32", gray[y, x] * top), 0, top)
    g0[y, x, k] = beta * (gray[y, x] - level) + level + remapped[place, k]

    inputs, levels = [gray], [g0]
    for j in range(1, depth):
        domain = [(-2, (n - 1) // 2**j + 5) for n in img.shape[1:]]
        inputs.append(_down(inputs[-1], f"n{j}", domain))
        levels.append(_down(levels[-1], f"g{j}", [*domain, (0, LEVELS)], k))

    result: Any = None
    for j in reversed(range(depth)):
        chosen = pt.Func(f"o{j}")
        v = inputs[j][y, x] * (LEVELS - 1)
        below = pt.clamp(pt.cast("int32", v), 0, LEVELS - 2)
        detail = levels[j]
        if j < depth - 1:
            detail = pt.Func(f"l{j}")
            detail[y, x, k] = levels[j][y, x, k] - _up(levels[j + 1], f"g{j + 1}", k)[y, x, k]
        chosen[y, x] = pt.lerp(detail[y, x, below], detail[y, x, below + 1], v - below)
        before, result = result, pt.Func(f"r{j}")
        result[y, x] = chosen[y, x] if before is None else _up(before, f"r{j + 1}")[y, x] + chosen[y, x]

    out = pt.Func("out")
    toned = result[y, x] * (colour[c, y, x] + 0.01) / (gray[y, x] + 0.01)
    out[c, y, x] = pt.cast("uint16", pt.clamp(toned, 0, 1) * 65535)
    return pt.Pipeline(out, shape=(3, *img.shape[1:]), name="local_laplacian")


def _down(f: pt.Func, name: str, domain: Any, *rest: Any) -> pt.Func:
    """Half the size, by 1 3 3 1 along x and then along y. Beyond `domain` all is as on its edge, as for img itself."""
    across, down = pt.Func(f"{name}_x"), pt.Func(name, domain=domain)
    f = f if f.domain is None else pt.edge(f, axes=(0, 1))

    def at(row: Any, column: Any) -> Any:
        return (row, column, *rest)

    across[at(y, x)] = _weighted(*(f[at(y, 2 * x + d)] for d in range(-1, 3)))
    down[at(y, x)] = _weighted(*(across[at(2 * y + d, x)] for d in range(-1, 3)))
    return down


def _weighted(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (a + 3 * (b + c) + d) / 8


def _up(f: pt.Func, name: str, *rest: Any) -> pt.Func:
    """Twice the size: three quarters of the nearest pixel, one of the next, along x and then along y."""
    across, up = pt.Func(f"{name}_up_x"), pt.Func(f"{name}_up")

    def at(row: Any, column: Any) -> Any:
        return (row, column, *rest)

    across[at(y, x)] = 0.75 * f[at(y, x // 2)] + 0.25 * f[at(y, _second(x))]
    up[at(y, x)] = 0.75 * across[at(y // 2, x)] + 0.25 * across[at(_second(y), x)]
    return up


def _second(z: Any) -> Any:
    """The coarse pixel that is second nearest: m - 1 to 2m, m + 1 to 2m + 1."""
    return z // 2 - 1 + 2 * (z % 2)


def expert(target: Target, cores: int, depth: int = DEPTH) -> pt.Schedule:
    """Levels of the pyramids one after the other: the fine ones in strips, the coarse ones serially and plainly."""
    lanes = target.lanes(32)

    def in_strips(name: str, rows: int) -> pt.StageSchedule:
        return pt.on(name).compute_root().split("y", "strip", "yi", rows).parallel("strip")

    def pair_of_rows(stage: pt.StageSchedule) -> pt.StageSchedule:
        return stage.split("yi", "yi", "row", 2).unroll("row")

    def coarse(name: str) -> pt.StageSchedule:
        return pt.on(name).compute_root().partition("x", "never")

    stages = [
        pair_of_rows(in_strips("out", 64))
        .vectorize("x", 2 * lanes)
        .reorder("strip", "yi", "row", "x", "c", "x_v")
        .unroll("c"),
        in_strips("gray", 32).vectorize("x", 2 * lanes),
        pt.on("remapped").compute_root().vectorize("k", LEVELS),
    ]
    for j in range(1, FINE + 1):
        stages += [
            in_strips(f"n{j}", 16).vectorize("x", lanes),
            pt.on(f"n{j}_x").compute_at(f"n{j}", "yi").store_at(f"n{j}", "strip").vectorize("x", lanes),
            in_strips(f"g{j}", 16).vectorize("k", LEVELS),
            pt.on(f"g{j}_x").compute_at(f"g{j}", "yi").store_at(f"g{j}", "strip").vectorize("k", LEVELS).unroll("x", 4),
            pair_of_rows(in_strips(f"r{j}", 16)).vectorize("x", lanes),
        ]
    for j in range(FINE + 1, depth):
        stages += [coarse(name) for name in (f"n{j}_x", f"n{j}", f"r{j}")]
        stages += [coarse(name).vectorize("k", LEVELS) for name in (f"g{j}_x", f"g{j}")]
    inlined = ["colour", "curve", "g0", "r0", *(f"o{j}" for j in range(depth)), *(f"l{j}" for j in range(depth - 1))]
    inlined += [f"{f}{j}_{up}" for f in "gr" for j in range(1, depth) for up in ("up", "up_x")]
    return pt.Schedule(*stages, *(pt.on(name).compute_inline() for name in inlined))


def on_gpu(depth: int = DEPTH) -> pt.Schedule:
    """A kernel for each level of each pyramid on the way down. A thread has four levels of brightness of its pixels, so
    that a pixel is two vectors, and so is each row of the curves that it looks up. On the way up, one kernel makes all
    coarse levels: each of its blocks computes what its tile needs of them. The last kernel reads the picture anyway,
    and makes gray of it once more."""
    fine = f"r{FINE - 1}"
    stages = [
        pixels("out", (2, 64), (2, 1), channels="c"),
        pixels("gray", (4, 64), (4, 2))
        .clone_in("o0", "o0_gray")
        .clone_in("l0_g0", "g0_gray")
        .clone_in("out", "out_gray"),
        pt.on("g0").clone_in("l0", "l0_g0").compute_inline(),
        pt.on("remapped").compute_root().split("i", "io", "it", 32).block("io").thread("it", "k"),
        _brightness("g1", 4, 3, 32),
        pixels("n1", (4, 32), (2, 2)),
        *(_brightness(f"g{j}", 4, 1, 32) for j in range(2, FINE)),
        *(_brightness(f"g{j}", 1, 1, 16) for j in range(FINE, depth)),
        *(pixels(f"n{j}", (4, 32)) for j in range(2, depth)),
        pixels("r1", (4, 32), (2, 1)),
        *(pixels(f"r{j}", (4, 32)) for j in range(2, FINE - 1)),
        pixels(fine, (8, 32)),
        *(in_block(f"r{j}", fine) for j in range(FINE, depth)),
    ]
    inner = ["colour", "curve", "r0", *(f"o{j}" for j in range(depth)), *(f"l{j}" for j in range(depth - 1))]
    inner += ["l0_g0", "o0_gray", "g0_gray", "out_gray", *(f"{f}{j}_x" for f in "gn" for j in range(1, depth))]
    inner += [f"{f}{j}_{up}" for f in "gr" for j in range(1, depth) for up in ("up", "up_x")]
    return pt.Schedule(*stages, *inlined(*inner))


def _brightness(name: str, rows: int, columns: int, threads: int) -> pt.StageSchedule:
    """A level with all its levels of brightness: two threads beside each other have four each, of so many pixels."""
    return (
        pt.on(name)
        .compute_root()
        .split("y", "yo", "row", rows)
        .split("x", "xo", "xi", threads * columns)
        .split("xi", "tx", "column", columns)
        .split("k", "kt", "lane", 4)
        .reorder("yo", "xo", "tx", "kt", "row", "column", "lane")
        .block("yo", "xo")
        .thread("tx", "kt")
        .unroll("row")
        .unroll("column")
        .vectorize("lane")
    )


APPS = (
    App(
        "local_laplacian",
        "local Laplacian filter, uint16 planar RGB",
        build,
        expert,
        {"small": {"img": (3, 256, 300)}, "paper": {"img": (3, 2560, 1536)}},
        words,
        off_by=400,  # where rounding takes the next entry of the curve, and a colour outweighs its gray
        photo=Photo({"img": SIXTEEN_BITS}, gives=SIXTEEN_BITS),
        on_gpu=on_gpu,
    ),
)
