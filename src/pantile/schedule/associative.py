"""Updates whose terms may be combined in parts: how a part starts and continues, and how two parts combine.

s[] = s[] + e                                   parts begin with 0; s = s + part
at[], v[] = where e < v[]: r, e                 parts begin as the search does; the smaller value wins, and of two
                                                equal ones the first
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from ..dataclass import dataclass
from ..expr import build
from ..expr.linear import linear
from ..expr.nodes import Cast, Expr, Load, Op, Var, neutral, op
from ..expr.visit import loaded, names, same, substitute
from ..graph.nodes import Definition, ReductionDim, Stage
from .updates import accumulation, constant

Values = tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Associative:
    """An update as an associative reduction, which can be computed in parts."""

    start: Values  # the values of a part without terms
    step: Callable[[Values, Mapping[str, Expr]], Values]  # adds one term, with loops renamed
    combine: Callable[[Values, Values], Values]  # adds one part to the result so far
    is_exact: bool  # whether every division into parts gives bitwise the same result


def associative(stage: Stage, update: Definition) -> Associative | None:
    """The update as an associative reduction, or None if it is not one."""
    return _fold(stage, update) or _search(stage, update)


def _fold(stage: Stage, update: Definition) -> Associative | None:
    """Recognize sums, products, minima and maxima, and bitwise reductions."""
    terms = accumulation(stage, update)
    if terms is None:
        return None
    return Associative(
        start=tuple(neutral(t.op, t.dtype) for t in terms),
        step=lambda now, renamed: tuple(
            build.binary(t.op, v, substitute(t.term, renamed)) for t, v in zip(terms, now, strict=True)
        ),
        combine=lambda whole, part: tuple(op(t.op, *pair) for t, *pair in zip(terms, whole, part, strict=True)),
        is_exact=all(t.is_exact for t in terms),
    )


def _search(stage: Stage, update: Definition) -> Associative | None:
    """Recognize pt.argmin and pt.argmax: the coordinates of the best value so far, and that value. Parts begin with the
    worst value, which replaces no point: if two parts have equal values, both have seen a point."""
    own = tuple(Load(t, 1, b, update.indices) for t, b in zip(stage.dtypes, stage.buffers, strict=True))
    choices = [v.args for v in update.values if isinstance(v, Op) and v.op == "select"]
    if len(own) < 2 or len(choices) < len(own) or len(stage.updates) > 1:
        return None
    better, (*places, value) = choices[-1][0], (new for _, new, _ in choices)
    if not isinstance(better, Op) or better.op not in _WORST:
        return None
    others = [*update.indices, *places, value, *([] if update.condition is None else [update.condition])]
    if not (
        same(better, op(better.op, value, own[-1]))
        and all(same(now, better) and same(old, o) for (now, _, old), o in zip(choices, own, strict=True))
        and not any(loaded(e).intersection(stage.buffers) for e in others)
        and same(stage.pure.values[-1], neutral(_WORST[better.op], value.dtype))
        and _ascend(places, update.domain)
    ):
        return None
    return Associative(
        start=stage.pure.values,
        step=lambda now, renamed: _take_better(better.op, now, tuple(substitute(e, renamed) for e in (*places, value))),
        combine=lambda whole, part: _best(better.op, whole, part),
        is_exact=True,
    )


_WORST = {"lt": "min", "gt": "max"}  # comparison -> the operation to which the worst value is neutral


def _ascend(places: Sequence[Expr], domain: Sequence[ReductionDim]) -> bool:
    """Whether a definition visits points in lexicographic order of the given coordinates."""
    remaining = list(domain)
    for place in places:
        form = linear(_index(place))
        if any(names(atom) & {r.name for r in domain} and not isinstance(atom, Var) for atom, _ in form.terms.values()):
            return False
        loops = [r for r in domain if form.coefficient(r.name)]
        if remaining[: len(loops)] != loops or not _counts_up([(form.coefficient(r.name), r) for r in loops]):
            return False
        remaining = remaining[len(loops) :]
    return not remaining


def _index(place: Expr) -> Expr:
    """A coordinate without the casts and clamps around it."""
    while isinstance(place, Cast) or (isinstance(place, Op) and place.op == "within"):
        place = place.value if isinstance(place, Cast) else place.args[0]
    return place


def _counts_up(loops: Sequence[tuple[int, ReductionDim]]) -> bool:
    """Whether a linear combination of loops increases with each iteration, like a number made of digits."""
    for (outer, _), (inner, r) in pairwise(loops):
        extent = constant(r.extent)
        if extent is None or outer < inner * extent:
            return False
    return all(times > 0 for times, _ in loops)


def _take_better(better: str, now: Values, new: Values) -> Values:
    """The new point if it is better than the best one so far, otherwise the best one so far."""
    wins = op(better, new[-1], now[-1])
    return tuple(build.select(wins, n, o) for n, o in zip(new, now, strict=True))


def _best(better: str, whole: Values, part: Values) -> Values:
    """The better of two points, or the first one if they are equally good."""
    earlier = _is_before(part[:-1], whole[:-1])
    wins = op(better, part[-1], whole[-1]) | (op("eq", part[-1], whole[-1]) & earlier)
    return tuple(build.select(wins, new, old) for new, old in zip(part, whole, strict=True))


def _is_before(a: Values, b: Values) -> Expr:
    """Whether the coordinates `a` come before `b` in lexicographic order."""
    first = op("lt", a[0], b[0])
    return first if len(a) == 1 else first | (op("eq", a[0], b[0]) & _is_before(a[1:], b[1:]))
