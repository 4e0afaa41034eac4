"""Random pipelines: every strategy finds a schedule, the same one each time, whose results equal the reference.

The pipelines are small, so most of them are scheduled for a made-up machine for which they are large.
"""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pantile.autoschedule import STRATEGIES
from pantile.errors import UserError
from pantile.schedule.schedule import Schedule
from tests.fuzz.harness import Trial, assert_agrees, pipeline_of, refused_call
from tests.fuzz.isolate import isolated, isolated_together
from tests.fuzz.kinds import KINDS
from tests.fuzz.pipelines import Case, pipelines

from .problems import MODELS, ORDINARY, TINY, problem_of

EXAMPLES = 4


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("focus", KINDS)
def test_legal_and_right(focus: str, name: str) -> None:
    strategy = STRATEGIES[name]()

    def run(case: Case, machine: object, threads: int) -> None:
        pipeline = pipeline_of(case)
        inputs, params = case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params):
            return
        problem = problem_of(pipeline, machine, **{n: a.shape for n, a in inputs.items()}, **params)
        if any(0 in shape for shape in problem.shapes.values()):
            return
        found = strategy.find(problem)
        assert strategy.find(problem) == found
        assert str(found.report)
        if refused(case, found.schedule):
            assert refused(case, Schedule()), f"refused, though not always: {found.schedule}"
        else:
            assert_agrees(Trial(case, found.schedule, None, threads))

    @seed(hash_of(focus, name))
    @settings(max_examples=EXAMPLES)
    @given(pipelines(focus, "any", most=4), st.sampled_from([TINY, TINY, ORDINARY]), st.sampled_from([1, 2]))
    def each(case: Case, machine: object, threads: int) -> None:
        isolated(lambda: run(case, machine, threads))

    isolated_together(each)


def refused(case: Case, schedule: Schedule) -> bool:
    """Whether only lowering finds out that a schedule cannot be honoured: some pipelines have none at all."""
    pipeline = pipeline_of(case, schedule)
    inputs, params = case.values(pipeline.graph)
    try:
        pipeline.compile(**inputs, **params)
    except UserError:
        return True
    return False


def hash_of(*words: str) -> int:
    return sum(ord(c) * 31**k for k, c in enumerate("".join(words))) % (1 << 31)
