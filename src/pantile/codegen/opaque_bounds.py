"""Bounds made of many bounds, hidden from LLVM.

The bounds of stages under conditions are minima and maxima of those of their consumers, many deep. LLVM's scalar
evolution writes the end of a loop, or an address in it, as one formula of the initial values: a tree, in which
everything shared is repeated. It tries to rewrite that tree, and expands it into instructions, which takes minutes for
values that exist already. Therefore a value whose tree would be large is passed through empty inline assembly, which is
opaque to LLVM.
"""

from __future__ import annotations

from ..expr.nodes import Expr, Op, Var
from ..expr.types import INDEX
from ..expr.visit import children, each_once, names, once_per_node
from .function import Function

_MOST = 24  # minima and maxima in a tree: those of a few clamped indices, tails and edges of tiles


@once_per_node("_nesting")
def _nesting(e: Expr) -> int:
    """The number of minima and maxima of indices that LLVM sees in an expression written out as a tree."""
    inside = sum(map(_nesting, children(e)))
    if not _is_limit(e):
        return min(inside, _MOST)
    return 0 if inside + 1 >= _MOST else inside + 1


def cut_inside(fn: Function, e: Op, operand: str) -> str:
    """The operand of a minimum or maximum, hidden from LLVM where its tree becomes too large."""
    return hidden(fn, operand) if _is_limit(e) and _nesting(e) == 0 else operand


def bind_cut(fn: Function, name: str, value: Expr, operand: str) -> None:
    """Bind a name to an expression, which may depend on hidden names."""
    if value.dtype is INDEX and value.lanes == 1:
        limits = _limits(fn, value)
        if limits >= _MOST:
            operand, limits = hidden(fn, operand), 0
        fn.nesting[name] = limits
    fn.bind(name, operand)


def _limits(fn: Function, value: Expr) -> int:
    """The count of `_nesting`, including the minima and maxima behind names."""
    if not any(fn.nesting.get(n) for n in names(value)):
        return _nesting(value)
    memo: dict[int, int] = {}

    def limits(e: Expr) -> int:
        behind = fn.nesting.get(e.name, 0) if isinstance(e, Var) else sum(memo[id(c)] for c in children(e))
        return 0 if _is_limit(e) and _nesting(e) == 0 else min(behind + _is_limit(e), _MOST)

    return each_once(value, memo, limits)


def _is_limit(e: Expr) -> bool:
    return isinstance(e, Op) and e.op in ("min", "max") and e.dtype is INDEX and e.lanes == 1


def hidden(fn: Function, operand: str, type_: str = "i64", register: str = "r") -> str:
    """Hide from LLVM how a number, a pointer or a vector (register "v", on x86) was computed."""
    return fn.value(f'call {type_} asm "", "={register},0"({type_} {operand})')
