"""One statement inside its loops, in the terms of sioutas-thesis chapter 4: output[..] = f(inputs[..]).

Every definition of a stage is a statement. It knows which of its loops may be interchanged and shared among threads.

A reference says how a statement moves through an array: for every index, the loops that move it and how fast.

    C[i, j] = C[i, j] + A[i, k] * B[k, 2*j + 1]     ->     A: (i: 1), (k: 1)     B: (k: 1), (j: 2)

Reads of one array that move alike, such as the taps of a stencil, are one reference. A clamp or boundary condition
moves like the index inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import cached_property, dataclass
from ...expr.nodes import Const, Expr, Load, Op, Var
from ...expr.visit import children, variables
from ...graph.nodes import Definition, Stage
from ...schedule.stage_default import lanes
from ...schedule.updates import accumulation, is_independent
from ..common.facts import Extents
from ..strategy import Problem

FEWEST_ITERATIONS = 8  # of a reduction loop that is worth tiling; the windows of convolutions are not
# One number, or one per tile size.
Numbers = Any
Steps = tuple[tuple[str, float], ...]  # loop -> how far one iteration moves an index


@dataclass(frozen=True, eq=False)
class Statement:
    """output[..] = f(inputs[..]) inside loops: one definition of a stage."""

    problem: Problem
    stage: Stage
    number: int  # of the definition
    extents: Extents  # B: of its loops, outermost first
    output: Reference
    inputs: tuple[Reference, ...]

    @staticmethod
    def of(problem: Problem, stage: Stage, number: int) -> Statement:
        d = stage.definitions[number]
        extents = problem.facts.loops(stage.name, number)
        return Statement(problem, stage, number, extents, written(stage, d, extents), read(stage, d, extents))

    @property
    def references(self) -> tuple[Reference, ...]:
        return (self.output, *self.inputs)

    @property
    def definition(self) -> Definition:
        return self.stage.definitions[self.number]

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The loops whose iterations are independent of each other."""
        return tuple(n for n in self.extents if is_independent(self.stage, self.definition, n))

    @cached_property
    def lanes(self) -> int:
        return lanes(self.stage, self.definition, self.problem.target)

    @cached_property
    def column(self) -> str | None:
        """The loop of the leading dimension, if it can be a vector. A loop over a few channels cannot."""
        last = self.stage.dims[-1] if self.stage.dims and self.stage.name not in self.problem.channels else None
        return last if last in self.free and self.extents[last] >= self.lanes else None

    @property
    def vector(self) -> str:
        """The column of a statement that has one."""
        assert self.column is not None
        return self.column

    @property
    def has_masked_lanes(self) -> bool:
        """Whether a condition differs along the column."""
        condition = self.definition.condition
        return condition is not None and self.column in variables(condition)

    @cached_property
    def tileable(self) -> tuple[str, ...]:
        """The loops that are long enough, and may be interchanged with all others."""
        sums = accumulation(self.stage, self.definition)
        any_order = sums is not None and not (self.problem.strict and not all(f.is_exact for f in sums))
        return tuple(
            n for n, extent in self.extents.items() if n in self.free or (any_order and extent >= FEWEST_ITERATIONS)
        )

    @property
    def is_tileable(self) -> bool:
        pure = [d for d in self.stage.dims if d in self.extents]
        return self.column is not None and len(self.tileable) > 1 and all(d in self.free for d in pure)


@dataclass(frozen=True)
class Reference:
    """An array with the steps of its indices; the last index is the contiguous one, the column."""

    array: str
    indices: tuple[Steps, ...]
    bytes: int  # of an element

    @property
    def loops(self) -> frozenset[str]:
        """The loops that it moves with."""
        return frozenset(loop for steps in self.indices for loop, _ in steps)

    @property
    def column(self) -> frozenset[str]:
        """The loops that move along contiguous memory."""
        return frozenset(loop for loop, _ in self.indices[-1]) if self.indices else frozenset()

    def rows(self, tile: Mapping[str, Numbers]) -> Numbers:
        """The number of contiguous runs that a tile touches. Loops that are not in `tile` do not move."""
        return product(_extent(steps, tile) for steps in self.indices[:-1])

    def points(self, tile: Mapping[str, Numbers]) -> Numbers:
        """The number of elements that a tile touches."""
        return product(_extent(steps, tile) for steps in self.indices)


def _extent(steps: Steps, tile: Mapping[str, Numbers]) -> Numbers:
    reach: Numbers = 0
    for loop, step in steps:
        if loop in tile:
            reach = reach + step * (tile[loop] - 1)
    return np.ceil(reach) + 1


def product(factors: Iterable[Numbers]) -> Numbers:
    result: Numbers = 1
    for f in factors:
        result = result * f
    return result


def is_transposed(r: Reference, output: Reference) -> bool:
    """Whether the output's column runs across the rows of an input."""
    across = frozenset(loop for steps in r.indices[:-1] for loop, _ in steps)
    return bool(output.column & across) and not output.column & r.column and bool(r.column)


def written(stage: Stage, definition: Definition, loops: Iterable[str]) -> Reference:
    """The reference that a definition stores, with all values of a tuple as one."""
    return Reference(stage.name, _steps(definition.indices, set(loops)), sum(t.bytes for t in stage.dtypes))


def read(stage: Stage, definition: Definition, loops: Iterable[str]) -> tuple[Reference, ...]:
    """The references that a definition reads besides the stage itself."""
    moving = set(loops)
    others = [e for e in definition.loads if e.buffer not in stage.buffers]
    return tuple(dict.fromkeys(reference(e, moving) for e in others))


def reference(load: Load, loops: Iterable[str]) -> Reference:
    """The reference of one read of an array."""
    return Reference(load.buffer, _steps(load.indices, set(loops)), load.dtype.bytes)


def _steps(indices: Sequence[Expr], loops: set[str]) -> tuple[Steps, ...]:
    return tuple(tuple(sorted(_step(i, loops, {}).items())) for i in indices)


def _step(e: Expr, loops: set[str], known: dict[int, dict[str, float]]) -> dict[str, float]:
    """Map loops to the greatest distance by which one iteration moves the value of an index."""
    if isinstance(e, Var):
        return {e.name: 1.0} if e.name in loops else {}
    if id(e) not in known:
        parts = [_step(c, loops, known) for c in children(e)]
        known[id(e)] = _combine(e, parts)
    return known[id(e)]


def _combine(e: Expr, parts: Sequence[dict[str, float]]) -> dict[str, float]:
    moving = dict.fromkeys(loop for p in parts for loop in p)
    if isinstance(e, Op) and e.op in ("add", "sub"):
        return {loop: sum(p.get(loop, 0.0) for p in parts) for loop in moving}
    factor = _factor(e)
    return {loop: factor * max(p.get(loop, 0.0) for p in parts) for loop in moving}


def _factor(e: Expr) -> float:
    """The factor by which a product or quotient with a constant changes steps."""
    constants = [float(a.value) for a in children(e) if isinstance(a, Const)]
    if not isinstance(e, Op) or len(constants) != 1 or not constants[0]:
        return 1.0
    return abs(constants[0]) if e.op == "mul" else 1 / abs(constants[0]) if e.op == "floordiv" else 1.0
