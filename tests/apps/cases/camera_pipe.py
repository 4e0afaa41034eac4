"""Raw pixels to a picture, on whole images: neighbours come round the edge, inside a margin that is cut off at last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import Array, Case

Average = Callable[[Array, Array], Array]


def camera_pipe(raw: Array, matrix_3200: Array, matrix_7000: Array) -> Array:
    """Halide's: averages rounded up, then sharpened."""
    pixels = evened(raw)
    same_colour = [at(pixels, *d) for d in ((0, -2), (0, 2), (-2, 0), (2, 0))]
    denoised = np.minimum(pixels, np.max(same_colour, axis=0))
    colours = demosaiced(denoised, lambda a, b: (a + b + 1) // 2)
    entries = np.arange(1024)
    curve = curve_bytes((entries - 25) / (1023 - 25), 255, 0.5)
    curve[entries <= 25] = 0
    curved = curve[np.clip(corrected(colours, matrix_3200, matrix_7000), 0, 1023)]
    sharp = np.stack([sharpened(plane) for plane in curved])
    rows, columns = ((n - margin) // 32 * 32 for n, margin in zip(raw.shape, (24, 32), strict=True))
    return sharp[:, 12 : 12 + rows, 16 : 16 + columns].astype(np.uint8)


def camera_pipe_polymage(raw: Array, matrix_3200: Array, matrix_7000: Array) -> Array:
    """PolyMage's: averages rounded down, blue first."""
    pixels = evened(raw)
    same_colour = [at(pixels, *d) for d in ((0, -2), (0, 2), (-2, 0), (2, 0))]
    denoised = np.clip(pixels, np.min(same_colour, axis=0), np.max(same_colour, axis=0))
    colours = demosaiced(denoised, lambda a, b: (a + b) // 2)
    curve = curve_bytes(np.arange(1025) / 1024, 256, 0.0)
    curved = curve[np.clip(corrected(colours, matrix_3200, matrix_7000), 0, 1024)]
    return curved[::-1, 24 : raw.shape[0] - 24, 32 : raw.shape[1] - 32].astype(np.uint8)


def evened(raw: Array) -> Array:
    """Wide integers; an odd last row or column is repeated, so that every pixel has a whole cell of the mosaic."""
    padding = [(0, n % 2) for n in raw.shape]
    return np.pad(raw.astype(np.int64), padding, mode="edge")


def at(a: Array, dy: int, dx: int) -> Array:
    """The neighbour so many rows down and columns to the right."""
    return np.roll(a, (-dy, -dx), (0, 1))


def demosaiced(q: Array, mean: Average) -> Array:
    """Red, green and blue, as 16-bit integers that have wrapped."""
    gr, r, b, gb = q[::2, ::2], q[::2, 1::2], q[1::2, ::2], q[1::2, 1::2]

    def closer(pair: tuple[Array, Array], other: tuple[Array, Array], if_closer: Array, otherwise: Array) -> Array:
        return np.where(np.abs(pair[0] - pair[1]) < np.abs(other[0] - other[1]), if_closer, otherwise)

    def green(horizontal: tuple[Array, Array], vertical: tuple[Array, Array]) -> Array:
        return closer(horizontal, vertical, mean(*horizontal), mean(*vertical))

    g_r = green((at(gr, 0, 1), gr), (at(gb, -1, 0), gb))
    g_b = green((at(gb, 0, -1), gb), (at(gr, 1, 0), gr))

    def straight(green_here: Array, guide: Array, colour: Array, dy: int, dx: int) -> Array:
        return green_here - mean(guide, at(guide, dy, dx)) + mean(colour, at(colour, dy, dx))

    def diagonal(green_here: Array, guide: Array, colour: Array, dy: int, dx: int) -> Array:
        """Corners (0, 0) and (dy, dx), or (0, dx) and (dy, 0)."""
        one, other = ((0, 0), (dy, dx)), ((0, dx), (dy, 0))
        pairs = [(at(colour, *p), at(colour, *q)) for p, q in (one, other)]
        guides = [(at(guide, *p), at(guide, *q)) for p, q in (one, other)]
        values = [green_here - mean(*g) + mean(*p) for g, p in zip(guides, pairs, strict=True)]
        return closer(*pairs, *values)

    red = [straight(gr, g_r, r, 0, -1), r, diagonal(g_b, g_r, r, 1, -1), straight(gb, g_r, r, 1, 0)]
    blue = [straight(gr, g_b, b, -1, 0), diagonal(g_r, g_b, b, -1, 1), b, straight(gb, g_b, b, 0, 1)]
    return np.stack([woven(red), woven([gr, g_r, g_b, gb]), woven(blue)]).astype(np.int16)


def woven(planes: list[Array]) -> Array:
    """The image whose four mosaic planes these are."""
    image = np.empty([2 * n for n in planes[0].shape], planes[0].dtype)
    for k, plane in enumerate(planes):
        image[k // 2 :: 2, k % 2 :: 2] = plane
    return image


def corrected(colours: Array, matrix_3200: Array, matrix_7000: Array, temperature: float = 3700) -> Array:
    alpha = (1 / temperature - 1 / 3200) / (1 / 7000 - 1 / 3200)
    matrix = np.trunc(256 * (matrix_3200 * alpha + matrix_7000 * (1 - alpha))).astype(np.int64)
    product = np.tensordot(matrix[:, :3], colours.astype(np.int64), 1) + matrix[:, 3, None, None]
    return (product // 256).astype(np.int16)


def curve_bytes(level: Array, scale: int, half: float, gamma: float = 2, contrast: float = 50) -> Array:
    g = np.clip(level, 0, 1) ** (1 / gamma)
    b = 2 - 2 ** (contrast / 100)
    a = 2 - 2 * b
    z = np.where(g > 0.5, 1 - (a * (1 - g) ** 2 + b * (1 - g)), a * g**2 + b * g)
    return np.trunc(np.clip(scale * z + half, 0, 255)).astype(np.int64)


def sharpened(plane: Array, strength: int = 32) -> Array:
    blurred = smooth(smooth(plane, 1, 0), 0, 1)
    return np.clip(plane + (plane - blurred) * strength // 32, 0, 255)


def smooth(a: Array, dy: int, dx: int) -> Array:
    outer: Any = (at(a, -dy, -dx) + at(a, dy, dx) + 1) // 2
    return (outer + a + 1) // 2


def shapes(rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {"raw": (rows, columns), "matrix_3200": (3, 4), "matrix_7000": (3, 4)}


CASES = {
    "camera_pipe": Case(
        camera_pipe,
        odd=(shapes(56, 64), shapes(89, 229), shapes(121, 98)),
        large=shapes(283, 395),
    ),
    "camera_pipe_polymage": Case(
        camera_pipe_polymage,
        odd=(shapes(50, 66), shapes(59, 131), shapes(78, 99)),
        large=shapes(283, 395),
    ),
}
