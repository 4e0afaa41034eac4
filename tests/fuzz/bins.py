"""Random updates of the bins of each point: which of them, data decides; and what reads a few of them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from pantile.expr.types import INT32

from .grammar import Scope
from .reductions import small_enough
from .terms import Term
from .updates import accumulated_at, either
from .writer import DIMS, Writer

_VARS = 'z, v = pt.vars("z v")'
_MOST = 16
_MOST_POINTS = 256  # of a row


def bins(w: Writer) -> None:
    """Points along one or two dims, each with bins along others, and perhaps with channels, in any order."""
    if _VARS not in w.lines:
        w.lines.append(_VARS)
    cells = DIMS[w.pick([1, 2, 2])]
    counts = {d: w.pick([1, 3, 5, 8, _MOST]) for d in w.pick([("z",), ("z",), ("z", "v")])}
    channels = {"c": w.number(1, 3)} if w.chance(30) else {}
    natural = [*cells, *counts, *channels]
    dims = tuple(w.draw(st.permutations(natural))) if w.chance(50) else tuple(natural)
    t = w.pick([t for t in w.palette if not t.is_bool] or [INT32])
    name, value = w.func("h"), w.of_type(Scope(cells, depth=1), t)
    w.lines.append(f"{name}[{', '.join(dims)}] = {value.text}")
    for _ in range(w.pick([1, 1, 2])):
        value = _update(w, name, dims, cells, counts, value)
    if t.is_int and w.chance(25):
        _over_all_bins(w, name, dims, counts)
    if len(dims) in DIMS and w.chance(40):
        w.add(name, value, ndim=len(dims))
        w.outputs[name] = tuple(_extent(w, d, counts | channels) for d in dims)
    else:
        _reader(w, name, dims, cells, counts | channels, value)


def _update(
    w: Writer, name: str, dims: Sequence[str], cells: tuple[str, ...], counts: dict[str, int], old: Term
) -> Term:
    """A term of each iteration of a small domain, or of a row, goes to some bin."""
    domain, loops, points = _row(w) if w.chance(25) else w.small_domain()
    domain, loops = w.restricted(domain, loops, cells)
    scope = Scope(cells, loops, depth=1)
    at = f"{name}[{', '.join(_bin(w, scope, counts[d]) if d in counts else d for d in dims)}]"
    e = w.of_type(scope, old.dtype)
    e = small_enough(w, e, "sum", points) if e.dtype.is_float else e
    line, new = accumulated_at(w, at, loops[0], old, e, points)
    w.lines.append(line)
    return either(old, new)


def _row(w: Writer) -> tuple[str, tuple[str, ...], int]:
    """A domain whose extent is not known when compiling."""
    name = w.fresh("r")
    w.lines.append(f"{name} = pt.RDom((0, {w.pick(w.extents)}))")
    return name, (f"{name}[0]",), _MOST_POINTS


def _bin(w: Writer, scope: Scope, count: int) -> str:
    """One of so many bins, or now and then one that nothing reads."""
    e = w.cast(w.exact_int(scope), INT32, scope).text
    most = count - 1 if w.chance(80) else count + 1
    wrapped = f"({e}) % {most + 1}"
    return w.pick([f"pt.clamp({e}, 0, {most})", wrapped, f"pt.within({wrapped}, 0, {most})", f"pt.clamp({e}, -1, 1)"])


def _over_all_bins(w: Writer, name: str, dims: Sequence[str], counts: dict[str, int]) -> None:
    """An update of each bin, or sums of those before it."""
    r, (d, count) = w.fresh("r"), next(iter(counts.items()))
    at = f"{name}[{', '.join(dims)}]"
    if w.chance(50):
        w.lines.append(f"{at} = {at} * 3")
        return
    here, before = (f"{name}[{', '.join(p if n == d else n for n in dims)}]" for p in (f"{r}[0]", f"{r}[0] - 1"))
    w.lines += [f"{r} = pt.RDom((1, {count}))", f"{here} += {before}"]


def _extent(w: Writer, d: str, counts: dict[str, int]) -> str:
    return str(counts[d]) if d in counts else w.pick([*w.extents, "40", f"{w.pick(w.extents)} + 3"])


def _reader(
    w: Writer, name: str, dims: Sequence[str], cells: tuple[str, ...], counts: dict[str, int], value: Term
) -> None:
    """The larger of two bins near a point."""

    def read() -> str:
        places = {d: f"{d} + {w.number(-1, 2)}" if w.chance(50) else d for d in cells}
        for d, count in counts.items():
            places[d] = str(w.number(0, count - 1)) if w.chance(60) else _bin(w, Scope(cells, depth=1), count)
        return f"{name}[{', '.join(places[d] for d in dims)}]"

    reader = w.func("o")
    w.lines.append(f"{reader}[{', '.join(cells)}] = pt.maximum({read()}, {read()})")
    w.add(reader, value, ndim=len(cells))
    w.outputs[reader] = None
