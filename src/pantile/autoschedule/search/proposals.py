"""A search that starts from the proposals of strategies; the cheapest proposal takes over cheaper parts of the others.

These are the first steps of `auto`, on CPUs and on GPUs alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite

from ...schedule.schedule import Schedule
from ..strategy import Found, Problem, Report, Strategy
from .candidates import Candidate, CostedSchedules, alternatives, together
from .crossover import cheaper_parts


class ProposalSearch(ABC):
    """`worth`: the fraction of the time that a change must save to be made. `without`: the ingredients that are left
    out."""

    def __init__(
        self, problem: Problem, sources: Sequence[type[Strategy]], worth: float, without: Collection[str]
    ) -> None:
        self.problem, self.worth, self.without = problem, worth, without
        self.candidates = CostedSchedules(problem)
        self.proposed = list(self._proposals(sources))

    @abstractmethod
    def best(self) -> Candidate:
        """The schedule that the search ends with."""

    def is_enough(self, proposed: Candidate) -> bool:
        """Whether looking further than at this proposal could not gain anything."""
        return False

    def schedules(self, sources: Sequence[type[Strategy]]) -> Iterator[tuple[str, Schedule]]:
        """Yield the proposed schedules with the names of their strategies."""
        yield from ((source.name, source().find(self.problem).schedule) for source in sources)

    def found(self, strategy: str, parameters: Mapping[str, float]) -> Found:
        """The best schedule, and a report on how it was found. If every proposal is refused, it is the plain schedule,
        whose refusal tells the user why."""
        if not self.proposed:
            why = "every proposal was refused"
            return Found(Schedule(), Report(strategy, self.problem.machine.name, parameters, (), remarks=(why,)))
        best = self.best()
        costs = {c.name: c.cost.seconds for c in self.proposed}
        inlined = tuple(n for n, s in best.schedule.items() if "compute_inline" in s.verbs)
        return Found(
            best.schedule,
            Report(
                strategy,
                self.problem.machine.name,
                parameters,
                together(best),
                inlined,
                {"schedules evaluated": len(self.candidates.known), **_predicted(best)},
                (
                    f"derivation: {best.name}",
                    f"proposals: {', '.join(f'{n} {s * 1e3:.3g} ms' for n, s in costs.items())}",
                ),
                alternatives(self.candidates.known.values(), best),
            ),
        )

    def take_parts(self, candidates: list[Candidate], best: Candidate) -> Candidate:
        """Return the best schedule with all cheaper parts of each of the others. Each of these costs one prediction,
        which does not count as a step."""
        graph = self.problem.graph
        for other in sorted(candidates, key=lambda c: c.seconds) if "crossover" not in self.without else ():
            schedule = cheaper_parts(graph, best.schedule, other.schedule, partial(_gain, best, other))
            best = self.if_cheaper(best, f"{best.name} with parts of {other.name}", schedule, self.worth)
        return best

    def if_cheaper(self, best: Candidate, name: str, schedule: Schedule | None, by: float) -> Candidate:
        """Return the candidate of a schedule if it is cheaper than the best one by this fraction of the time; else the
        best one."""
        candidate = None if schedule is None else self.candidates.candidate(name, schedule)
        return candidate if candidate is not None and candidate.seconds < best.seconds * (1 - by) else best

    def _proposals(self, sources: Sequence[type[Strategy]]) -> Iterator[Candidate]:
        seen: set[Schedule] = set()
        for name, schedule in self.schedules(sources):
            candidate = self.candidates.candidate(name, schedule)
            if candidate is not None and candidate.schedule not in seen:
                seen.add(candidate.schedule)
                yield candidate
                if self.is_enough(candidate):
                    return


def seconds_by_stage(candidate: Candidate) -> dict[str, float]:
    """The cost of each stage; inlined stages cost nothing."""
    return {s.name: s.seconds for s in candidate.cost.stages}


def _gain(mine: Candidate, other: Candidate, names: Collection[str]) -> float:
    """The seconds by which some stages are cheaper in another schedule."""
    before, after = seconds_by_stage(mine), seconds_by_stage(other)
    return sum(before.get(n, 0.0) - after.get(n, 0.0) for n in names)


def _predicted(best: Candidate) -> dict[str, float]:
    """The predicted seconds, unless they depend on data."""
    return {"predicted seconds": best.cost.seconds} if isfinite(best.cost.seconds) else {}
