"""The pipeline graph: a checked, topologically ordered, frozen description of what is computed.

    Graph      = inputs, params, stages (producers before consumers), outputs with their shapes
    Stage      = name, dims, a pure Definition and update Definitions, one dtype per value
    Definition = indices := values, for every point of the pure dims and of its reduction domain

In a graph's expressions every read of an Input or Func is a `Load` of a buffer by name (see `Stage.buffers`),
reductions have become stages of their own, and scalars are `Var`s: coordinates by their dim's name, params by their
name, input extents as "img.shape.0". Coordinates, extents and all indices are of type `index` (see `widen`); a pixel
uses a coordinate by a cast to int32.

As bytes, to copy a graph and to send it to other processes, its expressions are written as one list of rows, operands
first, and the stages refer to them by number. So shared nodes stay shared, and nothing recurses: pickle itself would,
once per nested operation.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any

import numpy as np

from ..dataclass import cached_property, dataclass
from ..errors import Location
from ..expr.magnitude import MAY_OVERFLOW, Magnitudes
from ..expr.nodes import Bits, Cast, Const, Expr, Load, Op, Var, const, coordinate
from ..expr.types import INDEX, DType
from ..expr.visit import children, each_once, loaded, walk, walk_loads

# kind of node, type, attribute besides its operands, numbers of the operands
Row = tuple[type[Expr], DType, Any, tuple[int, ...]]

_ATTRIBUTE: dict[type[Expr], Callable[[Any], Any]] = {
    Const: lambda e: e.value,
    Var: lambda e: e.name,
    Op: lambda e: e.op,
    Cast: lambda e: None,
    Bits: lambda e: None,
    Load: lambda e: e.buffer,
}
_NODE: dict[type[Expr], Callable[[DType, Any, tuple[Expr, ...]], Expr]] = {
    Const: lambda t, value, _: Const(t, 1, value),
    Var: lambda t, name, _: Var(t, 1, name),
    Op: lambda t, name, args: Op(t, 1, name, args),
    Cast: lambda t, _, args: Cast(t, 1, args[0]),
    Bits: lambda t, _, args: Bits(t, 1, args[0]),
    Load: lambda t, buffer, args: Load(t, 1, buffer, args),
}


@dataclass(frozen=True, eq=False)
class InputInfo:
    """An array that the caller passes, or a constant table of the pipeline."""

    name: str
    dtype: DType
    ndim: int
    where: Location
    table: np.ndarray[Any, np.dtype[Any]] | None = None  # its elements, if they are a constant of the pipeline
    known: tuple[int | None, ...] = ()  # extents that are the same in all calls; () if none is

    def extent(self, axis: int) -> str:
        """The name of the scalar that holds its extent along `axis`."""
        return f"{self.name}.shape.{axis}"

    def size(self, axis: int) -> Expr:
        """The extent along `axis`: a number where it is known."""
        n = self.known[axis] if self.known else None
        return coordinate(self.extent(axis)) if n is None else const(n, INDEX)


@dataclass(frozen=True, eq=False)
class ParamInfo:
    """A scalar that the caller passes (or leaves at its default)."""

    name: str
    dtype: DType
    default: bool | int | float | None
    where: Location


@dataclass(frozen=True, eq=False)
class ReductionDim:
    """One loop of a reduction domain: min <= name < min + extent, outermost first in its domain."""

    name: str
    min: Expr
    extent: Expr


@dataclass(frozen=True, eq=False)
class Definition:
    """stage[indices] = values. Pure indices are the dims. An update runs over `domain` in order, where `condition`
    holds."""

    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    domain: tuple[ReductionDim, ...]
    condition: Expr | None
    where: Location

    @property
    def expressions(self) -> list[Expr]:
        """All expressions of a definition, including the bounds of its domain."""
        bounds = [e for r in self.domain for e in (r.min, r.extent)]
        return [*self.indices, *self.values, *bounds, *([] if self.condition is None else [self.condition])]

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Every distinct read of a buffer."""
        condition = () if self.condition is None else (self.condition,)
        return tuple(walk_loads(*self.indices, *self.values, *condition))

    def changed(self, change: Callable[[Expr], Expr], index: Callable[[Expr], Expr] | None = None) -> Definition:
        """The definition with its indices, values and condition rewritten (indices by `index`, if it is given); the
        same one if they stay the same."""
        old = (*self.indices, *self.values, *(() if self.condition is None else (self.condition,)))
        first, last = len(self.indices), len(self.indices) + len(self.values)
        new = (*map(index or change, self.indices), *map(change, old[first:]))
        if all(map(is_, new, old)):
            return self
        condition = None if self.condition is None else new[last]
        return replace(self, indices=new[:first], values=new[first:last], condition=condition)


