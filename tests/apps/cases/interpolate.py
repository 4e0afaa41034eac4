"""Colours weighted by alpha, averaged over ever larger neighbourhoods, and filled in from coarse to fine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..case import Array, Case

DEPTH = 10


@dataclass
class Level:
    """Some of the pixels of an infinite level: planes[c, y, x] with y and x counted from `first`."""

    planes: Array
    first: int

    def at(self, rows: Array, columns: Array) -> Array:
        """The pixels of these rows and columns."""
        return self.planes[:, (rows - self.first)[:, None], (columns - self.first)[None, :]]


def interpolate(img: Array, depth: int = DEPTH) -> Array:
    """Repeated edges around the picture and around the third level; elsewhere levels are as wide as they are needed."""
    alpha = img[3].astype(np.float64)
    weighted = np.concatenate([img[:3] * alpha, alpha[None]])
    levels = [Level(np.pad(weighted, ((0, 0), (40, 40), (40, 40)), mode="edge"), -40)]
    for level in range(1, depth):
        before = levels[-1]
        if level == 4:
            rows, columns = (np.clip(np.arange(-200, n // 8 + 200), 0, n // 8) for n in img.shape[1:])
            before = Level(before.at(rows, columns), -200)
        levels.append(halved(before))
    sizes = [img.shape[1:]]
    for _ in range(1, depth):
        sizes.append(tuple(n // 2 + 1 for n in sizes[-1]))
    filled = Level(levels[-1].at(*map(np.arange, sizes[-1])), 0)
    for level in reversed(range(depth - 1)):
        rows, columns = map(np.arange, sizes[level])
        own = levels[level].at(rows, columns)
        upper, lower = rows // 2, (rows + 1) // 2
        left, right = columns // 2, (columns + 1) // 2
        coarse = sum(filled.at(r, k) for r in (upper, lower) for k in (left, right)) / 4
        filled = Level(own + (1 - own[3]) * coarse, 0)
    return filled.planes[:3] / filled.planes[3]


def halved(level: Level) -> Level:
    """1 2 1 in both directions around every other pixel."""
    first = level.first // 2 + 1
    kernel = np.array([1, 2, 1]) / 4
    places = [np.arange(first, (level.first + n) // 2) for n in level.planes.shape[1:]]
    total = sum(
        kernel[i] * kernel[j] * level.at(2 * places[0] + i - 1, 2 * places[1] + j - 1)
        for i in range(3)
        for j in range(3)
    )
    return Level(np.asarray(total), first)


def interpolate_polymage(img: Array, depth: int = DEPTH) -> Array:
    """Levels count from 1, with a ring of zeros; all four channels are weighted."""
    levels = [ringed((img * img[3].astype(np.float64))[:, 1:-1, 1:-1])]
    for _ in range(1, depth):
        rows, columns = (2 * np.arange(1, (n - 2 + 1) // 2 + 1) for n in levels[-1].shape[1:])
        taps = ((-2, 1), (-1, 2), (0, 1))
        picked = (p * q * levels[-1][:, rows + i][:, :, columns + j] for i, p in taps for j, q in taps)
        levels.append(ringed(np.asarray(sum(picked)) / 16))
    filled = levels[-1]
    for own in reversed(levels[:-1]):
        rows, columns = (np.arange(1, n - 1) for n in own.shape[1:])
        picked = (filled[:, (rows + i) // 2][:, :, (columns + j) // 2] for i in (1, 2) for j in (1, 2))
        inner = own[:, 1:-1, 1:-1]
        filled = ringed(inner + (1 - inner[3]) * np.asarray(sum(picked)) / 4)
    return filled[:3, 1:-1, 1:-1] / filled[3, 1:-1, 1:-1]


def ringed(planes: Array) -> Array:
    """With zeros around."""
    return np.pad(planes, ((0, 0), (1, 1), (1, 1)))


CASES = {
    "interpolate": Case(
        interpolate,
        odd=({"img": (4, 1, 1)}, {"img": (4, 5, 3)}, {"img": (4, 13, 101)}),
        large={"img": (4, 331, 521)},
        planes=frozenset({"img"}),
        slow=True,
    ),
    "interpolate_polymage": Case(
        interpolate_polymage,
        odd=({"img": (4, 3, 3)}, {"img": (4, 7, 5)}, {"img": (4, 15, 103)}),
        large={"img": (4, 333, 523)},
        planes=frozenset({"img"}),
        slow=True,
    ),
}
