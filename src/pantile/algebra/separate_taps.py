"""A stencil that is written out, and whose weights are a column times a row, becomes two such sums.

before:  smooth[y, x] = (a[y - 2, x - 2] + 4*a[y - 2, x - 1] + ... + 36*a[y, x] + ... + a[y + 2, x + 2])//256

after:   smooth_rows[y, x] = a[y, x - 2] + 4*a[y, x - 1] + 6*a[y, x] + 4*a[y, x + 1] + a[y, x + 2]
         smooth[y, x] = (smooth_rows[y - 2, x] + 4*smooth_rows[y - 1, x] + ... + smooth_rows[y + 2, x])//256
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..dataclass import dataclass
from ..errors import InternalError
from ..expr.build import binary, cast
from ..expr.linear import Linear, linear
from ..expr.nodes import Cast, Const, Expr, Load, Op, const, coordinate
from ..expr.types import INDEX, DType
from ..expr.visit import Key, names, transform, walk_values
from ..graph.nodes import Stage
from .change import STORED, Change, RewriteContext
from .weighted_sums import MOST_TAPS, Factors, Number, SeparatedSum, cost, rank_one, unit, weighted_sum

_FEWEST = 9  # terms of a sum that is analysed
_MOST = 1024

Terms = list[tuple[Number, Expr]]  # weights and the expressions that they are multiplied with


def separate_taps(stage: Stage, context: RewriteContext) -> Change | None:
    """The stage of the rows and the stage of the columns; None if that is not cheaper, or not equivalent."""
    if stage.updates or len(stage.dtypes) != 1 or len(stage.pure.loads) < _FEWEST:
        return None
    (value,) = stage.pure.values
    for root in _sums(value):
        if root.dtype.is_float and context.strict:
            continue
        terms = _terms(root)
        for stencil in _stencils(terms):
            change = _change(stage, root, terms, stencil, context)
            if change is not None:
                return change
    return None


# ---- sums


def _is_sum(e: Expr) -> bool:
    return isinstance(e, Op) and e.op in ("add", "sub") and e.dtype is not INDEX


def _sums(value: Expr) -> list[Op]:
    """The sums in an expression that are not terms of other sums."""
    nodes = list(walk_values(value))
    inner = {id(a) for e in nodes if isinstance(e, Op) and _is_sum(e) for a in e.args}
    return [e for e in nodes if isinstance(e, Op) and _is_sum(e) and id(e) not in inner]


def _terms(root: Op) -> Terms:
    """The terms of a sum; empty if parts of it occur in it more than once."""
    terms: Terms = []
    seen: set[int] = set()
    pending: list[tuple[Number, Expr]] = [(1, root)]
    while pending:
        w, e = pending.pop()
        parts = _parts(e)
        if not parts:
            terms.append((w, e))
        elif id(e) in seen or len(terms) > _MOST:
            return []
        else:
            seen.add(id(e))
            pending += [(w * factor, part) for factor, part in reversed(parts)]
    return terms


def _parts(e: Expr) -> Terms:
    if not isinstance(e, Op) or e.dtype.is_bool:
        return []
    if e.op in ("add", "sub"):
        return [(1, e.args[0]), (1 if e.op == "add" else -1, e.args[1])]
    if e.op == "neg":
        return [(-1, e.args[0])]
    if e.op == "mul":
        a, b = e.args if isinstance(e.args[1], Const) else e.args[::-1]
        return [(b.value, a)] if isinstance(b, Const) and not isinstance(a, Const) else []
    return []


# ---- stencils


@dataclass(frozen=True, eq=False)
class _Stencil:
    """Terms that load from one buffer at places that differ along two axes, with the weight at each pair of offsets."""

    sample: Expr  # one of the terms
    bases: tuple[Linear, ...]  # of its indices, without constants
    fixed: tuple[int, ...]  # constants of its indices
    axes: tuple[int, int]
    weights: Mapping[tuple[int, int], Number]
    terms: frozenset[int]  # ids of the expressions

    def offsets(self, k: int) -> list[int]:
        return sorted({place[k] for place in self.weights})

    @property
    def matrix(self) -> list[list[Number]]:
        return [[self.weights.get((i, k), 0) for k in self.offsets(1)] for i in self.offsets(0)]

    def transposed(self) -> _Stencil:
        swapped = {(k, i): w for (i, k), w in self.weights.items()}
        return replace(self, axes=self.axes[::-1], weights=swapped)


def _stencils(terms: Terms) -> Iterator[_Stencil]:
    groups: dict[tuple[object, ...], list[tuple[Number, Expr, tuple[Linear, ...]]]] = {}
    for w, e in terms:
        load = _read(e)
        if load is not None:
            forms = tuple(map(linear, load.indices))
            kind = (_conversions(e), load.buffer, *(frozenset(_shape(f)) for f in forms))
            groups.setdefault(kind, []).append((w, e, forms))
    for group in groups.values():
        stencil = _stencil(group) if len(group) >= _FEWEST else None
        if stencil is not None:
            yield stencil


def _shape(form: Linear) -> Iterator[tuple[Key, int]]:
    return ((k, c) for k, (_, c) in form.terms.items())


def _read(e: Expr) -> Load | None:
    while isinstance(e, Cast):
        e = e.value
    return e if isinstance(e, Load) else None


def _conversions(e: Expr) -> tuple[DType, ...]:
    types = []
    while isinstance(e, Cast):
        types.append(e.dtype)
        e = e.value
    return tuple(types)


def _stencil(group: list[tuple[Number, Expr, tuple[Linear, ...]]]) -> _Stencil | None:
    places = [tuple(f.constant for f in forms) for _, _, forms in group]
    axes = [k for k, along in enumerate(zip(*places, strict=True)) if len(set(along)) > 1]
    if len(axes) != 2:
        return None
    weights: dict[tuple[int, int], Number] = {}
    for (w, _, _), place in zip(group, places, strict=True):
        offsets = (place[axes[0]], place[axes[1]])
        weights[offsets] = weights.get(offsets, 0) + w
    _, sample, forms = group[0]
    ids = frozenset(id(e) for _, e, _ in group)
    return _Stencil(sample, tuple(Linear(0, f.terms) for f in forms), places[0], (axes[0], axes[1]), weights, ids)


# ---- the two sums


def _change(stage: Stage, root: Op, terms: Terms, stencil: _Stencil, context: RewriteContext) -> Change | None:
    separable = _separable(stencil, stage, root.dtype)
    if separable is None:
        return None
    stencil, dim, (down, across) = separable
    before = cost([w for _, w in sorted(stencil.weights.items())], stencil.sample)
    scale = abs(stencil.bases[stencil.axes[0]].coefficient(dim)) or 1
    after = scale * cost(across, stencil.sample) + 2 * sum(w != 0 for w in down)
    if after + STORED >= before:
        return None
    rows, total = SeparatedSum(
        context.fresh(stage.name, "rows"),
        stage,
        root.dtype,
        across,
        [_at(stencil, coordinate(dim), k) for k in stencil.offsets(1)],
        down,
        dim,
        [_plus(stencil.bases[stencil.axes[0]], i) for i in stencil.offsets(0)],
    ).stages()
    rest = [(w, e) for w, e in terms if id(e) not in stencil.terms]
    new = weighted_sum([1, *(w for w, _ in rest)], [total, *(e for _, e in rest)], root.dtype)
    value = transform(stage.pure.values[0], lambda e: new if e is root else None)
    what = f"a sum of {len(down)} x {len(across)} terms, its weights a column times a row"
    return Change((rows, replace(stage, pure=replace(stage.pure, values=(value,)))), what, before, after)


def _separable(stencil: _Stencil, stage: Stage, t: DType) -> tuple[_Stencil, str, Factors] | None:
    """The stencil with its columns along a dim that nothing else depends on, that dim, and the factors."""
    if max(len(stencil.offsets(k)) for k in (0, 1)) > MOST_TAPS:
        return None
    for candidate in (stencil, stencil.transposed()):
        inside = [d for d in stage.dims if d in names(candidate.bases[candidate.axes[0]].expr())]
        others = [b for k, b in enumerate(candidate.bases) if k != candidate.axes[0]]
        if len(inside) == 1 and not any(inside[0] in names(b.expr()) for b in others):
            factors = rank_one(candidate.matrix, unit(t))
            return None if factors is None else (candidate, inside[0], factors)
    return None


def _at(stencil: _Stencil, row: Expr, k: int) -> Expr:
    """The term in a row, at an offset along it."""
    load = _read(stencil.sample)
    if load is None:
        raise InternalError(f"{stencil.sample} is a term of a stencil, but not a load")
    indices = [_plus(base, n) for base, n in zip(stencil.bases, stencil.fixed, strict=True)]
    indices[stencil.axes[0]], indices[stencil.axes[1]] = row, _plus(stencil.bases[stencil.axes[1]], k)
    result: Expr = Load(load.dtype, 1, load.buffer, tuple(indices))
    for t in reversed(_conversions(stencil.sample)):
        result = cast(t, result)
    return result


def _plus(base: Linear, n: int) -> Expr:
    return binary("add", base.expr(), const(n, INDEX))
