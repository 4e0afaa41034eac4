"""Random windows as strategies schedule them, integers exactly, floats within rounding; tests/fuzz has the default."""

from __future__ import annotations

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from pantile.autoschedule import STRATEGIES
from pantile.graph.verify import verify
from pantile.reference import evaluate

from ..autoschedule.problems import MODELS, TINY, problem_of
from ..fuzz.harness import assert_same, pipeline_of, refused_call
from ..fuzz.isolate import isolated, isolated_together
from ..fuzz.pipelines import Case, pipelines


@pytest.mark.parametrize("part", range(2))
def test_under_strategies(part: int) -> None:
    @seed(part)
    @given(pipelines("windows", most=2), st.sampled_from(MODELS))
    def run(case: Case, strategy: str) -> None:
        isolated(lambda: assert_agrees(case, strategy))

    isolated_together(run)


def assert_agrees(case: Case, strategy: str) -> None:
    p = pipeline_of(case)
    verify(p.rewritten)
    inputs, params = case.values(p.graph)
    if refused_call(p, inputs, params) or any(0 in a.shape for a in inputs.values()):
        return
    expected = evaluate(p.graph, inputs, params)
    if any(a.size == 0 for a in expected):
        return
    problem = problem_of(p, TINY, **inputs, **params).with_graph(p.rewritten)
    found = p.with_schedule(STRATEGIES[strategy]().find(problem).schedule)(**inputs, **params)
    assert_same(p, expected, list(found) if isinstance(found, tuple) else [found], case.slack)
