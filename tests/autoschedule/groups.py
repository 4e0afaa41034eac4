"""Random groups of the stages of a pipeline, as a strategy may form them."""

from __future__ import annotations

from hypothesis import strategies as st

from pantile.autoschedule import Problem
from pantile.autoschedule.common.tiles import TiledGroup
from tests.fuzz.draws import Draw

SIZES = [8, 4, 2, 16, 1, 3, 32, 5, 64]


@st.composite
def groups(draw: Draw, problem: Problem) -> list[TiledGroup]:
    """Each stage in one group, each group with its output last: what reads another member is a member, too."""
    graph, left, drawn = problem.graph, [s.name for s in problem.graph.stages], []
    while left:
        output = left.pop()
        members: list[str] = []
        for name in reversed(left[:]):
            readers = set(graph.consumers[name])
            if name not in graph.output and readers <= {output, *members} and draw(st.booleans()):
                members.insert(0, name)
                left.remove(name)
        drawn.append(TiledGroup(output, tuple(members), draw(tiles(problem, output))))
    return drawn


@st.composite
def tiles(draw: Draw, problem: Problem, output: str) -> tuple[dict[str, int], ...]:
    """None, or one or two levels of tiles along some of the loops."""
    loops = [*problem.facts.every_loop(output)] if problem.facts.is_limited(output) else []
    level = {loop: draw(st.sampled_from(SIZES)) for loop in loops if draw(st.integers(0, 4))}
    inner = {loop: max(1, n // 2) for loop, n in level.items() if draw(st.booleans())}
    return draw(st.sampled_from([(level,), (level,), (level, inner), ()]))
