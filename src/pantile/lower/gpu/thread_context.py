"""The context of a statement: the thread and lane loops around it, and the values of indices as sums."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import NamedTuple

from ...analysis.interval import Interval, Scope
from ...dataclass import value
from ...expr.build import logical_and
from ...expr.linear import Linear, linear
from ...expr.nodes import Broadcast, Const, Expr, Ramp, Var, var
from ...expr.types import INDEX
from ...expr.visit import depends, loaded, names
from ...ir.nodes import For, If, Let, Stmt
from ...ir.visit import children
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind
from ...target.layout import Digit, Unit
from ..extent_bounds import most
from ..names import of_loop
from .let_sums import Named


class Turn(NamedTuple):
    """The progress of a loop that starts at a different value in each thread."""

    value: Expr
    most: int | None  # upper bound of the trip count, if known


class ThreadLoop(NamedTuple):
    """A loop that threads share: its first iteration, and the digit of a thread's number that it counts."""

    var: str
    min: Linear
    extent: Expr
    digit: Digit | None  # None if the number of threads is not constant
    is_lane: bool

    @property
    def lanes(self) -> int:
        return 1 if self.digit is None else self.digit.size

    @property
    def weight(self) -> int:
        return 1 if self.digit is None else self.digit.weight

    @property
    def span(self) -> int:
        """The number of threads that all iterations of the loop occupy."""
        return self.lanes * self.weight

    @property
    def is_warp(self) -> bool:
        """Whether it counts the threads of a warp, to which the lane loops inside of it are distributed."""
        return not self.is_lane and self.digit == Digit(WARP_SIZE, Unit.THREAD)

    @property
    def is_whole(self) -> bool:
        """Whether it has an iteration for every value of its digit."""
        return isinstance(self.extent, Const) and int(self.extent.value) == self.lanes

    def number(self, lane: Expr, is_outermost: bool) -> Expr:
        """The iteration that a lane has, if it has one."""
        number = lane if self.weight == 1 else lane // self.weight
        return number if is_outermost else number % self.lanes


@value()
class At:
    """The context of a statement. Of the loops around it, those of the given kinds are distributed to threads."""

    named: Named
    scope: Scope
    kinds: Collection[Kind] = (Kind.LANE,)
    loops: tuple[ThreadLoop, ...] = ()  # outermost first
    alike: bool = True  # whether control flow here is uniform
    turns: Mapping[str, Turn] = field(default_factory=dict)  # loops that start at a different value in each thread

    @property
    def variables(self) -> list[str]:
        return [loop.var for loop in self.loops]

    @property
    def all_lanes_work(self) -> bool:
        """Whether every lane of a warp has an iteration of the lane loops around the statement."""
        return bool(self.loops) and math.prod(x.lanes if x.is_whole else 0 for x in self.loops) == WARP_SIZE

    def works(self, lane: Expr) -> Expr:
        """The condition under which a lane has an iteration of the lane loops around the statement; outside of lane
        loops, only the first lane has."""
        if not self.loops:
            return lane < 1
        outer, *inner = self.loops
        some = [outer] if outer.span < WARP_SIZE or not outer.is_whole else []
        some += [x for x in inner if not x.is_whole]
        working = [x.number(lane, x is outer) < x.extent for x in some]
        for x, inside in zip(self.loops, [*(x.span for x in inner), 1], strict=True):
            if inside < x.weight:  # a loop in between has one iteration
                working.append(lane % x.weight < inside)
        return logical_and(*working)

    def inside(self, s: Stmt, scope: Scope) -> At:
        """The context of a statement directly inside of `s`, whose scope is `scope`."""
        if not isinstance(s, (For, If, Let)):
            return self
        alike = self.alike and self.decides_alike(s)
        if isinstance(s, For) and s.kind in self.kinds:
            begin, extent = self.named.form(s.min), self.named.form(s.extent).expr()
            loops = self.loops[:-1] if s.kind is Kind.LANE and self.loops and self.loops[-1].is_warp else self.loops
            loop = ThreadLoop(s.var, begin, s.extent, thread_digit(s, extent), s.kind is Kind.LANE)
            return At(self.named, scope, self.kinds, (*loops, loop), alike, self.turns)
        if isinstance(s, For) and self.differs(s.min):
            turn, count = var(of_loop(s.var, "turn")), most(s.extent, self.scope)
            named = self.named.where(s.var, self.named.form(s.min).plus(linear(turn)))
            scope = {**scope, turn.name: Interval(0, None if count is None else count - 1)}
            turns = {**self.turns, turn.name: Turn(var(s.var) - s.min, count)}
            return At(named, scope, self.kinds, self.loops, alike, turns)
        return At(self.named.inside(s), scope, self.kinds, self.loops, alike, self.turns)

    def decides_alike(self, s: Stmt) -> bool:
        """Whether control flow is uniform in a statement: all threads take the same branch and run the same number of
        iterations.
        """
        decides = s.condition if isinstance(s, If) else s.extent if isinstance(s, For) else None
        return decides is None or not self.differs(decides)

    def differs(self, e: Expr) -> bool:
        """Whether a value may differ between threads."""
        if not self.loops:
            return False
        if e.dtype is INDEX and e.lanes == 1:
            return any(depends(a, self.variables) or loaded(a) for a, _ in self.named.form(e).terms.values())
        return bool(loaded(e)) or any(self.differs(var(n)) for n in names(e))

    def moved(self, index: Expr, low: Linear) -> tuple[dict[str, int], Linear]:
        """How far an index moves with each thread loop, and the rest of its distance from `low`, the start of a
        buffer."""
        rest, steps = self.named.form(first_lane(index)).plus(low, -1), dict[str, int]()
        for loop in reversed(self.loops):
            steps[loop.var] = rest.coefficient(loop.var)
            rest = without(rest, loop.var).plus(loop.min, steps[loop.var])
        return steps, rest


def thread_digit(loop: For, extent: Expr) -> Digit | None:
    """The digit of a thread's number that a loop counts, if it is known."""
    inside = threads_inside(loop)
    if loop.digit is not None or not inside or not isinstance(extent, Const):
        return loop.digit
    return Digit(int(extent.value), Unit.THREAD, inside)


def threads_inside(loop: For) -> int:
    """The number of threads in each iteration of a loop, or 0 if it is not the same in all of them."""

    def of(s: Stmt) -> set[int]:
        if isinstance(s, For) and s.kind in (Kind.WARP, Kind.THREAD):
            return {_constant(s.extent) * threads_inside(s)}
        return set().union(*map(of, children(s)))

    counts = of(loop.body)
    alone = WARP_SIZE if loop.kind is Kind.WARP else 1
    return alone if not counts else counts.pop() if len(counts) == 1 else 0


def _constant(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else 0


def first_lane(index: Expr) -> Expr:
    """The first lane of a vector of indices."""
    if isinstance(index, Ramp):
        return index.base
    return index.value if isinstance(index, Broadcast) else index


def without(form: Linear, *left_out: str) -> Linear:
    """Return a sum without the terms that are the given variables."""
    terms = {k: t for k, t in form.terms.items() if not (isinstance(t[0], Var) and t[0].name in left_out)}
    return Linear(form.constant, terms)
