"""Trim: a loop that has no effect where a condition fails is restricted to the iterations where the condition may hold.

before:  for i in 0..n:                              after:  for i in 0..n:
             for j in 0..n:                                      for j in 0..min(n, i + 1):
                 if j <= i: f[i, j] = ...                            f[i, j] = ...

A triangular reduction thus does half the work of a square one, and loops over the rows of a sparse matrix, whose bounds
are data, run over the actual elements only. If inner loops (vectors, unrolled blocks) vary the condition, the bound
covers the iterations that any of their points needs; the condition stays, and partitioning deals with it. On a GPU, the
number of blocks is decided before any block runs, so conditions on data stay inside of blocks.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.interval import EVERYTHING, Interval, Scope, interval
from ..dataclass import dataclass
from ..expr.build import expr, logical_and, maximum, minimum
from ..expr.linear import Facts, linear, simplify
from ..expr.nodes import Expr, Op, const
from ..expr.types import BOOL, INDEX
from ..expr.visit import Key, depends, key, loaded
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Let, Produce, Realize, Stmt, Store
from ..target.kinds import ITERATED, Kind
from .conditions import Decided, is_comparison, is_true, limit
from .footprint import step


def trim(body: Stmt, facts: Facts) -> Stmt:
    """Trim all serial and parallel loops, outer ones first."""
    if not any(isinstance(s, If) or isinstance(s, Store) and s.mask is not None for s in ir.walk(body)):
        return body
    return _visit(body, facts.copy(), frozenset())


def _visit(s: Stmt, facts: Facts, granted: frozenset[Key]) -> Stmt:
    """Visit a statement. `granted` has the conditions, by key, that loops around it establish."""
    if isinstance(s, For):
        facts.bounds[s.var] = facts.lower(s.min), facts.upper(s.min + s.extent - 1)
        if s.kind in ITERATED:
            needs = {k: n for k, n in _needs(s.body, _LoopContext(s.var, {})).items() if k not in granted}
            if any(loaded(n.gap) for n in needs.values()):
                needs = {k: n for k, n in needs.items() if _is_invariant(n.gap, s)}
            return _trimmed(s, needs, facts, granted)
    return ir.map_children(s, lambda c: _visit(c, facts, granted))


def _is_invariant(e: Expr, s: For) -> bool:
    """Whether the data in an expression is known before a loop: the loop does not store it and, on a GPU, contains no
    block loops for which it would decide."""
    data = loaded(e)
    return not data or not any(
        isinstance(inner, For) and inner.kind is Kind.BLOCK or isinstance(inner, Store) and inner.buffer in data
        for inner in ir.walk(s)
    )


@dataclass(frozen=True)
class _Requirement:
    """The condition gap >= 0, without which a loop has no effect, and the original conditions that it implies."""

    gap: Expr
    settles: tuple[Expr, ...]
    inner: bool  # whether it can trim an inner loop more tightly


def _trimmed(s: For, needs: dict[Key, _Requirement], facts: Facts, granted: frozenset[Key]) -> Stmt:
    low, end, whole = s.min, s.min + s.extent, []
    met: dict[Key, _Requirement] = {}
    for k, need in needs.items():
        bounded = limit(need.gap, s.var, facts)
        if bounded is not None:
            low, end = (maximum(low, bounded[1]), end) if bounded[0] else (low, minimum(end, bounded[1]))
        elif not depends(need.gap, [s.var]) and not need.inner:
            whole.append(simplify(need.gap >= 0, facts))
        else:
            continue
        met[k] = need
    if not met:
        return ir.rebuild(s, ir.expressions(s), (_visit(s.body, facts, granted),))
    low = simplify(low, facts)
    extent = simplify(maximum(end - low, const(0, INDEX)), facts)
    true = {id(c): (c, const(True, BOOL)) for need in met.values() for c in need.settles}
    body = _visit(Decided(true).statement(s.body), facts, granted | met.keys())
    loop = replace(s, min=low, extent=extent, body=body)
    conditions = [c for c in whole if not is_true(c)]
    return If(logical_and(*conditions), loop) if conditions else loop


@dataclass(frozen=True)
class _LoopContext:
    """A loop's variable, the ranges of names bound inside of it, and the names that are variables of trimmable loops or
    depend on one."""

    name: str
    scope: Scope
    loops: frozenset[str] = frozenset()

    def enter(self, s: Stmt, scope: Scope) -> _LoopContext:
        """The context inside of one more statement."""
        new: tuple[str, ...] = ()
        if isinstance(s, For) and s.kind in ITERATED:
            new = (s.var,)
        elif isinstance(s, Let) and depends(s.value, self.loops):
            new = (s.name,)
        return _LoopContext(self.name, scope, self.loops.union(new))


def _needs(s: Stmt, at: _LoopContext) -> dict[Key, _Requirement]:
    """The conditions that all effects of a statement require."""
    if isinstance(s, Store) and s.mask is not None:
        return _of_condition(s.mask, at)
    if isinstance(s, If) and s.otherwise is None:
        return _of_condition(s.condition, at)
    if isinstance(s, (For, Produce, Realize)) or isinstance(s, Let) and s.value.dtype == INDEX:
        ((inside, scope),) = step(s, at.scope)
        return _needs(inside, at.enter(s, scope))
    if isinstance(s, Block) and s.stmts:
        return _common([_needs(part, at) for part in s.stmts])
    return {}


def _common(parts: list[dict[Key, _Requirement]]) -> dict[Key, _Requirement]:
    """The conditions that every part requires."""
    shared = [k for k in parts[0] if all(k in p for p in parts)]
    return {k: replace(parts[0][k], settles=sum((p[k].settles for p in parts), ())) for k in shared}


def _of_condition(condition: Expr, at: _LoopContext) -> dict[Key, _Requirement]:
    if isinstance(condition, Op) and condition.op == "and":
        a, b = (_of_condition(c, at) for c in condition.args)
        return {**a, **b}
    if not (isinstance(condition, Op) and is_comparison(condition)):
        return {}
    small, large = (_values(a, at) for a in condition.args[:: 1 if condition.op in ("le", "lt") else -1])
    if small.low is None or large.high is None:
        return {}
    strictly = 1 if condition.op in ("lt", "gt") else 0
    gap = linear(expr(large.high, INDEX) - expr(small.low, INDEX) - strictly).expr()
    settles = (condition,) if small.is_point and large.is_point else ()
    return {key(gap): _Requirement(gap, settles, depends(condition, at.loops))}


def _values(e: Expr, at: _LoopContext) -> Interval:
    """The range of an expression over the loops inside. Loop-invariant data is a single value; other data is
    unknown."""
    if not depends(e, [at.name, *at.scope]):
        return Interval.point(e)
    return EVERYTHING if loaded(e) else interval(e, at.scope)
