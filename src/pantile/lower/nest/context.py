"""The context in which a statement is being built: the open loops around it, the values of the names in scope, and
their bounds.

Loops are open, and lets bound, only while their bodies are built (`with context.loop(...)`). Regions stay known, since
the statements that follow a stage are built before it and refer to the region where it was computed.

Some extents are never negative although constant bounds do not show it: those of blocks that end with their loop, and
those of sliding stages. From these follow others, such as the extent of what a stencil reads of such a block.

    known:      min(8*k + 7, n - 1) - 8*k + 1 >= 0           the rows of a block, the last one being shorter
    follows:    min(8*k + 7, n - 1)//2 - 4*k + 2 >= 0        the rows that it reads of a stage half as high
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ...analysis.interval import Interval
from ...dataclass import dataclass
from ...expr.linear import Facts, linear, simplify
from ...expr.nodes import Const, Expr, Op, Var, const
from ...expr.types import INDEX
from ...expr.visit import Key, depends, substitute
from ..conditions import Bounds
from ..coverage import Range
from .early import OpenLoop
from .required import Required

_EARLIEST = 1 << 20  # most iterations by which a loop may start early


class BuildContext:
    """The current context, which changes as statements are built. `facts` has the facts that hold in all calls."""

    def __init__(self, facts: Facts, required: Required) -> None:
        self.facts = facts.copy()
        self.required = required
        self.extents = Extents(self.facts)
        self.open: list[OpenLoop] = []  # outermost first
        self.values: dict[str, Expr] = {}  # lets and ends of regions -> their values in loop variables
        self._ends: dict[str, Expr] = {}  # the subset of values that are ends of regions
        # Variable of each loop around -> number of open loops down to it. Loops of one iteration, and loops that a
        # peeled tail does not have, are not open, but stages may still be stored and computed there.
        self._bodies: dict[str, int] = {}
        self._floor = 0  # stages do not slide along open loops below this depth
        self._left_over: frozenset[str] = frozenset()  # loops of which only the tail is being built

    # Entering and leaving

    @contextmanager
    def loop(self, loop: OpenLoop, low: Expr, extent: Expr, may_start_early: bool) -> Iterator[None]:
        """Enter a loop. How early it starts is known only when its body has been built."""
        name = loop.var.name
        last, first = self.facts.upper(simplify(low + extent - 1, self.facts)), self.facts.lower(low)
        self.facts.bounds[name] = first - _EARLIEST if may_start_early and first is not None else first, last
        self.open.append(loop)
        yield
        self.open.pop()

    @contextmanager
    def body_of(self, variable: str) -> Iterator[None]:
        """Enter the body of a loop, where stages are computed and stored. The loop need not be open."""
        self._bodies[variable] = len(self.open)
        yield
        del self._bodies[variable]

    @contextmanager
    def lets(self, lets: Iterable[tuple[str, Expr]]) -> Iterator[None]:
        """Enter lets, each in terms of the ones before it. Another version may define some of the same names."""
        bound = []
        for name, value in lets:
            self.values[name] = self.in_loop_variables(value)
            bound.append(name)
        yield
        for name in bound:
            del self.values[name]

    @contextmanager
    def left_over(self, loops: Iterable[str]) -> Iterator[None]:
        """Enter the tail of a split, which does not have these loops."""
        before, self._left_over = self._left_over, self._left_over.union(loops)
        with self.extents.of_a_version():
            yield
        self._left_over = before

    @contextmanager
    def version(self, bounds: Bounds) -> Iterator[None]:
        """Enter code for a special case, which has its own bounds."""
        before, self.facts.bounds = self.facts.bounds, bounds
        with self.extents.of_a_version():
            yield
        self.facts.bounds = before

    @contextmanager
    def no_sliding_outside(self) -> Iterator[None]:
        """Enter one of several versions of a statement. The versions could not agree on how early a loop around them
        starts."""
        before, self._floor = self._floor, len(self.open)
        yield
        self._floor = before

    def computes(self, low: Var, high: Var, side: Interval) -> None:
        """Note the region of a stage along one dim."""
        for end, value in ((low.name, side.low), (high.name, side.high)):
            self._ends[end] = self.values[end] = value
            self.facts.bounds[end] = (self.facts.lower(value), self.facts.upper(value))

    def forget(self, variables: Iterable[str]) -> None:
        """Forget the bounds of these loops, since other versions of them may have been built before."""
        for name in variables:
            self.facts.bounds.pop(name, None)

    # Queries: position

    @property
    def is_left_over(self) -> bool:
        """Whether the statement being built is in the tail of a split."""
        return bool(self._left_over)

    @property
    def variables(self) -> frozenset[str]:
        """The variables of loops that are visible only in part: the open loops, and loops of which only the tail is
        built."""
        return self._left_over.union(loop.var.name for loop in self.open)

    def is_in_body_of(self, variable: str) -> bool:
        return variable in self._bodies

    def loops_inside(self, variable: str | None) -> list[OpenLoop]:
        """The open loops inside of a loop (of all if None) along which stages may slide, outermost first."""
        depth = 0 if variable is None else self._bodies[variable]
        return self.open[max(depth, self._floor) :]

    def moving(self) -> Callable[[str], bool]:
        """Return a predicate: whether a name's value depends on the iteration of a loop around."""
        loops = {name for loop in self.open for name in (loop.var.name, *loop.parts)}

        def moves(name: str) -> bool:
            return name in loops or name in self._bodies or name in self.values and depends(self.values[name], loops)

        return moves

    # Queries: facts

    def in_loop_variables(self, e: Expr) -> Expr:
        """Return an expression in terms of loop variables, simplified, without the names of lets and regions."""
        return simplify(substitute(e, self.values), self.facts)

    def region(self, low: Var, high: Var) -> Range:
        """The range of a dim of a region: constants where these are known, otherwise names."""
        extent = simplify(self._ends[high.name] - self._ends[low.name] + 1, self.facts)
        first = self._ends[low.name] if isinstance(self._ends[low.name], Const) else low
        return Range(first, simplify(first + extent - 1, self.facts) if isinstance(extent, Const) else high)

    def has_values(self, low: Var, high: Var) -> bool:
        """Whether a region is certainly not empty along a dim."""
        return self.is_positive(self._ends[high.name] - self._ends[low.name] + 1)

    def has_points(self, extent: Expr) -> bool:
        """Whether a range whose extent is given in loop variables and lets is certainly not empty."""
        return self.is_positive(self.in_loop_variables(extent))

    def is_positive(self, extent: Expr) -> bool:
        return self.facts.ge(extent, const(1, INDEX)) or self.required.is_positive(extent)

    def never_negative(self, extent: Expr) -> bool:
        is_known = self.facts.ge(extent, const(0, INDEX)) or self.extents.follows(extent)
        return is_known or self.required.is_positive(extent + 1)

    def at_least(self, extent: Expr, n: int) -> bool:
        """Whether an extent in terms of regions is certainly at least `n`."""
        return self.facts.ge(substitute(extent, self._ends), const(n, INDEX))

    def certainly_runs(self, extent: Expr) -> bool:
        """Whether a loop whose extent is given in terms of regions certainly has iterations."""
        return self.at_least(extent, 1) or self.required.is_positive(substitute(extent, self._ends))


