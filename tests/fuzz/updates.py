"""Random update definitions: accumulations, scatters, scans, histograms."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import INT32

from .grammar import Scope
from .indices import data_index
from .reductions import accumulated, small_enough
from .terms import Term, integer, unit
from .writer import Writer


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
    """An update f[y, x] op= e(r)."""
    domain, loops, points = w.small_domain()
    domain, loops = w.restricted(domain, loops, dims)
    e = w.of_type(Scope(dims, loops, depth=2), old.dtype)
    e = small_enough(w, e, "sum", points) if e.dtype.is_float else e
    text, new = accumulated_at(w, f"{name}[{', '.join(dims)}]", loops[0], old, e, points)
    w.lines.append(text)
    return new


def accumulated_at(w: Writer, at: str, anchor: str, old: Term, e: Term, points: int) -> tuple[str, Term]:
    """A line that adds (or the like) `e` to an element, in an expression that mentions a loop of its domain."""
    if e.dtype.is_float:
        mentioned = f"pt.select({anchor} > 1, {e.text}, pt.cast({e.dtype.name!r}, 0.5))"
        size, slack = old.size + points * max(e.size, 0.5), old.slack + points * e.slack
        return f"{at} += {mentioned}", _unscaled(accumulated(w, "", old.dtype, size, slack, points), size)
    e = integer(f"({e.text} + pt.cast({e.dtype.name!r}, {anchor}))", e.dtype)
    line = w.pick([f"{at} += {e.text}", f"{at} = pt.maximum({at}, {e.text})", f"{at} = {at} ^ {e.text}",
                   f"{at} = {at} * 3 - {e.text}", f"{at} -= {e.text}"])  # fmt: skip
    return line, old


def _unscaled(e: Term, size: float) -> Term:
    """The term for a Func's value, which is not scaled after an update has written it."""
    factor = size / e.size if e.size and e.size < size else 1.0
    return replace(e, text="", size=max(size, e.size), slack=e.slack * factor)


def _update_line(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """An update of one line at a constant position, computed from an adjacent line."""
    axis, place = w.number(0, len(dims) - 1), w.number(-1, 4)
    there = [*dims[:axis], str(place), *dims[axis + 1 :]]
    beside = [*dims[:axis], str(place + w.pick([-1, 1])), *dims[axis + 1 :]]
    own = w.regime.scaled(replace(old, text=f"{name}[{', '.join(beside)}]"))
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    new = w.of_type(Scope(rest, depth=1, extra=(own,) * 3), old.dtype)
    w.lines.append(f"{name}[{', '.join(there)}] = {new.text}")
    return either(old, new)


def either(a: Term, b: Term) -> Term:
    return replace(a, size=max(a.size, b.size), slack=max(a.slack, b.slack))


def _scatter(w: Writer, name: str, dims: tuple[str, ...], old: Term) -> Term:
    """Writes at data-dependent indices along one axis."""
    axis = w.number(0, len(dims) - 1)
    domain, loops, points = w.small_domain()
    domain, loops = w.restricted(domain, loops, ())
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    index = data_index(w, Scope(rest[:0], loops, depth=1))
    at = f"{name}[{', '.join([*dims[:axis], index, *dims[axis + 1 :]])}]"
    e = w.of_type(Scope(rest, loops, depth=1), old.dtype)
    e = small_enough(w, e, "sum", points) if e.dtype.is_float else e
    line, new = accumulated_at(w, at, loops[0], old, e, points)
    w.lines.append(line)
    return either(old, new)


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
    """Counts (or sums) per value of an input, over the whole input."""
    name, loops, raw = w.image_domain()
    name, loops = w.restricted(name, loops, ())
    own = Term(f"{raw.name}[{', '.join(loops)}]", raw.dtype, raw.size)
    bins = w.pick([1, 5, 16])
    index = w.cast(own, INT32, Scope((), loops)).text
    wrapped = f"({index}) % {bins}"
    index = w.pick([f"pt.clamp({index}, 0, {bins - 1})", wrapped, f"pt.within({wrapped}, 0, {bins - 1})"])
    target = w.func("h")
    weight = w.pick(["1", w.of_type(Scope((), loops, depth=1), INT32).text])
    w.lines += [f"{target}[x] = {w.pick(['0', 'x'])}", f"{target}[{index}] += {weight}"]
    w.add(target, integer("", INT32), ndim=1, table=True)
    w.outputs[target] = (str(bins if w.chance(60) else w.number(1, bins)),)  # writes outside are dropped
