"""Which stages to inline, found greedily by what inlining each saves (halide-autoscheduler §4.3).

The expression of a stage is substituted into its consumers, and their cost is reevaluated. A stage is inlined into all
of its consumers or into none. The search does not rewrite definitions. It keeps the cost of evaluating each of them; a
read of an inlined stage adds the cost of the value that is read, unless the definition computes this value already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from ...analysis.inlining import closed_form, point_of, substituted
from ...analysis.work import arithmetic, evaluated, weight
from ...dataclass import dataclass, memoized
from ...expr.nodes import Const, Expr, Load, Var
from ...expr.visit import children, key, loaded, names, rebuild, substitute
from ...graph.nodes import Definition, Stage
from ..strategy import Problem
from .facts import PipelineFacts

Place = tuple[object, ...]  # what a load reads: equal for loads of the same value
Reads = dict[Place, Load]


def _reads(loads: Iterable[Expr]) -> Reads:
    return {(e.buffer, *map(key, e.indices)): e for e in loads if isinstance(e, Load)}


@dataclass(frozen=True)
class _Value:
    """The cost of computing one value of a stage, without the cost of computing its indices."""

    operations: float
    reads: Reads
    invariant: float  # operations that are the same for all values


@dataclass(eq=False)
class _Evaluation:
    """The cost of evaluating a definition once, with all that is inlined into it."""

    operations: float
    reads: dict[str, Reads]  # distinct values, by buffer
    operands: set[Place]  # reads that values depend on, not only where or whether they are stored
    inlined: set[Place] = field(default_factory=set)

    @staticmethod
    def of(d: Definition) -> _Evaluation:
        evaluation = _Evaluation(arithmetic(d.values), {}, set(_reads(evaluated(d.values))))
        evaluation.add(_reads(d.loads))
        return evaluation

    def add(self, reads: Reads) -> None:
        for place, load in reads.items():
            self.reads.setdefault(load.buffer, {})[place] = load

    @property
    def count(self) -> int:
        return sum(map(len, self.reads.values()))

    def reads_of(self, stage: Stage) -> tuple[Reads, Reads]:
        """The reads of a stage that are operands, and the other ones."""
        places = {p: e for b in stage.buffers for p, e in self.reads.get(b, {}).items()}
        others = {p: e for p, e in places.items() if p not in self.operands}
        return {p: e for p, e in places.items() if p not in others}, others


def inlining(problem: Problem, load_cost: float) -> tuple[str, ...]:
    """The stages to inline."""
    return problem.facts.once(("inlining", load_cost), lambda: tuple(_Inlining(problem, load_cost).names))


class _Inlining:
    """The search for stages to inline, which become `names`."""

    def __init__(self, problem: Problem, load_cost: float) -> None:
        self.facts: PipelineFacts = problem.facts  # extents are those of the pipeline before inlining
        self.channels = problem.channels
        self.load_cost = load_cost
        self.names: list[str] = list(self.facts.trivial)
        self._graph = substituted(problem.graph, self.names)
        self._able = [s.name for s in self._graph.stages if self.facts.is_short(s.name)]
        self._evaluations = {s.name: [_Evaluation.of(d) for d in s.definitions] for s in self._graph.stages}
        self._consumers = {name: dict.fromkeys(consumers) for name, consumers in self._graph.consumers.items()}
        self._inlined: set[str] = set()  # buffers
        self._values: dict[Place, _Value] = {}
        self._plain: dict[str, _Value | None] = {}  # by buffer: values that differ only in the indices of their reads
        self._indices: dict[tuple[object, ...], Expr] = {}
        self._concerned: dict[Place, set[str]] = defaultdict(set)  # stages whose inlining makes consumers read a value
        self._benefits: dict[str, float] = {}
        while (name := self._best()) is not None:
            self._inline(name)

    def _best(self) -> str | None:
        """The stage whose inlining saves most, if any saves something."""
        best = max(self._able, key=self._benefit, default=None)
        return best if best is not None and self._benefit(best) > 0 else None

    # ---- costs

    def _benefit(self, name: str) -> float:
        """The cost of the stage, minus what its consumers cost more afterwards."""
        if name not in self._benefits:
            self._benefits[name] = self._cost(name) - sum(self._added_cost(name, c) for c in self._consumers[name])
        return self._benefits[name]

    def _cost(self, name: str) -> float:
        """The operations and loads of the required region of a stage."""
        return sum(
            self.facts.runs(name, k) * (e.operations + self.load_cost * e.count)
            for k, e in enumerate(self._evaluations[name])
        )

    def _added_cost(self, name: str, consumer: str) -> float:
        """The amount by which a consumer's cost grows."""
        total = 0.0
        for k, e in enumerate(self._evaluations[consumer]):
            operands, others = e.reads_of(self._graph.stage[name])
            operations, _, new = self._expanded(operands, e, consumer)
            new |= self._expanded(others, e, consumer)[2] if others else {}
            for place in new:
                self._concerned[place].add(name)
            now, then = (*operands.values(), *others.values()), new.values()
            loads = sum(self._share(r, consumer) for r in then) - sum(self._share(r, consumer) for r in now)
            total += self.facts.runs(consumer, k) * (operations + self.load_cost * loads)
        return total

    def _share(self, read: Load, consumer: str) -> float:
        """The share of a value's cost that counts for one value of a consumer: the unrolled channels of a pixel share
        what is the same for all of them."""
        count = self.channels.get(consumer, 1)
        channel = self._graph.stage[consumer].dims[-1] if count > 1 else None
        return 1.0 if channel is None or any(channel in names(i) for i in read.indices) else 1 / count

    def _expanded(self, reads: Reads, into: _Evaluation, consumer: str) -> tuple[float, set[Place], Reads]:
        """What computing values instead of reading them adds: operations, values of inlined stages, and new reads."""
        operations = 0.0
        new: Reads = {}
        places: set[Place] = set()
        pending = list(reads.items())
        while pending:
            place, load = pending.pop()
            if place in places or place in into.inlined:
                continue
            places.add(place)
            value = self._value(place, load)
            operations += value.operations * self._share(load, consumer)
            anywhere: Place = ("anywhere", load.buffer)
            if anywhere not in places and anywhere not in into.inlined:
                places.add(anywhere)
                operations += value.invariant
            for p, e in value.reads.items():
                if e.buffer in self._inlined:
                    pending.append((p, e))
                elif p not in into.reads.get(e.buffer, ()):
                    new[p] = e
        return operations, places, new

    def _value(self, place: Place, load: Load) -> _Value:
        if place not in self._values:
            self._values[place] = self._of_plain(load) or self._of_any(load)
        return self._values[place]

    def _of_plain(self, load: Load) -> _Value | None:
        """The value of a load from a plain stage: its coordinates occur only in indices of reads, which do not depend
        on data, so that values differ only in these indices. None for other stages."""
        stage = self._graph.producer[load.buffer]
        if load.buffer not in self._plain:
            self._plain[load.buffer] = _plain(stage.dims, self._form(stage)[load.buffer])
        value = self._plain[load.buffer]
        if value is None or any(isinstance(i, Const) or loaded(i) for i in load.indices):
            return None
        at = point_of(stage, load.indices)
        moved = (rebuild(e, tuple([self._moved(i, at) for i in e.indices])) for e in value.reads.values())
        return replace(value, reads=_reads(moved))

    def _moved(self, index: Expr, at: Mapping[str, Expr]) -> Expr:
        """An index of a plain value with the coordinates of a load, memoized because many reads share it along a
        dim."""
        if isinstance(index, Var):
            return at.get(index.name, index)
        question = (id(index), *[key(at[name]) for name in names(index) if name in at])
        if question not in self._indices:
            self._indices[question] = substitute(index, at)
        return self._indices[question]

    def _of_any(self, load: Load) -> _Value:
        stage = self._graph.producer[load.buffer]
        form = self._form(stage)[load.buffer]
        nodes = list(evaluated([substitute(form, point_of(stage, load.indices))]))
        elsewhere = set(map(id, evaluated([load])))  # computes the indices
        everywhere = self._everywhere(stage, load.buffer)
        own = sum(weight(e) for e in nodes if id(e) not in elsewhere and id(e) not in everywhere)
        invariant = sum(weight(e) for e in nodes if id(e) in everywhere)
        return _Value(own, _reads(nodes), invariant)

    @memoized
    def _everywhere(self, stage: Stage, buffer: str) -> set[int]:
        """The ids of the subexpressions of a value that are the same at all points."""
        parts = evaluated([self._form(stage)[buffer]])
        return {id(e) for e in parts if names(e).isdisjoint(stage.dims)}

    @memoized
    def _form(self, stage: Stage) -> dict[str, Expr]:
        """The values of a stage as expressions, by buffer."""
        return dict(zip(stage.buffers, closed_form(stage), strict=True))

    # ---- inlining

    def _inline(self, name: str) -> None:
        stage, consumers = self._graph.stage[name], self._consumers.pop(name)
        sources = {self.facts.source(b) for e in self._evaluations.pop(name) for b in e.reads} - {name}
        self._inlined |= set(stage.buffers)
        for consumer in consumers:
            for e in self._evaluations[consumer]:
                self._inline_into(e, stage, consumer)
        for source in sources:
            readers = self._consumers[source]
            readers.pop(name)
            readers.update((c, None) for c in consumers if self._reads(c, source))
        for changed in (name, *consumers, *sources):
            self._benefits.pop(changed, None)
        self._able.remove(name)
        self.names.append(name)

    def _reads(self, consumer: str, source: str) -> bool:
        """Whether a consumer reads a source by now. The inlined stage may have needed it for another of its values."""
        return any(self.facts.source(b) == source for e in self._evaluations[consumer] for b in e.reads)

    def _inline_into(self, e: _Evaluation, stage: Stage, consumer: str) -> None:
        operands, others = e.reads_of(stage)
        for reads, is_operand in ((operands, True), (others, False)):
            operations, places, new = self._expanded(reads, e, consumer)
            e.add(new)
            for place in new:
                for concerned in self._concerned.pop(place, ()):
                    self._benefits.pop(concerned, None)
            if is_operand:
                e.operations += operations
                e.operands.update(new)
                e.inlined |= places
        for buffer in stage.buffers:
            e.reads.pop(buffer, None)


def _plain(dims: tuple[str, ...], form: Expr) -> _Value | None:
    """The value of an expression with its reads as they are written, if coordinates occur only in indices of reads and
    these do not depend on data; None otherwise."""
    nodes, own = list(evaluated([form])), frozenset(dims)
    for e in nodes:
        parts = (e,) if e is form else ()
        for c in parts if isinstance(e, Load) else (*parts, *children(e)):
            if not loaded(c) and not own.isdisjoint(names(c)):
                return None
        if isinstance(e, Load) and any(map(loaded, e.indices)):
            return None
    moving = [own.isdisjoint(names(e)) for e in nodes]
    each = sum(weight(e) for e, rests in zip(nodes, moving, strict=True) if not rests)
    return _Value(each, _reads(nodes), sum(weight(e) for e, rests in zip(nodes, moving, strict=True) if rests))
