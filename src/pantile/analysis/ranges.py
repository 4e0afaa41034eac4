"""Propagates ranges of values through stages: an index that is read from a stage is in the range of its values.

    level[x] = clamp(data[x], 0, 9)                  level[x] = clamp(data[x], 0, 9)
    out[x] = lut[level[x]]                           out[x] = lut[within(level[x], 0, 9)]

The range is expressed as a promise (`within`), which all later passes understand. The reference evaluator checks
promises, and would report a wrong one. Only buffers that indices depend on are analyzed, each stage once.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

import numpy as np

from ..expr.build import expr
from ..expr.nodes import Cast, Expr, Load, Op, Var, const, op
from ..expr.types import INDEX, DType
from ..expr.visit import children, each_once, loaded, rebuild, walk
from ..graph.nodes import Definition, Graph, InputInfo, Stage
from .interval import EVERYTHING, Interval, Scalar, interval, type_range, values_of
from .regions import definition_scope, expressions

_ANYWHERE = Interval(-(1 << 20), 1 << 20)  # an arbitrary wide range of coordinates
_ROUNDS = 3  # iterations in the search for a fixed point of updates

Ranges = dict[str, Interval]  # the ranges of values, by buffer


def with_ranges(graph: Graph) -> Graph:
    """The graph with a promise around each value that is used in an index and whose range is known."""
    wanted = _used_in_indices(graph)
    if not wanted:
        return graph
    known = {i.name: r for i in graph.inputs if i.name in wanted and (r := _of_table(i)) is not None}
    stages = []
    for s in graph.stages:
        if not wanted.isdisjoint(s.buffers):
            known |= _of_stage(s, known)
        stages.append(_with_promises(s, known))
    return replace(graph, stages=tuple(stages))


def _used_in_indices(graph: Graph) -> set[str]:
    """The buffers that indices depend on, directly or through the values of other buffers."""
    wanted: set[str] = set()
    for s in reversed(graph.stages):
        for d in s.definitions:
            places = [*d.indices, *(i for load in d.loads for i in load.indices)]
            wanted.update(*map(loaded, places))
        if not wanted.isdisjoint(s.buffers):
            wanted.update(*(loaded(v) for d in s.definitions for v in d.values))
    return wanted


# ---- ranges of values


def _of_table(i: InputInfo) -> Interval | None:
    if i.table is None or i.dtype.is_bool or not np.isfinite(i.table).all():
        return None
    return Interval(i.table.min().item(), i.table.max().item())


def _of_stage(s: Stage, known: Ranges) -> Ranges:
    """The range of each buffer of a stage: a fixed point of its definitions, if a few iterations find one."""
    own = _values(s, s.pure, known)
    for _ in range(_ROUNDS):
        new = own
        for d in s.updates:
            given = _values(s, d, known | own)
            new = {b: r.hull(given[b]) for b, r in new.items()}
        if all(_inside(new[b], own[b]) for b in own):
            return own
        own = new
    return _of_any_values(s, known)


def _of_any_values(s: Stage, known: Ranges) -> Ranges:
    """The range of each buffer of a stage, if the values before an update may be any."""
    own = _values(s, s.pure, known)
    for d in s.updates:
        given = _values(s, d, known)
        own = {b: r.hull(given[b]) for b, r in own.items()}
    return own


def _values(s: Stage, d: Definition, known: Ranges) -> Ranges:
    loads = frozenset().union(*map(loaded, expressions(d)))
    scope = {values_of(b): known[b] for b in loads if b in known}
    inner = definition_scope(s, d, (EVERYTHING,) * s.ndim, scope)
    return {b: interval(v, inner) for b, v in zip(s.buffers, d.values, strict=True)}


def _inside(a: Interval, b: Interval) -> bool:
    """Whether an interval certainly lies inside another."""
    low = a.low is b.low or _are_numbers(a.low, b.low) and b.low <= a.low
    return low and (a.high is b.high or _are_numbers(a.high, b.high) and a.high <= b.high)


def _are_numbers(*ends: object) -> bool:
    return all(isinstance(e, (int, float)) for e in ends)


# ---- writing promises


def _with_promises(s: Stage, known: Ranges) -> Stage:
    """The stage with promises in its indices; the same object if there are none."""
    return s.changed(lambda d: _PromiseWriter(s, d, known).definition())


class _PromiseWriter:
    """Writes promises into the indices of one definition, where they narrow the range of an index."""

    def __init__(self, s: Stage, d: Definition, known: Ranges) -> None:
        self._definition = d
        loads = frozenset().union(*map(loaded, expressions(d)))
        self._known = {b: known[b] for b in loads if b in known}
        self._scope = definition_scope(s, d, (_ANYWHERE,) * s.ndim, {})
        self._with_values = {**self._scope, **{values_of(b): r for b, r in self._known.items()}}
        self._memo: dict[int, Expr] = {}
        self._promised: dict[int, Expr] = {}

    def definition(self) -> Definition:
        d = self._definition
        return d.changed(self._value, lambda i: self._place(i, self._value(i))) if self._known else d

    def _value(self, e: Expr) -> Expr:
        """An expression with promises in the indices of its loads."""
        return each_once(e, self._memo, self._rebuilt)

    def _rebuilt(self, e: Expr) -> Expr:
        old = children(e)
        new = [self._memo[id(c)] for c in old]
        if isinstance(e, Load):
            new = [self._place(*both) for both in zip(old, new, strict=True)]
        return e if all(map(is_, new, old)) else rebuild(e, tuple(new))

    def _place(self, index: Expr, rebuilt: Expr) -> Expr:
        """The index with promises around its own loads, if that narrows its range."""
        if loaded(index).isdisjoint(self._known):
            return rebuilt
        without, with_values = interval(index, self._scope), interval(index, self._with_values)
        if _are_equal(without.low, with_values.low) and _are_equal(without.high, with_values.high):
            return rebuilt
        return each_once(rebuilt, self._promised, self._limited, lambda e: () if isinstance(e, Load) else children(e))

    def _limited(self, e: Expr) -> Expr:
        if isinstance(e, Load):
            return self._load(e)
        if isinstance(e, Op) and e.op == "within" and isinstance(e.args[0], Load):
            return e  # it already has a promise
        old = children(e)
        new = tuple([self._promised[id(c)] for c in old])
        e = e if all(map(is_, new, old)) else rebuild(e, new)
        if isinstance(e, Cast) and e.dtype is INDEX and isinstance(e.value, Load):
            r = self._known.get(e.value.buffer, EVERYTHING)
            if r.bounded and (not _are_numbers(r.low, r.high)):
                return op("within", e, expr(r.low, INDEX), expr(r.high, INDEX))
        return e

    def _load(self, e: Load) -> Expr:
        r = _of_any_call(self._known.get(e.buffer, EVERYTHING)).meet(type_range(e.dtype))
        if not _are_numbers(r.low, r.high) or not _is_tighter(r, e.dtype):
            return e
        return op("within", e, const(r.low, e.dtype), const(r.high, e.dtype))


def _are_equal(a: Scalar, b: Scalar) -> bool:
    return a is b or _are_numbers(a, b) and bool(a == b)


def _is_tighter(r: Interval, t: DType) -> bool:
    whole = type_range(t)
    return t.is_float or bool(r.low > whole.low or r.high < whole.high)


def _of_any_call(r: Interval) -> Interval:
    """Replace symbolic ends by numbers, which are bounds for any values of params."""
    return Interval(_extreme(r.low).low, _extreme(r.high).high)


def _extreme(end: Scalar) -> Interval:
    if not isinstance(end, Expr):
        return Interval(end, end)
    params = {v.name: type_range(v.dtype) for v in walk(end) if isinstance(v, Var) and v.dtype is not INDEX}
    return interval(end, params)
