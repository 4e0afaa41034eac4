"""Tiled loops in any order, as directives: loops over tiles in one order, loops inside of them in another.

    TiledLoops({"i": 64, "j": 64}, {"i": 8, "j": 32}, inter=("j", "i"), intra=("i", "j")).applied(marks, chain, ...)

    .split("i", "i_o", "i_i", 8).split("j", "j_o", "j_i", 32).vectorize("j_i", 4)
        .reorder("j_o", "i_o", "i_i", "j_i", "j_i_v")

A loop whose tile is its whole extent has no loop over tiles; one whose tile is one point has no loop inside.

The innermost iterations of a tile are unrolled, so that what they share stays in registers:

    for i, k, j: C[i, j] += A[i, k] * B[k, j]    ->    for i, j, k: 4 of i by 4 vectors of j, 4 times along k

sioutas-thesis leaves that to LLVM, which does not find it. The predicted misses remain valid: the outermost loop inside
a tile is the same one, and each of its iterations touches the same values, in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...dataclass import cached_property, dataclass
from ...schedule.directives import StageSchedule
from ...schedule.names import fresh
from ...schedule.sums import shared_terms, sums_at_a_time
from ..common.marking import Marking, unrolled, vector
from ..common.tiles import marking
from .statement import Statement, is_transposed

ROWS = TERMS = 4  # iterations of a loop of the output, and of a sum, that are unrolled


@dataclass(frozen=True)
class TiledLoops:
    """The tiled loops of one stage. Definitions without some of the loops are tiled along the others."""

    extents: Mapping[str, int]  # of all loops of the stage
    tile: Mapping[str, int]  # loops that are not in it are whole
    inter: tuple[str, ...]  # the order of loops over tiles, outermost first
    intra: tuple[str, ...]  # the order of the loops inside of these

    def _is_whole(self, loop: str) -> bool:
        return self.inside(loop) >= self.extents[loop] > 0

    def inside(self, loop: str) -> int:
        """The trip count of a loop inside a tile."""
        return self.tile.get(loop, self.extents[loop])

    @cached_property
    def outer(self) -> dict[str, str]:
        """The names of the loops over tiles, in their order."""
        return {loop: self._names[loop][0] for loop in self.inter if not self._is_whole(loop)}

    @cached_property
    def inner(self) -> dict[str, str]:
        """The names of the loops inside tiles, in their order."""
        return {n: self._names[n][1] for n in self.intra if self._is_whole(n) or self.tile[n] > 1}

    @cached_property
    def _names(self) -> dict[str, tuple[str, str]]:
        taken = set(self.extents)
        names = {}
        for loop in self.extents:
            if self._is_whole(loop) or self.tile[loop] == 1:
                names[loop] = (loop, loop)
            else:
                names[loop] = (fresh_name(loop, "_o", taken), fresh_name(loop, "_i", taken))
        return names

    def applied(
        self,
        marks: Marking,
        chain: StageSchedule,
        own: Sequence[str],
        column: str | None,
        lanes: int,
        copies: Mapping[str, int] | None = None,
    ) -> StageSchedule:
        """Tile and mark a definition with the loops `own`, in this order so far.

        `column`: the loop to vectorize. `copies`: the iterations of loops to unroll around it, outermost first.
        """
        now: list[str] = []
        for loop in own:
            outer, inner = self._names[loop]
            if outer != inner:
                chain = chain.split(loop, outer, inner, self.tile[loop])
            now += dict.fromkeys((outer, inner))
        wanted = [name for loop, name in [*self.outer.items(), *self.inner.items()] if loop in own]
        here = [(self.inner[n], count) for n, count in (copies or {}).items() if n in self.inner and n in own]
        parts = [unrolled(*copy) for copy in here]
        if column is not None:
            parts.append(vector(self.inner[column], lanes))
        for p in parts:
            now.insert(now.index(p.loop) + 1, p.part)
            wanted.append(p.part)
        return marks.nest(chain, parts, () if now == wanted else wanted)


def fresh_name(loop: str, suffix: str, taken: set[str]) -> str:
    """A fresh name for a loop or a dim that is derived from another one."""
    name = fresh(loop.replace(".", "_") + suffix, taken.__contains__)
    taken.add(name)
    return name


def blocked(s: Statement, chain: StageSchedule, own: Sequence[str], loops: TiledLoops) -> StageSchedule:
    """Mark a statement with the loops `own`: tiled as in `loops`, vectorized along its column, in register blocks."""
    block = _block(s, loops)
    chain = block.loops.applied(marking(s.problem), chain, own, s.column, block.lanes, block.unrolled)
    if block.rows is not None and s.has_masked_lanes:  # blocks that a condition cuts through have code of their own
        chain = chain.partition(loops.inner[block.rows], "always")
    return chain


def in_blocks(s: Statement, loops: TiledLoops) -> TiledLoops:
    """The order of a statement's loops when sums are computed in register blocks."""
    return _block(s, loops).loops


