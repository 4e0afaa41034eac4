"""Whatever the pipeline and the schedule, there is a cost: of apps by hand, by default and by strategies, and of
random pipelines under random schedules."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, seed, settings

import pantile as pt
from pantile.apps import APPS
from pantile.cost_model import Cost
from pantile.machine import named
from pantile.target import NAMED
from tests.apps.short import app_and_case
from tests.autoschedule.problems import MODELS, TINY
from tests.fuzz.harness import Trial, pipeline_of, refused_call, trials
from tests.fuzz.kinds import KINDS

MACHINES = (named("neoverse-n1"), named("sapphire-rapids-8480"), TINY)
QUICK = ("blur", "unsharp", "harris", "hist_eq", "iir_blur", "conv_layer", "bilateral_grid", "tp", "equake", "gemver")
FEW_OF_MANY = [name for name in APPS if not name.startswith("multigrid")] + ["multigrid_2d_v444"]  # all are alike
EXAMPLES = 4


def assert_sound(found: Cost) -> None:
    """A cost is a time, and the sum of its parts."""
    assert math.isfinite(found.seconds) and found.seconds > 0
    assert all(s.seconds >= 0 and s.causes.seconds >= 0 and 0 <= s.redundant < 1 for s in found.stages)
    assert str(found)


@pytest.mark.parametrize("app", FEW_OF_MANY)
@pytest.mark.parametrize("how", ["expert", "plain"])
def test_apps(app: str, how: str) -> None:
    shorter, _ = app_and_case(app)
    found = shorter.build()
    machines = MACHINES[:2] if shorter.called(how) == how else MACHINES[:1]  # where a strategy searches, see below
    for machine in machines:
        chosen = found.with_schedule(shorter.schedule(how, NAMED["aarch64"], cores=2), machine=machine)
        assert_sound(chosen.predict(**shorter.sizes["paper"]))


@pytest.mark.parametrize("strategy", MODELS)
@pytest.mark.parametrize("app", QUICK)
def test_strategies(app: str, strategy: str) -> None:
    sizes = APPS[app].sizes["paper"]
    assert_sound(APPS[app].build().with_schedule(strategy, estimates=sizes, machine=MACHINES[0]).predict(**sizes))


@pytest.mark.parametrize("focus", KINDS)
def test_random_schedules(focus: str) -> None:
    @seed(len(focus))
    @settings(max_examples=EXAMPLES)
    @given(trials(focus))
    def each(trial: Trial) -> None:
        pipeline = pipeline_of(trial.case)
        inputs, params = trial.case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params):
            return
        for machine in MACHINES:
            chosen = pipeline.with_schedule(trial.schedule, machine=machine)
            try:
                found = chosen.predict(num_threads=trial.threads, **inputs, **params)
            except pt.UserError:  # as a call is: this schedule needs more of the input
                assert refused_call(chosen, inputs, params)
            else:
                assert_sound(found)

    each()
