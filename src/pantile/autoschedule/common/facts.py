"""Facts about each stage that schedulers use, for the expected sizes: boxes, loops, costs, bytes, neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from math import prod
from operator import itemgetter
from typing import Any, TypeVar, cast

from ...analysis.channels import channels
from ...analysis.conversions import worth_storing
from ...analysis.interval import Interval
from ...analysis.regions import Box, definition_scope
from ...analysis.work import arithmetic, evaluated
from ...cost_model.call_facts import regions
from ...dataclass import cached_property, memoized
from ...expr.nodes import Cast, Expr, Load, Number, Op
from ...expr.types import INDEX
from ...expr.visit import children, key, names, variables, walk
from ...graph.nodes import Definition, Graph, Stage
from ...schedule.updates import accumulation, constant, has_closed_form, is_independent, loop_names, pure_dims
from .reads import DefinitionReads

# A stage that is needed over more points than this along one dim is not stored: its region counts as unbounded.
UNLIMITED = 1 << 31
MOST_TERMS = 16  # of a sum that is inlined

Extents = dict[str, int]
T = TypeVar("T")


class PipelineFacts:
    """Facts about one pipeline, each computed when it is first used, and memoized."""

    def __init__(self, graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number]) -> None:
        self.graph = graph
        self.shapes, self.scalars = shapes, scalars
        self.scope = {name: Interval.point(value) for name, value in scalars.items()}
        self._known: dict[tuple[object, ...], Any] = {}
        self._inputs = {i.name: tuple(int(scalars[i.extent(k)]) for k in range(i.ndim)) for i in graph.inputs}

    def once(self, question: tuple[Hashable, ...], find: Callable[[], T]) -> T:
        """Memoize a value that others compute about the pipeline, by a key."""
        if question not in self._known:
            self._known[question] = find()
        return cast(T, self._known[question])

    # ---- regions

    @cached_property
    def boxes(self) -> dict[str, Box]:
        """The required region of every stage and input, in ints. Ends that no read bounds are None."""
        required = regions(self.graph, self.shapes, self.scalars)
        return {name: self._within_input(name, box) for name, box in required.items()}

    def _within_input(self, name: str, box: Box) -> Box:
        if name not in self._inputs:
            return box
        return tuple(r.meet(Interval(0, n - 1)) for r, n in zip(box, self._inputs[name], strict=True))

    def is_limited(self, name: str) -> bool:
        """Whether a stage is needed over a box that can be stored."""
        return name in self.boxes and all(r.bounded and r.high - r.low < UNLIMITED for r in self.boxes[name])

    def can_be_inlined(self, name: str) -> bool:
        """Whether a stage can be inlined into its consumers; not if it is stored because all sums convert its values
        alike."""
        closed = name not in self.graph.output and has_closed_form(self.graph.stage[name])
        return closed and (name not in self._converted or not self.is_limited(name))

    @cached_property
    def _converted(self) -> set[str]:
        return worth_storing(self.graph)

    @cached_property
    def trivial(self) -> tuple[str, ...]:
        """The stages that are always inlined: parts of expressions, and those whose region is unbounded."""
        named = [s for s in self.graph.stages if self.can_be_inlined(s.name)]
        return tuple(s.name for s in named if self._is_part_of_an_expression(s) or not self.is_limited(s.name))

    def _is_part_of_an_expression(self, stage: Stage) -> bool:
        """Whether the user did not ask for this stage: boundary conditions and the like, and sums of a few terms."""
        return stage.helper and (not stage.updates or (self.is_short(stage.name) and self._is_read_once(stage)))

    def is_short(self, name: str) -> bool:
        """Whether a stage can be inlined into its consumers, which includes sums of a few terms."""
        stage = self.graph.stage[name]
        few = all(prod(constant(r.extent) or 0 for r in d.domain) <= MOST_TERMS for d in stage.updates)
        return self.can_be_inlined(name) and few

    def _is_read_once(self, stage: Stage) -> bool:
        """Whether no definition reads more than one value of a stage, so that inlining computes nothing twice."""
        readers = [d for c in self.consumers[stage.name] for d in self.graph.stage[c].definitions]
        counts = [sum(distinct_reads(d)[b] for b in stage.buffers) for d in readers]
        return all(n <= 1 and not (n and d.domain) for n, d in zip(counts, readers, strict=True))

    @memoized
    def extents(self, name: str) -> tuple[int, ...]:
        """The extents of the box of a stage or input, at least 1 each."""
        box = self.boxes.get(name, ())
        return tuple(max(1, int(r.high - r.low) + 1) if r.bounded else UNLIMITED for r in box)

    def points(self, name: str) -> int:
        return prod(self.extents(name))

    def bytes_per_point(self, name: str) -> int:
        """The bytes of all values of one point of a stage, or of an input."""
        if name in self.graph.stage:
            return sum(t.bytes for t in self.graph.stage[name].dtypes)
        return self.graph.input[name].dtype.bytes

    def size(self, name: str) -> int:
        """The bytes of a stage or input."""
        return self.points(name) * self.bytes_per_point(name)

    # ---- loops

    @memoized
    def loops(self, name: str, definition: int = 0) -> Extents:
        """The loops of a definition with their extents, outermost first, before any directive."""
        stage = self.graph.stage[name]
        d = stage.definitions[definition]
        scope = definition_scope(stage, d, self.boxes[name], self.scope)
        return {n: _extent(scope[n]) for n in loop_names(stage, d)}

    @memoized
    def tileable(self, name: str) -> tuple[str, ...]:
        """The dims along which all definitions of a stage can be cut into tiles that do not depend on each other."""
        stage = self.graph.stage[name]
        if not self.is_limited(name):
            return ()
        return tuple(
            dim
            for dim in stage.dims
            if all(dim in pure_dims(stage, d) and is_independent(stage, d, dim) for d in stage.definitions)
        )

    @memoized
    def reductions(self, name: str) -> dict[str, Interval]:
        """The reduction loops of all updates of a stage, over its required region."""
        stage = self.graph.stage[name]
        scopes = [(d, definition_scope(stage, d, self.boxes[name], self.scope)) for d in stage.updates]
        return {r.name: scope[r.name] for d, scope in scopes for r in d.domain}

    @memoized
    def sums(self, name: str) -> tuple[str, ...]:
        """The reduction loops whose terms may come in any order: those of sums into elements that stay the same."""
        stage = self.graph.stage[name]
        return tuple(
            r.name
            for d in stage.updates
            if accumulation(stage, d) is not None
            for r in d.domain
            if r.name not in variables(*d.indices)
        )

    @memoized
    def every_loop(self, name: str) -> Extents:
        """The dims of a stage and the reduction loops of its updates, with their extents."""
        dims = dict(zip(self.graph.stage[name].dims, self.extents(name), strict=True))
        return dims | {r: _extent(whole) for r, whole in self.reductions(name).items()}

    @memoized
    def read_by_unknown_extents(self, name: str) -> frozenset[str]:
        """The sources that are read by reductions of unknown extents: their regions have no constant size."""
        unknown = (d for d in self.graph.stage[name].updates if None in [constant(r.extent) for r in d.domain])
        return frozenset(self.source(load.buffer) for d in unknown for load in d.loads)

    # ---- neighbours

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each stage in the order of the graph, producers first."""
        return {s.name: k for k, s in enumerate(self.graph.stages)}

    @cached_property
    def producers(self) -> dict[str, tuple[str, ...]]:
        """The other stages and the inputs that each stage reads, in the order of reading."""
        return {s.name: self._sources(s) for s in self.graph.stages}

    def _sources(self, stage: Stage) -> tuple[str, ...]:
        buffers = dict.fromkeys(e.buffer for d in stage.definitions for e in d.loads)
        names = dict.fromkeys(self.source(b) for b in buffers)
        return tuple(n for n in names if n != stage.name)

    def source(self, buffer: str) -> str:
        """The stage or input that a buffer belongs to."""
        return self.graph.producer[buffer].name if buffer in self.graph.producer else buffer

    @property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """The stages that read each stage or input."""
        return self.graph.consumers

    @cached_property
    def prepared_reads(self) -> dict[str, list[DefinitionReads]]:
        """The reads of the definitions of each stage."""
        return {s.name: [DefinitionReads(s, d, self.graph.input) for d in s.definitions] for s in self.graph.stages}

    # ---- costs of one evaluation

    @memoized
    def arithmetic(self, name: str, definition: int = 0) -> float:
        """The operations of evaluating a definition once (see `analysis.work`)."""
        d = self.graph.stage[name].definitions[definition]
        return arithmetic([*d.values, *(i for i in d.indices if any(isinstance(e, Load) for e in walk(i)))])

    @memoized
    def reads(self, name: str, definition: int = 0) -> dict[str, int]:
        """How many values of each stage or input evaluating a definition once loads, of the stage itself too."""
        counts: dict[str, int] = {}
        for buffer, count in distinct_reads(self.graph.stage[name].definitions[definition]).items():
            counts[self.source(buffer)] = counts.get(self.source(buffer), 0) + count
        return counts

    @memoized
    def waiting(self, name: str, definition: int = 0) -> float:
        """The distinct values that evaluating a definition loads and uses several times, and those that all channels of
        a pixel use. Registers hold them meanwhile.

        Counted in values of the widest type that is stored or loaded; each value is as wide as arithmetic makes it.
        """
        stage = self.graph.stage[name]
        d = stage.definitions[definition]
        nodes = [e for e in evaluated(d.values) if e.dtype != INDEX]
        operands = (_as_loaded(c) for e in nodes if not isinstance(e, (Load, Cast)) for c in children(e))
        uses = Counter((e.buffer, tuple(map(key, e.indices))) for e in operands if isinstance(e, Load))
        count = sum(1 for n in uses.values() if n > 1) + len(self._used_by_all_channels(stage, nodes))
        widest = max(t.bytes for t in (*stage.dtypes, *(e.dtype for e in d.loads)))
        return count * max((e.dtype.bytes for e in nodes), default=1) / widest

    def _used_by_all_channels(self, stage: Stage, nodes: list[Expr]) -> set[bytes]:
        """The results that are the same for all channels. A select among channels does not count: each takes its
        own."""
        if stage.name not in self.channels:
            return set()
        row, channel = stage.dims[-2:]
        own = [e for e in nodes if isinstance(e, Op) and e.op != "select" and channel in names(e)]
        operands = (c for e in own for c in e.args if isinstance(c, Op))
        return {key(c) for c in operands if channel not in names(c) and row in names(c)}

    @cached_property
    def channels(self) -> dict[str, int]:
        """The stages whose last dim is the few channels of their pixels, and how many these are."""
        return channels(self.graph)

    @memoized
    def runs(self, name: str, definition: int = 0) -> int:
        """How often a definition is evaluated."""
        return prod(self.loops(name, definition).values())

    @memoized
    def work(self, name: str) -> float:
        """The operations of computing all of a stage."""
        stage = self.graph.stage[name]
        return sum(self.arithmetic(name, k) * self.runs(name, k) for k in range(len(stage.definitions)))


def distinct_reads(d: Definition) -> Counter[str]:
    """How many different values of each buffer evaluating a definition once loads."""
    different = {(e.buffer, tuple(map(key, e.indices))) for e in d.loads}
    return Counter(buffer for buffer, _ in sorted(different, key=itemgetter(0)))


def _as_loaded(e: Expr) -> Expr:
    """The expression inside of any casts."""
    while isinstance(e, Cast):
        e = e.value
    return e


def _extent(r: Interval) -> int:
    return max(1, int(r.high - r.low) + 1) if r.bounded else UNLIMITED
