"""The kinds of random expressions. Each is a function of the grammar and the scope."""

from __future__ import annotations

from collections.abc import Callable

from pantile.expr.nodes import FIXED_POINT
from pantile.expr.types import BOOL, FLOAT32, INT32, INT64, UINT8, DType

from .conditions import condition
from .extremes import extremes
from .grammar import INTS, Grammar, Scope
from .terms import Term, integer, unit


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
    """An operation with a Python number, which takes the type of the other operand."""
    a = g.term(scope)
    if a.dtype.is_float:
        c = g.pick([2, 3, 0.5, 0.25, -1, 1.5])
        text, size = f"({a.text} * {c!r})", abs(c)
        return g.regime.combined(text, a.dtype, a.size * size, a.slack * size)
    if a.dtype.is_bool:
        return integer(f"({a.text} + {g.number(0, 3)})", INT32)
    c = g.pick([g.number(1, 100), g.pick(extremes(a.dtype))])
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
    by = g.pick([1, 2, 3, 7, 8, 100, *[g.pick(extremes(a.dtype)) or 1] * 3])
    return integer(f"({a.text} {g.pick(['//', '%'])} {by})", a.dtype)


def _extremum(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.term(scope), g.term(scope), scope)
    text = f"pt.{g.pick(['minimum', 'maximum'])}({a.text}, {b.text})"
    return Term(text, t, max(a.size, b.size), max(a.slack, b.slack)) if t.is_float else integer(text, t)


def _clamp(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    if a.dtype.is_bool:
        a = g.cast(a, UINT8, scope)
    low, high = _range(g, a.dtype)
    text = f"pt.clamp({a.text}, {low}, {high})"
    return Term(text, a.dtype, min(a.size, 100.0), a.slack) if a.dtype.is_float else integer(text, a.dtype)


def _range(g: Grammar, t: DType) -> tuple[int, int]:
    if t.is_float or g.chance(60):
        return 0, g.pick([1, 9, 100])
    ends = sorted(g.pick(extremes(t)) for _ in range(2))
    return ends[0], ends[1]


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


def _popcount(g: Grammar, scope: Scope) -> Term:
    a = g.exact_int(scope)
    return integer(f"pt.popcount({a.text})", a.dtype)


def _fixed_point(g: Grammar, scope: Scope) -> Term:
    a, b, t = g.unified(g.exact_int(scope), g.exact_int(scope), scope)
    name = g.pick(list(FIXED_POINT))
    shift = f", {g.number(0, t.bits - 1)}" if name.endswith("mul_shift") else ""
    return integer(f"pt.{name}({a.text}, {b.text}{shift})", DType("uint", t.bits) if name == "absd" else t)


def undone(g: Grammar, scope: Scope) -> Term:
    """An expression that would be simple if nothing wrapped: a change and its inverse, or a value and a changed one."""
    a = g.exact_int(scope)
    t = a.dtype if g.chance(60) else g.pick([INT32, INT64, INT64])
    a = g.cast(a, t, scope)
    c = g.pick([2, 3, 8, *[g.pick(extremes(t)) or 1] * 3])
    n = g.number(0, t.bits + 1)
    form = g.pick([
        "({a} * {c} // {c})", "({a} // {c} * {c})", "({a} * {c} % {c})", "({a} + {c} - {a})", "({a} << {n} >> {n})",
        "pt.minimum({a}, {a} + {c})", "pt.maximum({a} - {c}, {a})", "pt.maximum({a} * {c}, 0)", "pt.abs({a} - {c})",
        "pt.select({a} + {c} > {a}, {a}, 1)", "pt.select({a} * {c} == {a}, 1, {a})", "pt.minimum({a} + {c}, {c})",
    ])  # fmt: skip
    return integer(form.format(a=a.text, c=c, n=n), t)


def _conversion(g: Grammar, scope: Scope) -> Term:
    a = g.term(scope)
    t = g.pick([*g.palette, *INTS, FLOAT32])
    kind = g.number(0, 5)
    if kind == 0 and a.exact and t.is_int:
        return integer(f"pt.saturating_cast({t.name!r}, {a.text})", t)
    if kind == 1 and a.exact and t.is_int:
        return integer(f"pt.rounding_cast({t.name!r}, {a.text})", t)
    return g.cast(a, t, scope)


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


# function, text of its tamed argument, bound of its result, bound of its derivative
_MATH = [
    ("exp", "pt.clamp({a}, -3, 3)", 20.1, 20.1),
    ("log", "pt.abs({a}) + 1", 100.0, 1.0),
    ("sin", "{a}", 1.0, 1.0),
    ("cos", "{a}", 1.0, 1.0),
    ("tan", "pt.clamp({a}, -1, 1)", 1.6, 3.5),
    ("tanh", "{a}", 1.0, 1.0),
    ("atan", "{a}", 1.6, 1.0),
    ("asin", "pt.clamp({a}, -0.9, 0.9)", 1.2, 2.3),
    ("acos", "pt.clamp({a}, -0.9, 0.9)", 2.7, 2.3),
    ("erf", "{a}", 1.0, 1.2),
    ("rsqrt", "pt.abs({a}) + 1", 1.0, 0.5),
    ("cbrt", "pt.abs({a}) + 1", 100.0, 0.4),
]


def _transcendental(g: Grammar, scope: Scope) -> Term:
    """A transcendental function, only in the tame regime: arguments stay where the derivative is bounded."""
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


KINDS: list[Callable[[Grammar, Scope], Term]] = [
    *[_arithmetic] * 6, *[_with_number] * 2, _divide, _floor_divide, *[_floor_divide_number] * 2, *[_extremum] * 2,
    *[_clamp] * 2, _unary, _bitwise, _shift, _popcount, *[_fixed_point] * 2, *[undone] * 3, *[_conversion] * 3,
    condition, *[_select] * 4, _rounding, _root, _lerp, _bits, _promise,
]  # fmt: skip
KINDS_WITH_MATH = [*KINDS, *[_transcendental] * 6]