@dataclass(frozen=True, eq=False)
class Stage:
    """A Func of the pipeline. Its `dims` name the coordinates of the pure definition, in storage order."""

    name: str
    dims: tuple[str, ...]
    dtypes: tuple[DType, ...]
    pure: Definition
    updates: tuple[Definition, ...]
    where: Location
    # Stated domain (min, extent) per dim: the stage is undefined outside it. None: defined everywhere.
    domain: tuple[tuple[Expr, Expr], ...] | None = None
    # A boundary condition or a reduction that a front end made; inlined by default where possible.
    helper: bool = False

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        """One buffer name per value: the stage's own name, or name.0, name.1, ... if it has several values."""
        if len(self.dtypes) == 1:
            return (self.name,)
        return tuple(f"{self.name}.{k}" for k in range(len(self.dtypes)))

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The pure definition, then the updates in order."""
        return (self.pure, *self.updates)

    def changed(self, change: Callable[[Definition], Definition]) -> Stage:
        """The stage with its definitions rewritten; the same one if these stay the same."""
        pure, *updates = map(change, self.definitions)
        same = pure is self.pure and all(map(is_, updates, self.updates))
        return self if same else replace(self, pure=pure, updates=tuple(updates))


@dataclass(frozen=True, eq=False)
class Output:
    """A stage that the caller gets, over 0 <= coordinate < shape in each dim."""

    stage: str
    shape: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole pipeline."""

    name: str
    inputs: tuple[InputInfo, ...]
    params: tuple[ParamInfo, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Output, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, pickled((self.name, self.inputs, self.params, self.stages, self.outputs))

    @cached_property
    def stage(self) -> dict[str, Stage]:
        """Stages by name."""
        return {s.name: s for s in self.stages}

    @cached_property
    def input(self) -> dict[str, InputInfo]:
        """Inputs by name."""
        return {i.name: i for i in self.inputs}

    @cached_property
    def arguments(self) -> tuple[InputInfo, ...]:
        """The inputs that the caller passes."""
        return tuple(i for i in self.inputs if i.table is None)

    @cached_property
    def producer(self) -> dict[str, Stage]:
        """The stage that writes a buffer, by the buffer's name."""
        return {b: s for s in self.stages for b in s.buffers}

    @cached_property
    def output(self) -> dict[str, Output]:
        """Outputs by stage name."""
        return {o.stage: o for o in self.outputs}

    @cached_property
    def unproved(self) -> dict[int, tuple[Op, ...]]:
        """Index arithmetic that types alone do not prove to fit 64 bits, by the id of its definition; mostly none."""
        magnitudes = Magnitudes()

        def far(roots: list[Expr]) -> tuple[Op, ...]:
            operations = (e for e in walk(*roots) if isinstance(e, Op) and e.dtype is INDEX and e.op in MAY_OVERFLOW)
            return tuple(e for e in operations if not magnitudes.fits(e))

        unproved = {id(d): far(d.expressions) for s in self.stages for d in s.definitions}
        return {k: operations for k, operations in unproved.items() if operations}

    @cached_property
    def reads(self) -> dict[tuple[str, int], tuple[str, ...]]:
        """The other stages and the inputs that each definition reads, by its stage and number, in order."""
        producer = {b: s.name for b, s in self.producer.items()}
        reads: dict[tuple[str, int], tuple[str, ...]] = {}
        for s in self.stages:
            for k, d in enumerate(s.definitions):
                sources = dict.fromkeys(producer.get(e.buffer, e.buffer) for e in d.loads)
                reads[s.name, k] = tuple(name for name in sources if name != s.name)
        return reads

    @cached_property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """The other stages that read a stage (or input), by name, in order."""
        consumers: dict[str, dict[str, None]] = {n: {} for n in (*self.stage, *self.input)}
        for s in self.stages:
            for d in s.definitions:
                roots = [*d.indices, *d.values, *([d.condition] if d.condition is not None else [])]
                for buffer in frozenset().union(*map(loaded, roots)):
                    source = self.producer[buffer].name if buffer in self.producer else buffer
                    if source != s.name:
                        consumers[source][s.name] = None
        return {n: tuple(c) for n, c in consumers.items()}


def _unpickled(rows: list[Row], data: bytes) -> Graph:
    graph = Graph(*unpickled(rows, data))
    for i in graph.inputs:
        if i.table is not None:
            i.table.flags.writeable = False  # which NumPy does not keep
    return graph


def pickled(parts: Any) -> tuple[list[Row], bytes]:
    """Parts of a graph as rows of its expressions and the bytes of all else."""
    to = io.BytesIO()
    pickler = _Pickler(to)
    pickler.dump(parts)
    return pickler.rows, to.getvalue()


def unpickled(rows: list[Row], data: bytes) -> Any:
    """The parts of a graph that `pickled` wrote."""
    nodes: list[Expr] = []
    for kind, t, attribute, operands in rows:
        nodes.append(_NODE[kind](t, attribute, tuple([nodes[k] for k in operands])))
    return _Unpickler(io.BytesIO(data), nodes).load()


class _Pickler(pickle.Pickler):
    def __init__(self, to: io.BytesIO) -> None:
        super().__init__(to)
        self.rows: list[Row] = []
        self._known: dict[int, int] = {}

    def persistent_id(self, thing: Any) -> int | None:
        return each_once(thing, self._known, self._row) if isinstance(thing, Expr) else None

    def _row(self, e: Expr) -> int:
        operands = tuple([self._known[id(c)] for c in children(e)])
        self.rows.append((type(e), e.dtype, _ATTRIBUTE[type(e)](e), operands))
        return len(self.rows) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, nodes: list[Expr]) -> None:
        super().__init__(source)
        self._nodes = nodes

    def persistent_load(self, number: int) -> Expr:
        return self._nodes[number]
