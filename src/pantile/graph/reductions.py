"""A reduction as a stage: its pure definition is the neutral value, its update combines one point more.

    total = sum(value, over=r)      total[y, x] = 0
                                    total[y, x] = total[y, x] + value      over r

argmin and argmax carry the coordinates of the best point beside its value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..dataclass import dataclass
from ..errors import Location
from ..expr.build import binary, cast, maximum, minimum, select
from ..expr.nodes import Expr, Load, Var, neutral
from ..expr.types import INT32, DType
from .nodes import Definition, ReductionDim, Stage


@dataclass(frozen=True)
class _Rule:
    """The operation whose neutral element a reduction begins with, and how it combines values."""

    neutral_to: str
    combine: Callable[[Expr, Expr], Expr]  # of the value so far and the next; for argmin/argmax: is the next better?


_FOLDS = {
    "sum": _Rule("add", partial(binary, "add")),
    "prod": _Rule("mul", partial(binary, "mul")),
    "min": _Rule("min", minimum),
    "max": _Rule("max", maximum),
    "any": _Rule("or", partial(binary, "or")),
    "all": _Rule("and", partial(binary, "and")),
}
_SEARCHES = {
    "argmin": _Rule("min", lambda best, next: next < best),
    "argmax": _Rule("max", lambda best, next: next > best),
}


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction of the language whose reads are already loads of the graph."""

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
            return (neutral(_FOLDS[self.kind].neutral_to, self.value.dtype),)
        return (*(cast(INT32, d.min) for d in self.domain), neutral(_SEARCHES[self.kind].neutral_to, self.value.dtype))

    def _step(self, so_far: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if self.kind in _FOLDS:
            return (_FOLDS[self.kind].combine(so_far[0], self.value),)
        better = _SEARCHES[self.kind].combine(so_far[-1], self.value)
        new_values: tuple[Expr, ...] = (*(Var(INT32, 1, d.name) for d in self.domain), self.value)
        return tuple(select(better, new, old) for new, old in zip(new_values, so_far, strict=True))


def result_types(kind: str, value: DType, loops: int) -> tuple[DType, ...]:
    """The types of the values of a reduction; those of argmin and argmax have the coordinates first."""
    return (value,) if kind in _FOLDS else (*(INT32,) * loops, value)
