"""Make blocks: every store is in a block loop, and block loops that belong together are directly nested.

before:  for y: for x: f[y, x] = ...         after:  block for f.block in 0..1:
         block for yo:                                   for y: for x: f[y, x] = ...
             block for xo: g                         block for yo: block for xo: g
             for x: the rest of g                    block for yo: for x: the rest of g

The host allocates, evaluates conditions and launches kernels; it cannot read or write device memory. A stage without a
block loop therefore becomes one block. So does a statement that uses memory of a block or of its threads when the
requested block loop no longer exists, because it has a single iteration or because the statement is the tail of a
split. The iterations of a block loop are independent, so a block loop over consecutive statements may be distributed
into consecutive block loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import InternalError
from ...expr.nodes import const
from ...expr.types import INDEX
from ...expr.visit import loaded, union
from ...ir.nodes import Block, For, If, Let, Produce, Realize, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Kind, Memory
from ..names import of_buffer

_Around = Callable[[Stmt], Stmt]
_OF_A_BLOCK = (Memory.SHARED, Memory.STACK, Memory.REGISTER)


def make_blocks(body: Stmt) -> Stmt:
    """Divide loops into a host part and block loops."""
    return _host(body, "")


def has_blocks(s: Stmt) -> bool:
    """Whether the statement contains a block loop."""
    return any(isinstance(i, For) and i.kind is Kind.BLOCK for i in walk(s))


def _host(s: Stmt, stage: str) -> Stmt:
    if not any(isinstance(i, Store) for i in walk(s)):
        return Block(())
    if isinstance(s, For) and s.kind is Kind.BLOCK:
        return _apart(s.body, lambda inside: replace(s, body=inside))
    if isinstance(s, Block):
        return block(*(_host(c, stage) for c in s.stmts))
    if isinstance(s, Produce):
        return Produce(s.stage, _host(s.body, s.stage))
    if isinstance(s, Realize) and (s.memory not in _OF_A_BLOCK or has_blocks(s)):
        return replace(s, body=_host(s.body, stage))
    if isinstance(s, Let) and not loaded(s.value):
        return Let(s.name, s.value, _host(s.body, stage))
    if isinstance(s, If) and not loaded(s.condition):
        branches = [_host(c, stage) for c in (s.then, s.otherwise) if c is not None]
        return If(s.condition, *branches)
    if isinstance(s, (If, Let)) and has_blocks(s):
        return _apart(s, lambda inside: inside)
    if isinstance(s, For) and has_blocks(s):
        return replace(s, body=_host(s.body, stage))
    return For(of_buffer(stage, "block"), const(0, INDEX), const(1, INDEX), Kind.BLOCK, s)


def _apart(s: Stmt, around: _Around) -> Stmt:
    """Distribute a block loop over the statements of its body. `around` wraps a statement in the loop. Nested block
    loops become separate."""
    if not has_blocks(s):
        return around(s)
    if isinstance(s, Block):
        return block(*(_apart(c, around) for c in s.stmts))
    # Each part tests the condition again. No pass puts a condition around block loops that these loops may change.
    stored = {i.buffer for i in walk(s) if isinstance(i, Store)}
    if not union(list(map(loaded, expressions(s)))).isdisjoint(stored):
        raise InternalError(f"a condition around block loops depends on what they store: {sorted(stored)}")
    if isinstance(s, If):
        parts = [_apart(s.then, lambda inside: around(If(s.condition, inside)))]
        if s.otherwise is not None:
            parts.append(_apart(s.otherwise, lambda inside: around(If(~s.condition, inside))))
        return block(*parts)
    (inner,) = children(s)
    return _apart(inner, lambda inside: around(rebuild(s, expressions(s), (inside,))))
