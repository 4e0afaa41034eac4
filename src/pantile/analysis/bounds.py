"""The check of a call's regions: no read leaves its input, no Func is asked for outside its domain, no update writes
outside its output, and nothing unbounded is stored.

The boxes are those of `regions`, as compiled code computes them, so what passes here stays inside its arrays. What
does not is refused with the stage, the read, a pixel that fails and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..errors import UserError
from ..expr.nodes import Expr, Load, Number, Op
from ..expr.visit import variables, walk
from ..graph.nodes import Definition, Graph, Output, Stage
from .interval import Interval, Scope, interval, refine
from .regions import definition_scope, expressions, required
from .touched import Box, each_load
from .witness import Witness, depends_on_data, find_witness, guards_of

LARGEST_EXTENT = (1 << 31) - 1  # coordinates are int32
LARGEST_BYTES = 1 << 47  # what addresses can reach


def check_regions(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number], stored: Container[str]
) -> None:
    """Raise a UserError unless all reads and writes stay inside.

    `shapes`: of the outputs, by stage. `scalars`: params and input extents. `stored`: stages that are not inlined.
    """
    _Check(graph, shapes, scalars, stored).run()


def region_scalars(graph: Graph) -> set[str]:
    """The scalars that shapes and regions may depend on."""
    roots = [e for o in graph.outputs for e in o.shape]
    for s in graph.stages:
        roots += [e for bound in s.domain or () for e in bound]
        for d in s.definitions:
            roots += [*d.indices, *(e for r in d.domain for e in (r.min, r.extent))]
            roots += [] if d.condition is None else [d.condition]
            roots += [e for node in walk(*d.values) for e in _decides_region(node)]
    return set(variables(*roots))


def _decides_region(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, Load):
        return e.indices
    return e.args[:1] if isinstance(e, Op) and e.op == "select" else ()


def describe(stage: Stage) -> str:
    """A stage in a message."""
    kind = "stage" if stage.helper else "Func"
    return f"{kind} {stage.name!r} (defined at {stage.where})"


def readable(e: Expr | str) -> str:
    """An expression in a message, with extents as users write them."""
    return re.sub(r"\.shape\.(\d+)", r".shape[\1]", str(e))


@dataclass(frozen=True)
class _Room:
    """What may be read: the limits of each axis, how to name it, and what to do about reads outside."""

    name: str
    label: str
    limits: tuple[tuple[int, int], ...]
    remedy: str

    def fits(self, axis: int, r: Interval) -> bool:
        low, high = self.limits[axis]
        return r.bounded and bool(low <= r.low and r.high <= high)


class _Check:
    def __init__(
        self, graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number], stored: Container[str]
    ) -> None:
        self.graph = graph
        self.shapes = shapes
        self.stored = stored
        self.scope: Scope = {name: Interval.point(value) for name, value in scalars.items()}
        self.asked = {name: tuple(Interval(0, n - 1) for n in shape) for name, shape in shapes.items()}
        self.rooms = {r.name: r for r in (*self._inputs(), *self._domains())}
        self.boxes = required(graph, self.asked, self.scope)

    def run(self) -> None:
        for o in self.graph.outputs:
            self.output(o)
        for stage in reversed(self.graph.stages):
            if stage.name in self.boxes:
                for d in stage.definitions:
                    self.definition(stage, d, self.boxes[stage.name])
        for stage in self.graph.stages:
            if stage.name in self.boxes and stage.name in self.stored:
                self.size(stage, self.boxes[stage.name])

    def _inputs(self) -> list[_Room]:
        return [
            _Room(
                i.name, f"Input {i.name!r} (from {i.where})",
                tuple((0, int(self.scope[i.extent(k)].low) - 1) for k in range(i.ndim)),
                f"read it through a boundary condition, such as pt.edge({i.name}), or ask for a smaller shape=",
            )
            for i in self.graph.inputs
        ]  # fmt: skip

    def _domains(self) -> list[_Room]:
        return [
            _Room(
                buffer, f"the domain of {describe(s)}", self._stated(s),
                f"read it through a boundary condition, such as pt.edge({s.name}), or state a larger domain",
            )
            for s in self.graph.stages if s.domain is not None for buffer in s.buffers
        ]  # fmt: skip

    def _stated(self, stage: Stage) -> tuple[tuple[int, int], ...]:
        bounds = [(interval(low, self.scope).low, interval(n, self.scope).high) for low, n in stage.domain or ()]
        return tuple((int(low), int(low) + int(n) - 1) for low, n in bounds)

    # ---- outputs

    def output(self, o: Output) -> None:
        stage, shape = self.graph.stage[o.stage], self.shapes[o.stage]
        if _is_empty(self.asked[o.stage]):
            return
        room = self.rooms.get(stage.buffers[0])
        if room is not None and not all(room.fits(k, r) for k, r in enumerate(self.asked[o.stage])):
            raise UserError(
                f"{describe(stage)} is asked for over the shape {shape}, which leaves its stated domain, "
                f"{_limits(room.limits)}; ask for a smaller shape= or state a larger domain"
            )
        limits = [(0, n - 1) for n in shape]
        for d in stage.updates:
            self.update(stage, d, limits)

    def update(self, stage: Stage, d: Definition, limits: Sequence[tuple[int, int]]) -> None:
        """Writes, and reads of itself, stay inside the output's array."""
        scope, guards = self._inside(stage, d, self.asked[stage.name])
        if scope is None:
            return
        room = _Room(stage.name, "the output's shape", tuple(limits), "")
        written = tuple(interval(i, scope) for i in d.indices)
        if not all(room.fits(k, r) for k, r in enumerate(written)):
            witness = find_witness(d.indices, limits, scope, guards)
            example = f": {_at(witness)} it writes {_place(stage.name, witness.indices)}" if witness else ""
            raise UserError(
                f"{describe(stage)} is an output of shape {self.shapes[stage.name]}, but its update "
                f"{_place(stage.name, d.indices)} at {d.where} may write outside{example}; ask for a larger shape=, "
                "limit the index with pt.clamp, or read the Func through another one and make that the output"
            )
        for buffer in stage.buffers:
            self.loads(stage, d, scope, guards, {buffer: _Room(buffer, room.label, room.limits, _OWN_READS)})

    # ---- reads

    def _inside(self, stage: Stage, d: Definition, box: Box) -> tuple[Scope | None, list[Expr]]:
        """The scope in which a definition runs (None: it never does), and the condition it runs under."""
        scope = definition_scope(stage, d, box, self.scope)
        guards = [] if d.condition is None else [d.condition]
        for g in guards:
            scope = refine(scope, g, True)
        return (None if _is_empty(scope.values()) else scope), guards

    def definition(self, stage: Stage, d: Definition, box: Box) -> None:
        scope, guards = self._inside(stage, d, box)
        if scope is not None:
            self.loads(stage, d, scope, guards, self.rooms)

    def loads(
        self, stage: Stage, d: Definition, scope: Scope, guards: list[Expr], rooms: Mapping[str, _Room]
    ) -> None:
        """Every load of these buffers stays inside. (A condition's own loads count as if it held.)"""

        def seen(load: Load, box: Box, inner: Scope) -> None:
            room = rooms.get(load.buffer)
            if room is None or _is_empty(inner.values()):
                return
            for axis, r in enumerate(box):
                if not room.fits(axis, r):
                    around = [*guards, *guards_of(expressions(d), load)]
                    raise self.refused(stage, d, load, axis, r, room, inner, around)

        each_load(expressions(d), scope, seen)

    def refused(self, stage: Stage, d: Definition, load: Load, axis: int, r: Interval, room: _Room, scope: Scope,
                guards: list[Expr]) -> UserError:  # fmt: skip
        text, index = readable(load), load.indices[axis]
        start = f"{describe(stage)} reads {text}"
        if _is_unbounded(r) and depends_on_data(index):
            return UserError(
                f"{start}, where {readable(index)} depends on data and may be anything; limit it with pt.clamp, or "
                f"promise its range with pt.within, to stay in {_limits(room.limits)} of {room.label}"
            )
        witness = find_witness(load.indices, room.limits, scope, guards)
        if witness is None:
            return UserError(
                f"{start} at an index that is only known to lie in {_range(r)} along axis {axis}, outside of "
                f"{room.label}, {_limits(room.limits)}; limit it with pt.clamp, or promise its range with pt.within"
            )
        wrong = next(k for k, p in enumerate(witness.indices) if not _in(p, room.limits[k]))
        return UserError(
            f"{start}, which leaves {room.label}: {self._pixel(stage, d, witness)} needs "
            f"{_place(room.name, witness.indices)}, but axis {wrong} has {_indices(room.limits[wrong])}; {room.remedy}"
        )

    def _pixel(self, stage: Stage, d: Definition, witness: Witness) -> str:
        """The point of a stage, and of its reduction, that a witness stands for."""
        box, point = self.boxes[stage.name], witness.point
        place = [point.get(dim, r.low) for dim, r in zip(stage.dims, box, strict=True)]
        if not d.domain and not any(isinstance(k, int) for k in point):
            return _place(stage.name, place)
        at = _at(witness, skip=stage.dims)
        return _place(stage.name, place) + (f" {at}" if at else "")

    # ---- storage

    def size(self, stage: Stage, box: Box) -> None:
        extents = [r.high - r.low + 1 if r.bounded else None for r in box]
        known = [max(0, n) for n in extents if n is not None]
        if len(known) < len(extents) or any(n > LARGEST_EXTENT for n in known):
            raise UserError(
                f"{describe(stage)} is computed before it is read, but the reads of it have no known limits: "
                f"{', '.join(map(_range, box))}; limit their indices with pt.clamp, or promise their range with "
                f"pt.within, or schedule it with compute_inline"
            )
        if prod(known) * max(t.bytes for t in stage.dtypes) > LARGEST_BYTES:
            raise UserError(f"{describe(stage)} would be computed over {' x '.join(map(str, known))} pixels, "
                            "more than memory can hold; ask for a smaller shape=")  # fmt: skip


