"""Random pipelines on the simulated GPU request the predicted number of bytes. The prediction equals the bytes that the
simulator counts for each load, or is lower if loads are repeated, but never lower than the bytes of all elements that a
launch accesses. If the number depends on data, the prediction is a bound."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

from pantile.backends.launch_report import LaunchReport
from pantile.errors import UserError
from pantile.launch_cost import sampled_launch
from pantile.simulator import counting
from pantile.simulator.accesses import ThreadAccess
from pantile.simulator.global_memory import GlobalInLaunch
from pantile.target.gpu import SECTOR
from tests.launch_cost.as_written import levels_as_written
from tests.long import LONG

from .harness import Trial, pipeline_of, refused_call, refused_late, trials
from .pipelines import pipelines
from .test_simulated import SIZES

METHODS = {"load": "load", "store": "store", "combine": "store"}
Touched = dict[tuple[int, str], set[tuple[str, int, int]]]  # by the id of a launch's traffic, and by kind


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Touched:
    """The elements that launches access: the buffer, index and size of each."""
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


@pytest.mark.parametrize("as_written", [True, False], ids=["as_written", "as_compiled"])
@pytest.mark.parametrize("scheduled", [True, False], ids=["random", "default"])
def test_random_pipelines(scheduled: bool, as_written: bool, touched: Touched, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    if as_written:
        monkeypatch.setattr(sampled_launch, "levels_of", levels_as_written)

    @seed(300)
    @settings(max_examples=1000 if LONG else 4)
    @given(trials(cases=pipelines(most=3, sizes=SIZES), scheduled=scheduled, target="cuda-sim"))
    def each(trial: Trial) -> None:
        nonlocal compared
        touched.clear()
        compared += compare(trial, touched, as_written)

    each()
    assert compared >= 3


def compare(trial: Trial, touched: Touched, as_written: bool) -> int:
    """Compare counted with predicted bytes. Return the number of launches that were compared."""
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
    known = [(k, c, k.work) for k, c in zip(report.kernels, counts, strict=True) if k.work is not None]
    for k, c, work in known:
        for kind, predicted in (("load", work.read), ("store", work.written)):
            counted = c.traffic.global_sectors[kind] * SECTOR
            assert predicted >= sum(size for _, _, size in touched[id(c.traffic), kind]), (k, trial.source)
            least = 0.75 * counted if as_written or kind == "store" else 0.0
            most = inf if work.is_bound else 1.25 * counted
            assert least <= predicted <= most, (k, counted, trial.source)
        assert k.time is not None and 0 < k.time.seconds < inf
    return len(known)
