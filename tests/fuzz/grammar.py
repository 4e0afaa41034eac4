"""Random expressions: the text of terms over the coordinates and sources that are in scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.expr.nodes import FIXED_POINT
from pantile.expr.types import BOOL, FLOAT32, INT32, UINT8, DType, dtype, promote

from .terms import Regime, Term, integer, unit

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

COORDINATE_SIZE = 4096.0
MOST_GROWTH = 4  # how much wider a producer's region may be than the output's, per axis


@dataclass(frozen=True)
class Source:
    """Something to read: a Func that is defined everywhere."""

    name: str
    values: tuple[Term, ...]  # without text
    ndim: int
    growth: int = 1  # how much its region widens what the inputs must give
    table: bool = False  # one-dimensional, small, meant to be indexed by data


@dataclass(frozen=True)
class Scope:
    """What an expression may mention: coordinates (pure and of reductions) and how many of each."""

    pure: tuple[str, ...]
    reduction: tuple[str, ...] = ()
    depth: int = 3
    # Other things in scope, such as a stage's own value in an update.
    extra: tuple[Term, ...] = ()

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.pure, *self.reduction)

    def deeper(self) -> Scope:
        return Scope(self.pure, self.reduction, self.depth - 1, self.extra)


@dataclass
class Grammar:
    """Draws expressions. `sources` and `params` grow as the pipeline does."""

    draw: Draw
    regime: Regime
    palette: tuple[DType, ...]
    transcendental: bool
    sources: list[Source] = field(default_factory=list)
    params: list[Term] = field(default_factory=list)
    extents: list[str] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)  # names of the sources that something reads
    _growth: int = 1  # of the definition being written: the largest of its reads

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def chance(self, percent: int) -> bool:
        """True that often; shrinks towards False."""
        return self.number(0, 99) >= 100 - percent

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
        kind = self.pick(_KINDS_WITH_MATH if self.transcendental else _KINDS)
        return kind(self, scope.deeper())

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
        return found if found.dtype.is_int else self.cast(found, self.pick(_INTS), scope)

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
        if choice <= 5 and self.sources and scope.depth > -2:  # data-dependent indices nest only so far
            return self.read(scope)
        if choice == 6 and scope.extra:
            return self.pick(scope.extra)
        if choice == 7 and self.params:
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
            value = self.pick([0, 1, 2, 3, 7, t.max, t.min, t.max // 3, self.number(max(t.min, -100), 100)])
        else:
            value = self.pick([0.0, 1.0, -2.0, 0.5, 0.1, -3.25, 7.0])
        text = f"pt.cast({t.name!r}, {value!r})"
        return integer(text, t) if not t.is_float else Term(text, t, 8.0)

    # ---- reads

    def source(self) -> Source:
        """Something to read, the latest more often, so that pipelines are deep rather than wide."""
        found = self.pick([*self.sources, *self.sources[-2:] * 2])
        self.consumed.add(found.name)
        return found

    def read(self, scope: Scope) -> Term:
        source = self.source()
        indices = [self.index(scope, source, axis) for axis in range(source.ndim)]
        which = self.number(0, len(source.values) - 1)
        value = source.values[which]
        text = f"{source.name}[{', '.join(indices)}]" + (f"[{which}]" if len(source.values) > 1 else "")
        if source.table and self.chance(40):  # neighbours of what data decides
            text = f"pt.maximum({text}, {source.name}[{indices[0]} + {self.number(1, 3)}])"
        return self.regime.scaled(Term(text, value.dtype, value.size, value.slack))

    def index(self, scope: Scope, source: Source, axis: int) -> str:
        """An index that keeps the region of `source` small."""
        if source.table or not scope.coordinates or self.chance(4):
            return self.data_index(scope)
        # Mostly the coordinate of the same place, so that stencils and pointwise stages prevail.
        v = scope.pure[axis % len(scope.pure)] if scope.pure and self.chance(85) else self.pick(scope.coordinates)
        form, growth = self.pick(_INDEX_FORMS)
        if source.growth * growth > MOST_GROWTH:
            form, growth = "{v} + {c}", 1
        self.grow(source.growth * growth)
        text = form.format(v=v, c=self.number(-2, 3), w=self.pick(scope.coordinates))
        return f"{text} + {self.pick(scope.reduction)}" if scope.reduction and self.chance(60) else text

    def data_index(self, scope: Scope) -> str:
        """An index that depends on data, bounded by a clamp, a mask or a promise."""
        e = self.exact_int(Scope(scope.pure, scope.reduction, min(scope.depth, 2) - 1, scope.extra))
        narrow = self.cast(e, INT32, scope).text
        high = self.pick([1, 3, 7, 15])
        return self.pick([
            f"pt.clamp({narrow}, 0, {high})",
            f"pt.clamp({narrow}, -2, {high})",
            f"pt.within({narrow} & {high}, 0, {high})",
            f"({narrow}) % {high + 1}",
        ])  # fmt: skip

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


# form of an index in {v} (a coordinate), {w} (another) and {c} (a number), and how it widens a region
_INDEX_FORMS = [
    *[("{v}", 1)] * 5, *[("{v} + {c}", 1)] * 5, ("{v} - {c}", 1), ("2*{v} + {c}", 2), ("2*{v}", 2), ("2*{v} + 1", 2),
    ("{v}//2", 1), ("({v} + {c})//2", 1), ("{v}//2 + {c}", 1), ("{v}//3", 1), ("3*{v} - {c}", 3), ("{c} - {v}", 1),
    ("{v} % 4", 1), ("{v} + {w}", 2), ("pt.clamp({v} + {c}, 0, 6)", 1), ("{c}", 1), ("(2*{v} + {c})//3", 1),
]  # fmt: skip
_INTS = [dtype(n) for n in ("int32", "uint8", "int16", "uint16", "int8", "uint32", "int64", "uint64")]


# ---- kinds of expressions, each one function of grammar and scope


def _arithmetic(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.term(scope), g.term(scope), scope)
    symbol = g.pick("+-*")
    text = f"({a.text} {symbol} {b.text})"
    if not t.is_float:
        return integer(text, t)
    if symbol == "*":
        return g.regime.combined(text, t, a.size * b.size, a.size * b.slack + b.size * a.slack)
    return g.regime.combined(text, t, a.size + b.size, a.slack + b.slack)


def _with_number(g: Grammar, scope: Scope) -> Term:
    """A Python number takes the type of what it meets."""
    a = g.term(scope)
    if a.dtype.is_float:
        c = g.pick([2, 3, 0.5, 0.25, -1, 1.5])
        text, size = f"({a.text} * {c!r})", abs(c)
        return g.regime.combined(text, a.dtype, a.size * size, a.slack * size)
    if a.dtype.is_bool:
        return integer(f"({a.text} + {g.number(0, 3)})", INT32)
    c = g.number(1, 100)
    return integer(g.pick([f"({a.text} + {c})", f"({c} - {a.text})", f"({a.text} * {c})"]), a.dtype)


def _divide(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    if not g.regime.tame:
        b = g.term(scope)
        a, b, t = g.unified(a, b, scope)
        return Term(f"({a.text} / {b.text})", t if t.is_float else FLOAT32)
    if a.dtype.is_bool:
        a = g.cast(a, UINT8, scope)
    c = g.pick([2, 3, 9, 4.0, 7.0])
    t = a.dtype if a.dtype.is_float else FLOAT32
    return g.regime.combined(f"({a.text} / {c!r})", t, a.size / c, a.slack / c)


def _floor_divide(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.exact(scope), g.exact(scope), scope)
    if t.is_float and (g.regime.tame or not (a.exact and b.exact)):
        a, b, t = *(g.cast(e, INT32, scope) for e in (a, b)), INT32
    text = f"({a.text} {g.pick(['//', '%'])} {b.text})"
    return Term(text, t) if t.is_float else integer(text, t)


def _floor_divide_number(g: Grammar, scope: Scope) -> Term:
    a = g.exact_int(scope)
    return integer(f"({a.text} {g.pick(['//', '%'])} {g.pick([1, 2, 3, 7, 8, 100])})", a.dtype)


def _extremum(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.term(scope), g.term(scope), scope)
    text = f"pt.{g.pick(['minimum', 'maximum'])}({a.text}, {b.text})"
    return Term(text, t, max(a.size, b.size), max(a.slack, b.slack)) if t.is_float else integer(text, t)


def _clamp(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    if a.dtype.is_bool:
        a = g.cast(a, UINT8, scope)
    text = f"pt.clamp({a.text}, 0, {g.pick([1, 9, 100])})"
    return Term(text, a.dtype, min(a.size, 100.0), a.slack) if a.dtype.is_float else integer(text, a.dtype)


def _unary(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    if a.dtype.is_bool:
        return integer(f"(~{a.text})", BOOL)
    if a.dtype.is_float:
        return Term(f"{g.pick(['-', 'pt.abs'])}({a.text})", a.dtype, a.size, a.slack)
    return integer(f"{g.pick(['-', 'pt.abs', '~'])}({a.text})", a.dtype)


def _bitwise(g: Grammar, scope: Scope) -> Term:
    a, b = g.exact(scope), g.exact(scope)
    a, b = (g.cast(e, INT32, scope) if e.dtype.is_float else e for e in (a, b))
    if not (a.dtype.is_bool and b.dtype.is_bool):
        a, b, t = g.unified(a, b, scope)
        return integer(f"({a.text} {g.pick('&|^')} {b.text})", t)
    return integer(f"({a.text} {g.pick('&|^')} {b.text})", BOOL)


def _shift(g: Grammar, scope: Scope) -> Term:
    a = g.exact_int(scope)
    amount = g.pick([str(g.number(0, a.dtype.bits - 1)), g.cast(g.exact_int(scope), a.dtype, scope).text])
    return integer(f"({a.text} {g.pick(['<<', '>>'])} {amount})", a.dtype)


def _fixed_point(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.exact_int(scope), g.exact_int(scope), scope)
    name = g.pick(list(FIXED_POINT))
    shift = f", {g.number(0, t.bits - 1)}" if name.endswith("mul_shift") else ""
    return integer(f"pt.{name}({a.text}, {b.text}{shift})", DType("uint", t.bits) if name == "absd" else t)


def _conversion(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    t = g.pick([*g.palette, *_INTS, FLOAT32])
    kind = g.number(0, 5)
    if kind == 0 and a.exact and t.is_int:
        return integer(f"pt.saturating_cast({t.name!r}, {a.text})", t)
    if kind == 1 and a.exact and t.is_int:
        return integer(f"pt.rounding_cast({t.name!r}, {a.text})", t)
    return g.cast(a, t, scope)


def condition(g: Grammar, scope: Scope) -> Term:
    """A comparison, of coordinates more often than not: piecewise definitions over intervals and triangles."""
    if len(scope.coordinates) > 1 and g.chance(20):
        v, w, n = g.pick(scope.coordinates), g.pick(scope.coordinates), g.number(-2, 9)
        return integer(g.pick([f"({v} <= {w} + {n})", f"({v} + {w} < {n})", f"({v} > 2 * {w} - {n})"]), BOOL)
    if scope.coordinates and g.chance(60):
        v = g.pick(scope.coordinates)
        bound = g.pick(g.extents) if g.extents and g.chance(40) else str(g.number(-1, 9))
        low = g.number(-1, 4)
        return integer(g.pick([
            f"({v} < {bound})", f"({v} >= {low})", f"({v} == {low})", f"(({v} >= {low}) & ({v} < {bound} - 1))",
            f"(({v} % 2) == 0)", f"(({v} < {low}) | ({v} > {bound} // 2))", f"~({v} != {low})",
        ]), BOOL)  # fmt: skip
    a, b, _ = g.unified(g.exact(scope), g.exact(scope), scope)
    return integer(f"({a.text} {g.pick(['<', '<=', '>', '>=', '==', '!='])} {b.text})", BOOL)


def _select(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.term(scope), g.term(scope), scope)
    size, slack = max(a.size, b.size), max(a.slack, b.slack)
    if g.chance(30):
        first, second = condition(g, scope), condition(g, scope)
        text = f"pt.case(({first.text}, {a.text}), ({second.text}, {b.text}), otherwise={a.text})"
    else:
        text = f"pt.select({condition(g, scope).text}, {a.text}, {b.text})"
    return Term(text, t, size, slack) if t.is_float else integer(text, t)


def _rounding(g: Grammar, scope: Scope) -> Term:
    a = g.exact(scope)
    a = a if a.dtype.is_float else g.cast(a, g.pick(g.floats()), scope)
    return Term(f"pt.{g.pick(['floor', 'ceil', 'round', 'trunc'])}({a.text})", a.dtype, a.size + 1) if a.exact else a


def _root(g: Grammar, scope: Scope) -> Term:
    a = g.float_term(scope)
    if not g.regime.tame:
        return Term(f"pt.sqrt({a.text})", a.dtype)
    moved = 0.0 if a.exact and g.regime.strict else a.slack + unit(a.dtype) * (a.size + 1)  # by the sum
    return g.regime.combined(f"pt.sqrt(pt.abs({a.text}) + 1)", a.dtype, a.size + 1, moved)


def _lerp(g: Grammar, scope: Scope) -> Term:
    t = g.pick(g.floats())
    a, b = g.float_term(scope, t), g.float_term(scope, t)
    text = f"pt.lerp({a.text}, {b.text}, {g.pick([0.25, 0.5, 0.1])})"
    return g.regime.combined(text, t, 2 * (a.size + b.size), 2 * (a.slack + b.slack), ieee=g.regime.strict)


def _bits(g: Grammar, scope: Scope) -> Term:
    a = g.exact_int(scope)
    other = DType("int" if a.dtype.kind == "uint" else "uint", a.dtype.bits)
    return integer(f"pt.bits({other.name!r}, {a.text})", other)


def _promise(g: Grammar, scope: Scope) -> Term:
    a = g.exact_int(scope)
    return integer(f"pt.within({a.text} & 31, 0, 31)", a.dtype)


# function, text of its tamed argument, bound of its result, bound of its slope
_MATH = [
    ("exp", "pt.clamp({a}, -3, 3)", 20.1, 20.1),
    ("log", "pt.abs({a}) + 1", 100.0, 1.0),
    ("sin", "{a}", 1.0, 1.0),
    ("cos", "{a}", 1.0, 1.0),
    ("tan", "pt.clamp({a}, -1, 1)", 1.6, 3.5),
    ("tanh", "{a}", 1.0, 1.0),
    ("rsqrt", "pt.abs({a}) + 1", 1.0, 0.5),
]


def _transcendental(g: Grammar, scope: Scope) -> Term:
    """Only in the tame regime: each function stays where its slope is bounded."""
    t = g.pick(g.floats())
    a = g.float_term(scope, t)
    moved = a.slack + 2 * unit(t) * (a.size + 1)  # the argument's own arithmetic
    kind = g.number(0, len(_MATH) + 1)
    if kind < len(_MATH):
        name, argument, size, slope = _MATH[kind]
        return g.regime.combined(f"pt.{name}({argument.format(a=a.text)})", t, size, slope * moved, ieee=False)
    b = g.float_term(scope, t)
    moved += b.slack + 2 * unit(t) * (b.size + 1)
    if kind == len(_MATH):
        return g.regime.combined(f"pt.atan2({a.text}, pt.abs({b.text}) + 1)", t, 1.6, moved, ieee=False)
    base, exponent = f"pt.clamp({a.text}, 1, 4)", f"pt.clamp({b.text}, -2, 2)"
    return g.regime.combined(f"pt.pow({base}, {exponent})", t, 16.0, 24 * moved, ieee=False)


_KINDS: list[Callable[[Grammar, Scope], Term]] = [
    *[_arithmetic] * 6, *[_with_number] * 2, _divide, _floor_divide, *[_floor_divide_number] * 2, *[_extremum] * 2,
    *[_clamp] * 2, _unary, _bitwise, _shift, *[_fixed_point] * 2, *[_conversion] * 3, condition, *[_select] * 4,
    _rounding, _root, _lerp, _bits, _promise,
]  # fmt: skip
_KINDS_WITH_MATH = [*_KINDS, *[_transcendental] * 6]