_OWN_READS = "ask for a larger shape=, or read the Func through another one and make that the output"


def _is_empty(ranges: object) -> bool:
    """Whether some range has no values."""
    return any(r.bounded and not isinstance(r.low, float) and bool(r.low > r.high) for r in ranges)  # type: ignore[attr-defined]


def _is_unbounded(r: Interval) -> bool:
    return not r.bounded or r.high - r.low > LARGEST_EXTENT


def _in(place: int, limit: tuple[int, int]) -> bool:
    return limit[0] <= place <= limit[1]


def _place(name: str, indices: Sequence[object]) -> str:
    return f"{name}[{', '.join(readable(str(i)) for i in indices)}]"


def _at(witness: Witness, skip: Sequence[str] = ()) -> str:
    """The variables of a witness: "at r.0 = 3"."""
    shown = [f"{name} = {value}" for name, value in witness.point.items() if isinstance(name, str) and "shape" not in name]
    return f"at {', '.join(shown)}" if shown else ""


def _limits(limits: Sequence[tuple[int, int]]) -> str:
    return " x ".join(_indices(limit) for limit in limits)


def _indices(limit: tuple[int, int]) -> str:
    return f"indices {limit[0]} .. {limit[1]}" if limit[0] <= limit[1] else "no indices"


def _range(r: Interval) -> str:
    low, high = ("?" if v is None else v for v in (r.low, r.high))
    return f"{low} .. {high}"
