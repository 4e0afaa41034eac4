"""Camera pipeline: hot pixels, demosaicing, colour correction, tone curve and sharpening of raw pixels."""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import halide as hl

SPARE_ROWS = 64  # Adams2019 may start its first rows so much earlier
STRIP_ROWS = 32
GPU_TILE = (28, 12)
TEMPERATURE, GAMMA, CONTRAST, SHARPEN = 3700.0, 2.0, 50.0, 1.0
BLACK, WHITE = 25, 1023

Pair = tuple[hl.Expr, hl.Expr]
x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


class Stages(NamedTuple):
    """The stages from the mosaic to the picture."""

    denoised: hl.Func
    deinterleaved: hl.Func
    demosaiced: hl.Func
    greens: list[hl.Func]
    corrected: hl.Func
    curved: hl.Func
    sharpened: hl.Func


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the picture made of ``images["raw"]``; the margin is cut off."""
    raw = images["raw"]
    shifted, denoised, deinterleaved = hl.Func("shifted"), hl.Func("denoised"), hl.Func("deinterleaved")
    shifted[x, y] = raw[x + 16, y + 12]
    around = [shifted[x - 2, y], shifted[x + 2, y], shifted[x, y - 2], shifted[x, y + 2]]
    denoised[x, y] = hl.min(shifted[x, y], functools.reduce(hl.max, around))
    sites = [denoised[2 * x + i, 2 * y + j] for j in (0, 1) for i in (0, 1)]
    deinterleaved[x, y, c] = hl.mux(c, sites)

    demosaiced, greens = _demosaic(deinterleaved)
    matrix, corrected = _correct(demosaiced, images["matrix_3200"], images["matrix_7000"])
    curve, curved = _apply_curve(corrected)
    strength, sharpened = _sharpen(curved)

    if manual:
        stages = Stages(denoised, deinterleaved, demosaiced, greens, corrected, curved, sharpened)
        for table in (matrix, curve, strength):
            table.compute_root()
        if target.has_gpu_feature():
            gpu_expert(stages)
            curve.gpu_tile(x, hl.Var("xi"), 32)
            for table in (matrix, strength):
                table.gpu_single_thread()
        else:
            _schedule(raw, stages, target)
    return sharpened


def _average(a: hl.Expr, b: hl.Expr, bits: int = 16) -> hl.Expr:
    """Round the mean up, in twice the bits."""
    return hl.cast(hl.UInt(bits), (hl.cast(hl.UInt(2 * bits), a) + b + 1) / 2)


def _demosaic(deinterleaved: hl.Func) -> tuple[hl.Func, list[hl.Func]]:
    """Return the three colours of every pixel, and green at red and at blue sites."""

    def site(k: int) -> Callable[..., hl.Expr]:
        return lambda i=0, j=0: deinterleaved[x + i, y + j, k]

    def choose(name: str, horizontal: Pair, vertical: Pair) -> hl.Func:
        f = hl.Func(name)
        f[x, y] = hl.select(hl.absd(*horizontal) < hl.absd(*vertical), _average(*horizontal), _average(*vertical))
        return f

    def colour(name: str, green: hl.Expr, guide: Pair, pair: Pair) -> hl.Func:
        f = hl.Func(name)
        f[x, y] = green - _average(*guide) + _average(*pair)
        return f

    def diagonal(name: str, green: hl.Expr, guide: hl.Func, there: Callable[..., hl.Expr], s: int) -> hl.Func:
        f = hl.Func(name)
        down, up = (there(), there(-s, s)), (there(-s, 0), there(0, s))
        along_down = green - _average(guide[x, y], guide[x - s, y + s]) + _average(*down)
        along_up = green - _average(guide[x - s, y], guide[x, y + s]) + _average(*up)
        f[x, y] = hl.select(hl.absd(*down) < hl.absd(*up), along_down, along_up)
        return f

    gr, r, b, gb = (site(k) for k in range(4))
    g_r = choose("g_r", (gr(1, 0), gr()), (gb(0, -1), gb()))
    g_b = choose("g_b", (gb(-1, 0), gb()), (gr(0, 1), gr()))
    r_gr = colour("r_gr", gr(), (g_r[x, y], g_r[x - 1, y]), (r(-1, 0), r()))
    b_gr = colour("b_gr", gr(), (g_b[x, y], g_b[x, y - 1]), (b(), b(0, -1)))
    r_gb = colour("r_gb", gb(), (g_r[x, y], g_r[x, y + 1]), (r(), r(0, 1)))
    b_gb = colour("b_gb", gb(), (g_b[x, y], g_b[x + 1, y]), (b(), b(1, 0)))
    r_b = diagonal("r_b", g_b[x, y], g_r, r, 1)
    b_r = diagonal("b_r", g_r[x, y], g_b, b, -1)

    planes = []
    for k in range(4):
        plane = hl.Func(f"plane_{k}")
        plane[x, y] = deinterleaved[x, y, k]
        planes.append(plane)
    p_gr, p_r, p_b, p_gb = planes
    mosaics = [(r_gr, p_r, r_b, r_gb), (p_gr, g_r, g_b, p_gb), (b_gr, b_r, p_b, b_gb)]
    demosaiced = hl.Func("demosaiced")
    demosaiced[x, y, c] = hl.mux(c, [_interleave(*m)[x, y] for m in mosaics])
    return demosaiced, [g_r, g_b]


def _interleave(top_left: hl.Func, top_right: hl.Func, low_left: hl.Func, low_right: hl.Func) -> hl.Func:
    rows = []
    for left, right in ((top_left, top_right), (low_left, low_right)):
        row = hl.Func("row")
        row[x, y] = hl.select(x % 2 == 0, left[x / 2, y], right[x / 2, y])
        rows.append(row)
    both = hl.Func("both")
    both[x, y] = hl.select(y % 2 == 0, rows[0][x, y / 2], rows[1][x, y / 2])
    return both


def _correct(colours: hl.Func, warm: hl.ImageParam, cold: hl.ImageParam) -> tuple[hl.Func, hl.Func]:
    alpha = (1 / TEMPERATURE - 1 / 3200) / (1 / 7000 - 1 / 3200)
    matrix, corrected = hl.Func("matrix"), hl.Func("corrected")
    matrix[x, y] = hl.i16((warm[x, y] * hl.f32(alpha) + cold[x, y] * hl.f32(1 - alpha)) * hl.f32(256))
    red, green, blue = (hl.i32(hl.cast(hl.Int(16), colours[x, y, k])) for k in range(3))
    rows = []
    for row in range(3):
        m = [hl.i32(matrix[k, row]) for k in range(4)]
        rows.append(hl.i16((m[3] + m[0] * red + m[1] * green + m[2] * blue) / 256))
    corrected[x, y, c] = hl.mux(c, rows)
    return matrix, corrected


def _apply_curve(corrected: hl.Func) -> tuple[hl.Func, hl.Func]:
    curve, curved = hl.Func("curve"), hl.Func("curved")
    level = hl.clamp(hl.f32(x - BLACK) / hl.f32(WHITE - BLACK), hl.f32(0), hl.f32(1))
    g = hl.pow(level, hl.f32(1 / GAMMA))
    b = 2.0 - 2.0 ** (CONTRAST / 100)
    a = 2.0 - 2 * b
    a, b = hl.f32(a), hl.f32(b)
    one = hl.f32(1)
    z = hl.select(g > hl.f32(0.5), one - (a * (one - g) * (one - g) + b * (one - g)), a * g * g + b * g)
    value = hl.u8(hl.clamp(z * hl.f32(255) + hl.f32(0.5), hl.f32(0), hl.f32(255)))
    curve[x] = hl.select(x <= BLACK, hl.u8(0), x > WHITE, hl.u8(255), value)
    curved[x, y, c] = curve[hl.clamp(hl.i32(corrected[x, y, c]), 0, 1023)]
    return curve, curved


def _sharpen(curved: hl.Func) -> tuple[hl.Func, hl.Func]:
    strength, blur_y, blur_x = hl.Func("strength"), hl.Func("blur_y"), hl.Func("blur_x")
    strength[()] = hl.u8_sat(hl.f32(SHARPEN * 32))
    blur_y[x, y, c] = _smooth(curved[x, y - 1, c], curved[x, y, c], curved[x, y + 1, c])
    blur_x[x, y, c] = _smooth(blur_y[x - 1, y, c], blur_y[x, y, c], blur_y[x + 1, y, c])
    mask, sharpened = hl.Func("mask"), hl.Func("sharpened")
    mask[x, y, c] = hl.i16(curved[x, y, c]) - hl.i16(blur_x[x, y, c])
    sharpened[x, y, c] = hl.u8_sat(hl.i16(curved[x, y, c]) + mask[x, y, c] * hl.i16(strength[()]) / 32)
    return strength, sharpened


def _smooth(before: hl.Expr, here: hl.Expr, after: hl.Expr) -> hl.Expr:
    return _average(_average(before, after, 8), here, 8)


def _schedule(raw: hl.ImageParam, stages: Stages, target: hl.Target) -> None:
    denoised, deinterleaved, demosaiced, greens, corrected, curved, sharpened = stages
    lanes = target.natural_vector_size(hl.UInt(16))
    pair, row, strip, xi, yi = (hl.Var(n) for n in ("pair", "row", "strip", "xi", "yi"))
    round_up = hl.TailStrategy.RoundUp

    width, height = sharpened.output_buffer().width(), sharpened.output_buffer().height()
    sharpened.bound(c, 0, 3).bound(x, 0, width / (2 * lanes) * (2 * lanes))
    sharpened.bound(y, 0, height / STRIP_ROWS * STRIP_ROWS)
    sharpened.reorder(c, x, y).split(y, pair, row, 2, round_up).split(pair, strip, pair, STRIP_ROWS // 2)
    sharpened.vectorize(x, 2 * lanes, round_up).unroll(c).parallel(strip)

    def slide(f: hl.Func) -> hl.Func:
        return f.compute_at(sharpened, pair).store_at(sharpened, strip)

    _prefetched(slide(denoised), raw, y, 2).fold_storage(y, 4)
    denoised.tile(x, y, xi, yi, 2 * lanes, 2).vectorize(xi).unroll(yi)
    slide(deinterleaved).fold_storage(y, 4).reorder(c, x, y).vectorize(x, 2 * lanes, round_up).unroll(c)
    for green in greens:
        slide(green).fold_storage(y, 4).vectorize(x, 2 * lanes, round_up)
    start = hl.LoopAlignStrategy.AlignStart
    greens[1].compute_with(hl.LoopLevel(greens[0], x, 0), [(x, start), (y, start)])
    slide(curved).reorder(c, x, y).tile(x, y, xi, yi, 2 * lanes, 2, round_up).vectorize(xi).unroll(yi).unroll(c)
    corrected.compute_at(curved, x).reorder(c, x, y).vectorize(x).unroll(y).unroll(c)
    demosaiced.compute_at(curved, x).reorder(c, x, y).vectorize(x).unroll(y).unroll(c)


def gpu_expert(stages: Stages) -> None:
    """All stages of a tile in shared memory; threads make two or four pixels of each."""
    denoised, deinterleaved, demosaiced, greens, corrected, curved, sharpened = stages
    xi, yi = hl.Var("xi"), hl.Var("yi")
    width, height = sharpened.output_buffer().width(), sharpened.output_buffer().height()
    sharpened.bound(c, 0, 3).bound(x, 0, width / 2 * 2).bound(y, 0, height / 2 * 2)
    sharpened.reorder(c, x, y).unroll(x, 2).gpu_tile(x, y, xi, yi, *GPU_TILE)
    for stage in (curved, corrected):
        stage.compute_at(sharpened, x).unroll(x, 2).gpu_threads(x, y)
    for green in greens:
        green.compute_at(sharpened, x).gpu_threads(x, y)
    denoised.compute_at(sharpened, x).tile(x, y, xi, yi, 2, 2).unroll(xi).unroll(yi).gpu_threads(x, y)
    for stage in (demosaiced, deinterleaved):
        stage.compute_at(sharpened, x).unroll(x, 2).gpu_threads(x, y).reorder(c, x, y).unroll(c)


def _prefetched(f: hl.Func, image: hl.ImageParam, row: hl.Var, ahead: int) -> hl.Func:
    """With rows of an image asked for so many ahead; newer releases want to know at which loop, too."""
    try:
        return f.prefetch(image, row, row, ahead)
    except TypeError:
        return f.prefetch(image, row, ahead)
