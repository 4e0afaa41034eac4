"""Finds the effect of rounding on each stage: none, changes in the last digits of floats, or whole steps.

a = img[x] * 3                          exact: no floats are involved
b = sqrt(img[x] * 0.1)                  rounded: another order of operations changes the last digits
c = cast("uint8", b[x])                 rounded, with steps: if b is 7.0000001 or 6.9999999, c is 7 or 6
d = select(b[x] > 0.5, 1.0, lut[c[x]])  also with steps: a condition or an index that depends on floats is a step
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dataclass import dataclass
from ..expr.nodes import Expr, Op
from ..expr.visit import walk
from ..graph.nodes import Graph, Stage

_STEPS = frozenset({"floor", "ceil", "round", "trunc", "floordiv", "mod"})


@dataclass(frozen=True)
class Rounding:
    """The effect of rounding on a stage. `epsilon` is that of the coarsest floating-point type involved, or 0 if there
    is none. `has_steps` says whether a float is converted to an integer, a condition or an index on the way, or rounded
    to a whole number."""

    epsilon: float = 0.0
    has_steps: bool = False


EXACT = Rounding()


def roundings(graph: Graph) -> dict[str, Rounding]:
    """The effect of rounding on each stage, including that of all stages that it depends on."""
    result: dict[str, Rounding] = {}
    for s in graph.stages:
        sources = {graph.producer[e.buffer].name for d in s.definitions for e in d.loads if e.buffer in graph.producer}
        result[s.name] = _join([_own(s), *(result[name] for name in sources if name != s.name)])
    return result


def _own(stage: Stage) -> Rounding:
    nodes = list(walk(*(e for d in stage.definitions for e in d.expressions)))
    epsilon = max((e.dtype.epsilon for e in nodes if e.dtype.is_float), default=0.0)
    return Rounding(epsilon, any(map(_is_step, nodes)))


def _is_step(e: Expr) -> bool:
    if e.dtype.is_float:
        return isinstance(e, Op) and e.op in _STEPS
    return any(operand.dtype.is_float for operand in e.operands)


def _join(parts: Iterable[Rounding]) -> Rounding:
    parts = list(parts)
    return Rounding(max(p.epsilon for p in parts), any(p.has_steps for p in parts))
