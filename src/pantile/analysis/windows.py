"""Windows of reductions: how their loops move the reads, and how far the windows of adjacent points overlap.

A loop moves along a dim if its only effect is to be added to the dim: in img[y + r.y, x + r.x], r.y moves along y. Then
the term for r.y at y is the term for 0 at y + r.y, so the reduction over the other loops can be shared between them.
"""

from __future__ import annotations

from collections.abc import Collection

from ..dataclass import dataclass
from ..expr.linear import Linear, linear
from ..expr.nodes import Const, Expr, Load, Op, Var, const, coordinate
from ..expr.types import INDEX
from ..expr.visit import key, loaded, names, substitute, transform, walk_loads
from ..graph.nodes import Definition, Graph, Stage


@dataclass(frozen=True, eq=False)
class ShiftedTerm:
    """A term from which a loop was eliminated. Its value at `dim` is that of the original term wherever `base` plus the
    loop equals `dim`."""

    term: Expr
    dim: str
    base: Expr  # the dim, or an expression in which only the dim occurs
    scale: int  # the step of the base per step of the dim


def without_loop(term: Expr, loop: str, dims: Collection[str], loops: Collection[str]) -> ShiftedTerm | None:
    """Eliminate a loop from the term of a reduction, if its only effect is to shift the term along one of the dims."""
    base = _base(term, loop)
    if base is None or not names(base.expr()).isdisjoint(loops):
        return None
    moving = [d for d in dims if d in names(base.expr())]
    if len(moving) != 1:
        return None
    (dim,) = moving
    place = coordinate(f"{dim}'")  # no name of a graph has a prime

    def change(e: Expr) -> Expr | None:
        return _shift_load(e, loop, base, place) if isinstance(e, Load) else None

    moved = transform(term, change)
    if not names(moved).isdisjoint({loop, dim}):
        return None
    at_dim = substitute(moved, {place.name: coordinate(dim)})
    return ShiftedTerm(at_dim, dim, base.expr(), abs(base.coefficient(dim)) or 1)


def _base(term: Expr, loop: str) -> Linear | None:
    """The terms to which the loop is added in the first index in which its coefficient is 1, without constants."""
    for load in walk_loads(term):
        for form in map(linear, load.indices):
            if form.coefficient(loop) == 1:
                return Linear(0, form.without(key(coordinate(loop))).terms)
    return None


def _shift_load(load: Load, loop: str, base: Linear, place: Var) -> Expr | None:
    """Replace base + loop by `place` in the indices of a load. Other indices stay as they are."""
    if not any(loop in names(i) for i in load.indices):
        return None
    indices = []
    for i in load.indices:
        rest = linear(i).plus(base, -1).plus(linear(coordinate(loop)), -1)
        indices.append(i if rest.terms or loop not in names(i) else place + const(rest.constant, INDEX))
    return Load(load.dtype, 1, load.buffer, tuple(indices))


def overlaps(graph: Graph, inlined: Collection[str]) -> dict[str, dict[str, int]]:
    """Stage -> dim -> the number of terms, all with equal weights, of its windows along the dim."""
    windows: dict[str, dict[str, int]] = {}
    for s in graph.stages:
        own = dict.fromkeys(s.dims, 1)
        for d in s.updates:
            own |= _window(s, d)
        for e in (e for d in s.definitions for e in d.loads):
            producer = graph.producer.get(e.buffer)
            if producer is not None and producer is not s and producer.name in inlined:
                for i, dim in zip(e.indices, producer.dims, strict=True):
                    if isinstance(i, Var) and i.name in own:
                        own[i.name] = max(own[i.name], windows[producer.name][dim])
        windows[s.name] = own
    return windows


def _window(s: Stage, d: Definition) -> dict[str, int]:
    """The extents of the window that an update reduces, by dim."""
    term = _term(s, d)
    if term is None:
        return {}
    loops = {r.name: r.extent for r in d.domain}
    window: dict[str, int] = {}
    for loop, extent in loops.items():
        moved = without_loop(term, loop, s.dims, loops.keys() - {loop})
        if moved is not None and isinstance(extent, Const) and isinstance(moved.base, Var):
            window[moved.dim] = int(extent.value)
    return window


def _term(s: Stage, d: Definition) -> Expr | None:
    """The term that an update of one value combines with that value."""
    value = d.values[0]
    if len(d.values) > 1 or not isinstance(value, Op) or value.op not in ("add", "min", "max"):
        return None
    others = [a for a in value.args if s.name not in loaded(a)]
    return others[0] if len(others) == 1 else None
