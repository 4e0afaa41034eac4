"""dp and polymage on long and wide pipelines: what they do is counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.analysis import access
from pantile.autoschedule import Dp, Polymage, Strategy
from pantile.autoschedule.fusion.aligned_group import AlignedGroup
from pantile.autoschedule.fusion.bounded_grouping import MOST_MERGED
from pantile.graph.nodes import Definition, Stage

from .problems import HASWELL, chain, problem_of
from .test_scaling import chebyshev, wide

BOTH = pytest.mark.parametrize("strategy", [Dp(), Polymage()], ids=["dp", "polymage"])


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the reads of a definition are put into form, and how many groups are looked at, of how many stages."""
    found: Counter[str] = Counter()
    formed, init = access._accesses, AlignedGroup.__init__

    def accesses(stage: Stage, definition: Definition) -> list[access.Access]:
        found["definitions"] += 1
        return formed(stage, definition)

    def made(self: AlignedGroup, *args: Any) -> None:
        init(self, *args)
        found["groups"] += 1
        found["stages"] += len(self.names)

    monkeypatch.setattr(access, "_accesses", accesses)
    monkeypatch.setattr(AlignedGroup, "__init__", made)
    return found


@BOTH
@pytest.mark.parametrize("build", [chain, wide, chebyshev])
def test_definitions_are_looked_at_once(
    build: Callable[[int], pt.Pipeline], strategy: Strategy, looks: Counter[str]
) -> None:
    """As they are written, without boundary conditions, without crops, and with all inlined; not once per group."""
    strategy.find(problem_of(build(24), HASWELL, img=(500, 500)))
    assert looks["definitions"] <= 4 * 26


def test_long_pipelines_are_grouped_in_rounds(looks: Counter[str]) -> None:
    """Of at most 2000 states each, for at most three limits."""
    found = Dp().find(problem_of(chain(150), HASWELL, img=(500, 500))).report
    assert found.remarks[0].startswith("Algorithm 5")
    assert found.counts["states explored"] <= 2 * 2000
    assert looks["groups"] <= 2 * 3 * 2000


def test_wide_pipelines_are_merged_greedily(looks: Counter[str]) -> None:
    """One consumer takes up to 16 stages, each time with all that are left."""
    found = Dp().find(problem_of(wide(150), HASWELL, img=(500, 500))).report
    assert "merged greedily" in found.remarks[0]
    assert found.counts["merges evaluated"] <= MOST_MERGED * 150
    assert looks["groups"] <= 3 * 2000 + MOST_MERGED * 150


@pytest.mark.parametrize("build", [chain, wide])
def test_polymage_looks_at_each_merge_once(build: Callable[[int], pt.Pipeline], looks: Counter[str]) -> None:
    found = Polymage().find(problem_of(build(60), HASWELL, img=(500, 500))).report
    assert found.counts["merges"] >= 30
    assert looks["groups"] <= 4 * 60


@BOTH
def test_a_recurrence_runs(strategy: Strategy) -> None:
    scheduled = chebyshev(16).with_schedule(strategy)
    img = np.random.default_rng(0).random((40, 70), np.float32)
    np.testing.assert_allclose(scheduled(img=img), scheduled.reference(img=img), rtol=1e-3, atol=1e-3)
