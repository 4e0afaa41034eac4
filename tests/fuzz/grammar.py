"""Random expressions: the text of terms over the coordinates and sources that are in scope."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pantile.errors import UserError
from pantile.expr.types import FLOAT32, INT32, UINT8, DType, dtype, promote

from .draws import Drawer
from .extremes import extremes
from .terms import Regime, Term, integer

COORDINATE_SIZE = 4096.0
INTS = [dtype(n) for n in ("int32", "uint8", "int16", "uint16", "int8", "uint32", "int64", "uint64")]


@dataclass(frozen=True)
class Source:
    """A readable Func, which is defined everywhere."""

    name: str
    values: tuple[Term, ...]  # without text
    ndim: int
    growth: int = 1  # the factor by which its region widens the required regions of inputs
    table: bool = False  # one-dimensional, small, meant to be indexed by data
    channels: int = 0  # if it is defined by pixels: a constant index must be below this number


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use: pure coordinates, those of reductions, and other terms."""

    pure: tuple[str, ...]
    reduction: tuple[str, ...] = ()
    depth: int = 3
    # Other terms in scope, such as a stage's own value in an update.
    extra: tuple[Term, ...] = ()
    reads: bool = True

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.pure, *self.reduction)

    def deeper(self) -> Scope:
        return replace(self, depth=self.depth - 1)


SCALAR = Scope((), depth=2, reads=False)  # only Params and numbers


@dataclass
class Grammar(Drawer, ABC):
    """Draws expressions. `sources` and `params` grow as the pipeline does."""

    regime: Regime
    palette: tuple[DType, ...]
    transcendental: bool
    sources: list[Source] = field(default_factory=list)
    params: list[Term] = field(default_factory=list)
    extents: list[str] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)  # names of the sources that are read
    _growth: int = 1  # the largest growth of the reads of the current definition

    @abstractmethod
    def kinds(self) -> Sequence[Callable[[Grammar, Scope], Term]]:
        """The kinds of expressions, including `read`."""

    @abstractmethod
    def read(self, scope: Scope) -> Term:
        """A read of a source."""

    @abstractmethod
    def undone(self, scope: Scope) -> Term:
        """An integer that would be simple if nothing wrapped."""

    def source(self, least: int = 0) -> Source:
        """A source with at least this number of dims. Recent sources are picked more often, so that pipelines are deep
        rather than wide."""
        known = [s for s in self.sources if s.ndim >= least]
        found = self.pick([*known, *known[-2:] * 2])
        self.consumed.add(found.name)
        return found

    def grow(self, growth: int) -> None:
        """Record a read in the current definition that widens its region by this factor."""
        self._growth = max(self._growth, growth)

    def taken_growth(self) -> int:
        """Return the growth of the current definition, and begin the next one."""
        growth, self._growth = self._growth, 1
        return growth

    # ---- terms

    def term(self, scope: Scope) -> Term:
        """Any expression."""
        if scope.depth <= 0 or self.chance(15):
            return self.leaf(scope)
        return self.pick(self.kinds())(self, scope.deeper())

    def of_type(self, scope: Scope, t: DType) -> Term:
        """An expression of type `t`."""
        return self.cast(self.term(scope), t, scope)

    def exact(self, scope: Scope) -> Term:
        """An expression that compiled code computes exactly like the reference."""
        found = self.term(scope)
        return found if found.exact else self.exact_leaf(scope)

    def exact_int(self, scope: Scope) -> Term:
        """An exact integer (not a condition)."""
        found = self.exact(scope)
        return found if found.dtype.is_int else self.cast(found, self.pick(INTS), scope)

    def float_term(self, scope: Scope, t: DType | None = None) -> Term:
        """A float, of type `t` if given."""
        found = self.term(scope)
        if t is None and found.dtype.is_float:
            return found
        return self.cast(found, t or self.pick(self.floats()), scope)

    def floats(self) -> list[DType]:
        return [t for t in self.palette if t.is_float] or [FLOAT32]

    def leaf(self, scope: Scope) -> Term:
        """A read, a coordinate, a param or a number."""
        choice = self.number(0, 9)
        if choice <= 5 and self.sources and scope.reads and scope.depth > -2:  # limits the nesting of data indices
            return self.read(scope)
        if choice == 6 and scope.extra:
            return self.pick(scope.extra)
        if (choice == 7 or not scope.reads) and choice < 8 and self.params:
            return self.pick(self.params)
        if choice == 8 and scope.coordinates:
            return Term(self.pick(scope.coordinates), INT32, COORDINATE_SIZE)
        return self.constant(self.pick(self.palette))

    def exact_leaf(self, scope: Scope) -> Term:
        found = self.leaf(scope)
        if found.exact:
            return found
        if scope.coordinates:
            return Term(self.pick(scope.coordinates), INT32, COORDINATE_SIZE)
        return self.constant(UINT8)

    def constant(self, t: DType) -> Term:
        """A number of an exact type."""
        value: Any
        if t.is_bool:
            value = self.chance(50)
        elif t.is_int:
            value = self.pick([0, 1, 2, 3, 7, self.number(max(t.min, -100), 100), *[self.pick(extremes(t))] * 4])
        else:
            value = self.pick([0.0, 1.0, -2.0, 0.5, 0.1, -3.25, 7.0])
        text = f"pt.cast({t.name!r}, {value!r})"
        return integer(text, t) if not t.is_float else Term(text, t, 8.0)

    # ---- conversions

    def cast(self, e: Term, t: DType, scope: Scope) -> Term:
        """Convert `e` to type `t`, if the conversion is continuous; otherwise, return another expression of that
        type."""
        if e.dtype == t:
            return e
        text = f"pt.cast({t.name!r}, {e.text})"
        if not t.is_float:
            return integer(text, t) if e.exact else self.cast(self.exact_leaf(scope), t, scope)
        if not self.regime.fits(e, t):
            e = _tamed(e)
            text = f"pt.cast({t.name!r}, {e.text})"
        return self.regime.converted(text, t, e)

    def unified(self, a: Term, b: Term, scope: Scope) -> tuple[Term, Term, DType]:
        """Make two terms valid operands of one operation. Return them and their common type."""
        if a.dtype.is_bool and b.dtype.is_bool:
            a = self.cast(a, INT32, scope)
        try:
            t = promote(a.dtype, b.dtype)
        except UserError:
            t = a.dtype
            b = self.cast(b, t, scope)
        if t.is_float:  # terms that overflow half precision are scaled down first, which promotion would not do
            a, b = (e if e.dtype.is_float or self.regime.fits(e, t) else self.cast(e, t, scope) for e in (a, b))
        return a, b, t


def _tamed(e: Term) -> Term:
    if e.dtype.is_int:
        return Term(f"({e.text}) % 100", e.dtype, 100.0)
    return Term(f"pt.clamp({e.text}, -100, 100)", e.dtype, 100.0, e.slack)
