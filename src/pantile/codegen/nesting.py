"""Bounds nested deep, hidden from LLVM.

The bounds of stages under conditions are minima and maxima of those of their consumers, many deep. LLVM writes the end
of a loop, or an address in it, as one formula of the values that it began with: a tree, in which everything shared is
repeated, and of which it then makes instructions. That takes minutes, for numbers that are there already. So after some
levels a value is passed through an instruction that is empty, but that LLVM does not look into.
"""

from __future__ import annotations

from ..expr.nodes import Expr, Op
from ..expr.types import INDEX
from ..expr.visit import children, names, once_per_node
from .function import Function

_MOST = 6  # minima and maxima in each other: what a clamped index, a tail and an edge of a tile come to


@once_per_node("_nesting")
def _nesting(e: Expr) -> int:
    """How many minima and maxima of indices are in each other."""
    deepest = max(map(_nesting, children(e)), default=0)
    return deepest + 1 if isinstance(e, Op) and e.op in ("min", "max") and e.dtype is INDEX else deepest


def cut_inside(fn: Function, e: Op, operand: str) -> str:
    """What holds a minimum or maximum inside of an expression."""
    return _hidden(fn, operand) if e.dtype is INDEX and e.lanes == 1 and _nesting(e) % _MOST == 0 else operand


def bind_cut(fn: Function, name: str, value: Expr, operand: str) -> None:
    """Give a name to an expression, which may be made of such names."""
    if value.dtype is INDEX and value.lanes == 1:
        levels = _nesting(value) % _MOST + max((fn.nesting.get(n, 0) for n in names(value)), default=0)
        if levels >= _MOST:
            operand, levels = _hidden(fn, operand), 0
        fn.nesting[name] = levels
    fn.bind(name, operand)


def _hidden(fn: Function, operand: str) -> str:
    return fn.value(f'call i64 asm "", "=r,0"(i64 {operand})')
