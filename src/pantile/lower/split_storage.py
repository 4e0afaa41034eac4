"""Split storage: a dim of a buffer becomes two dims in memory, so that panels of rows or columns are contiguous.

before:  realize b: [0..n, 0..m]                      after:  realize b: [0..n, 0..(m + 7)//8, 0..8]
         b[k, j] = ...                                        b[k, j//8, j%8] = ...

Indices are relative to the buffer's first element, so that constant distances have constant quotients and remainders.
In vectors and in tiles of tensor cores, they are also relative to the first iteration, wherever it begins. The last
panel is allocated as large as the others; its elements that are not computed are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..expr.linear import simplify
from ..expr.nodes import Const, Expr, Load, const, var
from ..expr.types import INDEX
from ..expr.visit import loaded, substitute, transform
from ..graph.nodes import Graph
from ..ir import visit as ir
from ..ir.nodes import For, Let, Prefetch, Realize, Stmt, Store
from ..schedule.plan import Plan, StorageSplit
from ..target.kinds import Kind
from .names import of_loop

Side = tuple[Expr, Expr]
_Lets = Mapping[str, Expr]
_Lows = Mapping[str, tuple[Expr, ...]]  # first indices of the split buffers around
_AT_ONCE = (Kind.VECTOR, Kind.TENSOR_CORE)


def split_storage(body: Stmt, graph: Graph, plan: Plan) -> Stmt:
    """Apply the storage splits of the plan."""
    split = {b: s.name for s in graph.stages if plan.stages[s.name].storage_splits for b in s.buffers}
    return _Splitter(graph, plan, split).statement(body, {}, {}) if split else body


def stored_dims(dims: Sequence[str], splits: Sequence[StorageSplit]) -> list[str]:
    """The dims of a buffer in the order of its indices, after storage splits."""
    result = list(dims)
    for s in splits:
        at = result.index(s.dim)
        result[at : at + 1] = [s.outer, s.inner]
    return result


class _Splitter:
    """Rewrites accesses. `split` maps the split buffers to their stages."""

    def __init__(self, graph: Graph, plan: Plan, split: Mapping[str, str]) -> None:
        self.graph, self.plan, self.split = graph, plan, split
        self.own: dict[str, Expr] = {}  # iterations of loops, counted from 0

    def statement(self, s: Stmt, lets: _Lets, lows: _Lows) -> Stmt:
        new = tuple(self.expression(e, lets, lows) for e in ir.expressions(s))
        inner_lets, inner_lows = lets, lows
        if isinstance(s, Let) and s.value.dtype == INDEX:
            inner_lets = {**lets, s.name: substitute(s.value, lets)}
        if isinstance(s, For) and s.kind in _AT_ONCE and not isinstance(s.min, Const):
            own = var(of_loop(s.var, "own"))
            self.own[own.name] = var(s.var) - s.min
            inner_lets = {**lets, s.var: substitute(s.min, lets) + own}
        if isinstance(s, Realize) and s.buffer in self.split:
            inner_lows = {**lows, s.buffer: tuple(substitute(low, lets) for low, _ in s.box)}
        s = ir.rebuild(s, new, tuple([self.statement(c, inner_lets, inner_lows) for c in ir.children(s)]))
        if isinstance(s, Store):
            return Store(s.buffer, self.place(s.buffer, s.indices, lets, lows), s.value, s.mask, s.manner)
        if isinstance(s, Prefetch):
            return Prefetch(s.buffer, self.place(s.buffer, s.indices, lets, lows))
        if isinstance(s, Realize) and s.buffer in self.split:
            return Realize(s.buffer, s.dtype, self.box(s), s.memory, s.body)
        return s

    def expression(self, e: Expr, lets: _Lets, lows: _Lows) -> Expr:
        def access(n: Expr) -> Expr | None:
            if not isinstance(n, Load) or n.buffer not in self.split:
                return None
            return Load(n.dtype, n.lanes, n.buffer, self.place(n.buffer, n.indices, lets, lows), n.mask)

        return transform(e, access, concerns=loaded)

    def place(self, buffer: str, indices: tuple[Expr, ...], lets: _Lets, lows: _Lows) -> tuple[Expr, ...]:
        """The indices of an element after splits."""
        if buffer not in self.split:
            return indices
        dims, splits = self.dims(buffer)
        coordinates = dict(zip(dims, indices, strict=True))
        for low, dim in zip(lows[buffer], dims, strict=True):
            if any(s.dim == dim for s in splits):
                coordinates[dim] = substitute(simplify(substitute(coordinates[dim], lets) - low), self.own)
        for s in splits:
            whole = coordinates[s.dim]
            coordinates |= {s.outer: whole // s.factor, s.inner: whole % s.factor}
        return tuple(coordinates[d] for d in stored_dims(dims, splits))

    def box(self, s: Realize) -> tuple[Side, ...]:
        """The box of a buffer after splits."""
        dims, splits = self.dims(s.buffer)
        sides = dict(zip(dims, s.box, strict=True))
        zero = const(0, INDEX)
        for split in splits:
            _, extent = sides[split.dim]
            panels = simplify((extent + (split.factor - 1)) // split.factor)
            sides |= {split.outer: (zero, panels), split.inner: (zero, const(split.factor, INDEX))}
        return tuple(sides[d] for d in stored_dims(dims, splits))

    def dims(self, buffer: str) -> tuple[tuple[str, ...], tuple[StorageSplit, ...]]:
        name = self.split[buffer]
        return self.graph.stage[name].dims, self.plan.stages[name].storage_splits
