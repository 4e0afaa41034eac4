"""Tiled loops in any order, as directives: loops over tiles in one order, loops inside of them in another.

    TiledLoops({"i": 64, "j": 64}, {"i": 8, "j": 32}, inter=("j", "i"), intra=("i", "j")).applied(marks, chain, ...)

    .split("i", "i_o", "i_i", 8).split("j", "j_o", "j_i", 32).vectorize("j_i", 4)
        .reorder("j_o", "i_o", "i_i", "j_i", "j_i_v")

Loops whose tile is all of them have no loop over tiles, those whose tile is one point have no loop inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...cached import cached_property
from ...dataclass import dataclass
from ...schedule.directives import StageSchedule
from ...schedule.names import fresh
from ..common.marking import Marking, unrolled, vector


@dataclass(frozen=True)
class TiledLoops:
    """The tiled loops of one stage; definitions that lack some of the loops are tiled along the others."""

    extents: Mapping[str, int]  # of all loops of the stage
    tile: Mapping[str, int]  # loops that it does not name are whole
    inter: tuple[str, ...]  # the order of loops over tiles, outermost first
    intra: tuple[str, ...]  # and of those inside of them

    def _is_whole(self, loop: str) -> bool:
        return self.inside(loop) >= self.extents[loop] > 0

    def inside(self, loop: str) -> int:
        """The trip counts inside a tile."""
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
        """The directives of a definition with the loops `own`, in this order so far.

        `column`: the loop to vectorize, `copies`: iterations of loops to write out around it, outermost first.
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
    """A name for a loop or a dim that comes of another one."""
    name = fresh(loop.replace(".", "_") + suffix, taken.__contains__)
    taken.add(name)
    return name
