"""What statements read and compute of a stage, over all their loops: boxes in the names visible outside them."""

from __future__ import annotations

from ..analysis.interval import Interval, Scope, interval, refine
from ..analysis.touched import Box, hull, touched
from ..expr.types import INT64
from ..graph.nodes import Stage
from ..ir.nodes import For, If, Let, Produce, Stmt
from ..ir.visit import children, expressions
from .names import region_names


def step(s: Stmt, scope: Scope) -> list[tuple[Stmt, Scope]]:
    """The statements inside `s`, each with the scope it is in."""
    if isinstance(s, For):
        first = interval(s.min, scope)
        last = interval(s.min + s.extent - 1, scope)
        return [(s.body, {**scope, s.var: Interval(first.low, last.high)})]
    if isinstance(s, Let):
        return [(s.body, {**scope, s.name: interval(s.value, scope)} if s.value.dtype == INT64 else scope)]
    if isinstance(s, If):
        inside = [(s.then, refine(scope, s.condition, True))]
        return inside if s.otherwise is None else [*inside, (s.otherwise, refine(scope, s.condition, False))]
    return [(c, scope) for c in children(s)]


def read_by(s: Stmt, buffers: tuple[str, ...], scope: Scope, own: str | None = None) -> Box | None:
    """The box of some buffers that a statement reads, over all its loops; not counting what stage `own` reads."""
    if isinstance(s, Produce) and s.stage == own:
        return None
    found: Box | None = None
    boxes = touched(expressions(s), scope)
    inner = (read_by(c, buffers, inner_scope, own) for c, inner_scope in step(s, scope))
    for box in (*(boxes.get(b) for b in buffers), *inner):
        if box is not None:
            found = box if found is None else hull(found, box)
    return found


def computed(s: Stmt, stage: Stage, scope: Scope) -> Box | None:
    """The box of `stage` that a statement computes, over all its loops."""
    if isinstance(s, Produce) and s.stage == stage.name:
        sides = [(interval(low, scope), interval(high, scope))
                 for low, high in (region_names(stage.name, d) for d in stage.dims)]  # fmt: skip
        return tuple(Interval(low.low, high.high) for low, high in sides)
    found: Box | None = None
    for inner, inner_scope in step(s, scope):
        box = computed(inner, stage, inner_scope)
        if box is not None:
            found = box if found is None else hull(found, box)
    return found
