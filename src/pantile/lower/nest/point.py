"""One point of a definition, inside all of its loops: the stores, where the definition's condition holds."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...analysis.interval import Interval
from ...dataclass import dataclass
from ...expr.build import logical_and
from ...expr.linear import simplify
from ...expr.nodes import Expr, Var, var
from ...expr.visit import depends, loaded, substitute
from ...graph.nodes import Graph
from ...ir import visit as ir
from ...ir.nodes import Block, If, Let, Manner, Stmt, Store
from ..names import of_buffer, region_names
from .context import BuildContext
from .loops import DefinitionLoops
from .mask import LoadContext, mask_lanes, mask_loads
from .widen import LoweredExpressions


@dataclass(frozen=True)
class Point:
    """The stores, and the dims of the stage along which vectors are stored."""

    body: Stmt
    along_lanes: list[int]


def point(
    loops: DefinitionLoops,
    context: BuildContext,
    graph: Graph,
    is_missing: Callable[[str], bool],
    is_inside: Callable[[str], bool],
    manner: Manner,
) -> Point:
    """The stores of one point, masked where the definition's condition varies among lanes.

    `is_missing` tells whether a call may need nothing of the stage that computes a buffer, `is_inside` whether that
    stage is computed inside of these loops.
    """
    d, lanes = loops.definition, loops.lanes
    lowered, scope = LoweredExpressions(loops.at).expression, _everywhere(loops)

    loads = LoadContext(graph.input, context.facts, is_missing, context.has_points, is_inside)

    def masked(e: Expr) -> Expr:
        return mask_loads(lowered(e), scope, loads)

    indices = tuple(simplify(masked(i), context.facts) for i in d.indices)
    along_lanes = [k for k, i in enumerate(indices) if not loops.made_of(i).isdisjoint(lanes)]
    condition = None if d.condition is None else masked(d.condition)
    mask = None  # where the condition differs between the lanes of a vector, at indices that do not
    if condition is not None and depends(condition, lanes) and not any(map(loaded, (condition, *d.indices))):
        mask = condition
    values = [masked(v) for v in d.values]
    if mask is not None:
        known = {n: Interval(*(substitute(e, context.values) for e in (r.low, r.high))) for n, r in scope.items()}
        by_lane = functools.partial(depends, wanted=lanes)
        values = [mask_lanes(v, known, loads, mask, loops.stage, by_lane) for v in values]
    body = _stores(loops, indices, values, mask, manner)
    guards = list(loops.guards)
    if condition is not None and mask is None:
        if loaded(condition):  # what it reads need not exist where guards do not hold
            body = If(condition, body)
        else:
            guards.append(condition)
    return Point(If(logical_and(*guards), body) if guards else body, along_lanes)


def _everywhere(loops: DefinitionLoops) -> dict[str, Interval]:
    """The coordinates of a definition, each over its whole range."""
    ranges = {dim: Interval(*region_names(loops.stage, dim)) for dim in loops.stage.dims}
    for r in loops.definition.domain:
        ranges[r.name] = Interval(r.min, r.min + r.extent - 1)
    return {at.name: ranges[dim] for dim, at in loops.at.items() if isinstance(at, Var)}


def _stores(
    loops: DefinitionLoops, indices: tuple[Expr, ...], values: list[Expr], mask: Expr | None, manner: Manner
) -> Stmt:
    buffers = loops.stage.buffers
    if len(values) == 1 or loops.index == 0 or manner is Manner.ATOMIC:  # each combines its own element
        return ir.block(*(Store(b, indices, v, mask, manner) for b, v in zip(buffers, values, strict=True)))
    # An update may read what it writes: all values are computed before any is stored.
    names: list[Var] = [var(of_buffer(loops.prefix, "value", k), v.dtype) for k, v in enumerate(values)]
    body: Stmt = Block(tuple(Store(b, indices, n, mask, manner) for b, n in zip(buffers, names, strict=True)))
    for name, value in reversed(list(zip(names, values, strict=True))):
        body = Let(name.name, value, body)
    return body
