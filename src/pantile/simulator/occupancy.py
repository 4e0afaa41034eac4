"""How many warps of a kernel a multiprocessor holds at once: as its threads, shared memory and registers leave room.

The limits are those of NVIDIA's programming guide, by compute capability.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dataclass import dataclass
from ..errors import UserError
from ..expr.nodes import Expr
from ..expr.visit import operands_first
from ..ir.nodes import Alloc, Kernel, Stmt
from ..ir.visit import children, expressions
from ..target.kinds import Memory

_WARP = 32
_REGISTERS = 65536  # of a multiprocessor, 32 bits each
_MOST_REGISTERS = 255  # of a thread
_PER_WARP = 256  # registers are given to warps in so many
_ALWAYS = 16  # registers for addresses, counters and what a kernel is given


@dataclass(frozen=True)
class Multiprocessor:
    """What one of a compute capability has room for."""

    warps: int
    blocks: int
    shared: int  # bytes
    reserved: int  # bytes of shared memory that the system takes of each block
    step: int  # in which shared memory is given out


_KNOWN = {
    "sm_70": Multiprocessor(64, 32, 96 << 10, 0, 256),
    "sm_75": Multiprocessor(32, 16, 64 << 10, 0, 256),
    "sm_80": Multiprocessor(64, 32, 164 << 10, 1024, 128),
    "sm_86": Multiprocessor(48, 16, 100 << 10, 1024, 128),
    "sm_89": Multiprocessor(48, 24, 100 << 10, 1024, 128),
    "sm_90": Multiprocessor(64, 32, 228 << 10, 1024, 128),
    "sm_100": Multiprocessor(64, 32, 228 << 10, 1024, 128),
    "sm_120": Multiprocessor(48, 24, 100 << 10, 1024, 128),
}


class Occupancy(NamedTuple):
    """Blocks that a multiprocessor holds, what share of its warps these are, and what keeps more of them out."""

    blocks: int
    share: float
    limit: str


def multiprocessor(capability: str) -> Multiprocessor:
    """By what LLVM calls it."""
    found = _KNOWN.get(capability.rstrip("af"))
    if found is None:
        raise UserError(f"nothing is known of {capability!r}; known are {', '.join(_KNOWN)}")
    return found


def occupancy(threads: int, shared: int, registers: int, capability: str = "sm_90") -> Occupancy:
    """Of blocks of so many threads, bytes of shared memory, and registers per thread."""
    has = multiprocessor(capability)
    warps = -(-threads // _WARP)
    of_block = -(-(shared + has.reserved) // has.step) * has.step if shared else has.reserved
    of_warp = -(-max(1, registers) * _WARP // _PER_WARP) * _PER_WARP
    room = {
        "blocks": has.blocks,
        "threads": has.warps // warps,
        "shared memory": has.shared // of_block if of_block else has.blocks,
        "registers": _REGISTERS // of_warp // warps,
    }
    limit = min(room, key=lambda name: room[name])
    return Occupancy(room[limit], room[limit] * warps / has.warps, limit)


def estimated_registers(kernel: Kernel) -> int:
    """Registers of a thread, roughly: what it keeps in buffers of its own, and what its longest expression needs."""
    return min(_MOST_REGISTERS, _ALWAYS + _needed(kernel.body))


def _needed(s: Stmt) -> int:
    own = _words(s.dtype.bytes) * _constant(s.size) if isinstance(s, Alloc) and s.memory in _PRIVATE else 0
    return own + max([_for_expression(e) for e in expressions(s)] + [_needed(c) for c in children(s)], default=0)


_PRIVATE = (Memory.REGISTER, Memory.STACK)


def _words(size: int) -> int:
    return -(-size // 4)


def _constant(e: Expr) -> int:
    return int(getattr(e, "value", 0))


def _for_expression(root: Expr) -> int:
    """What it takes to evaluate it, the operand first that takes most (Sethi and Ullman's number)."""
    needs: dict[int, int] = {}
    for e in operands_first(root, lambda node: node.operands):
        size = _words(e.dtype.bytes) * e.lanes
        kept, most = 0, size
        for c in sorted(e.operands, key=lambda c: -needs[id(c)]):
            most = max(most, kept + needs[id(c)])
            kept += _words(c.dtype.bytes) * c.lanes
        needs[id(e)] = most
    return needs[id(root)]
