"""The shared memory that a schedule makes each block of a GPU kernel use, as computed by lowering.

Each stage in whose loops others are stored is lowered by itself, up to flat storage, without the passes that only make
code faster. All other kernels need no such memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..errors import UserError
from ..expr.nodes import Const
from ..ir.nodes import For, Realize
from ..ir.visit import walk
from ..target.kinds import Kind
from .passes import GPU, LOOP_PASSES, Built
from .root_stages import of_root_stages, root_stages

_FOR_SPEED = ("trim", "unswitch", "partition_blocks")
_NAMES = [p.name for p in LOOP_PASSES]
_PASSES = [p for p in LOOP_PASSES[: _NAMES.index("flatten") + 1] if p.on >= GPU and p.name not in _FOR_SPEED]


def block_memory(built: Built, asked: Collection[str]) -> Iterator[tuple[str, int | UserError]]:
    """For each stage in `asked` that blocks compute at root, yield the bytes of shared memory of a block, or the error
    if a block cannot have what is requested."""
    body = built.nest.body
    holders = (p.stage for p in root_stages(body) if p.stage in asked and any(isinstance(s, Realize) for s in walk(p)))
    for stage in dict.fromkeys(holders):
        body = of_root_stages(built.nest.body, {stage})
        try:
            for step in _PASSES:
                body = step.run(body, built)
        except UserError as refusal:
            yield stage, refusal
        else:
            blocks = (s.scratch for s in walk(body) if isinstance(s, For) and s.kind is Kind.BLOCK)
            yield stage, max((int(n.value) for n in blocks if isinstance(n, Const)), default=0)
