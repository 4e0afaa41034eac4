"""Laplacian pyramids of the picture remapped around eight levels, blended by local brightness."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..case import Array, Case
from .colours import luma

LEVELS = DEPTH = 8


def local_laplacian(img: Array, depth: int = DEPTH) -> Array:
    """All levels are infinitely wide; here the picture is padded so far that what is missing does not matter."""
    span = 2 ** (depth - 1)  # what a pixel of the coarsest level stands for
    margin = 3 * span  # of repeated edges: no result reaches further
    colour = img / 65535
    gray = luma(colour)
    wide = np.pad(gray, [(margin, margin + -n % span) for n in gray.shape], mode="edge")
    brightness = pyramid(wide, depth)
    place = np.clip((wide * (LEVELS - 1) * 256).astype(int), 0, (LEVELS - 1) * 256)
    blended = [np.zeros_like(n) for n in brightness]
    for k in range(LEVELS):
        t = (place - 256 * k) / 256
        gaussian = pyramid(wide + t * np.exp(-(t**2) / 2) / (LEVELS - 1), depth)
        for j, n in enumerate(brightness):
            laplacian = gaussian[j] - expand(gaussian[j + 1]) if j < depth - 1 else gaussian[j]
            v = n * (LEVELS - 1)
            below = np.clip(v.astype(int), 0, LEVELS - 2)
            blended[j] += laplacian * np.where(below == k, 1 - (v - below), np.where(below + 1 == k, v - below, 0))
    result = blended[-1]
    for detail in reversed(blended[:-1]):
        result = expand(result) + detail
    result = result[margin : margin + gray.shape[0], margin : margin + gray.shape[1]]
    return (np.clip(result * (colour + 0.01) / (gray + 0.01), 0, 1) * 65535).astype(np.uint16)


def pyramid(a: Array, depth: int) -> list[Array]:
    """Each level half as large as the one before. The ends of the array meet, which is wrong only far outside."""
    levels = [a]
    while len(levels) < depth:
        levels.append(along_both_axes(reduce, levels[-1]))
    return levels


def expand(a: Array) -> Array:
    """A level twice as large."""
    return along_both_axes(double, a)


def along_both_axes(change: Callable[[Array], Array], a: Array) -> Array:
    """First the rows, then the columns."""
    return change(change(a).T).T


def reduce(a: Array) -> Array:
    """1 3 3 1 over eight, at every other row."""
    return (np.roll(a, 1, 0) + 3 * (a + np.roll(a, -1, 0)) + np.roll(a, -2, 0))[::2] / 8


def double(a: Array) -> Array:
    """Three quarters of the nearest row and one of the next."""
    pairs = np.stack([3 * a + np.roll(a, 1, 0), 3 * a + np.roll(a, -1, 0)], 1) / 4
    return pairs.reshape(-1, a.shape[1])


CASES = {
    "local_laplacian": Case(
        local_laplacian,
        odd=({"img": (3, 1, 1)}, {"img": (3, 5, 3)}, {"img": (3, 13, 101)}),
        large={"img": (3, 331, 521)},
        planes=frozenset({"img"}),
        off_by=150,  # where rounding takes the next entry of the curve
        slow=True,
    ),
}
