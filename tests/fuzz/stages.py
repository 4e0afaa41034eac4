"""Random Funcs of every kind. Each function here writes the lines of one and makes it readable by those after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pantile.expr.types import BOOL, INT32, DType

from .grammar import Grammar, Scope, Source, condition
from .terms import Term, integer, unit

_DIMS = {1: ("x",), 2: ("y", "x"), 3: ("y", "x", "c")}
_MOST_POINTS = 1600  # of a reduction over the extents of an input


@dataclass(frozen=True)
class RawInput:
    """An Input, read without a boundary condition only over its own extents."""

    name: str
    dtype: DType
    ndim: int
    size: float


@dataclass
class Writer(Grammar):
    """A grammar that also writes down definitions."""

    lines: list[str] = field(default_factory=list)
    raw: list[RawInput] = field(default_factory=list)
    ranks: tuple[int, ...] = (2,)
    # Funcs that may be outputs, with the shape they need; None: any shape will do.
    outputs: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    _count: int = 0

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def func(self, prefix: str = "f", options: str = "") -> str:
        name = self.fresh(prefix)
        self.lines.append(f"{name} = pt.Func({name!r}{options})")
        return name

    def dims(self) -> tuple[str, ...]:
        return _DIMS[self.pick(self.ranks)]

    def add(self, name: str, *values: Term, ndim: int, table: bool = False) -> None:
        """Make a Func readable."""
        bare = tuple(replace(v, text="") for v in values)
        self.sources.append(Source(name, bare, ndim, self.taken_growth(), table))

    def small_domain(self) -> tuple[str, tuple[str, ...], int]:
        """A domain of constant size: its name, its coordinates, and how many points it has."""
        extents = [self.pick([1, 2, 3, 3, 4, 5]) for _ in range(self.pick([1, 1, 2]))]
        bounds = [f"({self.number(-2, 1)}, {n})" for n in extents]
        name = self.fresh("r")
        named = self.chance(30)
        names = ", names='a b'" if named and len(extents) == 2 else ""
        self.lines.append(f"{name} = pt.RDom({', '.join(bounds)}{names})")
        loops = (f"{name}.a", f"{name}.b") if names else tuple(f"{name}[{k}]" for k in range(len(extents)))
        return name, loops, _product(extents)

    def image_domain(self) -> tuple[str, tuple[str, ...], RawInput]:
        """A domain over the extents of an input."""
        raw = self.pick(self.raw)
        name = self.fresh("r")
        bounds = ", ".join(f"(0, {raw.name}.shape[{k}])" for k in range(raw.ndim))
        self.lines.append(f"{name} = pt.RDom({bounds})")
        return name, tuple(f"{name}[{k}]" for k in range(raw.ndim)), raw

    def restricted(self, name: str, loops: tuple[str, ...], pure: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The same domain, sometimes at some of its points only."""
        if not self.chance(25):
            return name, loops
        where = condition(self, Scope(pure, loops, 1))
        other = self.fresh("r")
        self.lines.append(f"{other} = {name}.where({where.text})")
        return other, tuple(loop.replace(name, other, 1) for loop in loops)


