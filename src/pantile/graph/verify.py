"""The invariants of a graph. A graph that violates one is the bug of a pass: front ends refuse every user mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .. import verification
from ..errors import InternalError
from ..expr.nodes import Bits, Cast, Const, Expr, Load, Op, Var
from ..expr.types import BOOL, INDEX, DType
from ..expr.visit import walk
from .names import CALL_OPTIONS, is_name
from .nodes import Definition, Graph, Stage

_NODES = (Const, Var, Op, Cast, Bits, Load)


def verify(graph: Graph, after: str = "", error: Callable[[str], Exception] = InternalError) -> None:
    """Raise an error if the graph violates an invariant: an InternalError, unless the graph comes from elsewhere.
    `after` is the pass that made the graph."""
    _GraphVerifier(graph, after, error).run()


def verified(graph: Graph, after: str) -> Graph:
    """The graph, after a verification if that is enabled."""
    if verification.is_enabled():
        verify(graph, after)
    return graph


class _GraphVerifier:
    def __init__(self, graph: Graph, after: str, error: Callable[[str], Exception]) -> None:
        self.graph, self.error = graph, error
        self.name = f"{graph.name} after {after}" if after else graph.name
        self.scalars: dict[str, DType] = {p.name: p.dtype for p in graph.params}
        self.scalars |= {i.extent(k): INDEX for i in graph.inputs for k in range(i.ndim)}
        # buffers that may be read so far: rank and type
        self.readable = {i.name: (i.ndim, i.dtype) for i in graph.inputs}
        self.at = self.name

    def run(self) -> None:
        graph = self.graph
        names = [*graph.input, *(p.name for p in graph.params), *(s.name for s in graph.stages)]
        self.require(len(set(names)) == len(names), f"two things have the same name: {names}")
        self.names([graph.name, *names])
        self.arguments()
        for stage in graph.stages:
            self.at = f"{self.name}, {stage.name}"
            self.stage(stage)
        self.outputs()

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise self.error(f"graph {self.at}: {message}")

    def names(self, names: Iterable[str]) -> None:
        for n in names:
            self.require(is_name(n), f"{n!r} is not a name")

    def arguments(self) -> None:
        graph = self.graph
        options = CALL_OPTIONS.intersection((*graph.input, *(p.name for p in graph.params)))
        self.require(not options, f"options of every call are the names of arguments: {sorted(options)}")
        for i in graph.inputs:
            self.require(len(i.known) in (0, i.ndim), f"known extents of {i.name} are of another rank than {i.ndim}")
            plain = i.table is None or type(i.table) is np.ndarray
            self.require(plain, f"the table {i.name} is not a plain NumPy array, but {type(i.table).__name__}")
            fits = i.table is None or (i.table.dtype == i.dtype.numpy and i.table.shape == i.known)
            self.require(fits, f"the table {i.name} is of another kind")

    def outputs(self) -> None:
        names = [o.stage for o in self.graph.outputs]
        self.require(bool(names) and len(set(names)) == len(names), f"outputs are not distinct: {names}")
        for o in self.graph.outputs:
            self.require(o.stage in self.graph.stage, f"output {o.stage} is not a stage")
            rank = self.graph.stage[o.stage].ndim
            self.require(len(o.shape) == rank, f"output {o.stage} has a shape of another rank than {rank}")
            self.scalar(o.shape)

    def stage(self, s: Stage) -> None:
        self.require(len(set(s.dims)) == len(s.dims), f"dims are not distinct: {s.dims}")
        self.names(s.dims)
        self.require(not set(s.dims) & set(self.scalars), f"a dim has the name of a scalar: {s.dims}")
        self.require(len(s.dtypes) > 0, "has no values")
        if s.domain is not None:
            self.require(len(s.domain) == s.ndim, "the stated domain has another rank")
            self.scalar(e for bound in s.domain for e in bound)
        self.pure(s)
        self.readable |= {b: (s.ndim, t) for b, t in zip(s.buffers, s.dtypes, strict=True)}
        for update in s.updates:
            self.update(s, update)

    def pure(self, s: Stage) -> None:
        d = s.pure
        self.require(not d.domain and d.condition is None, "the pure definition has a reduction domain")
        names = tuple(i.name if isinstance(i, Var) else "" for i in d.indices)
        self.require(names == s.dims, f"the pure definition's indices are not the dims: {names}")
        self.definition(s, d, set(s.dims))

    def update(self, s: Stage, d: Definition) -> None:
        self.require(len(d.indices) == s.ndim, "an update has another number of indices")
        loops = [r.name for r in d.domain]
        self.require(len(set(loops)) == len(loops), f"loops of a reduction are not distinct: {loops}")
        self.names(loops)
        self.require(not set(loops) & {*s.dims, *self.scalars}, f"a loop has the name of another scalar: {loops}")
        self.scalar(e for r in d.domain for e in (r.min, r.extent))
        free = {dim for dim, i in zip(s.dims, d.indices, strict=True) if isinstance(i, Var) and i.name == dim}
        self.definition(s, d, free | set(loops))
        for e in walk(*_roots(d)):
            if isinstance(e, Load) and e.buffer in s.buffers:
                for dim, i in zip(s.dims, e.indices, strict=True):
                    own = isinstance(i, Var) and i.name == dim
                    self.require(own or dim not in free, f"a read of itself goes across {dim}, which has no order")

    def definition(self, s: Stage, d: Definition, bound: set[str]) -> None:
        types = tuple(v.dtype for v in d.values)
        self.require(types == s.dtypes, f"values have types {types}, the stage {s.dtypes}")
        self.require(all(i.dtype is INDEX for i in d.indices), "a place is not of type index")
        self.require(d.condition is None or d.condition.dtype == BOOL, "a condition is not bool")
        self.expressions(_roots(d), bound)

    def scalar(self, exprs: Iterable[Expr]) -> None:
        """Require expressions that are known at the call, without coordinates and loads."""
        roots = tuple(exprs)
        self.require(all(e.dtype is INDEX for e in roots), "an extent is not of type index")
        self.require(not any(isinstance(e, Load) for e in walk(*roots)), "an extent depends on data")
        self.expressions(roots, set())

    def expressions(self, roots: tuple[Expr, ...], bound: set[str]) -> None:
        for e in walk(*roots):
            wrong = self.wrong(e, bound)
            if wrong:  # printing every expression would cost more than all the checks
                self.require(False, f"{e} {wrong}")

    def wrong(self, e: Expr, bound: set[str]) -> str | None:
        """The invariant that a node violates, in words, or None."""
        if type(e) not in _NODES:
            return f"({type(e).__name__}) is not an expression of a graph"
        if e.lanes != 1:
            return "is a vector"
        if isinstance(e, Var) and e.name not in bound and e.name not in self.scalars:
            return "is not bound"
        if isinstance(e, Var) and e.dtype is not self.scalars.get(e.name, INDEX):
            return f"is used as {e.dtype}"
        return self.wrong_load(e) if isinstance(e, Load) else None

    def wrong_load(self, e: Load) -> str | None:
        if e.buffer not in self.readable:
            return f"reads {e.buffer}, which is not computed yet"
        ndim, dtype = self.readable[e.buffer]
        if len(e.indices) != ndim:
            return f"has {len(e.indices)} indices, {e.buffer} has {ndim} dims"
        if e.dtype != dtype:
            return f"is {e.dtype}, {e.buffer} holds {dtype}"
        if not all(i.dtype is INDEX for i in e.indices):
            return "has a place that is not of type index"
        return None if e.mask is None else "has a mask"


def _roots(d: Definition) -> tuple[Expr, ...]:
    return (*d.indices, *d.values) if d.condition is None else (*d.indices, *d.values, d.condition)
