"""The memory of blocks on a GPU: what a schedule would have each kernel keep there, as lowering knows it.

Of stages in whose loops others are stored, one after the other is lowered by itself, as far as storage is flat, without
the passes that make code faster; all other kernels need no such memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..errors import UserError
from ..expr.nodes import Const
from ..ir.nodes import Block, For, Produce, Realize, Stmt
from ..ir.visit import children, expressions, rebuild, walk
from ..target.kinds import Kind
from .passes import GPU, LOOP_PASSES, Built

_FOR_SPEED = ("trim", "unswitch", "partition_blocks")
_NAMES = [p.name for p in LOOP_PASSES]
_PASSES = [p for p in LOOP_PASSES[: _NAMES.index("flatten") + 1] if p.on >= GPU and p.name not in _FOR_SPEED]


def block_memory(built: Built, asked: Collection[str]) -> Iterator[tuple[str, int | UserError]]:
    """The bytes of shared memory of a block, or why it cannot have what is wanted, by the stage at root that blocks
    compute, of those that are asked about."""
    for stage, body in _kept_inside(built.nest.body):
        if stage not in asked:
            continue
        try:
            for step in _PASSES:
                body = step.run(body, built)
        except UserError as refusal:
            yield stage, refusal
        else:
            blocks = (s.scratch for s in walk(body) if isinstance(s, For) and s.kind is Kind.BLOCK)
            yield stage, max((int(n.value) for n in blocks if isinstance(n, Const)), default=0)


def _kept_inside(s: Stmt) -> Iterator[tuple[str, Stmt]]:
    """The loops of each stage at root inside of which others are stored, in what is around them, without the rest."""
    if isinstance(s, Produce):
        if any(isinstance(inner, Realize) for inner in walk(s)):
            yield s.stage, s
        return
    parts = children(s)
    for k, part in enumerate(parts):
        for stage, body in _kept_inside(part):
            yield stage, rebuild(s, expressions(s), tuple([body if i == k else Block(()) for i in range(len(parts))]))
