"""Apps run as strategies say, and compute what they do by default."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.bench.agreement import disagreement
from pantile.machine import named

from ..apps.case import Array
from .problems import MODELS

N1 = named("neoverse-n1")
QUICK = ("blur", "unsharp", "harris", "hist_eq", "iir_blur", "conv_layer", "matmul", "bilateral_grid", "tp",
         "equake", "covariance", "gemver")  # fmt: skip


@functools.cache
def by_default(app: str) -> tuple[pt.Pipeline, Mapping[str, Array], Sequence[Array]]:
    """An app, its inputs at a small size, and what it computes of them, for all strategies."""
    p, inputs = APPS[app].build(), APPS[app].inputs("small")
    return p, inputs, several(p(**inputs))


def several(results: Array | tuple[Array, ...]) -> Sequence[Array]:
    return [results] if isinstance(results, np.ndarray) else results


@pytest.mark.parametrize("strategy", MODELS)
@pytest.mark.parametrize("app", QUICK)
def test_apps_run_as_strategies_say(app: str, strategy: str) -> None:
    """At small sizes, under the schedule for large ones."""
    p, inputs, expected = by_default(app)
    chosen = p.with_schedule(strategy, estimates=APPS[app].sizes["paper"], machine=N1)
    result = several(chosen(**inputs))
    assert disagreement(result, expected, p.rounding, APPS[app].tolerance, APPS[app].off_by) is None
