"""Specialize: versions of a stage's loops under conditions, in which the compared scalars are constants.

before:  produce f: for f.x in 0..w: ...         after:  if w == 64: produce f: for f.x in 0..64: ...
                                                         else: produce f: for f.x in 0..w: ...
"""

from __future__ import annotations

from collections.abc import Callable

from ...expr.nodes import Expr
from ...expr.visit import substitute
from ...ir import visit as ir
from ...ir.nodes import If, Stmt
from ..assume import assume, is_impossible
from .context import BuildContext


def specialized(conditions: tuple[Expr, ...], context: BuildContext, build: Callable[[], Stmt]) -> Stmt:
    """Versions of what `build` makes, one for each condition, tested in order, and the general one."""
    if not conditions:
        return build()
    condition, *others = conditions
    known, bounds = assume(condition, context.facts.bounds)
    if is_impossible(bounds):  # a version that never runs requires nothing of other stages
        return specialized(tuple(others), context, build)
    with context.no_sliding_outside():
        with context.version(bounds):
            version = build()
        version = ir.map_exprs(version, lambda e: substitute(e, known))
        return If(condition, version, specialized(tuple(others), context, build))
