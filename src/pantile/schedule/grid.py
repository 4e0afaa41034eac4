"""Blocks and threads of GPUs: which loops may be which, and how many threads a block has.

Around every statement the loops are, outermost first: those of the host, blocks, those of a block, threads, those of a
thread. A kernel begins with its block loops; what is computed in it is computed by all threads of a block, or by each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..target.kinds import AT_ONCE, Kind, Memory
from .directives import Directive
from .draft import StageDraft
from .limits import MOST_THREADS
from .nest import LoopDraft, NestDraft
from .placement import Placement


def check_grid(drafts: dict[str, StageDraft], placement: Placement) -> None:
    """Refuse what no GPU can do."""
    for s in drafts.values():
        if not s.is_inline:
            _check_place(s, placement)
            _check_memory(s, placement)
            for nest in s.nests:
                _check_order(s, nest, placement)
                _check_threads(s, nest)


def _check_order(s: StageDraft, nest: NestDraft, placement: Placement) -> None:
    """Blocks outermost, threads inside of them, each directly inside each other."""
    around = {placement.kind(x) for chain in placement.chains_around(s.stage.name) for x in chain}
    for kind in (Kind.BLOCK, Kind.THREAD):
        own = [k for k, x in enumerate(nest.loops) if x.kind is kind]
        if not own:
            continue
        loop = nest.loops[own[0]]
        if loop.mark is None:
            continue
        if kind in around or Kind.THREAD in around:
            inside = kind if kind in around else Kind.THREAD
            raise s.no(loop.mark, f"{s.stage.name} is computed inside of {inside} loops already",
                       f"leave loop {loop.name} serial, or compute {s.stage.name} outside")  # fmt: skip
        if own[-1] - own[0] != len(own) - 1:
            between = next(x for x in nest.loops[own[0] :] if x.kind is not kind)
            raise s.no(loop.mark, f"loop {between.name} ({between.kind}) lies between {kind} loops",
                       f"reorder the {kind} loops so that they are directly inside each other")  # fmt: skip
    kinds = [x.kind for x in nest.loops]
    if Kind.BLOCK in kinds and Kind.THREAD in kinds[: kinds.index(Kind.BLOCK)]:
        loop = nest.loops[kinds.index(Kind.BLOCK)]
        raise _no(s, loop, f"block loop {loop.name} lies inside of thread loops", "reorder the block loops outermost")


def _no(s: StageDraft, loop: LoopDraft, why: str, remedy: str) -> Exception:
    assert loop.mark is not None
    return s.no(loop.mark, why, remedy)


def _check_threads(s: StageDraft, nest: NestDraft) -> None:
    """A block has as many threads as the thread loops of the stage whose block it is have iterations."""
    threads = [x for x in nest.loops if x.kind is Kind.THREAD]
    if not threads or all(x.kind is not Kind.BLOCK for x in nest.loops):
        return
    count = math.prod(x.extent or 1 for x in threads)
    if count > MOST_THREADS:
        raise _no(s, threads[0], f"a block would have {count} threads, and a GPU has {MOST_THREADS} at most",
                  "split these loops further, and leave some of them serial")  # fmt: skip


def _check_place(s: StageDraft, placement: Placement) -> None:
    """What is computed at a block or a thread is computed at the innermost of these loops."""
    if s.compute is None:
        return
    for site in placement.sites(s.stage.name):
        kind = placement.kind(site)
        last = _innermost(placement.drafts[site.stage].nests[site.definition].loops, kind)
        if kind in (Kind.BLOCK, Kind.THREAD) and last != site.loop:
            raise s.no(s.compute, f"loop {site.loop} of {site.stage} is a {kind} loop around another, {last}",
                       f'use .compute_at("{site.stage}", "{last}")')  # fmt: skip


def _innermost(loops: Sequence[LoopDraft], kind: Kind) -> str:
    return [x.name for x in loops if x.kind is kind][-1]


def _check_memory(s: StageDraft, placement: Placement) -> None:
    """Shared memory is that of a block, registers are those of a thread."""
    if s.memory is None:
        return
    for chain in placement.chains_around_memory(s.stage.name):
        _check_kept(s, s.memory, {placement.kind(x) for x in chain})


def _check_kept(s: StageDraft, asked: Directive, kinds: set[Kind]) -> None:
    """In loops of these kinds."""
    memory = Memory(asked.args[0])
    if memory is Memory.SHARED and (Kind.BLOCK not in kinds or Kind.THREAD in kinds):
        where = "inside of a thread" if Kind.THREAD in kinds else "outside of all blocks"
        raise s.no(asked, f"{s.stage.name} is stored {where}, and threads of one block share this memory",
                   "store it at a block loop, or at a loop between blocks and threads")  # fmt: skip
    if memory in (Memory.REGISTER, Memory.STACK) and not kinds.intersection(AT_ONCE):
        raise s.no(asked, f"{s.stage.name} is stored outside of all threads, and this is memory of one thread",
                   "compute it at a thread loop or in it, or at a block whose threads each keep their own")  # fmt: skip
    if memory is Memory.HEAP and kinds.intersection(AT_ONCE):
        raise s.no(asked, f"{s.stage.name} is stored inside of a block, for which nobody allocates such memory",
                   'use "shared" or "register", or store it at root')  # fmt: skip
