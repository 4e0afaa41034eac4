"""Cycles have the stages that the literature counts."""

from __future__ import annotations

import pytest

from pantile.apps.multigrid import CYCLES, Cycle, build

STAGES = {"v444": 37, "v1000": 36, "w444": 109, "w1000": 79}


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda c: c.name)
def test_stages(cycle: Cycle) -> None:
    stages = [s for s in build(cycle).graph.stages if not s.helper]
    assert len(stages) == STAGES[cycle.name.split("_")[-1]]
