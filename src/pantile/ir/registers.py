"""Estimates the registers per thread of a kernel. Only the assembler knows the exact number."""

from __future__ import annotations

from ..expr.nodes import Const, Expr
from ..expr.visit import operands_first
from ..target.gpu import MOST_REGISTERS
from ..target.kinds import Memory
from .nodes import Alloc, Kernel, Stmt
from .visit import children, expressions

_ALWAYS = 16  # registers for addresses, counters and kernel arguments


def estimated_registers(kernel: Kernel) -> int:
    """The estimated number of registers per thread, for its private buffers and its largest expression."""
    return min(MOST_REGISTERS, _ALWAYS + _needed(kernel.body))


def _needed(s: Stmt) -> int:
    own = 0
    if isinstance(s, Alloc) and s.memory in (Memory.REGISTER, Memory.STACK) and isinstance(s.size, Const):
        own = _words(s.dtype.bytes) * int(s.size.value)
    return own + max([_for_expression(e) for e in expressions(s)] + [_needed(c) for c in children(s)], default=0)


def _words(size: int) -> int:
    return -(-size // 4)


def _for_expression(root: Expr) -> int:
    """The number of registers needed to evaluate an expression if the operand that needs most is evaluated first (the
    Sethi-Ullman number)."""
    needs: dict[int, int] = {}
    for e in operands_first(root, lambda node: node.operands):
        size = _words(e.dtype.bytes) * e.lanes
        held, most = 0, size
        for c in sorted(e.operands, key=lambda c: -needs[id(c)]):
            most = max(most, held + needs[id(c)])
            held += _words(c.dtype.bytes) * c.lanes
        needs[id(e)] = most
    return needs[id(root)]
