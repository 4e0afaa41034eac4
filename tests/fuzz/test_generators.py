"""The generators, tested with only the reference: every case builds, evaluates, and agrees with the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile.graph.verify import verify
from pantile.reference import evaluate

from ..long import LONG
from ..reference.oracle import brute_force
from . import windows
from .harness import pipeline_of, refused_call
from .kinds import KINDS
from .pipelines import Case, pipelines
from .seeded import seeded

# These replace windows so large that compiled code halves them several times: the oracle evaluates all terms anyway.
SMALL_WINDOWS = [(6, 4), (6, 4), (8, 2), (5, 3)]


@pytest.mark.parametrize("floats", ["wild", "tame"])
@pytest.mark.parametrize("focus", KINDS)
def test_reference_agrees_with_the_oracle(focus: str, floats: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_LARGE", windows._LARGE if LONG else SMALL_WINDOWS)

    @given(pipelines(focus, floats, most=3, sizes=(1, 2, 3)))
    def run(case: Case) -> None:
        graph = case.graph()
        verify(graph)
        inputs, params = case.values(graph)
        if refused_call(pipeline_of(case), inputs, params):
            return
        found, expected = evaluate(graph, inputs, params), brute_force(graph, inputs, params)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)

    run()


@pytest.mark.parametrize("kind", [st.floats(), st.text(min_size=1), st.binary(min_size=1)], ids=str)
def test_what_is_drawn_from_no_list_is_refused(kind: st.SearchStrategy[object]) -> None:
    with pytest.raises(TypeError, match="use sampled_from"):
        seeded(1)(kind)
