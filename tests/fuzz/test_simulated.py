"""Random pipelines under random schedules for GPUs. The simulator, which checks what threads do, is compared with the
reference. LLVM verifies the PTX, and so does NVIDIA's assembler if there is one."""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings

from pantile.errors import UserError

from .harness import Trial, assert_agrees, pipeline_of, refused_late, trials
from .isolate import isolated, isolated_together
from .kinds import KINDS
from .pipelines import pipelines

EXAMPLES = 4
LARGER = (5, 16, 17, 24, 33, 40)  # around the size of a warp's tiles
SEVERAL_BLOCKS = (1, 2, 3, 5, 8, 13, 33, 40, 70)
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 17)  # small, since more pixels take more time, and one or two blocks suffice


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("focus", KINDS)
def test_random_schedules(focus: str, part: int) -> None:
    @seed(part)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines(focus, most=3, sizes=SIZES), target="cuda-sim"))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("part", range(3))
def test_products_by_tensor_cores(part: int) -> None:
    @seed(300 + part)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines("narrow products", most=2, sizes=LARGER), target="cuda-sim"))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("focus", KINDS)
def test_default_schedules(focus: str) -> None:
    @seed(100)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines(focus, most=3, sizes=SIZES), scheduled=False, target="cuda-sim"))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("part", range(2))
def test_bins(part: int) -> None:
    """Counted in shared memory of blocks, of which there are several."""

    @seed(400 + part)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines("bins", most=2, sizes=SEVERAL_BLOCKS), scheduled=False, target="cuda-sim"))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(run)


@pytest.mark.parametrize("part", range(4))
def test_ptx(part: int) -> None:
    """PTX is valid, in every second part under the default schedule."""

    @seed(200 + part)
    @settings(max_examples=EXAMPLES)
    @given(trials(cases=pipelines(most=3), scheduled=part % 2 == 0, target="sm_80"))
    def run(trial: Trial) -> None:
        isolated(lambda: assert_assembles(trial))

    isolated_together(run)


def assert_assembles(trial: Trial) -> None:
    try:
        text = pipeline_of(trial.case, trial.schedule, target=trial.target).asm()
    except UserError as refusal:
        if refused_late(refusal):
            return
        raise
    assert ".target sm_80" in text
