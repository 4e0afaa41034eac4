"""clone_in, copy_in and copy_out: make copies of stages by rewriting the pipeline before its loops are scheduled.

    f[x] = ...                               f[x] = ...
    out[x] = f[x] + f[x + 1000]      ->      far[x] = ...                  the same definition: clone_in
                                             out[x] = f[x] + far[x + 1000]

    out[x] = f[x] + img[x]           ->      near[x] = img[x]              the same values: copy_in
                                             out[x] = f[x] + near[x]

    out[x] = f[x] + img[x]           ->      sums[x] = f[x] + img[x]       the same for a result: copy_out
                                             out[x] = sums[x]

A stage is computed at one place, over the bounding box of all reads of it there. Clones are for readers that need
disjoint parts of it. Copies of values are for readers that need them in another layout or in closer memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..errors import Location, UserError
from ..expr.nodes import Expr, Load, coordinate
from ..expr.visit import Key, key, loaded, transform
from ..graph.nodes import Definition, Graph, InputInfo, Stage
from .directives import Directive, StageSchedule, on
from .limits import MOST_CLONES
from .refuse import did_you_mean, refuse
from .schedule import Schedule

Source = Stage | InputInfo
Place = tuple[Key, ...]  # the indices at which a source is read
_VERBS = ("clone_in", "copy_in", "copy_out")


def clone_stages(graph: Graph, schedule: Schedule) -> tuple[Graph, Schedule]:
    """Apply all clone_in, copy_in and copy_out directives. The remaining schedule has none."""
    done: set[str] = set()
    count = 0

    def asks(source: Source) -> bool:
        name = source.name
        return name in schedule and name not in done and not schedule[name].verbs.isdisjoint(_VERBS)

    # Consumers first: a copy of a consumer may read a copy of this source.
    while source := next(filter(asks, _sources(graph)), None):
        copies, others = _copy_directives(schedule[source.name])
        before, graph = graph, _with_copies(graph, source, copies)
        count += len(graph.stages) - len(before.stages)
        if count > MOST_CLONES:
            raise refuse(
                source,
                copies[-1],
                f"there would be {count} copies of stages",
                f"clone less, at most {MOST_CLONES} altogether",
            )
        schedule = schedule.replace(StageSchedule(source.name, others), *_empty_schedules(copies, schedule))
        if isinstance(source, InputInfo):
            schedule = schedule if others else schedule.without(source)
        elif not graph.consumers[source.name] and source.name not in graph.output:
            if others:
                raise refuse(source, others[0], "all that read this stage read copies of it", "drop this directive")
            graph = replace(graph, stages=tuple(s for s in graph.stages if s.name != source.name))
            schedule = schedule.without(source)
        done.add(source.name)
    return graph, schedule


def _sources(graph: Graph) -> Iterator[Source]:
    """Yield all stages and inputs, last ones first."""
    yield from reversed(graph.stages)
    yield from reversed(graph.inputs)


def _copy_directives(schedule: StageSchedule) -> tuple[list[Directive], tuple[Directive, ...]]:
    """The directives that copy a stage, and its other directives."""
    copies = [d for d in schedule.directives if d.verb in _VERBS]
    return copies, tuple(d for d in schedule.directives if d.verb not in _VERBS)


def _empty_schedules(copies: list[Directive], schedule: Schedule) -> Iterator[StageSchedule]:
    """Yield empty schedules for the copies of values that the schedule does not name, so that they are stored and not
    inlined by default."""
    names = dict.fromkeys(_name(d) for d in copies if d.verb != "clone_in")
    return (on(name) for name in names if name not in schedule)


def copied_out(schedule: StageSchedule) -> list[str]:
    """The stages that are computed in the place of a stage, which is a copy of them."""
    return [_name(d) for d in schedule.directives if d.verb == "copy_out"]


def _name(d: Directive) -> str:
    """The name of the copy."""
    return str(d.args[0 if d.verb == "copy_out" else 1])


def places(source: Source, consumer: Stage) -> list[Place]:
    """The distinct indices at which a consumer reads a stage or input, in the order in which they are written."""
    own = buffers(source)
    return list(dict.fromkeys(place_of(e) for d in consumer.definitions for e in d.loads if e.buffer in own))


def buffers(source: Source) -> tuple[str, ...]:
    """The names of the buffers that hold the values of a stage or input."""
    return (source.name,) if isinstance(source, InputInfo) else source.buffers


def place_of(read: Load) -> Place:
    """The key of the indices of a load."""
    return tuple(map(key, read.indices))


def decides_places(source: Source, consumer: Stage) -> bool:
    """Whether values of a stage decide where a consumer reads it. In that case, either all of its loads read a copy or
    none."""
    own = buffers(source)
    reads = (e for d in consumer.definitions for e in d.loads if e.buffer in own)
    return any(not loaded(i).isdisjoint(own) for e in reads for i in e.indices)


def _with_copies(graph: Graph, source: Source, directives: list[Directive]) -> Graph:
    """The graph with all copies of one stage or input that the directives request."""
    outs, ins = ([d for d in directives if (d.verb == "copy_out") == out] for out in (True, False))
    if len(outs) > 1:
        raise refuse(source, outs[1], f"{source.name} is a copy of {_name(outs[0])} already", "ask for it once")
    graph = _Copier(graph, source).by(ins)  # clones have the definition of the stage, not that of a copy
    for d in outs:
        graph = _Copier(graph, source if isinstance(source, InputInfo) else graph.stage[source.name]).out(d)
    return graph


@dataclass(frozen=True, eq=False)
class _Copier:
    """Makes the copies of one stage or input."""

    graph: Graph
    source: Source

    def by(self, directives: list[Directive]) -> Graph:
        """The graph with the copies that clone_in and copy_in request."""
        copies: dict[str, Stage] = {}
        makers: dict[str, Directive] = {}
        moved: dict[str, dict[Place, str]] = {}  # consumer -> where it reads the source -> the copy
        for d in directives:
            consumer, name = self._consumer(d), _name(d)
            if name not in copies:
                copies[name], makers[name] = self._copy(d, name), d
            elif _kind(makers[name]) != _kind(d):
                raise self.no(d, f"{makers[name]} makes {name!r} otherwise", "choose another name, or ask alike")
            of_consumer = moved.setdefault(consumer.name, {})
            for place in self._chosen(d, consumer):
                if of_consumer.setdefault(place, name) != name:
                    raise self.no(d, f"{of_consumer[place]} is read at one of these places already", "name each once")
        stages = [*copies.values()] if isinstance(self.source, InputInfo) else []
        for s in self.graph.stages:
            stages.append(self._reading(s, moved[s.name], copies) if s.name in moved else s)
            if s is self.source:
                stages += copies.values()
        return replace(self.graph, stages=tuple(stages))

    def out(self, d: Directive) -> Graph:
        """The graph in which the stage's definition has the name that the directive gives, and the stage itself is a
        copy of it."""
        made = self._renamed(d, _name(d))
        copy = replace(copied(made, self.source.name, made.dims, made.where), domain=made.domain)
        stages = [n for s in self.graph.stages for n in ((made, copy) if s is self.source else (s,))]
        return replace(self.graph, stages=tuple(stages))

    def no(self, d: Directive, why: str, remedy: str) -> UserError:
        return refuse(self.source, d, why, remedy)

    def _consumer(self, d: Directive) -> Stage:
        name, readers = str(d.args[0]), self.graph.consumers[self.source.name]
        if name not in readers:
            raise self.no(d, f"{name!r} does not read {self.source.name}", did_you_mean(name, readers))
        return self.graph.stage[name]

    def _check_new(self, d: Directive, name: str) -> None:
        if name in self.graph.stage or name in self.graph.input or name in self._params:
            raise self.no(d, f"{name!r} exists", "choose another name for the copy")

    @property
    def _params(self) -> set[str]:
        return {p.name for p in self.graph.params}

    def _copy(self, d: Directive, name: str) -> Stage:
        if d.verb == "clone_in":
            return self._renamed(d, name)
        self._check_new(d, name)
        return copied(self.source, name, self._dims(d), d.where or self.source.where)

    def _renamed(self, d: Directive, name: str) -> Stage:
        """A copy of the stage with another name."""
        self._check_new(d, name)
        stage = self.source
        if isinstance(stage, InputInfo):
            raise self.no(d, f"{stage.name} is an input, which is not computed", "copy its values by copy_in")
        copy = replace(stage, name=name)
        own = dict(zip(stage.buffers, copy.buffers, strict=True))
        return _reading(copy, lambda read: own.get(read.buffer))

    def _dims(self, d: Directive) -> tuple[str, ...]:
        """The names of the dims of a copy of values."""
        dims, source = tuple(a for a in d.args[2:] if isinstance(a, str)), self.source
        if not dims and isinstance(source, Stage):
            return source.dims
        if len(dims) != source.ndim:
            raise self.no(d, f"{source.name} has {source.ndim} dims, and {len(dims)} are named", "name each once")
        if len(set(dims)) < len(dims):
            raise self.no(d, "a dim is named twice", "name each once")
        taken = next((n for n in dims if n in self._params), None)
        if taken is not None:
            raise self.no(d, f"{taken!r} already names a param", "choose another name")
        return dims

    def _chosen(self, d: Directive, consumer: Stage) -> list[Place]:
        known, numbers = places(self.source, consumer), [k for k in d.args[2:] if isinstance(k, int)]
        if any(k >= len(known) for k in numbers):
            raise self.no(d, f"{consumer.name} reads {self.source.name} at {len(known)} places", "count them from 0")
        if numbers and decides_places(self.source, consumer):
            raise self.no(
                d, f"values of {self.source.name} decide where {consumer.name} reads it", "leave the numbers out"
            )
        return [known[k] for k in numbers] or known

    def _reading(self, consumer: Stage, moved: dict[Place, str], copies: Mapping[str, Stage]) -> Stage:
        """A consumer that reads copies at some places."""
        own = buffers(self.source)
        everywhere = set(moved.values()) if len(moved) == len(places(self.source, consumer)) else set()

        def instead(read: Load) -> str | None:
            if read.buffer not in own:
                return None
            # If one copy serves all places, the place is not looked up, because the rewrite may have changed its
            # indices.
            name = next(iter(everywhere)) if len(everywhere) == 1 else moved.get(place_of(read))
            return None if name is None else copies[name].buffers[own.index(read.buffer)]

        return _reading(consumer, instead)


def _kind(d: Directive) -> tuple[object, ...]:
    """The verb and the dims of a directive. They must be equal for two directives that share a copy."""
    return d.verb, *(a for a in d.args[2:] if isinstance(a, str))


def copied(source: Source, name: str, dims: tuple[str, ...], where: Location) -> Stage:
    """A stage with the values of another stage or of an input."""
    dtypes = (source.dtype,) if isinstance(source, InputInfo) else source.dtypes
    point = tuple(map(coordinate, dims))
    values = tuple(Load(t, 1, b, point) for b, t in zip(buffers(source), dtypes, strict=True))
    return Stage(name, dims, dtypes, Definition(point, values, (), None, where), (), where)


def rewritten(stage: Stage, change: Callable[[Expr], Expr | None]) -> Stage:
    """Apply `change` to all expressions of a stage. It returns None for no change."""
    memo: dict[int, Expr] = {}

    return stage.changed(lambda d: d.changed(lambda e: transform(e, change, memo)))


def _reading(stage: Stage, instead: Callable[[Load], str | None]) -> Stage:
    """A stage whose loads read other buffers. `instead` returns the new buffer, or None for no change."""

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or (buffer := instead(e)) is None:
            return None
        return Load(e.dtype, e.lanes, buffer, e.indices, e.mask)

    return rewritten(stage, change)
