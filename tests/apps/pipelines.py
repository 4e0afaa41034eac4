"""The apps in all the ways in which tests run them, and arrays for them."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

import pantile as pt
from pantile.apps import APPS

from .formulas import Array

SCHEDULES = ("default", "expert")
EVERY = [(name, how) for name in APPS for how in SCHEDULES]

# How many rows and columns the output has less than the input, and what comes before rows in the input's shape.
_BORDER = {"blur": 2, "unsharp": 0, "harris": 6}
_PLANES: dict[str, tuple[int, ...]] = {"blur": (), "unsharp": (3,), "harris": (3,)}


@functools.cache
def pipeline(name: str, how: str, *, strict: bool = False, debug: bool = False) -> pt.Pipeline:
    """One app under one schedule; the same object for all tests, so that it is compiled once."""
    plain = APPS[name].build()
    options = replace(plain.options, strict=strict, debug=debug)
    chosen = object.__new__(pt.Pipeline)
    chosen._set(plain.graph, options, schedule(name, how, options.target.vector_bits))
    return chosen


def schedule(name: str, how: str, vector_bits: int) -> pt.Schedule:
    return APPS[name].expert(vector_bits) if how == "expert" else pt.Schedule()


def image(name: str, rows: int, columns: int, seed: int = 0) -> Array:
    """An input that gives so many rows and columns of output."""
    shape = (*_PLANES[name], rows + _BORDER[name], columns + _BORDER[name])
    return APPS[name].make("img", shape, np.random.default_rng(seed))
