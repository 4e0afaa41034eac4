"""Random updates that read their own stage: at other indices, in conditions, and to compute the index to write."""

from __future__ import annotations

from pantile.expr.types import INT32, DType

from .grammar import Scope
from .terms import Term, integer
from .writer import Writer

_MOST = 6  # the maximum number of indices along the axis that an update runs over


def recurrence(w: Writer) -> None:
    """A Func of integers, which show the order of evaluation, with one or two updates."""
    dims = w.dims()
    t = w.pick([t for t in w.palette if t.is_int] or [INT32])
    name = w.func("u")
    w.lines.append(f"{name}[{', '.join(dims)}] = {w.of_type(Scope(dims, depth=1), t).text}")
    for _ in range(w.number(1, 2)):
        _update(w, name, dims, t)
    w.add(name, integer("", t), ndim=len(dims))


def _update(w: Writer, name: str, dims: tuple[str, ...], t: DType) -> None:
    axis = w.number(0, len(dims) - 1)
    rest = tuple(d for k, d in enumerate(dims) if k != axis)
    loops = _domain(w)

    def at(place: str) -> str:
        return f"{name}[{', '.join([*dims[:axis], place, *dims[axis + 1 :]])}]"

    def own() -> Term:
        return integer(at(_place(w, loops)), t)

    if w.chance(50):
        domain = loops[0].split("[")[0]
        other = w.fresh("r")
        w.lines.append(f"{other} = {domain}.where({_condition(w, own(), loops)})")
        loops = tuple(loop.replace(domain, other, 1) for loop in loops)
    place = _place(w, loops)
    e = w.of_type(Scope(rest, loops, depth=1, extra=(own(),)), t)
    new = w.pick(["{o} + {e}", "{h} * 3 - {e}", "pt.maximum({o}, {e}) + {h}", "pt.select({e} > {o}, {h}, {o})"])
    line = new.format(o=own().text, e=e.text, h=at(place))
    if w.chance(25):
        place = f"pt.cast('int32', ({own().text}) & 3)"
    w.lines.append(f"{at(place)} = {line} + pt.cast({t.name!r}, {loops[0]})")


def _domain(w: Writer) -> tuple[str, ...]:
    r, extents = w.fresh("r"), [w.pick([1, 2, 3, _MOST]) for _ in range(w.number(1, 2))]
    w.lines.append(f"{r} = pt.RDom({', '.join(f'({w.number(0, 1)}, {n})' for n in extents)})")
    return tuple(f"{r}[{k}]" for k in range(len(extents)))


def _place(w: Writer, loops: tuple[str, ...]) -> str:
    """An index along the axis of an update."""
    v, c = w.pick(loops), w.number(-2, 2)
    forms = ["{v}", "{v}", "{v} + {c}", "{n} - {v}", "pt.clamp({v} + {c}, 0, {n})", "{v} % 3", "{v} // 2", "{p}"]
    return w.pick(forms).format(v=v, c=c, n=_MOST, p=w.number(0, 2))


def _condition(w: Writer, own: Term, loops: tuple[str, ...]) -> str:
    v = w.pick(loops)
    small = f"pt.cast('int32', {own.text} & 7)"
    return w.pick(
        [f"{v} < {small}", f"{v} + 1 >= {small}", f"{own.text} > {w.number(0, 9)}", f"({small} < 5) & ({v} < 4)"]
    )