@dataclass(frozen=True)
class _TermBound:
    """A symbolic bound of a term for which no constant is a good bound, such as min(8*k + 7, n - 1)."""

    term: Key
    above: bool
    value: Expr


class Extents:
    """Extents known not to be negative, from which the same is derived for others."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.bounds: list[_TermBound] = []

    def learn(self, extent: Expr) -> None:
        """Note that an extent is not negative."""
        for k, (term, times) in linear(extent).terms.items():
            if isinstance(term, Op) and times in (1, -1):
                other = term - extent if times == 1 else term + extent
                self.bounds.append(_TermBound(k, times == -1, simplify(other, self.facts)))

    @contextmanager
    def of_a_version(self) -> Iterator[None]:
        """At the end of code for a special case, forget what was learned about it."""
        count = len(self.bounds)
        yield
        del self.bounds[count:]

    def follows(self, extent: Expr) -> bool:
        """Whether an extent is not negative because one of the noted extents is not."""
        zero = const(0, INDEX)
        for bound in self.bounds:
            least = _bounded(extent, False, bound)
            if least is not extent and self.facts.ge(simplify(least, self.facts), zero):
                return True
        return False


def _bounded(e: Expr, above: bool, bound: _TermBound) -> Expr:
    """A bound of `e`. It is `e` itself unless the bounded term occurs in it or in a quotient."""
    result = e
    for k, (term, times) in linear(e).terms.items():
        side = above == (times > 0)
        if k == bound.term and side == bound.above:
            result = result + (bound.value - term) * times
        elif isinstance(term, Op) and term.op == "floordiv" and isinstance(d := term.args[1], Const) and d.value > 0:
            inner = _bounded(term.args[0], side, bound)
            if inner is not term.args[0]:
                result = result + (inner // term.args[1] - term) * times
    return result
