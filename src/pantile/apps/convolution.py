"""Convolutions of channel-innermost images, as the learning apps share them: definition and schedule.

The idea of the schedule: a task owns a block of output channels, and copies their weights so that they lie in memory
in the order of their use. A tile of a few pixels by that block of channels is accumulated in registers through all taps
and all input channels; each step loads the weights of the block, and one number per pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import Array, Shape

LINE = 16  # channels: a cache line of float32
_STEPS = 4  # input channels at a time: a vector of them is loaded from each pixel
# Pixels and output channels of a tile, by width of vectors: as many as leave registers for the weights. Those of
# AVX-512 hold two vectors of channels, so that a number that is loaded serves both.
_TILES = {128: (5, LINE), 256: (6, LINE), 512: (5, 4 * LINE)}

# On GPUs: pixels and channels of a thread, and threads along pixels and channels.
_OF_A_THREAD, _THREADS = (4, 8), (16, 8)

Weights = Callable[..., Any]  # of coordinates


def weighted_sums(name: str, source: Any, filter: Weights, bias: Weights, taps: pt.RDom, stride: int = 1) -> pt.Func:
    """source[n, y, x, ci], filter(ci, ky, kx, co), bias(co) -> [n, y, x, co], summed over the taps y, x, c."""
    n, y, x, ky, kx, ci, co = pt.vars("n y x ky kx ci co")
    weights, sums = pt.Func(f"{name}_weights"), pt.Func(f"{name}_sums")
    weights[ky, kx, ci, co] = filter(ci, ky, kx, co)
    sums[n, y, x, co] = bias(co)
    pixel = source[n, stride * y + taps.y, stride * x + taps.x, taps.c]
    sums[n, y, x, co] += weights[taps.y, taps.x, taps.c, co] * pixel
    return sums


def elements(array: pt.Input | pt.Func, *first: Any) -> Weights:
    """An array, or the part of it at such first coordinates, as a function of coordinates."""

    def at(*rest: Any) -> Any:
        place = first + rest
        return array[place]

    return at


def layer(name: str, source: pt.Func, filter: Weights, bias: Weights, channels: int, shape: Sequence[Any]) -> pt.Func:
    """A 3x3 convolution of a padded source with that many channels, and ReLU: [n, y, x, co] of this shape."""
    n, y, x, co = pt.vars("n y x co")
    taps = pt.RDom((0, 3), (0, 3), (0, channels), name="r", names="y x c")
    sums = weighted_sums(name, source, filter, bias, taps)
    result = pt.Func(name, domain=[(0, extent) for extent in shape])
    result[n, y, x, co] = pt.maximum(sums[n, y, x, co], 0)
    return result


def padded(source: pt.Func | pt.Input, margin: int = 1) -> pt.Func:
    """The source with a margin of zeros around rows and columns, as a stage: windows then need no conditions."""
    n, y, x, c = pt.vars("n y x c")
    around = pt.Func(f"{source.name}_padded")
    around[n, y, x, c] = pt.constant(source, 0, axes=(1, 2))[n, y - margin, x - margin, c]
    return around


def tiles(name: str, target: Target, channels: int = _STEPS) -> tuple[pt.StageSchedule, ...]:
    """Schedules of stage `name`, computed pointwise from its weighted sums over so many channels, and of these."""
    pixels, block = _TILES[target.vector_bits]
    return (
        pt.on(name)
        .compute_root()
        .split("co", "block", "lane", block)
        .split("x", "tile", "pixel", pixels)
        .reorder("block", "n", "y", "tile", "pixel", "lane")
        .vectorize("lane")
        .unroll("pixel")
        .parallel("block")
        .parallel("y"),
        pt.on(f"{name}_sums")
        .compute_at(name, "tile")
        .vectorize("co", block)
        .unroll("x", pixels)
        .update()
        .split("r.c", "c", "step", min(channels, _STEPS))
        .reorder("r.y", "r.x", "c", "step", "n", "y", "x", "co")
        .vectorize("co", block)
        .unroll("x", pixels)
        .unroll("step"),
        pt.on(f"{name}_weights").compute_at(name, "block").vectorize("co", block),
    )


def copies(name: str, channels: int) -> pt.StageSchedule:
    """The schedule of a padded stage of so many channels: rows in parallel, no conditions inside of them."""
    around = pt.on(f"{name}_padded").compute_root().fuse("n", "y", "row").parallel("row").partition("x", "always")
    return around.vectorize("c", LINE) if channels >= LINE else around


def in_threads(name: str, channels: int = _STEPS) -> tuple[pt.StageSchedule, ...]:
    """Schedules for GPUs of the same stages: a thread accumulates a few pixels by a few channels in registers, and
    its neighbours those beside them, so that what they load is in the cache of the multiprocessor."""
    pixels, lanes = _OF_A_THREAD
    return (
        pt.on(name)
        .compute_root()
        .split("x", "group", "pixel", pixels)
        .split("group", "xb", "tx", _THREADS[0])
        .split("co", "cb", "part", lanes * _THREADS[1])
        .split("part", "tc", "lane", lanes)
        .reorder("n", "y", "xb", "cb", "tx", "tc", "pixel", "lane")
        .block("n", "y", "xb", "cb")
        .thread("tx", "tc")
        .unroll("pixel")
        .vectorize("lane"),
        pt.on(f"{name}_sums")
        .compute_at(name, "tc")
        .store_in("register")
        .vectorize("co")
        .unroll("x")
        .update()
        .split("r.c", "c", "step", min(channels, _STEPS))
        .reorder("r.y", "r.x", "c", "step", "n", "y", "x", "co")
        .vectorize("co")
        .unroll("step")
        .unroll("x"),
        pt.on(f"{name}_weights").compute_inline(),
    )


def copied_in_threads(name: str) -> pt.StageSchedule:
    """The schedule of a padded stage for GPUs: a thread for each number."""
    around = pt.on(f"{name}_padded").compute_root().split("x", "xb", "tx", 8)
    return around.reorder("n", "y", "xb", "tx", "c").block("n", "y", "xb").thread("tx", "c")


def scaled(shape: Shape, rng: np.random.Generator, summands: int) -> Array:
    """Random weights of sums of so many terms, such that ReLU of the sums is about as large as the terms."""
    values = rng.standard_normal(shape, dtype=np.float32)
    values *= np.float32(np.sqrt(2 / summands))
    return values
