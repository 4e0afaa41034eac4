"""Random reductions in short form: pt.sum(..., over=r) and the like."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import BOOL, INT32, DType, dtype
from pantile.target.mma import MMAS

from .conditions import condition
from .grammar import Scope
from .terms import Term, integer, unit
from .writer import Writer

_MOST_POINTS = 1600  # of a reduction over the extents of an input
_LARGEST_SUM = 2e4  # finite in every float type
_STEP = 2.0**-10  # the factor by which terms are scaled down until sums are small enough


def reduction(w: Writer) -> None:
    """Any reduction over a small domain, perhaps with more arithmetic around it."""
    dims = w.dims()
    whole, all_loops, points = w.small_domain()
    domain, loops = w.restricted(whole, all_loops, dims)
    scope = Scope(dims, loops, depth=2)
    text, values = w.pick(_FORMS)(w, scope, domain, points, domain != whole)
    if len(values) == 1 and not values[0].dtype.is_bool and w.chance(30):
        values = [_plus_one(w, replace(values[0], text=text))]
        text = values[0].text
    _defined(w, "q", dims, text, values)


def _fold(w: Writer, scope: Scope, domain: str, points: int, some: bool) -> tuple[str, list[Term]]:
    """sum, prod, min or max. Without points, a float min is infinite, which the tame regime excludes."""
    value = w.term(scope)
    kinds = ["sum", "sum", "prod", "min", "max"]
    tame_float = w.regime.tame and value.dtype.is_float
    found = reduced(w, w.pick(kinds[:3] if some and tame_float else kinds), value, domain, points)
    return found.text, [found]


def _test(w: Writer, scope: Scope, domain: str, points: int, some: bool) -> tuple[str, list[Term]]:
    text = f"pt.{w.pick(['any', 'all'])}({condition(w, scope.deeper()).text}, over={domain})"
    return text, [integer(text, BOOL)]


def _search(w: Writer, scope: Scope, domain: str, points: int, some: bool) -> tuple[str, list[Term]]:
    """The coordinates at which a value is extreme, and that value."""
    value = w.exact(scope.deeper())
    if value.dtype.is_bool or (some and w.regime.tame and value.dtype.is_float):
        value = w.cast(value, INT32, scope)
    text = f"pt.{w.pick(['argmin', 'argmax'])}({value.text}, over={domain})"
    return text, [*(integer("", INT32) for _ in scope.reduction), value]


_FORMS = [_fold, _fold, _fold, _test, _search]


def _plus_one(w: Writer, e: Term) -> Term:
    text = f"({e.text} + 1)"
    return w.regime.combined(text, e.dtype, e.size + 1, e.slack) if e.dtype.is_float else integer(text, e.dtype)


def reduced(w: Writer, kind: str, value: Term, domain: str, points: int, may_wrap: bool = False) -> Term:
    """The sum, product, minimum or maximum of at most `points` values. A sum that may wrap states its type."""
    t = value.dtype
    if kind in ("min", "max"):
        return replace(value, text=f"pt.{kind}({value.text}, over={domain})")
    if not t.is_float:
        wide = INT32 if t.is_bool else DType(t.kind, max(32, t.bits))
        stated = f", dtype='{wide}'" if may_wrap and kind == "sum" else ""
        return integer(f"pt.{kind}({value.text}, over={domain}{stated})", wide)
    value = small_enough(w, value, kind, points)
    text = f"pt.{kind}({value.text}, over={domain})"
    size = 1.0 if kind == "prod" else value.size * points
    return accumulated(w, text, t, size, value.slack * points, points)


def accumulated(w: Writer, text: str, t: DType, size: float, slack: float, points: int) -> Term:
    """The result of `points` consecutive float operations, none of whose results exceed `size`."""
    if w.regime.tame and (slack or not w.regime.strict):
        slack += points * unit(t) * size
    return w.regime.combined(text, t, size, slack)


def small_enough(w: Writer, value: Term, kind: str, points: int) -> Term:
    """Scale a value so that all partial results of a reduction stay finite in its type."""
    if not w.regime.tame:
        return value
    if kind == "prod":
        return Term(f"pt.clamp({value.text}, -1, 1)", value.dtype, 1.0, value.slack)
    while points * value.size > _LARGEST_SUM:
        slack = value.slack * _STEP + (1e-30 if value.slack else 0)
        value = Term(f"({value.text} * {_STEP})", value.dtype, value.size * _STEP, slack)
    return value


def matrix_product(w: Writer) -> None:
    """The matrix product of two sources."""
    t = w.pick([t for t in w.palette if not t.is_bool] or [INT32])
    points = w.pick([1, 3, 8])
    r = w.fresh("r")
    w.lines.append(f"{r} = pt.RDom((0, {points}))")
    a, b = (_element(w, places, t) for places in (("y", f"{r}[0]"), (f"{r}[0]", "x")))
    if t.is_float:
        product = w.regime.combined(f"({a.text} * {b.text})", t, a.size * b.size, a.size * b.slack + b.size * a.slack)
    else:
        product = integer(f"({a.text} * {b.text})", t)
    result = reduced(w, "sum", product, r, points)
    _defined(w, "p", ("y", "x"), result.text, [result])


def narrow_product(w: Writer) -> None:
    """A matrix product with types that tensor cores support, and a Func that reads it at the same indices."""
    t, wide = (dtype(name) for name in w.pick([*MMAS]))
    points, r = w.pick([16, 32, 40, 33, 5]), w.fresh("r")
    w.lines.append(f"{r} = pt.RDom((0, {points}))")
    a, b = (_small(w, _element(w, places, t)) for places in (("y", f"{r}[0]"), (f"{r}[0]", "x")))
    text = f"(pt.cast({wide.name!r}, {a.text}) * pt.cast({wide.name!r}, {b.text}))"
    size, slack = a.size * b.size, a.size * b.slack + b.size * a.slack
    product = w.regime.combined(text, wide, size, slack) if wide.is_float else integer(text, wide)
    result = reduced(w, "sum", product, r, points)
    name, reader = w.func("p"), w.func("o")
    w.lines += [f"{name}[y, x] = {result.text}", f"{reader}[y, x] = {name}[y, x]"]
    w.add(reader, result, ndim=2)
    w.outputs[reader] = None


def _small(w: Writer, e: Term) -> Term:
    """Clamp a value so that sums of products need no scaling."""
    if not w.regime.tame or not e.dtype.is_float:
        return e
    return Term(f"pt.clamp({e.text}, -8, 8)", e.dtype, 8.0, e.slack)


def _element(w: Writer, places: tuple[str, str], t: DType) -> Term:
    """A read at exactly these indices (and at 0 along further axes), converted to type `t`."""
    source = w.source()
    indices = (*places, "0")[: source.ndim]
    text = f"{source.name}[{', '.join(indices) or '()'}]" + ("[0]" if len(source.values) > 1 else "")
    w.grow(source.growth)
    return w.cast(w.regime.scaled(replace(source.values[0], text=text)), t, Scope(("y", "x")))


def over_image(w: Writer) -> None:
    """A reduction of a whole input, or a search in it, whose result has no dims or one."""
    dims: tuple[str, ...] = w.pick([("x",), ("y",), (), ()])
    name, loops, raw = w.image_domain()
    own = Term(f"{raw.name}[{', '.join(loops)}]", raw.dtype, raw.size)
    name, loops = w.restricted(name, loops, dims)
    scope = Scope(dims, loops, depth=1, extra=(own,) * 2)
    if w.chance(20):
        text, values = _search(w, scope, name, _MOST_POINTS, some=True)
        _defined(w, "g", dims, text, values)
        return
    value = w.term(scope)
    kinds = ["sum"] if value.dtype.is_float and w.regime.tame else ["sum", "sum", "max", "min"]
    result = reduced(w, w.pick(kinds), value, name, _MOST_POINTS, may_wrap=True)
    _defined(w, "g", dims, result.text, [result])


def _defined(w: Writer, prefix: str, dims: tuple[str, ...], text: str, values: list[Term]) -> None:
    """A Func of these values, which may be an output."""
    name = w.func(prefix)
    w.lines.append(f"{name}[{', '.join(dims) or '()'}] = {text}")
    w.add(name, *values, ndim=len(dims))
    w.outputs[name] = None
