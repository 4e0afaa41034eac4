"""Random pipelines some stages of which are cloned, under random schedules of what that makes of them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.graph.nodes import Graph
from pantile.schedule.clones import clone_stages, places
from pantile.schedule.directives import StageSchedule, on
from pantile.schedule.resolve import resolve
from pantile.schedule.schedule import Schedule

from .draws import Draw, Drawer
from .harness import Trial, check, pipeline_of
from .isolate import isolated
from .kinds import KINDS
from .pipelines import Case, pipelines
from .schedules import schedules

EXAMPLES = 4


@st.composite
def cloned(draw: Draw, graph: Graph) -> Schedule:
    """clone_ins of some stages, of some or all of the reads of a consumer."""
    drawer, clones = Drawer(draw), Schedule()
    for stage in reversed(graph.stages):
        current = clone_stages(graph, clones)[0]
        readers = [n for n in current.consumers[stage.name] if n not in current.input]
        if not readers or drawer.number(0, 2) == 0:
            continue
        reader = drawer.pick(readers)
        count = len(places(current.stage[stage.name], current.stage[reader]))
        reads = drawer.draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count))
        asked = clones.replace(on(stage.name).clone_in(reader, f"clone_of_{len(clones)}", *reads))
        try:
            clone_stages(graph, asked)
        except UserError:
            continue
        clones = asked
    return clones


@st.composite
def trials(draw: Draw, focus: str) -> Trial:
    case: Case = draw(pipelines(focus, "any"))
    graph = pipeline_of(case).graph
    clones = draw(cloned(graph))
    assume(len(clones))
    schedule = draw(schedules(clone_stages(graph, clones)[0], case.strict))
    asked = [StageSchedule(c.name, (*schedule.on(c.name).directives, *c.directives)) for c in clones.values()]
    both = schedule.replace(*asked)
    try:
        resolve(graph, both, strict=case.strict)
    except UserError:
        both = clones  # something is asked of a stage all readers of which read copies
    return Trial(case, both, None, draw(st.sampled_from([1, 2])))


@pytest.mark.parametrize("focus", KINDS)
def test_clones_change_no_values(focus: str) -> None:
    @seed(sum(map(ord, focus)))
    @settings(max_examples=EXAMPLES)
    @given(trials(focus))
    def each(trial: Trial) -> None:
        isolated(lambda: check(trial))

    each()
