"""Random windows: sums, minima and maxima of a source's neighborhood, with separable weights or others."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import FLOAT32, INT8, INT16, INT32, UINT8, UINT16, DType

from .grammar import Scope, Source
from .reductions import accumulated, reduced, small_enough
from .stages import pointwise
from .terms import Term, integer
from .writer import DIMS, Writer

_SIDES = [1, 2, 3, 4, 5, 5, 6, 7, 9, 12]
_LARGE = [(16, 12), (16, 12), (32, 6), (40, 8)]  # windows that are halved twice, or three times
_SMALL = [UINT8, UINT8, INT8, UINT16, INT16]


def window(w: Writer) -> None:
    """A window with equal weights: a box sum, a maximum or a minimum, of every pixel or of every other pixel."""
    source = _picture(w)
    if source is None:
        pointwise(w)
        return
    dims, sides = DIMS[source.ndim], [w.pick(_SIDES) for _ in range(2)]
    r = _domain(w, sides)
    steps = [w.pick(["{d}", "{d}", "{d}", "2*{d}", "{d}//2"]) for _ in sides]
    along = [s.format(d=d) for s, d in zip(steps, dims, strict=False)]
    places = [f"{place} + {r}[{k}] + {w.number(-2, 2)}" for k, place in enumerate(along)]
    value = _read(w, source, (*places, *dims[2:]))
    if w.chance(30) and not value.dtype.is_bool:  # a function of the pixel
        value = _square(w, value)
    result = reduced(w, w.pick(["sum", "sum", "max", "min"]), value, r, sides[0] * sides[1])
    _define(w, source, result)


def separable_weights(w: Writer) -> None:
    """A window with a table of weights that are a column times a row; sometimes not quite."""
    source = _picture(w)
    if source is None or source.values[0].dtype.kind == "bfloat":  # NumPy has no bfloat16 for tables
        pointwise(w)
        return
    sides = [w.pick(_SIDES) for _ in range(2)]
    dims, r, value = DIMS[source.ndim], _domain(w, sides), _weighted_type(w, source)
    columns = [[_weight(w, value.dtype) for _ in range(n)] for n in sides]
    table = w.fresh("k")
    w.lines.append(f"{table} = np.outer({columns[0]}, {columns[1]}).astype({value.dtype.name!r})")
    if w.chance(20):
        w.lines.append(f"{table}[0, 0] += 1")
    w.lines.append(f"{table} = pt.table({table})")
    places = [f"{d} + {r}[{k}]" for k, d in enumerate(dims[:2])]
    read = _weighted_type(w, source, (*places, *dims[2:]))
    term = _product(w, read, f"{table}[{r}[0] - {r}_low[0], {r}[1] - {r}_low[1]]", 3.0)
    _define(w, source, reduced(w, "sum", term, r, sides[0] * sides[1]))


def large_window(w: Writer) -> None:
    """A window over small integers whose weights are not separable, with so many rows that some products can be saved.
    Such windows take long to evaluate, so usually it is another kind of window."""
    source = _picture(w) if w.chance(30) else None
    if source is None:
        window(w)
        return
    sides = list(w.pick(_LARGE))
    dims, r, table = DIMS[source.ndim], _domain(w, sides), w.fresh("k")
    w.lines += [
        f"{table} = (np.arange({sides[0] * sides[1]}) * {w.pick([5, 7, 11])} % 23 - 8).reshape({tuple(sides)})",
        f"{table} = pt.table(({table} / 8).astype('float32'))",
    ]
    sign = w.pick(["+", "+", "-"])
    places = [f"{d} {sign} {r}[{k}]" for k, d in enumerate(dims[:2])]
    value = _read(w, source, (*places, *dims[2:]))
    small = value if value.dtype in _SMALL else w.cast(value, w.pick(_SMALL), Scope(dims))
    pixel = w.cast(small, FLOAT32, Scope(dims))
    term = _product(w, pixel, f"{table}[{r}[0] - {r}_low[0], {r}[1] - {r}_low[1]]", 2.0)
    _define(w, source, reduced(w, "sum", term, r, sides[0] * sides[1]))


def separable_taps(w: Writer) -> None:
    """A separable window that is written out tap by tap, perhaps with another term in the sum."""
    source = _picture(w)
    if source is None:
        pointwise(w)
        return
    sides = [w.pick([3, 5, 5]) for _ in range(2)]
    dims, t = DIMS[source.ndim], _weighted_type(w, source).dtype
    columns = [[_weight(w, t) for _ in range(n)] for n in sides]
    taps = [
        _product(w, _weighted_type(w, source, (f"y + {i - 2}", f"x + {k - 1}", *dims[2:])), repr(a * b), 9.0)
        for i, a in enumerate(columns[0])
        for k, b in enumerate(columns[1])
    ]
    if w.chance(30):
        taps.append(_weighted_type(w, source))
    taps = [small_enough(w, tap, "sum", len(taps)) for tap in taps] if t.is_float else taps
    text = f"({' + '.join(tap.text for tap in taps)})"
    if not t.is_float:
        _define(w, source, integer(text, t))
        return
    size, slack = sum(tap.size for tap in taps), sum(tap.slack for tap in taps)
    _define(w, source, accumulated(w, text, t, size, slack, len(taps)))


def _picture(w: Writer) -> Source | None:
    known = [s for s in w.sources if s.ndim >= 2 and not s.table]
    if not known:
        return None
    found: Source = w.pick(known)
    w.consumed.add(found.name)
    return found


def _domain(w: Writer, sides: list[int]) -> str:
    r, low = w.fresh("r"), [w.number(-2, 1) for _ in sides]
    bounds = ", ".join(f"({a}, {n})" for a, n in zip(low, sides, strict=True))
    w.lines += [f"{r} = pt.RDom({bounds})", f"{r}_low = {low}"]
    return r


def _read(w: Writer, source: Source, places: tuple[str, ...]) -> Term:
    text = f"{source.name}[{', '.join(places)}]" + ("[0]" if len(source.values) > 1 else "")
    return w.regime.scaled(replace(source.values[0], text=text))


def _weighted_type(w: Writer, source: Source, places: tuple[str, ...] | None = None) -> Term:
    """A read of a source, in which conditions are converted to numbers."""
    dims = DIMS[source.ndim]
    value = _read(w, source, dims if places is None else places)
    return w.cast(value, INT32, Scope(dims)) if value.dtype.is_bool else value


def _weight(w: Writer, t: DType) -> int | float:
    if t.is_float:
        return w.pick([0.25, 0.5, 1.0, 0.1, -0.3, 0.7, 0.0])
    return w.pick([0, 1, 2, 3, 1, -1 if t.is_signed else 4])


def _product(w: Writer, value: Term, weight: str, size: float) -> Term:
    text = f"({value.text} * {weight})"
    if not value.dtype.is_float:
        return integer(text, value.dtype)
    return w.regime.combined(text, value.dtype, value.size * size, value.slack * size)


def _square(w: Writer, value: Term) -> Term:
    return _product(w, value, value.text, value.size)


def _define(w: Writer, source: Source, value: Term) -> None:
    name, dims = w.func("w"), DIMS[source.ndim]
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    w.grow(source.growth)
    w.add(name, value, ndim=len(dims))
    w.outputs[name] = None
