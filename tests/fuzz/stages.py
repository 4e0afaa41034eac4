"""Random Funcs with only a pure definition. Each function writes the lines of one and makes it readable."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import INT32

from .grammar import Scope
from .terms import Term, integer, unit
from .writer import DIMS, Writer


def pointwise(w: Writer) -> None:
    """Any expression of reads near the pixel: pointwise stages, stencils, resampling, lookups."""
    dims = w.dims()
    scope = Scope(dims, depth=w.pick([1, 2, 2, 3]))
    value = w.undone(replace(scope, depth=1)) if w.chance(15) else w.term(scope)
    name = w.func()
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    w.add(name, value, ndim=len(dims))
    w.outputs[name] = None


def pixels(w: Writer) -> None:
    """A Func that defines all channels of a pixel at once."""
    if 3 not in w.ranks:
        pointwise(w)
        return
    dims, t = DIMS[3][:2], w.pick(w.palette)
    channels = [w.of_type(Scope(dims, depth=w.pick([0, 1, 2])), t) for _ in range(w.number(1, 4))]
    name = w.func("q")
    w.lines.append(f"{name}[{', '.join(dims)}] = pt.pixel({', '.join(v.text for v in channels)})")
    value = replace(channels[0], size=max(v.size for v in channels), slack=max(v.slack for v in channels))
    w.add(name, value, ndim=3, channels=len(channels))
    w.outputs[name] = None


def stencil(w: Writer) -> None:
    """A weighted sum over a source's neighborhood."""
    source = w.source(least=1)
    dims = DIMS[source.ndim]
    value = source.values[0]
    taps = []
    for _ in range(w.number(2, 5)):
        place = ", ".join(f"{d} + {w.number(-2, 2)}" for d in dims)
        text = f"{source.name}[{place}]" + ("[0]" if len(source.values) > 1 else "")
        tap = w.regime.scaled(replace(value, text=text))
        taps.append(w.cast(tap, INT32, Scope(dims)) if tap.dtype.is_bool else tap)
    total = taps[0]
    for tap in taps[1:]:
        total = _sum(w, total, tap)
    name = w.func("s")
    w.lines.append(f"{name}[{', '.join(dims)}] = {total.text}")
    w.grow(source.growth)
    w.add(name, total, ndim=len(dims))
    w.outputs[name] = None


def mosaic(w: Writer) -> None:
    """A different read for each parity of the coordinates, as for a Bayer pattern; sometimes of every other pixel."""
    source = w.source(least=1)
    dims = DIMS[source.ndim]
    value = w.regime.scaled(replace(source.values[0], text=""))

    def read() -> str:
        near = w.pick([-1, 0, 1])
        place = ", ".join(w.pick([f"{d} + {near}", f"{d}//2 * 2", f"{d}//2 + {abs(near)}"]) for d in dims)
        text = f"{source.name}[{place}]" + ("[0]" if len(source.values) > 1 else "")
        return w.regime.scaled(replace(source.values[0], text=text)).text

    tested = [w.pick(dims), dims[-1]][: w.number(1, 2)]
    text = read()
    for d in tested:
        text = f"pt.select({d} % 2 == {w.number(0, 1)}, {text}, {read()})"
    name = w.func("p")
    w.lines.append(f"{name}[{', '.join(dims)}] = {text}")
    w.grow(source.growth)
    w.add(name, value, ndim=len(dims))
    w.outputs[name] = None


def _sum(w: Writer, a: Term, b: Term) -> Term:
    text = f"({a.text} + {b.text})"
    if not a.dtype.is_float:
        return integer(text, a.dtype)
    return w.regime.combined(text, a.dtype, a.size + b.size, a.slack + b.slack)


def multi_valued(w: Writer) -> None:
    """Two or three values at each point, perhaps updated together."""
    dims = w.dims()
    values = [w.term(Scope(dims, depth=2)) for _ in range(w.number(2, 3))]
    name = w.func("m")
    at = f"{name}[{', '.join(dims)}]"
    w.lines.append(f"{at} = ({', '.join(v.text for v in values)})")
    if w.chance(40):
        own = tuple(w.regime.scaled(replace(v, text=f"{at}[{k}]")) for k, v in enumerate(values))
        new = [w.of_type(Scope(dims, depth=1, extra=own), v.dtype) for v in values]
        w.lines.append(f"{at} = ({', '.join(v.text for v in new)})")
        values = new
    w.add(name, *values, ndim=len(dims))
    w.outputs[name] = None


