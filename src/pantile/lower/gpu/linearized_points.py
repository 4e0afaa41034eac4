"""Linearized points: the points of nested loops are numbered, and threads or lanes share them by number.

before:  thread for y in lo..lo + 10:          after:  let y = lo + p // 34
             thread for x in 0..n:                     let x = p % 34
                 g[y, x] = ...                         if x < n: g[y, x] = ...      (n is at most 34)
"""

from __future__ import annotations

import math

from ...analysis.interval import Scope
from ...dataclass import dataclass
from ...expr.nodes import Const, Expr
from ...ir.nodes import For, If, Let, Stmt, Store
from ...ir.visit import children, expressions, rebuild, walk
from ...target.kinds import Kind
from ..extent_bounds import most
from ..footprint import step

_LARGEST = 1 << 20  # most points that are distributed by constant bounds
TripCounts = list[int | None]  # upper bounds for nested loops, outermost first; None if unknown


@dataclass(frozen=True)
class LinearizedPoints:
    """The points of nested loops of a kind: the number of one point, and the largest trip count at each depth."""

    number: Expr
    most: tuple[int, ...]
    kind: Kind

    def of(self, s: Stmt, depth: int = 0) -> Stmt:
        """Return the work of one point.

        Statements in fewer loops, such as the tails of splits, are executed for the first of the points that differ
        only in the other loops.
        """
        if not (isinstance(s, For) and s.kind is self.kind):
            others = math.prod(self.most[depth:])
            if others > 1 and not deepest(s, self.kind) and any(isinstance(i, Store) for i in walk(s)):
                return If(self.number % others < 1, s)
            return rebuild(s, expressions(s), tuple([self.of(c, depth) for c in children(s)]))
        digit, body = self.digit(depth), self.of(s.body, depth + 1)
        own = Let(s.var, s.min + digit, body)
        certain = isinstance(s.extent, Const) and int(s.extent.value) == self.most[depth]
        return own if certain else If(digit < s.extent, own)

    def digit(self, depth: int) -> Expr:
        """The coordinate of the point at a depth, counted from 0."""
        inside, outside = math.prod(self.most[depth + 1 :]), math.prod(self.most[:depth])
        number = self.number if inside == 1 else self.number // inside
        return number if outside == 1 else number % self.most[depth]


def deepest(s: Stmt, kind: Kind = Kind.THREAD) -> int:
    """The nesting depth of loops of a kind."""
    own = int(isinstance(s, For) and s.kind is kind)
    return own + max([deepest(c, kind) for c in children(s)], default=0)


def trip_counts(s: For, scope: Scope) -> TripCounts:
    """Upper bounds of the trip counts of a loop and of the loops of its kind inside of it."""
    bounds: TripCounts = []
    _note(s, scope, s.kind, 0, bounds)
    return bounds


def _note(s: Stmt, scope: Scope, kind: Kind, depth: int, bounds: TripCounts) -> None:
    """Update the upper bounds at each depth."""
    if isinstance(s, For) and s.kind is kind:
        here = _most(s.extent, scope)
        if depth == len(bounds):
            bounds.append(here)
        else:
            before = bounds[depth]
            bounds[depth] = None if here is None or before is None else max(before, here)
        depth += 1
    for c, inner in step(s, scope):
        _note(c, inner, kind, depth, bounds)


def _most(extent: Expr, scope: Scope) -> int | None:
    """An upper bound of a loop's trip count, or None if there is none that is small enough for threads to share the
    points."""
    bound = most(extent, scope)
    return max(bound, 1) if bound is not None and bound <= _LARGEST else None
