"""The six: four everyday filters, tone mapping, and a pyramid of twelve levels."""

from __future__ import annotations

from typing import Any

import numpy as np

import pantile as pt
from pantile.apps import APPS, App

LEVELS = 12
Y, X, C = pt.vars("y x c")


def tone_mapping() -> pt.Pipeline:
    """Scenes of any brightness as bytes: coarse differences of brightness are compressed, fine ones stay.

    The base is the logarithm of brightness, smoothed by 15 x 15 weights; all is relative to the mean of the picture.
    """
    img, contrast = pt.Input("img", "float32", ndim=3), pt.Param("contrast", "float32", default=0.6)
    source = pt.edge(img, axes=(0, 1))
    light, log, base = pt.Func("light"), pt.Func("log_light"), pt.Func("base")
    light[Y, X] = 0.2126 * source[Y, X, 0] + 0.7152 * source[Y, X, 1] + 0.0722 * source[Y, X, 2] + 1e-4
    log[Y, X] = pt.log(light[Y, X])
    weights = np.exp(-(np.arange(-7, 8) ** 2) / 18)
    weights /= weights.sum()
    down = pt.Func("base_down")
    down[Y, X] = _total(w * log[Y + k - 7, X] for k, w in enumerate(weights))
    base[Y, X] = _total(w * down[Y, X + k - 7] for k, w in enumerate(weights))
    pixels = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    middle = pt.Func("middle")
    middle[()] = pt.sum(log[pixels[0], pixels[1]], over=pixels) / pt.cast("float32", img.shape[0] * img.shape[1])
    scale, out = pt.Func("scale"), pt.Func("out")
    coarse, fine = base[Y, X] - middle[()], log[Y, X] - base[Y, X]
    scale[Y, X] = 0.18 * pt.exp(contrast * coarse + fine) / light[Y, X]
    value = pt.clamp(img[Y, X, C] * scale[Y, X], 0, 1)
    out[Y, X, C] = pt.rounding_cast("uint8", 255 * pt.pow(value, 1 / 2.2))
    return pt.Pipeline(out, shape=img.shape, name="tone_mapping")


def pyramid() -> pt.Pipeline:
    """Details of twelve scales, each with a gain of its own: down by 1 3 3 1, up again by 1 3."""
    img = pt.Input("img", "float32", ndim=2)
    levels: list[Any] = [img]
    for k in range(1, LEVELS):
        source, across, level = pt.edge(levels[-1]), pt.Func(f"g{k}_x"), _level(f"g{k}", img, k)
        across[Y, X] = _down(*(source[Y, 2 * X + d] for d in (-1, 0, 1, 2)))
        level[Y, X] = _down(*(across[2 * Y + d, X] for d in (-1, 0, 1, 2)))
        levels.append(level)
    result: Any = levels[-1]
    for k in reversed(range(LEVELS - 1)):
        coarse, coarser = _up(levels[k + 1], f"g{k + 1}_up"), _up(result, f"r{k + 1}_up")
        result = _level(f"r{k}", img, k)
        result[Y, X] = coarser[Y, X] + (1 + 0.5 / (k + 1)) * (levels[k][Y, X] - coarse[Y, X])
    return pt.Pipeline(result, shape=img.shape, name="pyramid")


def _level(name: str, img: pt.Input, level: int) -> pt.Func:
    return pt.Func(name, domain=[(0, (n + 2**level - 1) // 2**level) for n in img.shape])


def _down(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (a + 3 * (b + c) + d) / 8


def _up(f: Any, name: str) -> pt.Func:
    source, across, up = pt.edge(f), pt.Func(f"{name}_x"), pt.Func(name)
    across[Y, X] = (source[Y, X // 2 - 1 + X % 2 * 2] + 3 * source[Y, X // 2]) / 4
    up[Y, X] = (across[Y // 2 - 1 + Y % 2 * 2, X] + 3 * across[Y // 2, X]) / 4
    return up


def _total(terms: Any) -> Any:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def _scene(_: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Brightness over five orders of magnitude."""
    return np.exp(rng.uniform(-6, 6, shape)).astype(np.float32)


def _app(name: str, description: str, build: Any, channels: tuple[int, ...], **allowed: Any) -> App:
    sizes = {"small": {"img": (120, 163, *channels)}, "paper": {"img": (2000, 3000, *channels)}}
    return App(name, description, build, None, sizes, _scene, **allowed)


OUTSIDE = (
    *(APPS[name] for name in ("guided_filter", "canny", "lucas_kanade", "demosaic")),
    _app("tone_mapping", "local tone mapping, float32 to bytes, RGB", tone_mapping, (3,), off_by=1),
    _app("pyramid", "details of 12 scales, float32", pyramid, ()),
)
