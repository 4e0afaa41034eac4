"""Random reads, at indices that depend on coordinates, Params and data."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import FLOAT32, FLOAT64, INT32, INT64, DType

from .grammar import SCALAR, Grammar, Scope, Source
from .terms import Term

MOST_GROWTH = 4  # the maximum ratio of a producer's region to the output's, per axis

# forms of an index in {v} (a coordinate), {w} (another) and {c} (a number), and the factor by which they widen a region
_FORMS = [
    *[("{v}", 1)] * 5, *[("{v} + {c}", 1)] * 5, ("{v} - {c}", 1), ("2*{v} + {c}", 2), ("2*{v}", 2), ("2*{v} + 1", 2),
    ("{v}//2", 1), ("({v} + {c})//2", 1), ("{v}//2 + {c}", 1), ("{v}//3", 1), ("3*{v} - {c}", 3), ("{c} - {v}", 1),
    ("{v} % 4", 1), ("{v} + {w}", 2), ("pt.clamp({v} + {c}, 0, 6)", 1), ("{c}", 1), ("(2*{v} + {c})//3", 1),
]  # fmt: skip
# Forms with floats that yield the same integer however they are rounded: they are exact, or far from a rounding
# boundary. {p}: a Param.
_FLOAT_FORMS = [(f"pt.cast('int32', {form})", growth) for form, growth in [
    ("pt.floor(({v} + 0.5)/1.5 - 0.5)", 1), ("{v}*0.75 - {c}", 1), ("pt.round(({v} + {c})*0.5)", 1), ("{v}*1.5", 2),
    ("pt.ceil((2*{v} + 1)/3.0 - 0.5)", 1), ("pt.round({v}/1.5)", 1), ("pt.clamp({v}*0.5 + {c}, -1.5, 6.5)", 1),
    ("-({v} + {c})/4.0", 1), ("pt.abs({v}*0.5 - 3)", 1),
]]  # fmt: skip
_SCALED_FORMS = [
    (f"pt.cast('int32', {form})", growth)
    for form, growth in [
        ("pt.floor({v}/{p})", 2),
        ("{v}*{p} + {c}", 4),
        ("pt.ceil(({v} + 0.5)*{p})", 4),
    ]
]


def read(g: Grammar, scope: Scope) -> Term:
    """A read of a source, sometimes of several adjacent elements at a data-dependent index."""
    source = g.source()
    indices = [index(g, scope, source, axis) for axis in range(source.ndim)]
    if source.channels:
        indices[-1] = f"pt.clamp({indices[-1]}, 0, {source.channels - 1})"
    which = g.number(0, len(source.values) - 1)
    value = source.values[which]
    text = f"{source.name}[{', '.join(indices) or '()'}]" + (f"[{which}]" if len(source.values) > 1 else "")
    if source.table and g.chance(40):
        text = f"pt.maximum({text}, {source.name}[{indices[0]} + {g.number(1, 3)}])"
    return g.regime.scaled(Term(text, value.dtype, value.size, value.slack))


def index(g: Grammar, scope: Scope, source: Source, axis: int) -> str:
    """An index that keeps the region of `source` small."""
    if source.table or not scope.coordinates or g.chance(8):
        return g.pick([data_index, scalar_index])(g, scope)
    # Mostly the coordinate of the same axis, so that most stages are stencils or pointwise.
    v = scope.pure[axis % len(scope.pure)] if scope.pure and g.chance(85) else g.pick(scope.coordinates)
    scales = [p.text for p in g.params if p.dtype in (FLOAT32, FLOAT64)]
    form, growth = g.pick([*_FLOAT_FORMS, *(_SCALED_FORMS if scales else [])] if g.chance(6) else _FORMS)
    if source.growth * growth > MOST_GROWTH:
        form, growth = "{v} + {c}", 1
    g.grow(source.growth * growth)
    text = form.format(v=v, c=g.number(-2, 3), w=g.pick(scope.coordinates), p=g.pick(scales) if scales else "")
    if g.chance(4):
        text = f"{text} + {_offset(g, g.pick([_of_data(scope), SCALAR]))}"
    return f"{text} + {g.pick(scope.reduction)}" if scope.reduction and g.chance(60) else text


def data_index(g: Grammar, scope: Scope) -> str:
    """An index that depends on data."""
    return bounded(g, _integer(g, _of_data(scope)), scope)


def _of_data(scope: Scope) -> Scope:
    return replace(scope, depth=min(scope.depth, 2) - 1)


def _offset(g: Grammar, scope: Scope) -> str:
    """An offset for a coordinate: of any type, cast to int32, or of int64, which only clamps keep from wrapping."""
    e = _integer(g, scope)
    return bounded(g, g.cast(e, INT64, scope), scope) if g.chance(50) else f"pt.cast('int32', {bounded(g, e, scope)})"


def scalar_index(g: Grammar, scope: Scope) -> str:
    """An index that depends on Params, with arithmetic that may wrap."""
    return bounded(g, _integer(g, SCALAR), SCALAR)


def _integer(g: Grammar, scope: Scope) -> Term:
    return g.undone(scope.deeper()) if g.chance(25) else g.exact_int(scope)


def bounded(g: Grammar, e: Term, scope: Scope) -> str:
    """Bring an integer into a small range by a clamp, a mask, a remainder, a promise, or its type."""
    if g.chance(50):
        e = g.cast(e, INT32, scope)
    low, high = g.pick([0, -2]) if e.dtype.min else 0, g.pick([1, 3, 7, 15])
    return g.pick(
        [
            f"pt.clamp({e.text}, 0, {high})",
            f"pt.clamp({e.text}, {low}, {high})",
            f"pt.minimum(pt.maximum({e.text}, {low}), {high})",
            f"pt.maximum(pt.minimum({e.text}, {high}), {low})",
            f"pt.within({e.text} & {high}, 0, {high})",
            f"(({e.text}) % {high + 1})",
            f"(({e.text}) >> {e.dtype.bits - 3})",
            _below(e, e.dtype, high),
        ]
    )


def _below(e: Term, t: DType, high: int) -> str:
    """Bound a value from above in the text; its type, or a mask, bounds it from below."""
    return f"pt.minimum({e.text}, {high})" if t.kind == "uint" else f"(({e.text}) & {high})"
