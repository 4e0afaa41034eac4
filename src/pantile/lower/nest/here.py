"""What is known at the place where a statement is being built: the loops that are open around it, what the names in
scope stand for, and bounds of all of them.

Loops are opened, and lets bound, for as long as what is inside them is built (`with here.loop(...)`). Regions stay
known: what follows a stage is built before it, and refers to where the stage was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ...analysis.interval import Interval
from ...expr.linear import Facts, simplify
from ...expr.nodes import Const, Expr, Var, const
from ...expr.types import INDEX
from ...expr.visit import depends, substitute
from ..coverage import Range
from .assume import Bounds
from .early import OpenLoop
from .extents import Extents
from .required import Required

_EARLIEST = 1 << 20  # no loop starts more iterations early than this


class Here:
    """One place, which moves as statements are built; `facts`: what all calls have in common."""

    def __init__(self, facts: Facts, required: Required) -> None:
        self.facts = facts.copy()
        self.required = required
        self.extents = Extents(self.facts)
        self.open: list[OpenLoop] = []  # outermost first
        self.values: dict[str, Expr] = {}  # lets and ends of regions -> their values in loop variables
        self._ends: dict[str, Expr] = {}  # of these, the ends of regions
        # Variable of each loop whose body this is in -> open loops down to it. Loops of one iteration, and those that a
        # peeled tail does without, are not open, but stages are stored and computed there all the same.
        self._bodies: dict[str, int] = {}
        self._floor = 0  # open loops below this depth are not slid along
        self._left_over: frozenset[str] = frozenset()  # loops of which only what whole blocks leave over is built

    # Moving

    @contextmanager
    def loop(self, loop: OpenLoop, low: Expr, extent: Expr, may_start_early: bool) -> Iterator[None]:
        """Inside a loop. How early it starts is known when its body is built."""
        name = loop.var.name
        last, first = self.facts.upper(simplify(low + extent - 1, self.facts)), self.facts.lower(low)
        self.facts.bounds[name] = first - _EARLIEST if may_start_early and first is not None else first, last
        self.open.append(loop)
        yield
        self.open.pop()

    @contextmanager
    def body_of(self, variable: str) -> Iterator[None]:
        """Where stages are computed and stored at a loop; it need not be open."""
        self._bodies[variable] = len(self.open)
        yield
        del self._bodies[variable]

    @contextmanager
    def lets(self, lets: Iterable[tuple[str, Expr]]) -> Iterator[None]:
        """Inside lets, each in terms of those before; another version may have some of the same names."""
        bound = []
        for name, value in lets:
            self.values[name] = self.in_loop_variables(value)
            bound.append(name)
        yield
        for name in bound:
            del self.values[name]

    @contextmanager
    def left_over(self, loops: Iterable[str]) -> Iterator[None]:
        """Where only what whole blocks leave over is built, without these loops."""
        before, self._left_over = self._left_over, self._left_over.union(loops)
        with self.extents.of_a_version():
            yield
        self._left_over = before

    @contextmanager
    def version(self, bounds: Bounds) -> Iterator[None]:
        """In code for a special case, with bounds of its own."""
        before, self.facts.bounds = self.facts.bounds, bounds
        with self.extents.of_a_version():
            yield
        self.facts.bounds = before

    @contextmanager
    def no_sliding_outside(self) -> Iterator[None]:
        """One of several versions of the same statement is built: they could not agree on when a loop around starts."""
        before, self._floor = self._floor, len(self.open)
        yield
        self._floor = before

    def computes(self, low: Var, high: Var, side: Interval) -> None:
        """A stage is computed over this side of its region."""
        for end, value in ((low.name, side.low), (high.name, side.high)):
            self._ends[end] = self.values[end] = value
            self.facts.bounds[end] = (self.facts.lower(value), self.facts.upper(value))

    def forget(self, variables: Iterable[str]) -> None:
        """Other versions of these loops may have been built before, with other bounds."""
        for name in variables:
            self.facts.bounds.pop(name, None)

    # Asking: where

    @property
    def is_left_over(self) -> bool:
        """Whether what is built is what whole blocks of a loop around leave over."""
        return bool(self._left_over)

    @property
    def variables(self) -> frozenset[str]:
        """Of the loops that are not seen as wholes from here."""
        return self._left_over.union(loop.var.name for loop in self.open)

    def is_in_body_of(self, variable: str) -> bool:
        return variable in self._bodies

    def loops_inside(self, variable: str | None) -> list[OpenLoop]:
        """The open loops inside a loop, or all, that stages may slide along; outermost first."""
        depth = 0 if variable is None else self._bodies[variable]
        return self.open[max(depth, self._floor) :]

    def moving(self) -> Callable[[str], bool]:
        """Tells whether a name's value depends on the iteration of a loop around."""
        loops = {name for loop in self.open for name in (loop.var.name, *loop.parts)}

        def moves(name: str) -> bool:
            return name in loops or name in self._bodies or name in self.values and depends(self.values[name], loops)

        return moves

    # Asking: what holds

    def in_loop_variables(self, e: Expr) -> Expr:
        """An expression without the names of lets and regions, simplified."""
        return simplify(substitute(e, self.values), self.facts)

    def region(self, low: Var, high: Var) -> Range:
        """The range of a dim of a region: constants where they are known, else by name."""
        extent = simplify(self._ends[high.name] - self._ends[low.name] + 1, self.facts)
        first = self._ends[low.name] if isinstance(self._ends[low.name], Const) else low
        return Range(first, simplify(first + extent - 1, self.facts) if isinstance(extent, Const) else high)

    def has_values(self, low: Var, high: Var) -> bool:
        """Whether a region certainly has any along a dim."""
        return self.is_positive(self._ends[high.name] - self._ends[low.name] + 1)

    def has_points(self, extent: Expr) -> bool:
        """Whether a range of an extent in loop variables and lets certainly has any."""
        return self.is_positive(self.in_loop_variables(extent))

    def is_positive(self, extent: Expr) -> bool:
        return self.facts.ge(extent, const(1, INDEX)) or self.required.is_positive(extent)

    def never_negative(self, extent: Expr) -> bool:
        is_known = self.facts.ge(extent, const(0, INDEX)) or self.extents.follows(extent)
        return is_known or self.required.is_positive(extent + 1)

    def at_least(self, extent: Expr, n: int) -> bool:
        """Whether an extent in terms of regions certainly is."""
        return self.facts.ge(substitute(extent, self._ends), const(n, INDEX))

    def certainly_runs(self, extent: Expr) -> bool:
        """Whether a loop of an extent in terms of regions has iterations."""
        return self.at_least(extent, 1) or self.required.is_positive(substitute(extent, self._ends))
