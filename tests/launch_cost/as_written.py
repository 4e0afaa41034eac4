"""Kernels as they are written: each load at its place, as the simulator counts it."""

from __future__ import annotations

from pantile.expr.nodes import Expr
from pantile.expr.visit import walk_loads
from pantile.ir.atomic import combined
from pantile.ir.nodes import For, If, Kernel, Manner, Prefetch, Stmt, Store
from pantile.ir.visit import children, expressions
from pantile.launch_cost.instruction_counts import Level


def levels_as_written(kernel: Kernel) -> dict[int, Level]:
    """What `levels_of` gives, without equal values and without loop-invariant ones."""
    levels: dict[int, Level] = {}

    def body(s: Stmt) -> None:
        levels[id(s)] = Level(None, is_loop=False, stored=frozenset())
        inside(s, levels[id(s)])

    def inside(s: Stmt, level: Level) -> None:
        for e in _computed(s):
            level.loads += walk_loads(e)
        for c in children(s):
            if isinstance(s, (For, If)):
                body(c)
            else:
                inside(c, level)

    body(kernel.body)
    return levels


def _computed(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates; an atomic store does not load what it combines with."""
    if isinstance(s, Store) and s.manner is Manner.ATOMIC:
        return (*s.indices, combined(s)[1])
    return () if isinstance(s, Prefetch) else expressions(s)
