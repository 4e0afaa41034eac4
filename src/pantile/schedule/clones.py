"""clone_in: one stage computed in several places, as a change of the pipeline before its loops are scheduled.

    f[x] = ...                               f[x] = ...
    out[x] = f[x] + f[x + 1000]      ->      far[x] = ...                  the same definition
                                             out[x] = f[x] + far[x + 1000]

A stage is computed at one place, over the box around all that is read of it there. Copies are for readers that need
parts of it which have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import UserError
from ..expr.nodes import Expr, Load
from ..expr.visit import Key, key, loaded, transform
from ..graph.nodes import Definition, Graph, Stage
from .directives import Directive, StageSchedule
from .limits import MOST_CLONES
from .refuse import did_you_mean, refuse
from .schedule import Schedule

Place = tuple[Key, ...]  # the indices that a stage is read at


def clone_stages(graph: Graph, schedule: Schedule) -> tuple[Graph, Schedule]:
    """Carry out every clone_in; what is left of the schedule has none."""
    done: set[str] = set()
    count = 0

    def asks(stage: Stage) -> bool:
        return stage.name not in done and stage.name in schedule and bool(_sorted(schedule[stage.name])[0])

    # Consumers first: a copy of one may be what reads a copy of this one.
    while stage := next(filter(asks, reversed(graph.stages)), None):
        clones, others = _sorted(schedule[stage.name])
        before, graph = graph, _Cloned(graph, stage).by(clones)
        count += len(graph.stages) - len(before.stages)
        if count > MOST_CLONES:
            raise refuse(stage, clones[-1], f"there would be {count} copies of stages",
                         f"clone less, at most {MOST_CLONES} altogether")  # fmt: skip
        schedule = schedule.replace(StageSchedule(stage.name, others))
        if not graph.consumers[stage.name] and stage.name not in graph.output:
            if others:
                raise refuse(stage, others[0], "all that read this stage read copies of it", "drop this directive")
            graph = replace(graph, stages=tuple(s for s in graph.stages if s.name != stage.name))
            schedule = schedule.without(stage)
        done.add(stage.name)
    return graph, schedule


def _sorted(asked: StageSchedule) -> tuple[list[Directive], tuple[Directive, ...]]:
    """The clone_ins of a stage, and its other directives."""
    clones = [d for d in asked.directives if d.verb == "clone_in"]
    return clones, tuple(d for d in asked.directives if d.verb != "clone_in")


def places(stage: Stage, consumer: Stage) -> list[Place]:
    """Where a consumer reads a stage: different indices, in the order in which they are written."""
    return list(dict.fromkeys(place_of(e) for d in consumer.definitions for e in d.loads if e.buffer in stage.buffers))


def place_of(read: Load) -> Place:
    """What its place is known by."""
    return tuple(map(key, read.indices))


def decides_places(stage: Stage, consumer: Stage) -> bool:
    """Whether values of a stage decide where a consumer reads it: then all its reads are of one copy, or of none."""
    own = stage.buffers
    reads = (e for d in consumer.definitions for e in d.loads if e.buffer in own)
    return any(not loaded(i).isdisjoint(own) for e in reads for i in e.indices)


@dataclass(frozen=True, eq=False)
class _Cloned:
    """Copies of one stage."""

    graph: Graph
    stage: Stage

    def by(self, directives: list[Directive]) -> Graph:
        copies: dict[str, Stage] = {}
        moved: dict[str, dict[Place, str]] = {}  # consumer -> where it reads the stage -> the copy
        for d in directives:
            consumer, name = self._consumer(d), str(d.args[1])
            if name not in copies:
                copies[name] = self._copy(d, name)
            of_consumer = moved.setdefault(consumer.name, {})
            for place in self._chosen(d, consumer):
                if of_consumer.setdefault(place, name) != name:
                    raise self.no(d, f"{of_consumer[place]} is read at one of these places already", "name each once")
        stages = []
        for s in self.graph.stages:
            stages.append(self._reading(s, moved[s.name]) if s.name in moved else s)
            if s is self.stage:
                stages += copies.values()
        return replace(self.graph, stages=tuple(stages))

    def no(self, d: Directive, why: str, remedy: str) -> UserError:
        return refuse(self.stage, d, why, remedy)

    def _consumer(self, d: Directive) -> Stage:
        name, readers = str(d.args[0]), self.graph.consumers[self.stage.name]
        if name not in readers:
            raise self.no(d, f"{name!r} does not read {self.stage.name}", did_you_mean(name, readers))
        return self.graph.stage[name]

    def _copy(self, d: Directive, name: str) -> Stage:
        if name in self.graph.stage or name in self.graph.input or any(p.name == name for p in self.graph.params):
            raise self.no(d, f"{name!r} exists", "choose another name for the copy")
        copy = replace(self.stage, name=name)
        own = dict(zip(self.stage.buffers, copy.buffers, strict=True))
        return _rewritten(copy, lambda read: own.get(read.buffer))

    def _chosen(self, d: Directive, consumer: Stage) -> list[Place]:
        known, numbers = places(self.stage, consumer), [int(k) for k in d.args[2:]]
        if any(k >= len(known) for k in numbers):
            raise self.no(d, f"{consumer.name} reads {self.stage.name} at {len(known)} places", "count them from 0")
        if numbers and decides_places(self.stage, consumer):
            raise self.no(d, f"values of {self.stage.name} decide where {consumer.name} reads it",
                          "leave the numbers out")  # fmt: skip
        return [known[k] for k in numbers] or known

    def _reading(self, consumer: Stage, moved: dict[Place, str]) -> Stage:
        """A consumer that reads copies at some places."""
        everywhere = set(moved.values()) if len(moved) == len(places(self.stage, consumer)) else set()

        def instead(read: Load) -> str | None:
            if read.buffer not in self.stage.buffers:
                return None
            # Of one copy for all places, the place need not be asked: it may change as what it is made of does.
            name = next(iter(everywhere)) if len(everywhere) == 1 else moved.get(place_of(read))
            which = self.stage.buffers.index(read.buffer)
            return None if name is None else replace(self.stage, name=name).buffers[which]

        return _rewritten(consumer, instead)


def _rewritten(stage: Stage, instead: Callable[[Load], str | None]) -> Stage:
    """A stage that loads from other buffers."""
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or (buffer := instead(e)) is None:
            return None
        return Load(e.dtype, e.lanes, buffer, e.indices, e.mask)

    def visit(e: Expr) -> Expr:
        return transform(e, change, memo)

    def definition(d: Definition) -> Definition:
        condition = None if d.condition is None else visit(d.condition)
        return replace(d, indices=tuple(map(visit, d.indices)), values=tuple(map(visit, d.values)), condition=condition)

    return replace(stage, pure=definition(stage.pure), updates=tuple(map(definition, stage.updates)))
