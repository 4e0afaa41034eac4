"""Descent: from a schedule whose groups roll to the cheapest one that single changes lead to.

Groups absorb other groups that they alone read, are cut in two, and vary one parameter at a time (`rolling`). A change
that gains much is made at once. Of changes that gain less, the best is made when all were tried, and then the others on
top of it. Then all changes are tried again from there, except for those that were much more expensive: they usually
still are after other changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial

from ...dataclass import dataclass, memoized
from ...schedule.directives import StageSchedule
from ...schedule.schedule import Schedule
from ..strategy import Problem
from .candidates import Candidate, CostedSchedules
from .groups import groups
from .rolling import INSIDE, Roll, can_roll, chains, columns, rolls, variations

# How much cheaper tiles of columns must be than whole rows, per fraction of the time that memory is busy: memory
# transfers in many short rows take longer than predicted.
CUT_ROWS = 0.8
MUCH = 0.1  # the gain of a change that is made before others are looked at
DEAR = 1.05  # times as expensive as before: such a change is not tried again
FEW, STRIP = 3, 32  # the fewest stages for which strips of this number of rows are tried
TILE, HIGHER = 256, 4  # the columns of a tile, and how many times as many rows it has as a strip

Rolls = Mapping[str, Roll]  # how groups roll, by their outputs
Changes = Iterator[tuple[str, Rolls]]


@dataclass(frozen=True)
class State:
    """A schedule, with the rolls of its groups."""

    candidate: Candidate
    rolls: Rolls


@dataclass(frozen=True)
class Descent:
    """The descent of a search. `worth`: the fraction of the time that a change must save."""

    problem: Problem
    candidates: CostedSchedules
    is_over: Callable[[], bool]  # whether enough schedules were considered
    worth: float
    dear: set[str] = field(default_factory=set)  # changes
    passed: set[Schedule] = field(default_factory=set)  # considered, and skipped without a prediction

    def rolling(self, start: Candidate) -> State | None:
        """Return the schedule with all groups rolling that can roll; None if there are none."""
        able = [g for g in groups(self.problem.graph, start.schedule) if can_roll(self.problem, g.output)]
        starts = {r.output: r for r in (Roll.of(self.problem, g) for g in able) if self._chains(r)}
        return self._evaluate(f"{start.name}, rolling", start.schedule, starts) if starts else None

    def in_strips(self, start: Candidate) -> State | None:
        """Return the schedule in which all that only the last stage needs is computed for strips of that stage. Single
        mergers do not get there if some of them gain nothing."""
        graph, all_groups = self.problem.graph, groups(self.problem.graph, start.schedule)
        own = {g.output: g for g in all_groups if can_roll(self.problem, g.output)}
        last = own.get(next(iter(graph.output))) if len(graph.output) == 1 else None
        if last is None:
            return None
        members, inlined = {last.output, *last.members}, {*last.inlined}
        for g in sorted(all_groups, key=lambda g: -self.problem.facts.position[g.output]):
            if g.output in own and (members | inlined).issuperset(graph.consumers[g.output]):
                members |= {g.output, *g.members}
                inlined |= {*g.inlined}
        order = sorted(members - {last.output}, key=self.problem.facts.position.__getitem__)
        within = tuple(s.name for s in graph.stages if s.name in inlined)
        roll = Roll(last.output, tuple(order), within, rows=1, strip=STRIP, planes=INSIDE, slides=False)
        if len(order) < FEW:
            return None
        return self._evaluate(f"{start.name}, strips", start.schedule, {last.output: roll})

    def descend(self, state: State) -> State:
        """Improve one group after the other, the most expensive first. Groups below `worth` are left as they are."""
        state = self._improve(state, self._mergers)
        for output in sorted(state.rolls, key=lambda name: -_cost(state, name)):
            if output in state.rolls and _cost(state, output) >= self.worth * state.candidate.cost.seconds:
                state = self._improve(state, partial(self._variations, output))
        return state

    def _improve(self, state: State, changes: Callable[[State], Changes]) -> State:
        """Return the state after the best change, and after all others that were cheaper, too, if they still are. So it
        hardly matters which change is looked at first."""
        while cheaper := self._cheaper(state, changes(state)):
            best, *others = sorted(cheaper, key=lambda what: cheaper[what].candidate.seconds)
            state = cheaper[best]
            for what in others:
                again = ((w, changed) for w, changed in changes(state) if w == what)
                state = self._cheaper(state, again).get(what, state)
        return state

    def _cheaper(self, state: State, changes: Changes) -> dict[str, State]:
        """Return the states after changes that are cheaper: all of them, or the first one that gains much."""
        cheaper, seconds = {}, state.candidate.seconds
        for what, changed in changes:
            if self.is_over():
                break
            after = self._evaluate(
                f"{state.candidate.name}, {what}", state.candidate.schedule, changed, what in self.dear
            )
            if after is None:
                continue
            worth = max(self.worth, self._short_row_penalty(state)) if _cuts_rows(state.rolls, changed) else self.worth
            gained = 1 - after.candidate.seconds / seconds
            if gained > max(worth, MUCH):
                return {what: after}
            if gained > worth:
                cheaper[what] = after
            elif gained < 1 - DEAR:
                self.dear.add(what)
        return cheaper

    def _short_row_penalty(self, state: State) -> float:
        """The fraction of the time by which the predicted cost of short rows is too low."""
        cost, machine = state.candidate.cost, self.problem.cpu
        return CUT_ROWS * cost.bytes[-1] / machine.memory_bandwidth(machine.threads) / cost.seconds

    def _evaluate(self, name: str, schedule: Schedule, changed: Rolls, is_dear: bool = False) -> State | None:
        """Return the state after a change; None if it is not legal. A change that was much more expensive before
        (`is_dear`) is skipped unless its cost is known."""
        parts = [self._chains(roll) for roll in changed.values()]
        if not all(parts):
            return None
        schedule = schedule.replace(*(chain for part in parts for chain in part))
        if is_dear and schedule not in self.candidates.known:
            self.passed.add(schedule)
            return None
        candidate = self.candidates.candidate(name, schedule)
        return None if candidate is None else State(candidate, changed)

    @memoized
    def _chains(self, roll: Roll) -> tuple[StageSchedule, ...]:
        """The directives of a group; none if it cannot be computed in this way."""
        return tuple(chains(self.problem, roll)) if rolls(self.problem, roll) else ()

    # ---- changes

    def _variations(self, output: str, state: State) -> Changes:
        if output in state.rolls:
            for what, roll in variations(self.problem, state.rolls[output]):
                if not self._computes_more(state, set(roll.inlined).difference(state.rolls[output].inlined)):
                    yield f"{output}: {what}", {**state.rolls, output: roll}
            yield from self._cuts(state, state.rolls[output])

    def _computes_more(self, state: State, inlined: set[str]) -> bool:
        """Whether stages would be computed so often, if they became inlined, that this takes longer than they take now
        with all loads, stores and waiting for memory. This check needs no prediction, which would be slow for large
        expressions."""
        stages = [s for s in state.candidate.cost.stages if s.name in inlined]
        return any(s.causes.arithmetic * columns(self.problem, s.name) > s.causes.seconds for s in stages)

    def _mergers(self, state: State) -> Changes:
        """Changes that merge a group into its only reader."""
        owner = {name: r.output for r in state.rolls.values() for name in (r.output, *r.members, *r.inlined)}
        for output, roll in state.rolls.items():
            readers = {owner.get(c) for c in self.problem.graph.consumers[output]}
            if output in self.problem.graph.output or len(readers) != 1 or (reader := readers.pop()) is None:
                continue
            into = state.rolls[reader]
            members = sorted((*roll.members, output, *into.members), key=self.problem.facts.position.__getitem__)
            whole = replace(into, members=tuple(members), inlined=(*roll.inlined, *into.inlined))
            rest = {name: r for name, r in state.rolls.items() if name not in (output, reader)}
            yield f"{output} computed inside {reader}", {**rest, reader: whole}
            if not whole.tile:  # a tile can keep much that would not fit into a cache in whole rows
                tiles = replace(whole, tile=TILE, strip=HIGHER * whole.strip)
                yield f"{output} computed in tiles of {reader}", {**rest, reader: tiles}

    def _cuts(self, state: State, roll: Roll) -> Changes:
        """Changes that cut a group in two at one of its stages, which takes along the stages that only it requires."""
        for name in roll.members:
            taken = self._needed_by(name, roll)
            first = replace(_part(roll, taken - {name}), output=name)
            second = _part(roll, {*roll.members, *roll.inlined} - taken)
            yield f"{name} in a group of its own", {**state.rolls, name: first, roll.output: second}

    def _needed_by(self, name: str, roll: Roll) -> set[str]:
        taken = {name}
        others = [n for n in (*roll.members, *roll.inlined) if n != name]
        for other in sorted(others, key=self.problem.facts.position.__getitem__, reverse=True):
            if taken.issuperset(self.problem.graph.consumers[other]):
                taken.add(other)
        return taken


def _part(roll: Roll, names: set[str]) -> Roll:
    members, inlined = (tuple(n for n in of if n in names) for of in (roll.members, roll.inlined))
    return replace(roll, members=members, inlined=inlined)


def _cost(state: State, output: str) -> float:
    """The seconds of a group, if there still is one of that name."""
    members = {output, *state.rolls[output].members} if output in state.rolls else set()
    return sum(s.seconds for s in state.candidate.cost.stages if s.name in members)


def _cuts_rows(before: Rolls, after: Rolls) -> bool:
    """Whether some group that had no tiles of columns has them now."""
    return any(r.tile and name in before and not before[name].tile for name, r in after.items())
