"""Slide: a stage stored outside the loop that computes it need not compute again what earlier iterations did.

before:  for y in 0..h:                        after:   for y in 0 - 2..h:
             produce f over y-1 .. y+1                      produce f over y+1 .. y+1
             out[y] = f[y-1] + f[y] + f[y+1]                if y >= 0: out[y] = f[y-1] + f[y] + f[y+1]

The loop starts early enough that every row is computed exactly once, always the same number per iteration, with no
first iteration of its own (Halide computes the whole window in the first one instead). The rows in use at one time
are `window` many: `fold` makes the buffer circular with that many.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ..analysis.interval import Interval
from ..analysis.touched import Box
from ..expr.build import expr, maximum, minimum
from ..expr.linear import Facts, linear, simplify
from ..expr.nodes import Const, Expr, Op, Var, var
from ..expr.types import INT64
from ..expr.visit import depends, substitute
from ..graph.nodes import Stage
from ..ir.nodes import If, Kind, Stmt
from .footprint import read_by


class SlidingLoop:
    """A loop, and by how many iterations the stages that slide along it make it start earlier."""

    def __init__(self, name: str, low: Expr, extent: Expr, kind: Kind) -> None:
        self.var = var(name)
        self.first = var(f"{name}.first")
        self.last = low + extent - 1
        self.serial = kind is Kind.SERIAL
        self.warm_up = 0
        self.used = False


@dataclass
class Sliding:
    """What slides: the box still to compute, and the iterations before the first that it and its consumers start at."""

    dim: int
    box: Box
    window: int
    loop: SlidingLoop
    start: int  # the stage itself
    rest_start: int  # everything after it

    def guard(self, produce: Stmt, rest: Stmt) -> tuple[Stmt, Stmt]:
        """Each under the condition that its first iteration has been reached."""
        if self.start < self.loop.warm_up:
            produce = If(self.loop.var >= self.loop.first - self.start, produce)
        if self.rest_start < self.loop.warm_up:
            rest = If(self.loop.var >= self.loop.first - self.rest_start, rest)
        return produce, rest


def slide(members: list[Stage], box: Box, rest: Stmt, loop: SlidingLoop, facts: Facts) -> Sliding | None:
    """How the stages slide along `loop`, or None if they do not."""
    v = loop.var
    moving = [k for k, side in enumerate(box) if depends(side.low, [v.name]) or depends(side.high, [v.name])]
    if not loop.serial or len(moving) != 1:
        return None
    k = moving[0]
    low, high = box[k].low, box[k].high
    rate = _rate(high, v)
    if rate is None or _rate(low, v) is None or rate == 0 or _updates_along(members, k):
        return None
    window = facts.upper(simplify(high - low + 1, facts))
    scope = {v.name: Interval(loop.first - loop.warm_up, loop.last)}
    firsts = [b[k].low for m in members if (b := read_by(rest, m, scope)) is not None]
    if window is None or not firsts:
        return None
    first = _least(firsts, facts)
    before = substitute(high, {v.name: v - 1})
    advance = simplify(high - before, facts)
    gap = simplify(substitute(high, {v.name: loop.first}) - first + 1, facts)  # rows up to the first iteration's last
    plan = _start(gap, advance, rate, facts)
    if plan is None:
        return None
    start, exact = plan
    fresh = simplify(before + 1, facts)
    if not exact:
        fresh = maximum(fresh, first)
    rest_start = loop.warm_up
    loop.warm_up, loop.used = max(loop.warm_up, start), True
    sides = [Interval(fresh, high) if j == k else side for j, side in enumerate(box)]
    return Sliding(k, tuple(sides), window, loop, start, rest_start)


def _start(gap: Expr, advance: Expr, rate: Fraction, facts: Facts) -> tuple[int, bool] | None:
    """How many iterations early to start so that `gap` rows are there after iteration 0, and whether that is exact."""
    if isinstance(gap, Const) and isinstance(advance, Const):
        iterations, left = divmod(int(gap.value), int(advance.value))
        return (iterations - 1, True) if left == 0 and iterations >= 1 else (max(iterations, 0), False)
    most = facts.upper(gap)
    return None if most is None else (max(ceil((most + 1) / rate), 0), False)


def _least(values: list[Expr], facts: Facts) -> Expr:
    result = expr(values[0], INT64)
    for x in values[1:]:
        result = minimum(result, x)
    return simplify(result, facts)


def _updates_along(members: list[Stage], k: int) -> bool:
    """Whether an update runs along the dim itself (a scan or scatter), so that its rows depend on each other."""
    return any(
        not (isinstance(d.indices[k], Var) and d.indices[k].name == m.dims[k])
        for m in members
        for d in m.updates
    )


def _rate(e: Expr, v: Var) -> Fraction | None:
    """The average increase of `e` per step of `v` if it never decreases, else None."""
    total = Fraction(0)
    for atom, c in linear(e).terms.values():
        if isinstance(atom, Var) and atom.name == v.name:
            total += c
        elif depends(atom, [v.name]):
            if not (isinstance(atom, Op) and atom.op == "floordiv" and isinstance(atom.args[1], Const) and c > 0):
                return None
            inner = _rate(atom.args[0], v)
            if inner is None or int(atom.args[1].value) <= 0:
                return None
            total += c * inner / int(atom.args[1].value)
    return total if total >= 0 else None


