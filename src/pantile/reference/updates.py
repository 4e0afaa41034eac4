"""Run update definitions: over the reduction domain in order, and over the pure dims all at once.

A plain accumulation f[i] = f[i] op g takes many points of the domain per step, through NumPy's `ufunc.at`, which
applies them one after the other in the same order. An update that is stored where it is computed needs no positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from ..dataclass import dataclass
from ..expr.nodes import COMMUTATIVE, Expr, Load, Op, Var
from ..expr.visit import same, walk
from ..graph.nodes import Definition, Stage
from .boxes import Array, Box
from .expressions import PointEvaluator

_CHUNK = 1 << 18  # points per step of an accumulation

_IN_ORDER: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class Points:
    """The points at which a definition is evaluated: the coordinates of its pure dims, and its reduction domain."""

    pure: dict[str, Array]  # open, broadcasting together
    names: tuple[str, ...]  # of the reduction dims
    low: tuple[int, ...]
    extents: tuple[int, ...]
    dims: int  # of the stage

    @staticmethod
    def of(stage: Stage, definition: Definition, box: Box, reduction: Sequence[tuple[str, int, int]]) -> Points:
        """The points of a definition over a box. Dims that an update does not index by themselves are not pure dims."""
        pure = [k for k, i in enumerate(definition.indices) if isinstance(i, Var) and i.name == stage.dims[k]]
        part = Box(tuple(box.low[k] for k in pure), tuple(box.high[k] for k in pure))
        names, low, extents = zip(*reduction, strict=True) if reduction else ((), (), ())
        coordinates = dict(zip((stage.dims[k] for k in pure), part.coordinates(), strict=True))
        return Points(coordinates, names, low, tuple(max(0, n) for n in extents), len(stage.dims))

    def all(self) -> dict[str, Array]:
        """All points, as coordinates that broadcast together, with reduction dims outermost."""
        high = tuple(low + n - 1 for low, n in zip(self.low, self.extents, strict=True))
        reduction = Box(self.low, high).coordinates()
        inner = (1,) * len(self.pure)
        return {**{n: r.reshape(r.shape + inner) for n, r in zip(self.names, reduction, strict=True)}, **self.pure}

    def steps(self, size: int) -> Iterator[dict[str, Array]]:
        """The points in order, `size` points of the reduction domain at a time as one outermost axis."""
        total = prod(self.extents)
        inner = (1,) * len(self.pure)
        for start in range(0, total, size):
            flat = np.arange(start, min(start + size, total))
            places = np.unravel_index(flat, self.extents) if self.extents else ()
            from_low = [p + low for p, low in zip(places, self.low, strict=True)]
            reduction = {n: p.reshape(-1, *inner) for n, p in zip(self.names, from_low, strict=True)}
            yield {**reduction, **self.pure}

    @property
    def are_places(self) -> bool:
        """Whether every point of the pure dims is the place that is written there."""
        return len(self.pure) == self.dims

    @property
    def inner_size(self) -> int:
        return prod(a.size for a in self.pure.values())


def run_update(
    stage: Stage,
    update: Definition,
    points: Points,
    box: Box,
    arrays: list[Array],
    evaluator_at: Callable[[Mapping[str, Array]], PointEvaluator],
) -> None:
    """Run one update over its points, in place; writes outside of the box are dropped, because they are not read."""
    accumulation = _accumulation(stage, update)
    size = max(1, _CHUNK // max(1, points.inner_size)) if accumulation else 1
    for coordinates in points.steps(size):
        active = _active(update, coordinates, evaluator_at)
        if active is None:
            continue
        evaluator = evaluator_at(active)
        shape = np.broadcast_shapes((), *(a.shape for a in active.values()))
        if points.are_places and active is coordinates and prod(shape) <= points.inner_size**2:
            _elementwise(update, accumulation, evaluator, shape, arrays)
            continue
        indices = tuple(np.broadcast_to(evaluator.value(i), shape) for i in update.indices)
        inside = np.broadcast_to(box.contains(indices), shape)
        places = _flat(box, [i[inside] for i in indices], int(inside.sum()))
        if accumulation:
            ufunc, term = accumulation
            ufunc.at(arrays[0].reshape(-1), places, _masked(evaluator.value(term), inside))
        else:
            values = [_masked(evaluator.value(v), inside) for v in update.values]
            for array, value in zip(arrays, values, strict=True):
                array.reshape(-1)[places] = value


def _elementwise(
    update: Definition,
    accumulation: tuple[np.ufunc, Expr] | None,
    evaluator: PointEvaluator,
    shape: tuple[int, ...],
    arrays: list[Array],
) -> None:
    """Store values where they are computed, one point of the reduction domain after the other."""
    if accumulation:
        ufunc, term = accumulation
        steps = prod(shape[: len(shape) - arrays[0].ndim])
        for value in np.broadcast_to(evaluator.value(term), shape).reshape(steps, *arrays[0].shape):
            arrays[0][...] = ufunc(arrays[0], value)
    else:
        values = [np.broadcast_to(evaluator.value(v), shape) for v in update.values]
        for array, value in zip(arrays, values, strict=True):
            array[...] = value.reshape(array.shape)


def _flat(box: Box, indices: Sequence[Array], count: int) -> Array:
    """Positions in the flattened array of a stage over `box`."""
    if not indices:
        return np.zeros(count, np.int64)
    return np.ravel_multi_index([i - low for i, low in zip(indices, box.low, strict=True)], box.shape)


def _masked(values: Array, inside: Array) -> Array:
    return np.broadcast_to(values, inside.shape)[inside]


def _active(
    update: Definition, coordinates: dict[str, Array], evaluator_at: Callable[[Mapping[str, Array]], PointEvaluator]
) -> dict[str, Array] | None:
    """The points where the update's condition holds: as they are if all, in a list if some, None if none."""
    if update.condition is None:
        return coordinates
    shape = np.broadcast_shapes((), *(a.shape for a in coordinates.values()))
    holds = np.broadcast_to(evaluator_at(coordinates).value(update.condition), shape)
    if holds.all():
        return coordinates if holds.size else None
    return {n: np.broadcast_to(a, shape)[holds] for n, a in coordinates.items()} if holds.any() else None


def _accumulation(stage: Stage, update: Definition) -> tuple[np.ufunc, Expr] | None:
    """The operation and g of an update f[i] = f[i] op g, where neither i nor g nor the condition reads f."""
    value, t = update.values[0], stage.dtypes[0]
    if len(update.values) > 1 or not isinstance(value, Op) or value.op not in _IN_ORDER or t.kind == "bfloat":
        return None
    if t.is_float and value.op in ("min", "max"):
        return None  # NumPy does not define the sign of a zero result
    for own, term in (value.args, value.args[::-1]) if value.op in COMMUTATIVE else (value.args,):
        others = [term, *update.indices, *([update.condition] if update.condition is not None else [])]
        if _is_own(stage, update, own) and not any(reads_itself(stage, e) for e in others):
            return _IN_ORDER[value.op], term
    return None


def _is_own(stage: Stage, update: Definition, e: Expr) -> bool:
    return isinstance(e, Load) and e.buffer in stage.buffers and all(map(same, e.indices, update.indices))


def reads_itself(stage: Stage, e: Expr) -> bool:
    """Whether an expression of a stage's update reads the stage."""
    return any(isinstance(n, Load) and n.buffer in stage.buffers for n in walk(e))