def _product(numbers: list[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


# ---- pure definitions


def pointwise(w: Writer) -> None:
    """Any expression of reads near the pixel: pointwise stages, stencils, resampling, look-ups."""
    dims = w.dims()
    value = w.term(Scope(dims))
    name = w.func()
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    w.add(name, value, ndim=len(dims))
    w.outputs[name] = None


def stencil(w: Writer) -> None:
    """A weighted sum of a source's neighbourhood."""
    source = w.source()
    dims = _DIMS[source.ndim]
    value = source.values[0]
    total: Term | None = None
    for _ in range(w.number(2, 5)):
        place = ", ".join(f"{d} + {w.number(-2, 2)}" for d in dims)
        text = f"{source.name}[{place}]" + ("[0]" if len(source.values) > 1 else "")
        tap = w.regime.scaled(replace(value, text=text))
        tap = w.cast(tap, INT32, Scope(dims)) if tap.dtype.is_bool else tap
        if total is None:
            total = tap
        elif tap.dtype.is_float:
            text = f"({total.text} + {tap.text})"
            total = w.regime.combined(text, tap.dtype, total.size + tap.size, total.slack + tap.slack)
        else:
            total = integer(f"({total.text} + {tap.text})", tap.dtype)
    assert total is not None
    name = w.func("s")
    w.lines.append(f"{name}[{', '.join(dims)}] = {total.text}")
    w._growth = source.growth
    w.add(name, total, ndim=len(dims))
    w.outputs[name] = None


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


def look_up_table(w: Writer) -> None:
    """A small one-dimensional Func, for reads at places that depend on data."""
    value = w.term(Scope(("x",), depth=2))
    name = w.func("lut")
    w.lines.append(f"{name}[x] = {value.text}")
    w.add(name, value, ndim=1, table=True)


def bounded(w: Writer) -> None:
    """A Func with a stated domain, and a boundary condition around it."""
    dims = _DIMS[w.pick([n for n in w.ranks if n < 3] or [2])]
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
    """The same small stencil applied a few times."""
    source = w.source()
    value = source.values[0]
    if source.ndim > 2 or len(source.values) > 1 or source.table or value.dtype.is_bool:
        return pointwise(w)
    dims = _DIMS[source.ndim]
    left, right = (", ".join((*dims[:-1], f"{dims[-1]} {sign} 1")) for sign in "-+")
    halved = "* 0.5" if value.dtype.is_float else "// 2"
    step, result, times = w.fresh("step"), w.fresh("t"), w.number(1, 4)
    w.lines += [
        f"def {step}(u):", f"    v = pt.Func('{result}_v')", f"    v[{', '.join(dims)}] = (u[{left}] + u[{right}]) {halved}",
        "    return v", f"{result} = pt.iterate({source.name}, {step}, times={times})",
    ]  # fmt: skip
    if value.dtype.is_float and w.regime.tame and not (value.exact and w.regime.strict):
        value = replace(value, slack=value.slack + 3 * times * unit(value.dtype) * value.size + 1e-37)
    w._growth = source.growth
    w.add(result, value, ndim=source.ndim)
    w.outputs[result] = None


# ---- reductions


def reduction(w: Writer) -> None:
    """A short form over a small domain."""
    dims = w.dims()
    name, loops, points = w.small_domain()
    whole = name
    name, loops = w.restricted(name, loops, dims)
    value = w.term(Scope(dims, loops, depth=2))
    kind = w.pick(["sum", "sum", "sum", "prod", "min", "max", "any", "all", "argmin", "argmax"])
    if kind in ("any", "all"):
        text = f"pt.{kind}({condition(w, Scope(dims, loops, 1)).text}, over={name})"
        result = (integer(text, BOOL),)
    elif kind in ("argmin", "argmax"):
        value = w.exact(Scope(dims, loops, depth=1))
        value = w.cast(value, INT32, Scope(dims, loops)) if value.dtype.is_bool else value
        text = f"pt.{kind}({value.text}, over={name})"
        result = (*(integer("", INT32) for _ in loops), value)
        if w.regime.tame and value.dtype.is_float and name != whole:
            return reduction(w)  # over no points the value would be infinite
    else:
        result = (_reduced(w, kind, value, name, points),)
        text = result[0].text
        if kind in ("min", "max") and w.regime.tame and value.dtype.is_float and name != whole:
            return reduction(w)
    target = w.func("q")
    after = "" if len(result) > 1 else w.pick(["", "", " + 1" if not result[0].dtype.is_bool else ""])
    if after:
        result = (_plus_one(w, result[0]),)
        text = result[0].text
    w.lines.append(f"{target}[{', '.join(dims)}] = {text}")
    w.add(target, *result, ndim=len(dims))
    w.outputs[target] = None


def _plus_one(w: Writer, e: Term) -> Term:
    text = f"({e.text} + 1)"
    return w.regime.combined(text, e.dtype, e.size + 1, e.slack) if e.dtype.is_float else integer(text, e.dtype)


def _reduced(w: Writer, kind: str, value: Term, domain: str, points: int) -> Term:
    t = value.dtype
    if kind in ("min", "max"):
        return replace(value, text=f"pt.{kind}({value.text}, over={domain})")
    if not t.is_float:
        wide = INT32 if t.is_bool else DType(t.kind, max(32, t.bits))
        return integer(f"pt.{kind}({value.text}, over={domain})", wide)
    value = _small_enough(w, value, kind, points)
    text = f"pt.{kind}({value.text}, over={domain})"
    size = 1.0 if kind == "prod" else value.size * points
    return accumulated(w, text, t, size, value.slack * points, points)


def accumulated(w: Writer, text: str, t: DType, size: float, slack: float, points: int) -> Term:
    """`points` float operations one after the other, whose results never exceed `size`."""
    if w.regime.tame and (slack or not w.regime.strict):
        slack += points * unit(t) * size
    return w.regime.combined(text, t, size, slack)


def _small_enough(w: Writer, value: Term, kind: str, points: int) -> Term:
    """Scaled so that all partial results stay finite in its type."""
    if not w.regime.tame:
        return value
    if kind == "prod":
        return Term(f"pt.clamp({value.text}, -1, 1)", value.dtype, 1.0, value.slack)
    if points * value.size <= 2e4:
        return value
    factor = 2.0**-10
    return _small_enough(w, Term(f"({value.text} * {factor})", value.dtype, value.size * factor, value.slack * factor + (1e-30 if value.slack else 0)), kind, points)


def over_image(w: Writer) -> None:
    """A reduction over a whole input, to no or one dim."""
    dims = w.pick([("x",), ("x",), ("y",)])
    name, loops, raw = w.image_domain()
    own = Term(f"{raw.name}[{', '.join(loops)}]", raw.dtype, raw.size)
    name, loops = w.restricted(name, loops, dims)
    value = w.term(Scope(dims, loops, depth=1, extra=(own,) * 2))
    target = w.func("g")
    result = _reduced(w, w.pick(["sum", "sum", "max", "min"]) if not (value.dtype.is_float and w.regime.tame) else "sum", value, name, _MOST_POINTS)
    w.lines.append(f"{target}[{', '.join(dims)}] = {result.text}")
    w.add(target, result, ndim=1)
    w.outputs[target] = None


# ---- updates


def updated(w: Writer) -> None:
    """A pure definition and one to three updates of it."""
    dims = w.dims()
    t = w.pick([t for t in w.palette if not t.is_bool] or [INT32])
    value = w.of_type(Scope(dims, depth=1), t)
    name = w.func("u")
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    confined = True
    for _ in range(w.number(1, 3)):
        kind = w.pick([_update_in_place, _update_over, _update_over, _update_line, _scatter, _scan, _scan])
        value = kind(w, name, dims, value)
        confined = confined and kind in (_update_in_place, _update_over)
    w.add(name, value, ndim=len(dims))
    if confined:
        w.outputs[name] = None


def _update_in_place(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    at = f"{name}[{', '.join(dims)}]"
    new = w.of_type(Scope(dims, depth=2, extra=(w.regime.scaled(replace(old, text=at)),) * 3), old.dtype)
    w.lines.append(f"{at} = {new.text}")
    return new


def _update_over(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """f[y, x] op= e(r)."""
    domain, loops, points = w.small_domain()
    domain, loops = w.restricted(domain, loops, dims)
    e = w.of_type(Scope(dims, loops, depth=2), old.dtype)
    e = _small_enough(w, e, "sum", points) if e.dtype.is_float else e
    text, new = _accumulate(w, f"{name}[{', '.join(dims)}]", loops[0], old, e, points)
    w.lines.append(text)
    return new


def _accumulate(w: Writer, at: str, anchor: str, old: Term, e: Term, points: int) -> tuple[str, Term]:
    """A line that adds (or the like) `e` at a place, with a loop of its domain mentioned."""
    e = replace(e, text=f"{e.text} + pt.cast({e.dtype.name!r}, {anchor})", size=e.size + 8) if not e.dtype.is_float else e
    if e.dtype.is_float:
        mentioned = f"pt.select({anchor} > 1, {e.text}, pt.cast({e.dtype.name!r}, 0.5))"
        size, slack = old.size + points * max(e.size, 0.5), old.slack + points * e.slack
        return f"{at} += {mentioned}", _unscaled(accumulated(w, "", old.dtype, size, slack, points), size)
    line = w.pick([f"{at} += {e.text}", f"{at} = pt.maximum({at}, {e.text})", f"{at} = {at} ^ ({e.text})",
                   f"{at} = {at} * 3 - ({e.text})", f"{at} -= {e.text}"])  # fmt: skip
    return line, old


def _unscaled(e: Term, size: float) -> Term:
    """The term of a Func's value, which nothing scales after the update has written it."""
    factor = size / e.size if e.size and e.size < size else 1.0
    return replace(e, text="", size=max(size, e.size), slack=e.slack * factor)


def _update_line(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """One line of constant position, from its neighbour."""
    axis, place = w.number(0, len(dims) - 1), w.number(-1, 4)
    there = [*dims[:axis], str(place), *dims[axis + 1 :]]
    beside = [*dims[:axis], str(place + w.pick([-1, 1])), *dims[axis + 1 :]]
    own = w.regime.scaled(replace(old, text=f"{name}[{', '.join(beside)}]"))
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    new = w.of_type(Scope(rest, depth=1, extra=(own,) * 3), old.dtype)
    w.lines.append(f"{name}[{', '.join(there)}] = {new.text}")
    return _either(old, new)


def _either(a: Term, b: Term) -> Term:
    return replace(a, size=max(a.size, b.size), slack=max(a.slack, b.slack))


def _scatter(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """Writes at places that depend on data, along one axis."""
    axis = w.number(0, len(dims) - 1)
    domain, loops, points = w.small_domain()
    domain, loops = w.restricted(domain, loops, ())
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    index = w.data_index(Scope(rest[:0], loops, depth=1))
    at = f"{name}[{', '.join([*dims[:axis], index, *dims[axis + 1 :]])}]"
    e = w.of_type(Scope(rest, loops, depth=1), old.dtype)
    e = _small_enough(w, e, "sum", points) if e.dtype.is_float else e
    line, new = _accumulate(w, at, loops[0], old, e, points)
    w.lines.append(line)
    return _either(old, new)


def _scan(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """A recurrence along one axis, forwards or backwards."""
    axis = w.number(0, len(dims) - 1)
    length = w.pick(["5", "9", "1", *w.extents[:2]])
    r = w.fresh("r")
    w.lines.append(f"{r} = pt.RDom((1, {length}))")
    here, before = w.pick([(f"{r}[0]", f"{r}[0] - 1"), (f"{length} - {r}[0]", f"{length} - {r}[0] + 1")])
    at, last = (f"{name}[{', '.join([*dims[:axis], p, *dims[axis + 1 :]])}]" for p in (here, before))
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    e = w.of_type(Scope(rest, (f"{r}[0]",), depth=1), old.dtype)
    if not old.dtype.is_float:
        w.lines.append(w.pick([f"{at} = {last} + {e.text}", f"{at} = pt.maximum({last}, {e.text}) * 3 + {at}"]))
        return old
    w.lines.append(f"{at} = {last} * 0.5 + {e.text} * 0.25")
    size = max(old.size, e.size)
    slack = 2 * (old.slack + e.slack)
    if w.regime.tame and (slack or not w.regime.strict):
        slack += 8 * unit(old.dtype) * size + 1e-37
    return replace(old, size=size, slack=max(slack, old.slack)) if w.regime.tame else old


def histogram(w: Writer) -> None:
    """Counts (or sums) per value of an input, over all of it."""
    name, loops, raw = w.image_domain()
    name, loops = w.restricted(name, loops, ())
    own = Term(f"{raw.name}[{', '.join(loops)}]", raw.dtype, raw.size)
    bins = w.pick([1, 5, 16])
    index = w.cast(own, INT32, Scope((), loops)).text
    index = w.pick([f"pt.clamp({index}, 0, {bins - 1})", f"({index}) % {bins}", f"pt.within(({index}) % {bins}, 0, {bins - 1})"])
    target = w.func("h")
    weight = w.pick(["1", w.of_type(Scope((), loops, depth=1), INT32).text])
    w.lines += [f"{target}[x] = {w.pick(['0', 'x'])}", f"{target}[{index}] += {weight}"]
    w.add(target, integer("", INT32), ndim=1, table=True)
    w.outputs[target] = (str(bins),)


KINDS: dict[str, list[Callable[[Writer], None]]] = {
    "pure": [pointwise, pointwise, stencil, stencil, look_up_table, bounded, multi_valued],
    "reductions": [reduction, reduction, over_image, stencil, pointwise],
    "updates": [updated, updated, updated, histogram, pointwise],
    "all": [pointwise, pointwise, pointwise, stencil, stencil, multi_valued, look_up_table, bounded, iterated, reduction,
            reduction, over_image, updated, updated, histogram],
}  # fmt: skip
