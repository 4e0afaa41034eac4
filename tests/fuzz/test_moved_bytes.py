"""Random pipelines on the simulated GPU move the bytes that are predicted: those that the simulator counts, and never
fewer than those of all elements that a launch accesses. Where data decide which, the prediction is a bound."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

from pantile.backends.launch_report import LaunchReport
from pantile.errors import UserError
from pantile.simulator import counting
from pantile.simulator.accesses import ThreadAccess
from pantile.simulator.global_memory import GlobalInLaunch
from pantile.target.gpu import SECTOR
from tests.long import LONG

from .harness import Trial, pipeline_of, refused_call, refused_late, trials
from .pipelines import pipelines
from .test_simulated import SIZES

METHODS = {"load": "load", "store": "store", "combine": "store"}
Touched = dict[tuple[int, str], set[tuple[str, int, int]]]  # by the traffic of a launch, and kind


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Touched:
    """The elements that launches access: buffer, number and bytes."""
    found: Touched = defaultdict(set)

    def noted(name: str) -> Any:
        original = getattr(GlobalInLaunch, name)

        def access(self: GlobalInLaunch, by: ThreadAccess, *others: Any) -> Any:
            memory, numbers = self._memory, np.unique(by.touch().element).tolist()
            found[id(self._traffic), METHODS[name]] |= {(memory.name, n, memory.dtype.bytes) for n in numbers}
            return original(self, by, *others)

        return access

    for name in METHODS:
        monkeypatch.setattr(GlobalInLaunch, name, noted(name))
    return found


@pytest.mark.parametrize("scheduled", [True, False], ids=["random", "default"])
def test_random_pipelines(scheduled: bool, touched: Touched) -> None:
    compared = 0

    @seed(300)
    @settings(max_examples=1000 if LONG else 6)
    @given(trials(cases=pipelines(most=3, sizes=SIZES), scheduled=scheduled, target="cuda-sim"))
    def each(trial: Trial) -> None:
        nonlocal compared
        touched.clear()
        compared += compare(trial, touched)

    each()
    assert compared >= 3


def compare(trial: Trial, touched: Touched) -> int:
    """How many launches were compared."""
    pipeline = pipeline_of(trial.case, trial.schedule, target=trial.target)
    inputs, params = trial.case.values(pipeline.graph)
    if refused_call(pipeline, inputs, params):
        return 0
    try:
        report = pipeline.predict(**inputs, **params)
        with counting() as counts:
            pipeline(**inputs, **params)
    except UserError as refusal:
        if refused_late(refusal):
            return 0
        raise
    assert isinstance(report, LaunchReport)
    known = [(k, c) for k, c in zip(report.kernels, counts, strict=True) if k.moved is not None]
    for k, c in known:
        for kind, predicted in zip(("load", "store"), k.moved or (), strict=False):
            counted = c.traffic.global_sectors[kind] * SECTOR
            assert predicted >= sum(size for _, _, size in touched[id(c.traffic), kind]), (k, trial.source)
            most = inf if k.moved is not None and k.moved.is_bound else 1.25 * counted
            assert counted * 0.75 <= predicted <= most, (k, counted, trial.source)
    return len(known)
