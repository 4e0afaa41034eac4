"""Apps run as strategies say, and compute what they do by default."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.apps import APPS
from pantile.bench.agreement import disagreement
from pantile.machine import named

from .problems import MODELS

N1 = named("neoverse-n1")
QUICK = ("blur", "unsharp", "harris", "hist_eq", "iir_blur", "conv_layer", "matmul", "bilateral_grid", "tp",
         "equake", "covariance", "gemver")  # fmt: skip


@pytest.mark.parametrize("strategy", MODELS)
@pytest.mark.parametrize("app", QUICK)
def test_apps_run_as_strategies_say(app: str, strategy: str) -> None:
    """At small sizes, under the schedule for large ones."""
    found, inputs = APPS[app].build(), APPS[app].inputs("small")
    chosen = found.with_schedule(strategy, estimates=APPS[app].sizes["paper"], machine=N1)
    expected, result = ([a] if isinstance(a, np.ndarray) else a for a in (found(**inputs), chosen(**inputs)))
    assert disagreement(result, expected, found.rounding, APPS[app].tolerance, APPS[app].off_by) is None
