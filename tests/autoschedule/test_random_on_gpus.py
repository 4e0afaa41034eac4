"""Random pipelines under every strategy for GPUs: a schedule for each, and in the simulator what the reference says."""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pantile.autoschedule import AutoGpu, Greedy, PolymageGpu, PostTile, Strategy
from pantile.autoschedule.polymage_gpu import FORMS
from tests.fuzz.harness import Trial, assert_agrees, pipeline_of, refused_call
from tests.fuzz.isolate import isolated, isolated_together
from tests.fuzz.kinds import KINDS
from tests.fuzz.pipelines import Case, pipelines

from ..long import LONG
from .problems import TINY_GPU, problem_of

EXAMPLES = 200 if LONG else 5
EACH = 2  # strategies for each pipeline
SIZES = (1, 2, 3, 5, 8, 13, 17, 40, 70)
ANY_OVERLAP = {"most_recomputed": 1e12, "most_recomputed_of_one": 1e12}
# With parameters under which small pipelines have some groups.
STRATEGIES: list[Strategy] = [
    Greedy(vector_width=4, parallelism_threshold=1, target_threads_per_block=4),
    AutoGpu(),
    AutoGpu(fusion="overlap"),
    *(PolymageGpu(tiles=form) for form in FORMS),
    PostTile(),
    PostTile(tile_sizes=(4, 8), threads=(2, 4), **ANY_OVERLAP),
    PostTile(tile_sizes=(4, 8), threads=(2, 4), fusion="minfuse", **ANY_OVERLAP),
]


@pytest.mark.parametrize(("focus", "most"), [*((focus, 4) for focus in KINDS), ("bins", 1)])
def test_random_pipelines(focus: str, most: int) -> None:
    """Strategies find the schedule that they found before."""

    def run(case: Case, strategies: list[Strategy]) -> None:
        pipeline = pipeline_of(case, target="cuda-sim")
        inputs, params = case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params):
            return
        problem = problem_of(pipeline, TINY_GPU, **{n: a.shape for n, a in inputs.items()}, **params)
        if any(0 in shape for shape in problem.shapes.values()):
            return
        for strategy in strategies:
            found = strategy.find(problem)
            assert strategy.find(problem) == found and str(found.report)
            assert_agrees(Trial(case, found.schedule, None, 1, "cuda-sim"))

    @seed(sum(map(ord, focus)))
    @settings(max_examples=EXAMPLES)
    @given(
        pipelines(focus, most=most, sizes=SIZES),
        st.lists(st.sampled_from(STRATEGIES), min_size=EACH, max_size=EACH, unique_by=id),
    )
    def each(case: Case, strategies: list[Strategy]) -> None:
        isolated(lambda: run(case, strategies))

    isolated_together(each)
