"""One point of a definition, inside of all its loops: the stores, predicated by the definition's condition.

The expressions are those of the definition, with coordinates replaced by index expressions in loop variables. An index
of the form data plus a constant adds the constant as an index if the sum certainly stays within its type: with 64-bit
indices, adjacent elements are recognized as adjacent.

before:  lut[index(b[x] + 1)]          after:  lut[index(b[out.x]) + 1]

If data is compared as an index, because it replaces a coordinate of an inlined stage, the comparison is made in the
type of the data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import reduce

from ...analysis.interval import Interval, interval
from ...dataclass import dataclass
from ...expr.build import binary, cast, logical_and
from ...expr.linear import simplify
from ...expr.nodes import COMPARISON, Cast, Const, Expr, Op, Var, var
from ...expr.types import INDEX, promote
from ...expr.visit import depends, loaded, substitute, transform
from ...graph.nodes import Graph
from ...ir import visit as ir
from ...ir.nodes import Block, If, Let, Manner, Stmt, Store
from ..names import of_buffer, region_names
from .context import BuildContext
from .loops import DefinitionLoops
from .mask import LoadContext, mask_lanes, mask_loads


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
    """Return the stores of one point, masked if the definition's condition varies among vector lanes.

    `is_missing` tells whether a call may require nothing of the stage that computes a buffer, `is_inside` whether that
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
    mask = None  # the condition, if it differs between vector lanes and neither it nor the indices load data
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
        if loaded(condition):  # the elements that it reads need not exist where guards do not hold
            body = If(condition, body)
        else:
            guards.append(condition)
    return Point(If(logical_and(*guards), body) if guards else body, along_lanes)


def _everywhere(loops: DefinitionLoops) -> dict[str, Interval]:
    """Map the coordinates of a definition to their whole ranges."""
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


class LoweredExpressions:
    """Expressions of one definition with its coordinates replaced. `at` maps dim names to index expressions."""

    def __init__(self, at: Mapping[str, Expr]) -> None:
        self.at = at
        self.memo: dict[int, Expr] = {}
        self.keep: list[Expr] = []

    def expression(self, e: Expr) -> Expr:
        self.keep.append(e)  # alive while its id is a key
        return transform(e, self.change, self.memo)

    def change(self, e: Expr) -> Expr | None:
        if isinstance(e, Var):
            return self.at.get(e.name)
        if isinstance(e, Cast) and e.dtype is INDEX and isinstance(e.value, Op) and _never_wraps(e.value):
            data, by = e.value.args
            return binary(e.value.op, cast(INDEX, data), cast(INDEX, by))
        if isinstance(e, Op) and e.op in COMPARISON and e.args[0].dtype is INDEX and loaded(e):
            return _compared_as_data(e)
        return None


def _compared_as_data(e: Op) -> Expr | None:
    """Return the comparison in the common type of both sides, or None if that type has 64 bits or does not hold all
    constants."""
    types = [a.value.dtype for a in e.args if isinstance(a, Cast)]
    if not types or any(t.bits == 64 for t in types):
        return None
    t = reduce(promote, types)
    constants = [a for a in e.args if not isinstance(a, Cast)]
    if t.bits == 64 or not all(isinstance(a, Const) and t.min <= a.value <= t.max for a in constants):
        return None
    return binary(e.op, *(cast(t, a.value if isinstance(a, Cast) else a) for a in e.args))


def _never_wraps(e: Op) -> bool:
    """Whether this is data plus a constant, and the sum stays within its type."""
    if e.op not in ("add", "sub") or not isinstance(e.args[1], Const):
        return False
    data, shift = interval(e.args[0], {}), int(e.args[1].value) * (1 if e.op == "add" else -1)
    if not (isinstance(data.low, int) and isinstance(data.high, int)):
        return False
    return e.dtype.min <= data.low + shift and data.high + shift <= e.dtype.max
