"""Laplacian pyramids of two pictures, mixed level by level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..case import Array, Case

LEVELS = 4
MARGIN = 30


def pyramid_blend(a: Array, b: Array, mask: Array, levels: int = LEVELS) -> Array:
    """Edges are repeated at every level."""
    masks = gaussian(mask.astype(np.float64)[None], levels)
    first, second = (laplacian(gaussian(picture.astype(np.float64), levels)) for picture in (a, b))
    result: Array | None = None
    for m, p, q in reversed(list(zip(masks, first, second, strict=True))):
        mixed = m * p + (1 - m) * q
        result = mixed if result is None else doubled(result, mixed.shape) + mixed
    assert result is not None
    return result


def inner_blend(a: Array, b: Array, mask: Array, levels: int = LEVELS) -> Array:
    """Far enough inside, edges do not matter."""
    return pyramid_blend(a, b, mask, levels)[:, MARGIN:-MARGIN, MARGIN:-MARGIN]


def gaussian(picture: Array, levels: int) -> list[Array]:
    pictures = [picture]
    while len(pictures) < levels:
        pictures.append(halved(halved(pictures[-1], 2), 1))
    return pictures


def laplacian(levels: list[Array]) -> list[Array]:
    return [*(fine - doubled(coarse, fine.shape) for fine, coarse in pairwise(levels)), levels[-1]]


def halved(a: Array, axis: int) -> Array:
    places = 2 * np.arange((a.shape[axis] + 1) // 2)
    weights = zip(range(-2, 3), (1, 4, 6, 4, 1), strict=True)
    return np.asarray(sum(w * taken(a, places + d, axis) for d, w in weights)) / 16


def doubled(a: Array, shape: tuple[int, ...]) -> Array:
    for axis in (2, 1):
        half = np.arange(shape[axis]) // 2
        before, here, after = (taken(a, half + d, axis) for d in (-1, 0, 1))
        even = (np.arange(shape[axis]) % 2 == 0).reshape([-1 if k == axis else 1 for k in range(3)])
        a = np.where(even, (before + 6 * here + after) / 8, (here + after) / 2)
    return a


def taken(a: Array, places: Array, axis: int) -> Array:
    return np.take(a, np.clip(places, 0, a.shape[axis] - 1), axis)


def pictures(height: int, width: int) -> dict[str, tuple[int, ...]]:
    return {"a": (3, height, width), "b": (3, height, width), "mask": (height, width)}


CASES = {
    "pyramid_blend": Case(
        pyramid_blend,
        odd=(pictures(1, 1), pictures(5, 3), pictures(13, 101)),
        large=pictures(331, 521),
        slow=True,
    ),
    "pyramid_blend_polymage": Case(
        inner_blend,
        odd=(pictures(61, 61), pictures(65, 63), pictures(73, 131)),
        large=pictures(331, 521),
        slow=True,
    ),
}
