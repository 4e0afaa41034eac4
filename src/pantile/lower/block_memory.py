"""The shared memory that a schedule makes each block of a GPU kernel use, as computed by lowering.

Each stage in whose loops others are stored is lowered by itself, up to flat storage, without the passes that only make
code faster. All other kernels need no such memory. Of stages that are alike, the first one is lowered. If it is
refused, the others are lowered, too, because the message names the stage.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from ..errors import UserError
from ..expr.nodes import Const
from ..ir.nodes import For, Realize, Stmt
from ..ir.visit import walk
from ..target.kinds import Kind
from .alike import Descriptions
from .passes import GPU, LOOP_PASSES, Built, LoopPass
from .root_stages import of_root_stages, root_stages

_FOR_SPEED = ("trim", "unswitch", "partition_blocks")
_NAMES = [p.name for p in LOOP_PASSES]
_PASSES = [p for p in LOOP_PASSES[: _NAMES.index("flatten") + 1] if p.on >= GPU and p.name not in _FOR_SPEED]
_TIDYING = 1 + [p.name for p in _PASSES].index("clean")  # passes after which loops are compared


def block_memory(built: Built, asked: Collection[str]) -> Iterator[tuple[str, int | UserError]]:
    """For each stage in `asked` that blocks compute at root, yield the bytes of shared memory of a block, or the error
    if a block cannot have what is requested."""
    body = built.nest.body
    holders = (p.stage for p in root_stages(body) if p.stage in asked and any(isinstance(s, Realize) for s in walk(p)))
    descriptions, known = Descriptions(built.graph, built.plan), dict[Hashable, int]()
    for stage in dict.fromkeys(holders):
        try:
            body = _after(_PASSES[:_TIDYING], of_root_stages(built.nest.body, {stage}), built)
            alike = descriptions.of(body)
            if alike not in known:
                known[alike] = _shared_memory(_after(_PASSES[_TIDYING:], body, built))
            yield stage, known[alike]
        except UserError as refusal:
            yield stage, refusal


def _after(passes: Sequence[LoopPass], body: Stmt, built: Built) -> Stmt:
    """The loops after these passes."""
    for step in passes:
        body = step.run(body, built)
    return body


def _shared_memory(body: Stmt) -> int:
    """The bytes of shared memory of the blocks of flat loops."""
    blocks = (s.scratch for s in walk(body) if isinstance(s, For) and s.kind is Kind.BLOCK)
    return max((int(n.value) for n in blocks if isinstance(n, Const)), default=0)
