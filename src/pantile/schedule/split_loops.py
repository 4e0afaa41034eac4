"""The loops that the splits of a nest become, and how the last block of a split ends. Lowering and the cost model both
use this module.

    whole       all blocks are whole
    shift       the last block starts earlier and recomputes a few values (pure definitions known to be large enough)
    clip        the inner loop of the last block is shorter (serial inner loops)
    peel        the iterations after the whole blocks run in a serial loop (vector and unrolled inner loops, and
                those of tensor cores, which stay such)
    predicate   each iteration tests whether it is inside (loops that are fused, or nested inside out)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from ..dataclass import dataclass
from ..target.kinds import OF_WHOLE_BLOCKS
from .plan import Fuse, Nest, Split


class Tail(Enum):
    """How the last block of a split ends for the given extents."""

    WHOLE = "whole"
    SHIFT = "shift"
    CLIP = "clip"
    PEEL = "peel"
    PREDICATE = "predicate"


@dataclass(frozen=True)
class SplitLoops:
    """The loops that a split finally becomes, after the rewrites that follow it, outermost first."""

    split: Split
    blocks: tuple[str, ...]  # what its outer loop becomes
    inside: tuple[str, ...]  # what its inner loop becomes
    has_whole_blocks: bool  # whether a loop of a kind that takes whole blocks runs over the inner part, or blocks of it
    is_fused: bool  # whether any of these loops is fused with another
    is_inside_out: bool  # whether an inner loop is outside of an outer one, or fused with it

    def tail(self, is_whole: bool, is_large: Callable[[], bool]) -> Tail:
        """How the last block ends. `is_whole` tells that all blocks are known to be whole, `is_large` that there is at
        least one whole block."""
        if self.is_inside_out:
            return Tail.PREDICATE
        if is_whole:
            return Tail.WHOLE
        if self.split.tail == "shift" and is_large():
            return Tail.SHIFT
        if not self.has_whole_blocks and self.split.tail != "peel":
            return Tail.CLIP
        return Tail.PREDICATE if self.is_fused else Tail.PEEL

    @property
    def rest(self) -> str:
        """The only one of these loops that a peeled tail has."""
        return self.inside[0]


@lru_cache(maxsize=1 << 12)  # the candidates of a search have most nests in common
def split_loops(nest: Nest) -> tuple[SplitLoops, ...]:
    """The loops of all splits of a nest, in the order of the splits."""
    return tuple([_loops_of(nest, r, k + 1) for k, r in enumerate(nest.rewrites) if isinstance(r, Split)])


def _loops_of(nest: Nest, split: Split, after: int) -> SplitLoops:
    blocks, inside, first, is_fused = {split.outer}, {split.inner}, split.inner, False
    for r in nest.rewrites[after:]:
        old, new = ({r.old}, {r.outer, r.inner}) if isinstance(r, Split) else ({r.outer, r.inner}, {r.fused})
        is_fused = is_fused or isinstance(r, Fuse) and not old.isdisjoint(blocks | inside)
        if first in old:
            first = r.outer if isinstance(r, Split) else r.fused
        blocks, inside = (names - old | new if names & old else names for names in (blocks, inside))
    loops = [loop.name for loop in nest.loops]
    kinds = {loop.name: loop.kind for loop in nest.loops}
    last_block, first_inside = (pick(map(loops.index, names)) for pick, names in ((max, blocks), (min, inside)))
    return SplitLoops(
        split,
        tuple([n for n in loops if n in blocks]),
        tuple([n for n in loops if n in inside]),
        kinds[first] in OF_WHOLE_BLOCKS,
        is_fused,
        first_inside <= last_block,
    )
