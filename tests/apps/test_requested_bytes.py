"""The bytes that the kernels of apps are predicted to request, against what the simulator counts of each load.

Arrays here are small: limits are lower than usual, so that some blocks and iterations count for others all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest

from pantile.apps import APPS
from pantile.backends.launch_report import LaunchReport
from pantile.launch_cost import sampled_launch
from pantile.simulator import Counts, counting
from pantile.target import NAMED
from pantile.target.gpu import SECTOR

from ..launch_cost.as_written import levels_as_written
from ..long import LONG
from .short import app_and_case
from .test_simulated import ALIKE, LEFT_OUT

# Of these, few blocks do all the work at small sizes, and in equake data decide how much.
FEW = {"equake", "hist_eq"}
NAMES = [n for n in APPS if n not in LEFT_OUT | ALIKE | FEW] if LONG else ["blur", "camera_pipe", "gemm"]
HOW = ("plain", "expert", "greedy", "autogpu")
SIM = NAMED["cuda-sim"]
SCHEDULED = [(n, how) for n in NAMES for how in HOW if how == "plain" or APPS[n].schedule(how, SIM) != "plain"]
NEAR, WITH_FEW = 0.1, 0.35  # of what is counted, for the worst kernel: with the usual limits, and with low ones


@pytest.mark.parametrize(("name", "how"), SCHEDULED)
def test_of_apps(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_launch, "levels_of", levels_as_written)
    app, case = app_and_case(name)
    arguments = {**app.random(case.odd[0 if case.slow else 1]), **app.params}
    chosen = app.schedule(how, SIM)
    estimates = arguments if isinstance(chosen, str) and chosen != "plain" else None
    p = app.build().with_options(target=SIM.architecture).with_schedule(chosen, estimates=estimates)
    with counting() as counts:
        p(**arguments)
    assert_near(p.predict(**arguments), counts, NEAR)
    for limit, number in {"_THREADS": 512, "_ACCESSES": 0, "_ROOM": 16}.items():
        monkeypatch.setattr(sampled_launch, limit, number)
    assert_near(p.predict(**arguments), counts, WITH_FEW)


def assert_near(report: object, counts: Sequence[Counts], near: float) -> None:
    assert isinstance(report, LaunchReport)
    for k, c in zip(report.kernels, counts, strict=True):
        assert k.work is not None
        for kind, predicted in (("load", k.work.read), ("store", k.work.written)):
            counted = c.traffic.global_sectors[kind] * SECTOR
            most = inf if k.work.is_bound else counted * (1 + near)
            assert counted * (1 - near) <= predicted <= most, (k, counted)
