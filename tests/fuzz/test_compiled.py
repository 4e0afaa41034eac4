"""Random pipelines under random schedules: compiled code is compared with the reference.

Each test has its own seed, so that the cases are the same every time and the tests distribute well over workers.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from ..long import LONG
from .harness import Trial, assert_agrees, trials
from .interior import interior_pipelines
from .isolate import isolated, isolated_together
from .kinds import KINDS, RARE_KINDS
from .pipelines import pipelines

PARTS = range(2)
# The number of examples for each way to run a case; campaigns have tens of thousands.
EXAMPLES = settings().max_examples if LONG else 6
FEWER = EXAMPLES if LONG else 5  # for tests that take longer, or whose cases other tests draw, too
MOST = 3  # Funcs of a pipeline, as in campaigns: more of them take longer to compile but find no more failures


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("floats", ["wild", "tame"])
@pytest.mark.parametrize("focus", KINDS)
def test_random_schedules(focus: str, floats: str, part: int) -> None:
    @seed(part)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines(focus, floats, most=MOST)))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("focus", KINDS)
def test_default_schedules(focus: str) -> None:
    @seed(100)
    @settings(max_examples=FEWER)
    @given(trials(focus, scheduled=False))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("target", ["host", "cuda-sim"])
@pytest.mark.parametrize("focus", RARE_KINDS)
def test_rare_kinds(focus: str, target: str) -> None:
    """Debug builds, which detect reads of elements that were not computed."""

    @seed(500)
    @settings(max_examples=FEWER)
    @given(trials(cases=pipelines(focus, "tame", most=2), target=target))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial, debug=target == "host"))

    isolated_together(run)


@pytest.mark.parametrize("part", PARTS)
def test_interiors(part: int) -> None:
    @seed(200 + part)
    @settings(max_examples=FEWER)
    @given(trials(cases=interior_pipelines()))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("part", PARTS)
def test_checked_accesses(part: int) -> None:
    """Debug builds detect no access outside of a buffer."""

    @seed(300 + part)
    @settings(max_examples=FEWER)
    @given(trials())
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial, debug=True))

    isolated_together(run)


@pytest.mark.parametrize("part", PARTS)
def test_guarded_inputs(part: int) -> None:
    """Inputs and outputs adjoin an unmapped page."""

    @seed(400 + part)
    @settings(max_examples=FEWER)
    @given(trials() | trials(cases=interior_pipelines()), st.booleans())
    def run(trial: Trial, at_end: bool) -> None:
        isolated(lambda: assert_agrees(trial, guard="end" if at_end else "start"))

    isolated_together(run)


def test_a_wrong_result_is_shown_as_python() -> None:
    """The failure report is a program that runs."""
    shown: list[str] = []

    @settings(max_examples=10, phases=[Phase.generate], database=None)
    @seed(0)
    @given(trials())
    def run(trial: Trial) -> None:
        shown.append(trial.source)

    run()
    assert shown
    for text in shown:
        compile(text, "case", "exec")
