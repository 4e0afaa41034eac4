"""Checks the regions of a call: no read leaves its input, no Func is required outside of its domain, no update writes
outside of its output, and no unbounded region is stored.

The boxes are those of `regions`, which compiled code also computes, so accesses that pass the check stay inside their
arrays. The error for any other call names the stage, the read, a pixel that fails, and the remedy.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from math import prod
from weakref import WeakKeyDictionary

from ..dataclass import dataclass
from ..errors import UserError
from ..expr.magnitude import COORDINATE, MAY_OVERFLOW
from ..expr.nodes import Expr, Load, Number, Op
from ..expr.types import INDEX
from ..expr.visit import has_floats, loaded, names, variables, walk
from ..graph.nodes import Definition, Graph, InputInfo, Stage
from . import messages
from .float_ends import is_finite
from .interval import Evaluator, Interval, Scope, interval
from .messages import MOST, BufferLimits, UnboundedRead, find_witness, guards_of, outside_loads, readable
from .regions import Box, Rules, definition_scope, each_load, expressions, is_empty, required, where_it_holds
from .static_ranges import StaticRanges, between_names, in_code

_LARGEST_BYTES = 1 << 47  # the size of the address space
_OWN_REMEDY = "pass a larger shape=, or make another Func that reads it the output"


def check_regions(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number], stored: Container[str]
) -> None:
    """Raise a UserError unless all reads and writes stay within bounds. `shapes` has the shapes of outputs by stage,
    `scalars` has params and input extents, and `stored` contains the stages that are not inlined. If the same call is
    checked before and after a search for a schedule, checks that do not depend on `stored` run only once."""
    sizes = (tuple(shapes.items()), tuple(scalars.items()))
    passed, boxes = _passed.get(graph, (None, None))
    is_known = passed == sizes
    scope = {name: Interval.point(value) for name, value in scalars.items()}
    check = _RegionCheck(graph, shapes, scope, boxes if is_known else None)
    for name, shape in shapes.items():
        check.domain(graph.stage[name], shape)
    for stage in graph.stages:
        if stage.name in stored and stage.name not in shapes:
            check.storage(stage)
        check.check_symbolic(stage, stored)
    if not is_known:
        for name, shape in shapes.items():  # after the checks above: if they pass, a caller can drop writes outside
            check.updates(graph.stage[name], shape)
        for stage in reversed(graph.stages):
            check.reads(stage)
        for name in shapes:
            check.storage(graph.stage[name])
        _passed[graph] = sizes, check.boxes
    check.check_stored(stored)


# The sizes and the boxes of the latest call that passed.
_passed: WeakKeyDictionary[Graph, tuple[Hashable, dict[str, Box]]] = WeakKeyDictionary()
_symbolic_graphs: WeakKeyDictionary[Graph, StaticRanges | None] = WeakKeyDictionary()  # as compiled code sees them


def region_scalars(graph: Graph) -> set[str]:
    """The scalars that the check of a call may depend on: those in shapes, in regions, and in arithmetic that may
    overflow."""
    roots = [e for o in graph.outputs for e in o.shape]
    roots += [e for operations in graph.unproved.values() for e in operations]
    for s in graph.stages:
        roots += [e for bound in s.domain or () for e in bound]
        for d in s.definitions:
            roots += [*d.indices, *(e for r in d.domain for e in (r.min, r.extent))]
            roots += [] if d.condition is None else [d.condition]
            roots += [e for node in walk(*expressions(d)) for e in _deciding(node)]
    return set(variables(*roots))


def _deciding(e: Expr) -> tuple[Expr, ...]:
    """The operands of a node that determine which elements are read."""
    if isinstance(e, Load):
        return e.indices
    return e.args[:1] if isinstance(e, Op) and e.op == "select" else ()


def _remedy(i: InputInfo) -> str:
    """The remedy for reads outside of an input."""
    if i.table is not None:
        return f"make the array of {i.name} as large as its indices need, or limit the index with pt.clamp"
    return f"read it through a boundary condition, such as pt.edge({i.name}), or pass a smaller shape="


@dataclass(frozen=True)
class _ActiveDefinition:
    """A definition, the scope in which it runs, and the conditions under which it runs."""

    stage: Stage
    definition: Definition
    scope: Scope
    guards: tuple[Expr, ...]


class _RegionCheck:
    def __init__(
        self, graph: Graph, shapes: Mapping[str, tuple[int, ...]], scope: Scope, boxes: dict[str, Box] | None = None
    ) -> None:
        self.graph = graph
        self.scope = scope
        self.requested = {name: tuple(Interval(0, n - 1) for n in shape) for name, shape in shapes.items()}
        self.boxes = required(graph, self.requested, scope, _EXACT) if boxes is None else boxes
        self.limits = {r.buffer: r for r in (*self._inputs(graph), *self._domains(graph))}

    def _inputs(self, graph: Graph) -> Iterable[BufferLimits]:
        for i in graph.inputs:
            limits = tuple((0, int(self.scope[i.extent(k)].low) - 1) for k in range(i.ndim))
            kind = "Input" if i.table is None else "Table"
            yield BufferLimits(i.name, f"{kind} {i.name!r} (from {i.where})", limits, _remedy(i))

    def _domains(self, graph: Graph) -> Iterable[BufferLimits]:
        sizes = {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
        for s in graph.stages:
            if s.domain is not None:
                starts = [(int(interval(low, self.scope).low), int(interval(n, self.scope).low)) for low, n in s.domain]
                limits = tuple((low, low + n - 1) for low, n in starts)
                is_empty = any(n < 1 for _, n in starts)
                owner = f"the domain of {messages.describe(s)}"
                remedy = f"read it through a boundary condition, such as pt.edge({s.name}), or state a larger domain"
                when_empty = how_to_fill([n for _, n in s.domain], self.scope, sizes) if is_empty else ""
                yield from (BufferLimits(b, owner, limits, remedy, when_empty) for b in s.buffers)

    def domain(self, stage: Stage, shape: tuple[int, ...]) -> None:
        """Raise an error for an output shape that exceeds the stated domain."""
        limit, requested = self.limits.get(stage.buffers[0]), self.requested[stage.name]
        if limit is not None and not is_empty(requested) and not limit.holds(requested):
            raise messages.output_outside(stage, shape, limit)

    def updates(self, stage: Stage, shape: tuple[int, ...]) -> None:
        """Raise an error for updates of an output that write outside of its array."""
        if is_empty(self.requested[stage.name]):
            return
        limits = tuple((0, n - 1) for n in shape)
        arrays = {b: BufferLimits(b, "the array it is written to", limits, _OWN_REMEDY) for b in stage.buffers}
        for place in self._places(stage, self.requested[stage.name], stage.updates):
            self._writes(place, shape, arrays[stage.buffers[0]])
            self._loads(place, arrays)

    def reads(self, stage: Stage) -> None:
        """Raise an error for reads outside of inputs or of stated domains."""
        if stage.name in self.boxes:
            box = self.boxes[stage.name]
            for place in self._places(stage, box, stage.definitions):
                self._loads(place, self.limits)
                self._arithmetic(place, box)

    def storage(self, stage: Stage) -> None:
        """Raise an error if the required region of a stored stage is unbounded or too large for memory."""
        box = self.boxes.get(stage.name, ())
        if any(map(_is_far, box)):
            raise messages.stored_without_limits(stage, box, self._unlimited(stage))
        extents = [max(0, r.high - r.low + 1) for r in box]
        if prod(extents) * max(t.bytes for t in stage.dtypes) > _LARGEST_BYTES:
            raise messages.too_large(stage, extents)

    def _unlimited(self, producer: Stage) -> UnboundedRead | None:
        """A read of a stage at an unbounded index, if there is one."""
        reads: list[UnboundedRead] = []
        for stage in self.graph.stages:
            if stage.name in self.boxes:
                for place in self._places(stage, self.boxes[stage.name], stage.definitions):
                    self._far_reads(place, place.scope, producer.buffers, reads)
        return reads[0] if reads else None

    def _far_reads(
        self, at: _ActiveDefinition, scope: Scope, buffers: Container[str], reads: list[UnboundedRead]
    ) -> None:
        """Append to `reads` the reads of these buffers whose indices are unbounded in a scope."""

        def report(load: Load, box: Box, inner: Scope) -> None:
            for axis, (index, r) in enumerate(zip(load.indices, box, strict=True)):
                if _is_far(r) or not ends_are_numbers(index, inner, at.scope):
                    reads.append(UnboundedRead(at.stage, at.definition, load, axis, box))

        wanted = {e.buffer for e in at.definition.loads if e.buffer in buffers}
        if wanted:
            each_load(expressions(at.definition), scope, report, wanted)

    def check_symbolic(self, stage: Stage, stored: Container[str]) -> None:
        """Raise an error for reads of stored stages at an index that is bounded only for the numbers of this call. In
        compiled code, where coordinates, extents and params are symbolic, such an index may be bounded only by its
        type, and the buffer would have the extent of the type."""
        if stage.name not in self.boxes:
            return
        for at in self._places(stage, self.boxes[stage.name], stage.definitions):
            d = at.definition
            doubtful = {e.buffer for e in d.loads if any(map(self._may_be_unclear, e.indices))}
            if not doubtful and not any(map(self._may_be_unclear, d.indices)):
                continue
            scope = where_it_holds(d, {name: between_names(name) for name in at.scope if name not in self.scope})
            reads: list[UnboundedRead] = []
            self._far_reads(at, scope, {b for b in doubtful if self._is_stored(b, stored)}, reads)
            for read in reads:
                raise messages.stored_without_limits(self.graph.producer[read.load.buffer], read.box, read)
            if stage.name in stored and stage.name not in self.requested and any(map(self._may_be_unclear, d.indices)):
                written = tuple(interval(i, scope) for i in d.indices)
                if any(map(_is_far, written)) or not all(ends_are_numbers(i, scope, at.scope) for i in d.indices):
                    raise messages.stored_without_limits(stage, written)

    def check_stored(self, stored: Container[str]) -> None:
        """Raise an error for out-of-bounds reads that only compiled code would make: it computes a stored stage
        wherever any call may read it, which may exceed the region that this call requires."""
        if self.graph not in _symbolic_graphs:
            _symbolic_graphs[self.graph] = in_code(self.graph)
        symbolic = _symbolic_graphs[self.graph]
        if symbolic is None:
            return
        boxes = required(symbolic.graph, self.requested, symbolic.scope(self.scope), _EXACT)
        for stage in self.graph.stages:
            box = boxes.get(stage.name)
            if stage.name not in stored or stage.name in self.requested or box in (None, self.boxes.get(stage.name)):
                continue
            own = required(self.graph, {stage.name: box}, self.scope, _EXACT)
            check = _RegionCheck(self.graph, {}, self.scope, own)
            for s in self.graph.stages:
                if s is stage or s.name not in stored:
                    try:
                        check.reads(s)
                    except UserError as refusal:
                        raise messages.stored_beyond(stage, refusal) from None

    def _is_stored(self, buffer: str, stored: Container[str]) -> bool:
        producer = self.graph.producer.get(buffer)
        return producer is not None and producer.name in stored

    def _may_be_unclear(self, index: Expr) -> bool:
        """Whether an index depends on floats, or on both data and numbers of the call."""
        return has_floats(index) or bool(loaded(index)) and not self.scope.keys().isdisjoint(names(index))

    def _places(self, stage: Stage, box: Box, definitions: Iterable[Definition]) -> Iterable[_ActiveDefinition]:
        """The definitions that run at one point at least."""
        for d in definitions:
            scope = definition_scope(stage, d, box, self.scope)
            scope = where_it_holds(d, scope)
            if not is_empty(scope.values()):
                yield _ActiveDefinition(stage, d, scope, () if d.condition is None else (d.condition,))

    def _writes(self, at: _ActiveDefinition, shape: tuple[int, ...], array: BufferLimits) -> None:
        indices = at.definition.indices
        if not array.holds(tuple(interval(i, at.scope) for i in indices)):
            witness = find_witness(indices, array.limits, at.scope, at.guards)
            raise messages.written_outside(at.stage, at.definition, shape, witness)

    def _arithmetic(self, at: _ActiveDefinition, box: Box) -> None:
        """Raise an error for index arithmetic that may overflow 64 bits. If all coordinates are small, only arithmetic
        that types do not prove safe is checked."""
        near = all(r.bounded and max(-r.low, r.high) <= COORDINATE for r in box)
        for e in self.graph.unproved.get(id(at.definition), ()) if near else _index_arithmetic(at.definition):
            values = interval(e, at.scope)
            if not values.bounded or not INDEX.min <= values.low <= values.high <= INDEX.max:
                raise messages.overflows(at.stage, at.definition, e)

    def _loads(self, at: _ActiveDefinition, limits: Mapping[str, BufferLimits]) -> None:
        """Raise an error for reads that leave the limits of their buffers, assuming that the definition's own condition
        holds."""

        def report(load: Load, box: Box, scope: Scope) -> None:
            limit = limits[load.buffer]
            if not (limit.holds(box) and limit.size) and not is_empty(scope.values()):
                guards = [*at.guards, *guards_of(expressions(at.definition), load)]
                witness = find_witness(load.indices, limit.limits, scope, guards)
                raise messages.read_outside(at.stage, at.definition, load, box, limit, witness)

        each_load(expressions(at.definition), at.scope, report, limits.keys())


def _index_arithmetic(d: Definition) -> Iterable[Op]:
    operations = (e for e in walk(*d.expressions) if isinstance(e, Op) and e.dtype is INDEX)
    return (e for e in operations if e.op in MAY_OVERFLOW)


def ends_are_numbers(index: Expr, in_code: Scope, at_call: Scope) -> bool:
    """Whether all ends of float intervals that compiled code computes for an index are finite in a call. A
    subexpression that is a single number in a call is its own end, and is not looked into."""
    if not has_floats(index):
        return True
    code, call = Evaluator(in_code), Evaluator(at_call)
    floats = [e for e in outside_loads([index], code.is_scalar) if e.dtype.is_float]
    return all(_is_finite(code.visit(e), call.visit(e)) for e in floats)


def _is_finite(in_code: Interval, at_call: Interval) -> bool:
    ends = (in_code.low, at_call.low), (in_code.high, at_call.high)
    return all(is_finite(number) for end, number in ends if isinstance(end, Expr))


def _is_far(r: Interval) -> bool:
    """Whether a range is unbounded or longer than any axis of an array."""
    known = all(isinstance(end, int) for end in (r.low, r.high))
    return not r.bounded or known and bool(r.high - r.low >= MOST)


def _computed(_: Stage, box: Box) -> Box:
    """The box to compute. If the required region is empty, it is a fixed empty box."""
    return tuple(Interval(0, -1) for _ in box) if is_empty(box) else box


_EXACT = Rules(lambda ranges: int(is_empty(ranges)), _computed)


def how_to_fill(extents: Sequence[Expr], scope: Scope, sizes: Container[str]) -> str:
    """The remedy for a domain with extents that are not positive; `sizes` has the names of the inputs' extents.

    img.shape[0]//128, img.shape[1]//128 at a shape of (40, 200)
        ->  img.shape[0]//128 is 0: pass arrays with img.shape[0] >= 128
    """
    empty = [(e, interval(e, scope).low) for e in extents if interval(e, scope).low < 1]
    reasons = " and ".join(f"{readable(e)} is {value}" for e, value in empty if names(e))
    least = [_least_size(e, scope, sizes) for e, _ in empty]
    if None in least:
        return f"{reasons}: pass larger arrays, or state a larger domain" if reasons else "state a larger domain"
    return f"{reasons}: pass arrays with {' and '.join(f'{readable(name)} >= {n}' for name, n in filter(None, least))}"


def _least_size(extent: Expr, scope: Scope, sizes: Container[str]) -> tuple[str, int] | None:
    """The only size that `extent` depends on, and its smallest value for which `extent` is positive; None if that
    cannot be determined."""
    if len(names(extent)) != 1:
        return None
    (name,) = names(extent)

    def suffices(size: int) -> bool:
        low = interval(extent, {**scope, name: Interval(size, MOST)}).low
        return low is not None and bool(low >= 1)

    if name not in sizes or not suffices(MOST):
        return None
    too_small, enough = -1, MOST
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        too_small, enough = (too_small, middle) if suffices(middle) else (middle, enough)
    return name, enough
