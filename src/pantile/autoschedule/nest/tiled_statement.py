"""A statement with its tiles and order of loops to directives: threads outermost, a block in registers innermost."""

from __future__ import annotations

from ...schedule.directives import StageSchedule
from ..common.tiles import marking
from .register_block import blocked
from .statement import Statement
from .tiled_loops import TiledLoops


def tiled(s: Statement, chain: StageSchedule, loops: TiledLoops) -> StageSchedule:
    chain = blocked(s, chain, tuple(s.extents), loops)
    shared = _shared_loops(s, loops)
    if len(shared) > 1:  # "we merge the outer inter-tile loops when possible"
        fused = "_".join(shared)
        chain, shared = chain.fuse(shared[0], shared[1], fused), [fused]
    return marking(s.problem).nest(chain, shared=shared)


def _shared_loops(s: Statement, loops: TiledLoops) -> list[str]:
    """The outermost loops to share among threads; the innermost inter-tile loop stays with one, to reuse L2."""
    outer = list(loops.outer)
    if not outer:
        first = next(iter(loops.inner))
        return [loops.inner[first]] if first in s.free and first != s.column else []
    leading = []
    for loop in outer[:1] + outer[1:-1]:
        if loop not in s.free:
            break
        leading.append(loops.outer[loop])
    return leading[:2]
