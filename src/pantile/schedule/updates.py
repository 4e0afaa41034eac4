"""Facts about definitions that decide which loop orders keep their meaning.

A loop is *independent* if its iterations access disjoint elements of the stage: it may run in any order, in parallel or
as a vector. Other loops of an update run in the order of the definition, unless the update is an *accumulation* (f[i] =
f[i] + e, with e free of f), whose terms may be combined in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ..dataclass import dataclass
from ..expr import build
from ..expr.nodes import Const, Expr, Load, Op, Var
from ..expr.types import DType
from ..expr.visit import each_once, loaded, names, same, walk
from ..graph.nodes import Definition, Stage

ASSOCIATIVE = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})


def pure_dims(stage: Stage, definition: Definition) -> tuple[str, ...]:
    """The pure dims of a definition: the dims that stand alone at their own position among its indices."""
    if definition is stage.pure:
        return stage.dims
    return tuple(d for d, i in zip(stage.dims, definition.indices, strict=True) if isinstance(i, Var) and i.name == d)


def loop_names(stage: Stage, definition: Definition) -> tuple[str, ...]:
    """The loops of a definition before any directive, outermost first: pure dims, then its reduction domain."""
    return (*pure_dims(stage, definition), *(r.name for r in definition.domain))


def is_independent(stage: Stage, definition: Definition, loop: str) -> bool:
    """Whether different iterations of a loop access disjoint elements of the stage."""
    loops, buffers = set(loop_names(stage, definition)), stage.buffers
    own = [] if definition is stage.pure else [e for e in definition.loads if e.buffer in buffers]
    return any(
        _steps_with(index, loop, loops) and all(same(read.indices[axis], index) for read in own)
        for axis, index in enumerate(definition.indices)
    )


def keeps_to(stage: Stage, definition: Definition, dims: Iterable[str]) -> bool:
    """Whether a definition, at given coordinates along these dims, writes and reads only the stage's elements at the
    same coordinates."""
    own = [e.indices for e in definition.loads if e.buffer in stage.buffers]
    return all(_stands_at(indices, stage.dims.index(d), d) for d in dims for indices in (definition.indices, *own))


def _stands_at(indices: tuple[Expr, ...], axis: int, dim: str) -> bool:
    index = indices[axis]
    return isinstance(index, Var) and index.name == dim


def _steps_with(index: Expr, loop: str, loops: set[str]) -> bool:
    """Whether an index takes a different value in each iteration of `loop`, whatever the other loops do."""
    if loaded(index) or loops & names(index) != {loop}:
        return False
    return _is_linear(index, loop)


def _is_linear(index: Expr, loop: str) -> bool:
    """Whether an index consists of v, v + e, e + v, v - e and c*v, with e free of the loop v and a constant c != 0."""
    while not isinstance(index, Var):
        if not isinstance(index, Op) or index.op not in ("add", "sub", "mul"):
            return False
        a, b = index.args
        if loop not in names(a):
            a, b = b, a
        if loop in names(b) or (index.op == "mul" and not (isinstance(b, Const) and b.value != 0)):
            return False
        index = a
    return index.name == loop


@dataclass(frozen=True, eq=False)
class Accumulation:
    """One value of an update in the form f[indices] = f[indices] `op` `term`."""

    op: str
    term: Expr
    dtype: DType

    @property
    def is_exact(self) -> bool:
        """Whether every order of the terms gives bitwise the same result."""
        return not (self.dtype.is_float and self.op in ("add", "mul"))


def accumulation(stage: Stage, definition: Definition) -> tuple[Accumulation, ...] | None:
    """The update as an accumulation in each of its values, or None if it is not an accumulation."""
    candidates = tuple(
        _accumulation(buffer, definition, value) for buffer, value in zip(stage.buffers, definition.values, strict=True)
    )
    others = [*definition.indices, *(f.term for f in candidates if f is not None)]
    others += [] if definition.condition is None else [definition.condition]
    if any(isinstance(e, Load) and e.buffer in stage.buffers for e in walk(*others)):
        return None
    terms = tuple(f for f in candidates if f is not None)
    return terms if len(terms) == len(candidates) else None


def _accumulation(buffer: str, definition: Definition, value: Expr) -> Accumulation | None:
    if not isinstance(value, Op) or value.op not in ASSOCIATIVE:
        return None
    term = _term(value, value.op, buffer, definition.indices)
    return None if term is None else Accumulation(value.op, term, value.dtype)


def _term(value: Expr, op: str, buffer: str, indices: tuple[Expr, ...]) -> Expr | None:
    """The term that `value` combines with the load of its own element: a + b for (f[i] + a) + b. None if there is no
    such load."""
    terms: dict[int, tuple[Expr | None]] = {}

    def combined(e: Expr) -> tuple[Expr, ...]:
        return e.args if isinstance(e, Op) and e.op == op and buffer in loaded(e) else ()

    def visit(e: Expr) -> tuple[Expr | None]:
        for mine, other in (combined(e), combined(e)[::-1]) if combined(e) else ():
            if isinstance(mine, Load) and mine.buffer == buffer and all(map(same, mine.indices, indices)):
                return (other,)
            inner = terms[id(mine)][0]
            if inner is not None:
                return (build.binary(op, inner, other),)
        return (None,)

    return each_once(value, terms, visit, combined)[0]


def constant(e: Expr) -> int | None:
    """The value of a constant integer expression, otherwise None."""
    return int(e.value) if isinstance(e, Const) else None


# The most terms that are unrolled when a small reduction is inlined.
MOST_INLINED_POINTS = 64


def has_closed_form(stage: Stage) -> bool:
    """Whether the values of a stage can be substituted into its readers: it has no updates, or these can be written
    out."""
    return not stage.updates or is_small_reduction(stage)


def is_small_reduction(stage: Stage) -> bool:
    """Whether a stage is one accumulation per point over a constant domain of at most `MOST_INLINED_POINTS` points, so
    that it can be inlined."""
    if len(stage.updates) != 1:
        return False
    update = stage.updates[0]
    if pure_dims(stage, update) != stage.dims or update.condition is not None or accumulation(stage, update) is None:
        return False
    extents = [None if constant(r.min) is None else constant(r.extent) for r in update.domain]
    return None not in extents and prod(e for e in extents if e is not None) <= MOST_INLINED_POINTS
