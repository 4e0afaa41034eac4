"""The loops that one iteration of the innermost serial or parallel loop of a definition consists of: vectors and
copies."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod

from ..target.kinds import ITERATED, Kind
from .copies import MOST, Copies
from .counted_loops import CountedLoops

FEW = 4  # iterations of an innermost loop of single elements, all of which LLVM writes out


class InnermostLoops:
    """The loops of a definition that one iteration of its innermost real loop consists of."""

    def __init__(self, loops: CountedLoops) -> None:
        self.loops = loops
        names, kinds = loops.names, loops.kinds
        real = [k for k, n in enumerate(names) if kinds[n] in ITERATED and loops.trips(n) > 1]
        short = None
        if len(real) > 1 and loops.trips(names[real[-1]]) <= FEW and Kind.VECTOR not in kinds.values():
            short = names[real.pop()]
        at = real[-1] if real else -1
        self.loop: str | None = names[at] if real else None
        self._real = [names[k] for k in real]
        inside = names[at + 1 :]
        self.copied = [n for n in inside if (kinds[n] is Kind.UNROLL or n == short) and loops.trips(n) > 1]
        self.vectors = [n for n in inside if kinds[n] is Kind.VECTOR]
        self.lanes = prod(map(loops.trips, self.vectors))
        self.across = frozenset().union(*(loops.of[n] for n in self.vectors)) if self.lanes > 1 else frozenset()
        going = [*self.copied, *self.vectors, *([self.loop] if self.loop else [])]
        self.moving = frozenset().union(*(loops.of[n] for n in going))
        self.written = frozenset().union(*(loops.of[n] for n in self.copied))  # variables of copies
        self.points = self.lanes * prod(map(loops.trips, self.copied))

    @property
    def along(self) -> frozenset[str]:
        """The variables of the innermost real loop."""
        return self.loops.of[self.loop] if self.loop else frozenset()

    @property
    def apart(self) -> frozenset[str]:
        """The variables of partitioned loops: those with code of their own where conditions do not hold everywhere."""
        loops = self.loops
        named = [x.name for x in loops.nest.loops if x.partition == "always" and loops.trips(x.name) > 1]
        return self.along.union(*(loops.of[name] for name in named))

    def standing_still(self, variables: frozenset[str]) -> int:
        """The trip count of the innermost loops that do not change any of some variables."""
        count = 1
        for name in reversed(self._real):
            if not self.loops.of[name].isdisjoint(variables):
                break
            count *= self.loops.trips(name)
        return count

    @property
    def signature(self) -> Hashable:
        """A key that is equal for equal iterations."""
        loops, of_loop = self.loops, [self.loop] if self.loop else []
        parts = [
            [(loops.of[n], loops.step[n], loops.fastest[n], loops.trips(n)) for n in names]
            for names in (of_loop, self.copied, self.vectors)
        ]
        fused = [loops.extents[loops.fastest[n]] for n in self.vectors if len(loops.of[n]) > 1]
        return (*map(tuple, parts), *fused)

    @property
    def all_copies(self) -> Copies:
        """All copies, if they are few enough to see which of them share values."""
        copies = tuple((self.loops.fastest[n], self.loops.step[n], self.loops.trips(n)) for n in self.copied)
        return copies if prod(n for _, _, n in copies) <= MOST else ()

    def copies(self, variables: frozenset[str]) -> int:
        """The number of different copies of what depends on some variables."""
        return prod(self.loops.trips(n) for n in self.copied if not variables.isdisjoint(self.loops.of[n]))
