"""Operations that are fused into one instruction with another: what is left of each node's instructions.

a*b + c                 of floats, or of integers on ARM: one
int32(a) * int32(b)     of 16 bits each: a product that is wide, and no conversions; sums alike
uint8(max(min(a, 255), 0))      one conversion that saturates
uint8(round(a))                 on ARM limits and a sum, whose last bits are what is asked for
"""

from __future__ import annotations

from collections import Counter

from ..expr.nodes import Cast, Const, Expr, Op
from ..expr.types import FLOAT32, INDEX, DType
from ..expr.visit import children

Instructions = list[tuple[str, int, float]]
_SUMS = frozenset({"add", "sub"})


def fused_instructions(nodes: list[Expr]) -> dict[int, Instructions]:
    """The instructions of fused nodes by id; others have those of their operation. Kinds "with_..." are free on ARM."""
    uses = Counter(id(c) for e in nodes for c in children(e))
    instructions: dict[int, Instructions] = {}
    taken: Counter[int] = Counter()  # uses of a conversion that need none
    widened: dict[int, Cast] = {}
    for e in nodes:
        if isinstance(e, Op) and e.op in ("add", "sub", "mul") and e.dtype is not INDEX:
            wide = [] if e.dtype.is_float else [a for a in e.args if _widens(a)]
            widened |= {id(a): a for a in wide if isinstance(a, Cast)}
            taken.update(map(id, wide))
            products = [a for a in e.args if isinstance(a, Op) and a.op == "mul" and uses[id(a)] == 1]
            if e.op in _SUMS and products:
                if e.dtype.is_float:
                    instructions[id(products[-1])] = []
                else:
                    instructions[id(e)] = [("with_mul", e.dtype.bits, 1.0)]
            if e.op == "mul" and wide and all(_widens(a) or isinstance(a, Const) for a in e.args):
                instructions[id(e)] = [("mul_wide", e.dtype.bits, 1.0)]
        elif isinstance(e, Cast):
            instructions |= {id(a): [] for a in _saturating_clamps(e, e.value)}
            instructions |= _rounding_conversion(e)
            if _narrows(e) and isinstance(e.value, Op) and e.value.op in ("shr", "floordiv"):
                instructions[id(e)] = [("with_narrow", max(8, e.value.dtype.bits), 1.0)]
    for k, a in widened.items():
        if taken[k] == uses[k]:
            instructions[k] = [("with_wide", a.dtype.bits, 1.0)]
    return instructions


def _widens(e: Expr) -> bool:
    return isinstance(e, Cast) and _integers(e) and e.dtype.bits == 2 * max(8, e.value.dtype.bits)


def _narrows(e: Cast) -> bool:
    return _integers(e) and e.value.dtype.bits == 2 * max(8, e.dtype.bits)


def _integers(e: Cast) -> bool:
    both = (e.dtype, e.value.dtype)
    return not any(t.is_float or t is INDEX for t in both)


def is_small(source: DType, to: DType) -> bool:
    """Whether a conversion is one from 8 or 16 bits to floats, which are sums on ARM (`codegen/mantissa`)."""
    return to == FLOAT32 and source.is_int and source.bits <= 16


def _rounding_conversion(e: Cast) -> dict[int, Instructions]:
    """The instructions that are left of rounding with its clamps, and of the conversion."""
    limits = _saturating_clamps(e, e.value)
    inside = _clamped_operand(limits[-1]) if limits else e.value
    if not (is_small(e.dtype, e.value.dtype) and isinstance(inside, Op) and inside.op == "round"):
        return {}
    below: dict[int, Instructions] = {id(a): [("with_limit", 32, 1.0)] for a in _saturating_clamps(e, inside.args[0])}
    narrowed = [("widen", bits, 1.0) for bits in (32, 16) if bits > e.dtype.bits]
    return {**below, id(inside): [("with_round", 32, 1.0)], id(e): [("round_small", 32, 1.0), *narrowed]}


def _saturating_clamps(e: Cast, inside: Expr) -> list[Expr]:
    """The clamps to the range of a smaller type that a saturating conversion includes."""
    if e.dtype.is_float or e.dtype is INDEX or e.dtype.bits >= e.value.dtype.bits or e.dtype.is_bool:
        return []
    clamps: list[Expr] = []
    limits = (int(e.dtype.min), int(e.dtype.max))
    while isinstance(inside, Op) and inside.op in ("min", "max") and len(clamps) < 2:
        limited = _clamped_operand(inside)
        if limited is None or not any(isinstance(a, Const) and a.value in limits for a in inside.args):
            break
        clamps.append(inside)
        inside = limited
    return clamps


def _clamped_operand(e: Expr) -> Expr | None:
    """The operand that a minimum or maximum clamps, unless it is a constant, too."""
    return next((a for a in children(e) if not isinstance(a, Const)), None)
