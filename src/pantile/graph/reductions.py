"""A reduction as a stage: its pure definition is the neutral value, its update combines one point more.

    total = sum(value, over=r)      total[y, x] = 0
                                    total[y, x] = total[y, x] + value      over r

argmin and argmax carry the coordinates of the best point beside its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..dataclass import dataclass
from ..errors import Location
from ..expr.build import binary, cast, maximum, minimum, select
from ..expr.nodes import Expr, Load, Var, const
from ..expr.types import INT32, DType
from .nodes import Definition, ReductionDim, Stage


def _neutral_min(t: DType) -> Expr:
    return const(math.inf if t.is_float else t.max, t)


def _neutral_max(t: DType) -> Expr:
    return const(-math.inf if t.is_float else t.min, t)


@dataclass(frozen=True)
class _Rule:
    """How a reduction begins, and goes on."""

    neutral: Callable[[DType], Expr]
    combine: Callable[[Expr, Expr], Expr]  # of the value so far and the next; of an arg-reduction: is the next better?


_FOLDS = {
    "sum": _Rule(lambda t: const(0, t), lambda a, b: binary("add", a, b)),
    "prod": _Rule(lambda t: const(1, t), lambda a, b: binary("mul", a, b)),
    "min": _Rule(_neutral_min, minimum),
    "max": _Rule(_neutral_max, maximum),
    "any": _Rule(lambda t: const(False, t), lambda a, b: binary("or", a, b)),
    "all": _Rule(lambda t: const(True, t), lambda a, b: binary("and", a, b)),
}
_SEARCHES = {
    "argmin": _Rule(_neutral_min, lambda best, next: next < best),
    "argmax": _Rule(_neutral_max, lambda best, next: next > best),
}


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction of the language with its reads already those of the graph."""

    kind: str
    value: Expr
    domain: tuple[ReductionDim, ...]
    condition: Expr | None

    def stage(self, name: str, dims: tuple[str, ...], where: Location) -> Stage:
        """The stage `name` over `dims` that computes it, with int32 coordinates."""
        indices = tuple(Var(INT32, 1, d) for d in dims)
        dtypes = result_types(self.kind, self.value.dtype, len(self.domain))
        pure = Definition(indices, self._start(), (), None, where)
        stage = Stage(name, dims, dtypes, pure, (), where, helper=True)
        so_far = tuple(Load(t, 1, b, indices) for t, b in zip(dtypes, stage.buffers, strict=True))
        update = Definition(indices, self._step(so_far), self.domain, self.condition, where)
        return Stage(name, dims, dtypes, pure, (update,), where, helper=True)

    def _start(self) -> tuple[Expr, ...]:
        if self.kind in _FOLDS:
            return (_FOLDS[self.kind].neutral(self.value.dtype),)
        return (*(cast(INT32, d.min) for d in self.domain), _SEARCHES[self.kind].neutral(self.value.dtype))

    def _step(self, so_far: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if self.kind in _FOLDS:
            return (_FOLDS[self.kind].combine(so_far[0], self.value),)
        better = _SEARCHES[self.kind].combine(so_far[-1], self.value)
        found: tuple[Expr, ...] = (*(Var(INT32, 1, d.name) for d in self.domain), self.value)
        return tuple(select(better, new, old) for new, old in zip(found, so_far, strict=True))


def result_types(kind: str, value: DType, loops: int) -> tuple[DType, ...]:
    """The types of what a reduction yields: the value; of a search, the coordinates before it."""
    return (value,) if kind in _FOLDS else (*(INT32,) * loops, value)