@dataclass(frozen=True)
class _Block:
    """The lanes of the vector, the iterations to unroll around it, and the order of the loops around these."""

    loops: TiledLoops
    lanes: int
    unrolled: Mapping[str, int] = field(default_factory=dict)
    rows: str | None = None  # the loop of the output that is unrolled


def _block(s: Statement, loops: TiledLoops) -> _Block:
    sums = [n for n in loops.inner if n not in s.output.loops]
    if sums:
        return _sum(s, loops, sums)
    turned = [n for r in s.inputs if is_transposed(r, s.output) for n in loops.inner if n in r.column]
    if turned:  # squares that are turned in registers
        return _Block(loops, s.lanes * _vectors(s, loops), {turned[0]: min(s.lanes, loops.inside(turned[0]))})
    return _Block(loops, s.lanes)


def _sum(s: Statement, loops: TiledLoops, sums: list[str]) -> _Block:
    """Run sums innermost, around as many values as registers hold. The outermost loop inside a tile stays there."""
    first, *others = loops.intra
    order = (first, *(n for n in others if n not in sums), *(n for n in others if n in sums))
    in_any_order = [n for n in sums if n in s.tileable or n == sums[-1]]
    terms = [n for n in in_any_order if loops.inside(n) >= TERMS]
    rows = _rows(s, loops)
    if rows is not None:  # last come those for which rows read the same values
        block = ROWS * _vectors(s, loops)
        shared = shared_terms(s.stage, s.definition, rows, s.vector, block, ROWS, s.problem.strict)
        terms.sort(key=lambda n: n in shared)
    unrolled = dict.fromkeys(terms[-1:], TERMS) | ({} if rows is None else {rows: min(ROWS, loops.inside(rows))})
    return _Block(replace(loops, intra=order), s.lanes * _vectors(s, loops), unrolled, rows)


def _rows(s: Statement, loops: TiledLoops) -> str | None:
    """The innermost loop of enough iterations along which some input does not change, so that rows share it."""
    again = [n for n in loops.inner if n in s.output.loops and any(n not in r.loops for r in s.inputs)]
    return max((n for n in reversed(again) if n != s.column), key=lambda n: min(ROWS, loops.inside(n)), default=None)


def _vectors(s: Statement, loops: TiledLoops) -> int:
    """The number of vectors of a block along the column."""
    most = sums_at_a_time(len(s.stage.dtypes), s.problem.cpu.registers) // ROWS
    return max(1, min(most, loops.inside(s.vector) // s.lanes))


def tiled(s: Statement, chain: StageSchedule, loops: TiledLoops) -> StageSchedule:
    chain = blocked(s, chain, tuple(s.extents), loops)
    shared = _shared_loops(s, loops)
    if len(shared) > 1:  # "we merge the outer inter-tile loops when possible"
        fused = "_".join(shared)
        chain, shared = chain.fuse(shared[0], shared[1], fused), [fused]
    return marking(s.problem).nest(chain, shared=shared)


def _shared_loops(s: Statement, loops: TiledLoops) -> list[str]:
    """The outermost loops to share among threads. The innermost inter-tile loop stays in one thread, to reuse L2."""
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
