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
    """Something to read: a Func that is defined everywhere."""

    name: str
    values: tuple[Term, ...]  # without text
    ndim: int
    growth: int = 1  # how much its region widens what the inputs must give
    table: bool = False  # one-dimensional, small, meant to be indexed by data
    channels: int = 0  # of one that is defined by pixels, where a constant index must be one of these


@dataclass(frozen=True)
class Scope:
    """What an expression may mention: coordinates (pure and of reductions) and how many of each."""

    pure: tuple[str, ...]
    reduction: tuple[str, ...] = ()
    depth: int = 3
    # Other things in scope, such as a stage's own value in an update.
    extra: tuple[Term, ...] = ()
    reads: bool = True

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.pure, *self.reduction)

    def deeper(self) -> Scope:
        return replace(self, depth=self.depth - 1)


SCALAR = Scope((), depth=2, reads=False)  # Params and numbers alone


@dataclass
class Grammar(Drawer, ABC):
    """Draws expressions. `sources` and `params` grow as the pipeline does."""

    regime: Regime
    palette: tuple[DType, ...]
    transcendental: bool
    sources: list[Source] = field(default_factory=list)
    params: list[Term] = field(default_factory=list)
    extents: list[str] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)  # names of the sources that something reads
    _growth: int = 1  # of the definition being written: the largest of its reads

    @abstractmethod
    def kinds(self) -> Sequence[Callable[[Grammar, Scope], Term]]:
        """What an expression may be; `read` among it."""

    @abstractmethod
    def read(self, scope: Scope) -> Term:
        """A read of a source."""

    @abstractmethod
    def undone(self, scope: Scope) -> Term:
        """An integer that would be simple if nothing wrapped."""

    def source(self, least: int = 0) -> Source:
        """Something to read of at least so many dims, the latest more often, so that pipelines are deep rather than
        wide."""
        known = [s for s in self.sources if s.ndim >= least]
        found = self.pick([*known, *known[-2:] * 2])
        self.consumed.add(found.name)
        return found

    def grow(self, growth: int) -> None:
        """The definition being written reads something that widens its region this much."""
        self._growth = max(self._growth, growth)

    def taken_growth(self) -> int:
        """The growth of the definition just written; starts the next."""
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
        """An expression that compiled code computes without any difference."""
        found = self.term(scope)
        return found if found.exact else self.exact_leaf(scope)

    def exact_int(self, scope: Scope) -> Term:
        """An exact integer (not a condition)."""
        found = self.exact(scope)
        return found if found.dtype.is_int else self.cast(found, self.pick(INTS), scope)

    def float_term(self, scope: Scope, t: DType | None = None) -> Term:
        """A float, in `t` if given."""
        found = self.term(scope)
        if t is None and found.dtype.is_float:
            return found
        return self.cast(found, t or self.pick(self.floats()), scope)

    def floats(self) -> list[DType]:
        return [t for t in self.palette if t.is_float] or [FLOAT32]

    def leaf(self, scope: Scope) -> Term:
        """A read, a coordinate, a param or a number."""
        choice = self.number(0, 9)
        if choice <= 5 and self.sources and scope.reads and scope.depth > -2:  # indices of data nest only so far
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
        """`e` in type `t`, if that is continuous there; something else of that type otherwise."""
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
        """Two terms that may meet in an operation, and the type in which they do."""
        if a.dtype.is_bool and b.dtype.is_bool:
            a = self.cast(a, INT32, scope)
        try:
            t = promote(a.dtype, b.dtype)
        except UserError:
            t = a.dtype
            b = self.cast(b, t, scope)
        if t.is_float:  # what overflows half precision is brought down first, which promotion alone would not
            a, b = (e if e.dtype.is_float or self.regime.fits(e, t) else self.cast(e, t, scope) for e in (a, b))
        return a, b, t


def _tamed(e: Term) -> Term:
    if e.dtype.is_int:
        return Term(f"({e.text}) % 100", e.dtype, 100.0)
    return Term(f"pt.clamp({e.text}, -100, 100)", e.dtype, 100.0, e.slack)
