"""Depth by matching two views, and means over random samples of each pixel's surroundings."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

from ..case import Array, Case

SLICES, FOCUS, SAMPLES, LEVELS, RADIUS = 32, 13, 32, 8, 9
M = 16  # every array has this margin on all sides


def lens_blur(left: Array, right: Array, levels: int = LEVELS) -> Array:
    shape = left.shape[1:]
    view = extended(left.astype(np.int64), shape, 0)
    moved = np.stack([extended(right.astype(np.int64), shape, k) for k in range(2 * SLICES)])
    difference = np.abs(view - moved).reshape(SLICES, 2, *view.shape).min(1)
    cost = (difference**2).sum(1).astype(np.float64)
    confidence = (cost**2).mean(0) - cost.mean(0) ** 2
    match, weight = smoothed(np.stack([cost * confidence, np.broadcast_to(confidence, cost.shape)]), shape, levels)
    return blurred(view, np.argmin(match / weight, axis=0), shape)


def extended(image: Array, shape: tuple[int, ...], shift: int) -> Array:
    """With a margin of repeated edges, moved to the left."""
    rows, columns = (np.arange(-M, n + M) + s for n, s in zip(shape, (0, shift), strict=True))
    return image[:, rows.clip(0, shape[0] - 1)][:, :, columns.clip(0, shape[1] - 1)]


def smoothed(fine: Array, shape: tuple[int, ...], levels: int) -> Array:
    pyramid = [fine]
    for i in range(1, levels):
        halved = pyramid[-1]
        for axis, n in ((3, shape[1] >> i), (2, shape[0] >> i)):
            taps = [np.take(halved, M + 2 * np.arange(n) + d, axis) for d in range(-1, 3)]
            halved = (taps[0] + 3 * (taps[1] + taps[2]) + taps[3]) / 8
        pyramid.append(np.pad(halved, ((0, 0), (0, 0), (M, M), (M, M)), mode="edge"))
    result = pyramid[-1]
    for i in reversed(range(levels - 1)):
        for axis, n in ((3, shape[1] >> i), (2, shape[0] >> i)):
            place = np.arange(-M, n + M)
            near, second = place // 2, place // 2 - 1 + 2 * (place % 2)
            result = 0.75 * np.take(result, M + near, axis) + 0.25 * np.take(result, M + second, axis)
        result = (result + pyramid[i]) / 2
    return result


def blurred(view: Array, depth: Array, shape: tuple[int, ...]) -> Array:
    y, x = (a + M for a in np.indices(shape))
    radius = np.abs(depth - FOCUS) / 2
    worst = ndimage.maximum_filter(radius, 2 * RADIUS + 1)[y, x]
    rgba = np.concatenate([view, np.full_like(view[:1], 255)])
    total = rgba[:, y, x].astype(np.float64)
    for s in range(SAMPLES):
        u, v = (steps(which, x - M, y - M, s, worst) for which in (0, 1))
        there, distance = (y + v, x + u), u * u + v * v
        reached = (distance < radius[y, x] ** 2) | (depth[there] < depth[y, x])
        total += rgba[(slice(None), *there)] * (reached & (distance < radius[there] ** 2))
    return total[:3] / total[3]


def steps(which: int, x: Array, y: Array, s: int, worst: Array) -> Array:
    """Random whole numbers within +- worst; rounded as single floats are, since a whole number more or less shows."""
    h: Any = mixed(np.uint32(which + 1))
    for n in (x.astype(np.uint32), y.astype(np.uint32), np.uint32(s)):
        h = mixed(h ^ n)
    uniform = (h >> 8).astype(np.float32) * np.float32(2.0**-24)
    return np.clip(np.trunc((uniform - np.float32(0.5)) * 2 * worst.astype(np.float32)), -RADIUS, RADIUS).astype(int)


def mixed(h: Any) -> Any:
    with np.errstate(over="ignore"):
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D)
        h = (h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B)
        return h ^ (h >> np.uint32(16))


def shapes(rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("left", "right"), (3, rows, columns))


CASES = {
    "lens_blur": Case(
        lens_blur,
        odd=(shapes(128, 131), shapes(133, 129), shapes(131, 142)),
        large=shapes(145, 163),
        reference=False,
        slow=True,
    ),
}
