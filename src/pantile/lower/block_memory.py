"""The memory of blocks on a GPU: what a schedule would have each kernel keep there, as lowering knows it.

Of stages in whose loops others are stored, one after the other is lowered by itself, as far as storage is flat, without
the passes that make code faster; all other kernels need no such memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..errors import UserError
from ..expr.nodes import Const
from ..expr.visit import loaded, names
from ..ir.nodes import Block, For, Let, Prefetch, Produce, Realize, Stmt, Store
from ..ir.visit import children, expressions, rebuild, walk
from ..target.kinds import Kind
from .passes import GPU, LOOP_PASSES, Built

_FOR_SPEED = ("trim", "unswitch", "partition_blocks")
_NAMES = [p.name for p in LOOP_PASSES]
_PASSES = [p for p in LOOP_PASSES[: _NAMES.index("flatten") + 1] if p.on >= GPU and p.name not in _FOR_SPEED]


def block_memory(built: Built, asked: Collection[str]) -> Iterator[tuple[str, int | UserError]]:
    """The bytes of shared memory of a block, or why it cannot have what is wanted, by the stage at root that blocks
    compute, of those that are asked about."""
    for stage, body in _kept_inside(built.nest.body, asked):
        try:
            for step in _PASSES:
                body = step.run(body, built)
        except UserError as refusal:
            yield stage, refusal
        else:
            blocks = (s.scratch for s in walk(body) if isinstance(s, For) and s.kind is Kind.BLOCK)
            yield stage, max((int(n.value) for n in blocks if isinstance(n, Const)), default=0)


def _kept_inside(
    s: Stmt, asked: Collection[str], around: tuple[tuple[Stmt, int], ...] = ()
) -> Iterator[tuple[str, Stmt]]:
    """The loops of each stage at root inside of which others are stored, of those that are asked about, in what is
    around them that they need."""
    if not isinstance(s, Produce):
        for k, part in enumerate(children(s)):
            yield from _kept_inside(part, asked, (*around, (s, k)))
    elif s.stage in asked and any(isinstance(inner, Realize) for inner in walk(s)):
        yield s.stage, _inside_of(around, s)


def _inside_of(around: Sequence[tuple[Stmt, int]], body: Stmt) -> Stmt:
    """A statement in the place of a part of each of those around it, without their other parts. Neither lets nor
    memory that it does not use are there: a long pipeline has some of each stage."""
    used = set[str]().union(*map(_used, walk(body)))
    for s, k in reversed(around):
        defined = s.name if isinstance(s, Let) else s.buffer if isinstance(s, Realize) else None
        if isinstance(s, Block) or (defined is not None and defined not in used):
            continue
        parts = [body if i == k else Block(()) for i in range(len(children(s)))]
        body = rebuild(s, expressions(s), tuple(parts))
        used |= _used(s)
    return body


def _used(s: Stmt) -> set[str]:
    """The names and buffers that a statement uses, apart from the statements inside."""
    stored = {s.buffer} if isinstance(s, (Store, Prefetch)) else set[str]()
    return stored.union(*(names(e) | loaded(e) for e in expressions(s)))
