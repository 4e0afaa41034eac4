"""The search of `auto` on GPUs, where kernels are lowered to predict their cost, which takes longer than for CPUs.

The cheapest of the proposals, one of which is the plain schedule, takes over cheaper parts of the others; there are no
further steps. For pipelines of many stages nothing is predicted: they have the schedule that `greedy` finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...schedule.schedule import Schedule
from ..autogpu import AutoGpu
from ..greedy import Greedy
from ..posttile import PostTile
from ..strategy import Found, Problem, Strategy
from .candidates import Candidate
from .proposals import ProposalSearch

MOST_LOWERED = 32  # stages whose kernels are lowered several times to compare schedules
LEAST_WORTH = 0.07  # of a change: predictions err by more than on CPUs
_SOURCES: tuple[type[Strategy], ...] = (Greedy, AutoGpu, PostTile)


def find(problem: Problem, strategy: str, worth: float, without: Collection[str]) -> Found:
    """Return the schedule for a GPU, found in the name of `strategy`."""
    if len(problem.graph.stages) > MOST_LOWERED:
        found = Greedy().find(problem)
        why = f"more than {MOST_LOWERED} stages, so that no times were predicted: the schedule of {Greedy.name}"
        return replace(found, report=replace(found.report, strategy=strategy, remarks=(why, *found.report.remarks)))
    problem.check_predicted()
    worth = max(worth, LEAST_WORTH)
    return _Search(problem, [s for s in _SOURCES if s.name not in without], worth, without).found(
        strategy, {"worth": worth}
    )


class _Search(ProposalSearch):
    def schedules(self, sources: Sequence[type[Strategy]]) -> Iterator[tuple[str, Schedule]]:
        yield "plain", Schedule()
        yield from super().schedules(sources)

    def best(self) -> Candidate:
        """The cheapest proposal, unless an earlier one is nearly as cheap, with cheaper parts of the others."""
        best = self.proposed[0]
        for c in self.proposed[1:]:
            best = c if c.seconds < best.seconds * (1 - self.worth) else best
        return self.take_parts(self.proposed, best)
