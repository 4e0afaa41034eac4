"""The middle one of five frames without noise: the mean of what each pixel was and will be, the more alike the heavier.

A frame's weight at a pixel is exp(-d / 2s^2), where d is the square of the distance of the two colours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pantile as pt

from ..app import PIXELS, Array, Photo, Shape
from .filter import everyday, photograph

FRAMES = 5
SIGMA = 20.0  # grey levels
NOISE = 10.0


def build() -> pt.Pipeline:
    """frames[t, y, x, c] -> out[y, x, c]."""
    t, y, x, c = pt.vars("t y x c")
    frames = pt.Input("frames", "uint8", ndim=4)
    value, distance, weight, out = pt.Func("value"), pt.Func("distance"), pt.Func("weight"), pt.Func("out")
    value[t, y, x, c] = pt.cast("float32", frames[t, y, x, c])
    channel, time = pt.RDom((0, 3)), pt.RDom((0, FRAMES))
    change = value[t, y, x, channel[0]] - value[FRAMES // 2, y, x, channel[0]]
    distance[t, y, x] = pt.sum(change * change, over=channel)
    weight[t, y, x] = pt.exp(distance[t, y, x] * (-0.5 / SIGMA**2))
    total = pt.sum(weight[time[0], y, x] * value[time[0], y, x, c], over=time)
    out[y, x, c] = pt.rounding_cast("uint8", total / pt.sum(weight[time[0], y, x], over=time))
    return pt.Pipeline(out, shape=frames.shape[1:], name="temporal_denoise")


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Five noisy frames of one still picture."""
    still = photograph(name, shape[1:], rng)
    noise = rng.standard_normal(shape, dtype=np.float32) * np.float32(NOISE)
    return np.asarray((still + noise).clip(0, 255), np.uint8)


APPS = (
    everyday(
        "temporal_denoise",
        "mean of five frames by likeness, uint8 interleaved RGB",
        build,
        lambda h, w: {"frames": (FRAMES, h, w, 3)},
        _make,
        off_by=1,  # exponentials differ in their last digits
        photo=Photo({"frames": replace(PIXELS, frames=True)}, gives=PIXELS),
    ),
)