def one_of_several(w: Writer) -> None:
    """Several values, perhaps with a recurrence, of which only one is read."""
    dims = w.dims()
    types = [w.pick([t for t in w.palette if t.is_int] or [INT32]) for _ in range(w.number(2, 3))]
    values = [w.of_type(Scope(dims, depth=1), t) for t in types]
    name = w.func("m")
    w.lines.append(f"{name}[{', '.join(dims)}] = ({', '.join(v.text for v in values)})")
    if w.chance(50):
        r = w.fresh("r")
        here, before = (f"{name}[{', '.join((*dims[:-1], i))}]" for i in (f"{r}[0]", f"{r}[0] - 1"))
        new = [f"pt.cast({t.name!r}, {before}[{w.pick([k, k, 0])}]) * 3 + {here}[{k}]" for k, t in enumerate(types)]
        w.lines += [f"{r} = pt.RDom((1, {w.bound(0, 6)}))", f"{here} = ({', '.join(new)})"]
    which = w.number(0, len(types) - 1)
    result, place = w.func("v"), ", ".join((*dims[:-1], f"{dims[-1]} + {w.number(-1, 1)}"))
    w.lines.append(f"{result}[{', '.join(dims)}] = {name}[{place}][{which}]")
    w.add(result, values[which], ndim=len(dims))
    w.outputs[result] = None


def look_up_table(w: Writer) -> None:
    """A small one-dimensional Func, for reads at data-dependent indices."""
    value = w.term(Scope(("x",), depth=2))
    name = w.func("lut")
    w.lines.append(f"{name}[x] = {value.text}")
    w.add(name, value, ndim=1, table=True)


def bounded(w: Writer) -> None:
    """A Func with a stated domain, and a boundary condition around it."""
    dims = DIMS[w.pick([n for n in w.ranks if n < 3] or [2])]
    value = w.term(Scope(dims, depth=2))
    extents = [w.pick([*w.extents[:2], "3", "7", "1"]) for _ in dims]
    low = [w.pick(["0", "0", "-2", "1"]) for _ in dims]
    name = w.func("d", f", domain=({', '.join(f'({a}, {n})' for a, n in zip(low, extents, strict=True))},)")
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    border = w.fresh("b")
    w.lines.append(f"{border} = {boundary(w, name, value, len(dims))}")
    w.add(border, _filled(value), ndim=len(dims))


def boundary(w: Writer, name: str, value: Term, ndim: int) -> str:
    """A boundary condition of an Input or Func, on all axes."""
    kind = w.pick(["edge", "edge", "reflect", "mirror", "wrap", "constant"])
    if kind != "constant":
        return f"pt.{kind}({name})"
    return f"pt.constant({name}, {w.pick([0, 1]) if not value.dtype.is_bool else True})"


def _filled(value: Term) -> Term:
    return replace(value, size=max(value.size, 1.0))


def iterated(w: Writer) -> None:
    """A small stencil, applied a few times."""
    source = w.source(least=1)
    value = source.values[0]
    if source.ndim > 2 or len(source.values) > 1 or source.table or value.dtype.is_bool:
        pointwise(w)
        return
    dims = DIMS[source.ndim]
    left, right = (", ".join((*dims[:-1], f"{dims[-1]} {sign} 1")) for sign in "-+")
    halved = "* 0.5" if value.dtype.is_float else "// 2"
    step, result, times = w.fresh("step"), w.fresh("t"), w.number(1, 4)
    w.lines += [
        f"def {step}(u):",
        f"    v = pt.Func('{result}_v')",
        f"    v[{', '.join(dims)}] = (u[{left}] + u[{right}]) {halved}",
        "    return v",
        f"{result} = pt.iterate({source.name}, {step}, times={times})",
    ]
    if value.dtype.is_float and w.regime.tame and not (value.exact and w.regime.strict):
        value = replace(value, slack=value.slack + 3 * times * unit(value.dtype) * value.size + 1e-37)
    w.grow(source.growth)
    w.add(result, value, ndim=source.ndim)
    w.outputs[result] = None
