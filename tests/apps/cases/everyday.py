"""Everyday filters: the mathematics of each, with the picture repeated far enough beyond its edges."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage

from ..case import Array, Case, Shapes
from .pyramid_blend import doubled, halved


def rounded(a: Array) -> Array:
    return np.rint(np.clip(a, 0, 255)).astype(np.uint8)


def repeated(a: Array, margin: int) -> Array:
    """With so many rows and columns more on every side, as float64."""
    return np.pad(a.astype(np.float64), [(margin, margin)] * 2 + [(0, 0)] * (a.ndim - 2), "edge")


def box(a: Array, side: int) -> Array:
    """Means of whole windows."""
    down = sliding_window_view(a, side, axis=0).sum(axis=-1)
    return sliding_window_view(down, side, axis=1).sum(axis=-1) / side**2


def guided_filter(img: Array) -> Array:
    value = repeated(img, 16) / 255
    mean = box(value, 17)
    variance = box(value * value, 17) - mean**2
    slope = variance / (variance + 0.01)
    offset = mean - slope * mean
    return rounded(255 * (box(slope, 17) * img / 255 + box(offset, 17)))


def canny(img: Array) -> Array:
    """Neighbours along the gradient, in one of four directions; grey and the blur are rounded to whole numbers."""
    red, green, blue = np.moveaxis(repeated(img, 4), -1, 0)
    gray = np.floor((9798 * red + 19235 * green + 3735 * blue) / 32768 + 0.5)
    binomial = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1])
    smooth = np.floor(ndimage.correlate(gray, binomial)[2:-2, 2:-2] / 256 + 0.5)
    dx = ndimage.correlate(smooth, np.outer([1, 2, 1], [-1, 0, 1]))[1:-1, 1:-1]
    dy = ndimage.correlate(smooth, np.outer([-1, 0, 1], [1, 2, 1]))[1:-1, 1:-1]
    strength = np.abs(dx) + np.abs(dy)
    height, width = img.shape[:2]

    def beside(v: int, u: int) -> Array:
        return strength[1 + v : 1 + v + height, 1 + u : 1 + u + width]

    here, wide, high = beside(0, 0), np.abs(dx)[1:-1, 1:-1], np.abs(dy)[1:-1, 1:-1]
    tangent = 13573 / 2**15  # of 22.5 degrees
    flat = (here > beside(0, -1)) & (here >= beside(0, 1))
    steep = (here > beside(-1, 0)) & (here >= beside(1, 0))
    rising = (here > beside(-1, -1)) & (here > beside(1, 1))
    falling = (here > beside(-1, 1)) & (here > beside(1, -1))
    opposite = (dx < 0)[1:-1, 1:-1] != (dy < 0)[1:-1, 1:-1]
    thin = np.select(
        [high < tangent * wide, high > (tangent + 2) * wide, opposite], [flat, steep, falling], default=rising
    )
    return np.where((here > 60) & thin, 255, 0).astype(np.uint8)


def lucas_kanade(before: Array, after: Array) -> Array:
    was, now = repeated(before, 5), repeated(after, 5)
    dx, dy = (was[1:-1, 2:] - was[1:-1, :-2]) / 2, (was[2:, 1:-1] - was[:-2, 1:-1]) / 2
    dt = (now - was)[1:-1, 1:-1]
    xx, xy, yy, xt, yt = (box(f * g, 9) for f, g in ((dx, dx), (dx, dy), (dy, dy), (dx, dt), (dy, dt)))
    normal = np.stack([np.stack([xx + 10, xy], -1), np.stack([xy, yy + 10], -1)], -2)
    return np.linalg.solve(normal, -np.stack([xt, yt], -1)[..., None])[..., 0]


def clahe(img: Array) -> Array:
    height, width = (-(-n // 8) for n in img.shape)
    places = np.ix_(*(mirrored(np.arange(8 * t), n) for t, n in zip((height, width), img.shape, strict=True)))
    tiles = img[places].reshape(8, height, 8, width).swapaxes(1, 2).reshape(64, -1)
    levels = np.array([equalized(tile) for tile in tiles]).reshape(8, 8, 256)

    def between(extent: int, tile: int) -> tuple[Array, Array, Array]:
        grid = np.arange(extent) / tile - 0.5
        first = np.floor(grid).astype(int)
        return first.clip(0, 7), (first + 1).clip(0, 7), grid - first

    (top, bottom, v), (left, right, u) = between(img.shape[0], height), between(img.shape[1], width)
    upper = levels[top[:, None], left, img] * (1 - u) + levels[top[:, None], right, img] * u
    lower = levels[bottom[:, None], left, img] * (1 - u) + levels[bottom[:, None], right, img] * u
    return rounded(upper * (1 - v[:, None]) + lower * v[:, None])


def mirrored(places: Array, extent: int) -> Array:
    period = max(2 * (extent - 1), 1)
    return np.minimum(places % period, (period - places % period) % max(period, 1) if extent > 1 else 0)


def equalized(tile: Array) -> Array:
    """What each level of a tile becomes."""
    counts = np.bincount(tile, minlength=256)
    limit = max(int(2.0 * tile.size / 256), 1)
    excess = int(np.maximum(counts - limit, 0).sum())
    counts = np.minimum(counts, limit) + excess // 256
    rest = excess % 256
    if rest:
        counts[:: max(256 // rest, 1)][:rest] += 1
    return rounded(counts.cumsum() * (255 / tile.size)).astype(np.float64)


def demosaic(raw: Array) -> Array:
    cross, corners = np.zeros((5, 5)), np.zeros((5, 5))
    cross[2, [1, 3]] = cross[[1, 3], 2] = 1
    corners[np.ix_([1, 3], [1, 3])] = 1
    centre, far_row, far_column = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros((5, 5))
    centre[2, 2], far_row[2, [0, 4]], far_column[[0, 4], 2] = 1, 1, 1
    row = np.zeros((5, 5))
    row[2, [1, 3]] = 1

    def filtered(kernel: Array) -> Array:
        return np.floor(ndimage.correlate(raw.astype(np.float64), kernel / 8, mode="mirror") + 0.5)

    green = filtered(4 * centre + 2 * cross - far_row - far_column)
    along = filtered(5 * centre + 4 * row - corners - far_row + far_column / 2)
    across = filtered(5 * centre + 4 * row.T - corners - far_column + far_row / 2)
    opposite = filtered(6 * centre + 2 * corners - 1.5 * (far_row + far_column))
    out = np.empty((*raw.shape, 3))
    for y, x, colours in (
        (0, 0, (raw, green, opposite)),
        (0, 1, (along, raw, across)),
        (1, 0, (across, raw, along)),
        (1, 1, (opposite, green, raw)),
    ):
        for c, colour in enumerate(colours):
            out[y::2, x::2, c] = colour[y::2, x::2]
    return rounded(out)


def blend(a: Array, b: Array, mask: Array) -> Array:
    """So far inside that edges of levels do not matter, which are whole ones."""
    far = 256
    margins = [(far, far + -n % 64) for n in mask.shape]

    def levels(picture: Array) -> list[Array]:
        wide = np.pad(np.moveaxis(np.atleast_3d(picture).astype(np.float64), -1, 0), [(0, 0), *margins], "edge")
        found = [wide]
        for _ in range(6):
            found.append(halved(halved(found[-1], 2), 1))
        return found

    weights, first, second = levels(mask / 255), levels(a), levels(b)
    result = weights[-1] * first[-1] + (1 - weights[-1]) * second[-1]
    for n in reversed(range(6)):
        p, q = (fine[n] - doubled(fine[n + 1], fine[n].shape) for fine in (first, second))
        result = doubled(result, p.shape) + weights[n] * p + (1 - weights[n]) * q
    height, width = mask.shape
    return rounded(np.moveaxis(result, 0, -1)[far : far + height, far : far + width])


def median(img: Array) -> Array:
    return ndimage.median_filter(img, size=(5, 5, 1), mode="nearest")


def chamfer(img: Array) -> Array:
    """Both sweeps, in plain Python."""
    height, width = img.shape
    far = np.full((height + 2, width + 2), 1e6)
    far[1:-1, 1:-1] = np.where(img == 0, 0.0, 1e6)
    d = far.tolist()
    for sweep in (1, -1):
        for y in range(1, height + 1)[::sweep]:
            row, near = d[y], d[y - sweep]
            for x in range(1, width + 1)[::sweep]:
                straight, diagonal = min(near[x], row[x - sweep]), min(near[x - 1], near[x + 1])
                row[x] = min(row[x], straight + 0.955, diagonal + 1.3693)
    return np.array(d)[1:-1, 1:-1]


def large_kernel(img: Array, kernel: Array) -> Array:
    return rounded(ndimage.correlate(img.astype(np.float64), kernel.astype(np.float64), mode="nearest"))


def temporal_denoise(frames: Array) -> Array:
    value = frames.astype(np.float64)
    weight = np.exp(-((value - value[2]) ** 2).sum(axis=-1, keepdims=True) / (2 * 20.0**2))
    return rounded((weight * value).sum(axis=0) / weight.sum(axis=0))


def bicubic_resize(img: Array) -> Array:
    """Columns, then rows."""
    a = img.astype(np.float64)
    for axis in (1, 0):
        position = (np.arange(a.shape[axis] * 3 // 2) + 0.5) / 1.5 - 0.5
        first = np.floor(position).astype(int)
        taps = [first + k for k in range(-1, 3)]
        shape = [-1 if k == axis else 1 for k in range(3)]
        a = np.asarray(
            sum(
                np.take(a, t.clip(0, a.shape[axis] - 1), axis) * cubic(np.abs(position - t)).reshape(shape)
                for t in taps
            )
        )
    return rounded(a)


def cubic(d: Array) -> Array:
    near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, far)


def affine_warp(img: Array, matrix: Array) -> Array:
    places = np.indices(img.shape[:2])[::-1].reshape(2, -1)
    across, down = matrix[:, :2].astype(np.float64) @ places + matrix[:, 2:]
    channels = np.moveaxis(img.astype(np.float64), -1, 0)
    warped = [ndimage.map_coordinates(c, [down, across], order=1, mode="nearest") for c in channels]
    return rounded(np.stack(warped, -1).reshape(img.shape))


def undistort(img: Array) -> Array:
    """With the usual coefficients."""
    middle = np.array(img.shape[:2]).reshape(2, 1) / 2
    away = (np.indices(img.shape[:2]).reshape(2, -1) - middle) / middle[1]
    far = (away**2).sum(axis=0)
    places = away * (1 - 0.12 * far + 0.03 * far**2) * middle[1] + middle
    channels = np.moveaxis(img.astype(np.float64), -1, 0)
    moved = [ndimage.map_coordinates(c, places, order=1, mode="nearest") for c in channels]
    return rounded(np.stack(moved, -1).reshape(img.shape))


def colour_table(img: Array, table: Array) -> Array:
    places = np.moveaxis(img / 255 * 32, -1, 0)
    channels = np.moveaxis(table.astype(np.float64), -1, 0)
    graded = [ndimage.map_coordinates(c, places, order=1, mode="nearest") for c in channels]
    return np.floor(np.clip(np.stack(graded, -1) * 255 + 0.5, 0, 255)).astype(np.uint8)


def colour(*sizes: tuple[int, int]) -> tuple[Shapes, ...]:
    return tuple({"img": (h, w, 3)} for h, w in sizes)


def grey(*sizes: tuple[int, int]) -> tuple[Shapes, ...]:
    return tuple({"img": (h, w)} for h, w in sizes)


def two_frames(h: int, w: int) -> Shapes:
    return {"before": (h, w), "after": (h, w)}


def blended(h: int, w: int) -> Shapes:
    return {"a": (h, w, 3), "b": (h, w, 3), "mask": (h, w)}


SIZES = ((1, 1), (5, 3), (29, 71))
LARGE = (131, 259)


def box_filter(img: Array) -> Array:
    return rounded(box(repeated(img, 2), 5))


def gaussian(img: Array) -> Array:
    weights = np.exp(-(np.arange(-3, 4) ** 2) / 4.5)
    across = ndimage.correlate1d(img.astype(np.float64), weights / weights.sum(), axis=1, mode="nearest")
    return rounded(ndimage.correlate1d(across, weights / weights.sum(), axis=0, mode="nearest"))


def sobel(img: Array) -> Array:
    return np.asarray(ndimage.sobel(img.astype(np.int64), axis=1, mode="nearest").astype(np.int16))


def bilateral(img: Array) -> Array:
    wide, (height, width) = repeated(img, 4), img.shape
    total, weights = np.zeros(img.shape), np.zeros(img.shape)
    for v, u in np.ndindex(9, 9):
        if (v - 4) ** 2 + (u - 4) ** 2 <= 16:
            other = wide[v : v + height, u : u + width]
            weight = np.exp(-((v - 4) ** 2 + (u - 4) ** 2) / 18 - (other - img) ** 2 / 1800)
            total, weights = total + weight * other, weights + weight
    return rounded(total / weights)


def grayscale(img: Array) -> Array:
    return np.floor(img @ np.array([9798.0, 19235.0, 3735.0]) / 2**15 + 0.5).astype(np.uint8)


CASES = {
    "box_filter": Case(box_filter, colour(*SIZES), colour(LARGE)[0]),
    "gaussian": Case(gaussian, colour(*SIZES), colour(LARGE)[0], off_by=1),
    "sobel": Case(sobel, grey((1, 1), (5, 3), (29, 71)), grey(LARGE)[0]),
    "bilateral": Case(bilateral, grey((1, 1), (5, 3), (29, 71)), grey(LARGE)[0], off_by=1, slow=True),
    "grayscale": Case(grayscale, colour(*SIZES), colour(LARGE)[0]),
    "guided_filter": Case(guided_filter, colour(*SIZES), colour(LARGE)[0], off_by=1),
    "canny": Case(canny, colour(*SIZES), colour(LARGE)[0]),
    "lucas_kanade": Case(lucas_kanade, tuple(two_frames(h, w) for h, w in SIZES), two_frames(*LARGE), tolerance=1e-4),
    "clahe": Case(clahe, grey((8, 8), (5, 13), (61, 75)), grey(LARGE)[0], off_by=1),
    "demosaic": Case(demosaic, ({"raw": (3, 3)}, {"raw": (4, 7)}, {"raw": (29, 71)}), {"raw": LARGE}),
    "blend": Case(blend, (blended(1, 1), blended(5, 3), blended(61, 75)), blended(*LARGE), off_by=1, slow=True),
    "median": Case(median, colour(*SIZES), colour(LARGE)[0]),
    "chamfer": Case(chamfer, grey((1, 1), (5, 3), (29, 71)), grey(LARGE)[0]),
    "large_kernel": Case(
        large_kernel,
        tuple({"img": size, "kernel": (31, 31)} for size in SIZES),
        {"img": LARGE, "kernel": (31, 31)},
        off_by=1,
    ),
    "temporal_denoise": Case(
        temporal_denoise,
        tuple({"frames": (5, h, w, 3)} for h, w in SIZES),
        {"frames": (5, *LARGE, 3)},
        off_by=1,
    ),
    "bicubic_resize": Case(bicubic_resize, colour((1, 1), (5, 3), (29, 71)), colour(LARGE)[0], off_by=1),
    "affine_warp": Case(
        affine_warp,
        tuple({"img": (h, w, 3), "matrix": (2, 3)} for h, w in SIZES),
        {"img": (*LARGE, 3), "matrix": (2, 3)},
        off_by=1,
    ),
    "undistort": Case(undistort, colour(*SIZES), colour(LARGE)[0], off_by=1),
    "colour_table": Case(
        colour_table,
        tuple({"img": (h, w, 3), "table": (33, 33, 33, 3)} for h, w in SIZES),
        {"img": (*LARGE, 3), "table": (33, 33, 33, 3)},
        off_by=1,
    ),
}
