"""Graphs written down by hand, so that the evaluator's tests need neither the language nor the graph builder.

Coordinates are int32, as users' are, until the graph is complete.
"""

from __future__ import annotations

from pantile.errors import Location
from pantile.expr import nodes
from pantile.expr.build import expr
from pantile.expr.nodes import Expr, ExprLike, Load
from pantile.expr.types import INT32, DType, dtype
from pantile.graph.nodes import Definition, Graph, InputInfo, Output, ParamInfo, ReductionDim, Stage
from pantile.graph.widen import IndexWidener

HERE = Location("picture.py", 7)
Y, X, R = (nodes.Var(INT32, 1, name) for name in ("y", "x", "r.0"))


def load(buffer: str, t: str, *indices: ExprLike) -> Load:
    return Load(dtype(t), 1, buffer, tuple(expr(i, INT32) for i in indices))


def pure(dims: tuple[str, ...], *values: Expr) -> Definition:
    return Definition(tuple(nodes.Var(INT32, 1, d) for d in dims), values, (), None, HERE)


def update(
    indices: tuple[ExprLike, ...],
    *values: Expr,
    over: tuple[tuple[str, ExprLike, ExprLike], ...] = (),
    where: Expr | None = None,
) -> Definition:
    domain = tuple(ReductionDim(n, expr(low), expr(extent)) for n, low, extent in over)
    return Definition(tuple(expr(i, INT32) for i in indices), values, domain, where, HERE)


def stage(
    name: str,
    dims: str,
    *values: Expr,
    updates: tuple[Definition, ...] = (),
    domain: tuple[tuple[ExprLike, ExprLike], ...] | None = None,
) -> Stage:
    names = tuple(dims.split())
    bounds = None if domain is None else tuple((expr(low), expr(extent)) for low, extent in domain)
    return Stage(name, names, tuple(v.dtype for v in values), pure(names, *values), updates, HERE, bounds)


def graph(
    *stages: Stage,
    out: tuple[tuple[str, tuple[ExprLike, ...]], ...],
    inputs: dict[str, tuple[str, int]] | None = None,
    params: dict[str, str] | None = None,
) -> Graph:
    widened = IndexWidener(params or ())
    return Graph(
        "test",
        tuple(InputInfo(n, dtype(t), ndim, HERE) for n, (t, ndim) in (inputs or {}).items()),
        tuple(ParamInfo(n, dtype(t), None, HERE) for n, t in (params or {}).items()),
        tuple(map(widened.stage, stages)),
        tuple(Output(n, tuple(widened.index(expr(e)) for e in shape)) for n, shape in out),
    )


def const(value: float, t: str | DType) -> Expr:
    return nodes.const(value, dtype(t))
