"""Random pipelines with copies of some stages, under random schedules of the resulting graphs."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from pantile.target import host

from .copies import changed, copies, in_panels, with_copies
from .draws import Draw, Drawer
from .harness import Trial, assert_agrees, pipeline_of
from .isolate import isolated, isolated_together
from .kinds import KINDS
from .pipelines import Case, pipelines
from .schedules import schedules

EXAMPLES = 3


@st.composite
def trials(draw: Draw, focus: str, verbs: tuple[str, ...]) -> Trial:
    case: Case = draw(pipelines(focus, "any", most=4))
    graph = pipeline_of(case).graph
    drawer = Drawer(draw)
    made = copies(drawer, graph, verbs[:1])
    made = in_panels(drawer, graph, made) if "panels" in verbs else made
    assume(len(made))
    schedule = draw(schedules(changed(graph, made), case.strict))
    both = with_copies(graph, made, schedule, case.strict, host())
    return Trial(case, both, None, draw(st.sampled_from([1, 2])))


@pytest.mark.parametrize("verbs", [("clone_in",), ("copy_in",), ("copy_in", "panels")], ids="-".join)
@pytest.mark.parametrize("focus", KINDS)
def test_copies_change_no_values(focus: str, verbs: tuple[str, ...]) -> None:
    @seed(sum(map(ord, focus + "".join(verbs))))
    @settings(max_examples=EXAMPLES)
    @given(trials(focus, verbs))
    def each(trial: Trial) -> None:
        isolated(lambda: assert_agrees(trial))

    isolated_together(each)
