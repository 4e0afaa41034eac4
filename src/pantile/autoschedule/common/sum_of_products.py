"""Stages that are sums of products, and in which neighbouring points read the same factors.

    out[i, j] += a[i, k] * b[k, j]      rows i share b[k, j], columns j share a[i, k]

A factor is one read of the terms, described by how its indices move with the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...dataclass import dataclass
from ...expr.nodes import Cast, Const, Expr, Load, Op, Var
from ...expr.visit import names
from ...graph.nodes import Definition, Stage
from ...schedule.clones import place_of
from ...schedule.gpu_updates import is_pointwise
from ...schedule.updates import accumulation, constant, loop_names
from ..strategy import Problem

FEWEST_TERMS = 16
MOST_BYTES = 8  # of the values of one point: a thread has 255 registers of 4 bytes

_CLAMPS = ("min", "max", "within")

Steps = Mapping[str, int]  # loop -> how far one iteration moves an index


@dataclass(frozen=True)
class SumOfProducts:
    """A stage of such sums, and the two dims along which they share factors; `column` is the contiguous one."""

    stage: Stage
    row: str
    column: str
    extents: Mapping[str, int]  # of the dims

    @staticmethod
    def of(problem: Problem, stage: Stage, rows: int, columns: int) -> SumOfProducts | None:
        """The sums of a stage that share factors along two dims, with at least this number of rows and columns; None if
        there are none."""
        if not _is_sum_at_each_point(stage) or sum(t.bytes for t in stage.dtypes) > MOST_BYTES:
            return None
        extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
        *others, column = stage.dims
        along = [{name for index in load.indices for name in names(index)} for load in _read(stage)]
        shared = [d for d in others if extents[d] >= rows and any(column in used and d not in used for used in along)]
        is_row_used_again = extents[column] >= columns and any(column not in used for used in along)
        return SumOfProducts(stage, shared[-1], column, extents) if shared and is_row_used_again else None

    @property
    def update(self) -> Definition:
        return self.stage.updates[0]

    @property
    def others(self) -> list[str]:
        return [d for d in self.stage.dims if d not in (self.row, self.column)]


@dataclass(frozen=True)
class Factor:
    """A read of the terms."""

    load: Load
    indices: tuple[Steps, ...]

    @property
    def loops(self) -> frozenset[str]:
        return frozenset(loop for steps in self.indices for loop in steps)


def factors(stage: Stage) -> list[Factor]:
    """The distinct reads of the terms whose indices are all affine in the loops."""
    loops = frozenset(loop_names(stage, stage.updates[0]))
    found = []
    for load in {(e.buffer, place_of(e)): e for e in _read(stage)}.values():
        indices = [i for index in load.indices if (i := _steps(index, loops)) is not None]
        if len(indices) == len(load.indices):
            found.append(Factor(load, tuple(indices)))
    return found


def _read(stage: Stage) -> list[Load]:
    return [e for e in stage.updates[0].loads if e.buffer not in stage.buffers]


def _steps(e: Expr, loops: frozenset[str]) -> dict[str, int] | None:
    """How far an index moves with each loop, if that is constant. A clamp moves as what it clamps."""
    if loops.isdisjoint(names(e)):
        return {}
    if isinstance(e, Var):
        return {e.name: 1}
    if isinstance(e, Cast):
        return _steps(e.value, loops)
    if not isinstance(e, Op) or e.op not in ("add", "sub", "mul", *_CLAMPS):
        return None
    parts = [_steps(a, loops) for a in e.args]
    factors = [1] * len(parts)
    if e.op == "sub":
        factors[1] = -1
    elif e.op == "mul":
        constants = [int(a.value) for a in e.args if isinstance(a, Const)]
        factors = [constants[0]] * len(parts) if constants else []
    total: dict[str, int] = {}
    for part, factor in zip(parts, factors, strict=False):
        for name, c in (part or {}).items():
            total[name] = max(total.get(name, c), c) if e.op in _CLAMPS else total.get(name, 0) + factor * c
    return total if factors and None not in parts else None


def _is_sum_at_each_point(stage: Stage) -> bool:
    """Whether a stage is, at each point by itself, a sum of at least `FEWEST_TERMS` terms."""
    if len(stage.updates) != 1 or len(stage.dims) < 2:
        return False
    (update,) = stage.updates
    values, counts = accumulation(stage, update), [constant(r.extent) for r in update.domain]
    if values is None or any(v.op != "add" for v in values) or update.condition is not None or not counts:
        return False
    is_long = None in counts or prod(n or 0 for n in counts) >= FEWEST_TERMS
    return is_long and is_pointwise(stage, update)
