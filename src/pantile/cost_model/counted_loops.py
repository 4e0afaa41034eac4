"""The loops of one definition for a box of its stage, with their trip counts.

y in blocks of 8, tail guard, 20 rows       3 blocks of 8 rows, of which 20 / 24 are computed
... and the rows of a block unrolled        two versions: 2 blocks of 8 rows, and a serial loop over 4

One iteration of the innermost serial or parallel loop consists of the loops inside: vectors and copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import chain, combinations
from math import prod

from ..schedule.plan import Fuse, Nest, Split
from ..schedule.split_loops import SplitLoops, Tail, split_loops
from ..target.kinds import ITERATED, Kind
from .copies import MOST, Copies

MOST_PEELED = 3  # splits of one definition whose tails have loops of their own here, at most
FEW = 4  # iterations of an innermost loop over single elements that LLVM unrolls completely


class CountedLoops:
    """The loops of a definition for a box of its stage. For splits in `peeled`, named by their inner loops, these are
    the loops over the whole blocks; for those also in `tails`, they are the loops over the tail. For other splits, all
    iterations count as alike."""

    def __init__(
        self,
        nest: Nest,
        extents: Mapping[str, int],
        peeled: frozenset[str] = frozenset(),
        tails: frozenset[str] = frozenset(),
    ) -> None:
        self.nest, self.extents, self._peeled, self._tails = nest, extents, peeled, tails
        self.names = [loop.name for loop in nest.loops]
        self.kinds = {loop.name: loop.kind for loop in nest.loops}
        self.sizes = dict(extents)
        self.of: dict[str, frozenset[str]] = {v: frozenset((v,)) for v in extents}  # loop -> variables that it moves
        self.step: dict[str, int] = dict.fromkeys(extents, 1)  # the distance by which one iteration moves these
        self.fastest: dict[str, str] = {v: v for v in extents}  # the one of these that changes with every iteration
        self.part = 1.0  # the fraction of the iterations that remains if last blocks are partial
        self.partial: list[tuple[SplitLoops, float]] = []  # splits with partial last blocks, and the fraction
        self._rewritten: list[tuple[Split | Fuse, tuple[int, ...]]] = []  # and the extents of the loops before
        self._rests: list[tuple[SplitLoops, int, int]] = []  # the loops of tails: their iterations, and their step
        self._gone: set[str] = set()  # loops, also ones that are split again, that tails do not have
        self._clipped: set[str] = set()  # loops shorter in a last block: lowering knows of no whole block there
        self.with_tails: list[str] = []  # inner loops of the splits that are peeled
        splits = iter(split_loops(nest))
        for r in nest.rewrites:
            if isinstance(r, Split):
                self._split(r, next(splits))
            else:
                self._fuse(r)
        for s, trips, step in self._rests:
            for name in (*s.blocks, *s.inside):
                self.sizes[name], self.kinds[name] = 1, Kind.SERIAL
            self.sizes[s.rest], self.step[s.rest] = trips, step

    def _split(self, r: Split, loops: SplitLoops) -> None:
        n, step, factor = self.sizes[r.old], self.step[r.old], r.factor
        self._rewritten.append((r, (n,)))
        blocks, inside, part = -(-n // factor), min(n, factor), 1.0
        tail = loops.tail(n % factor == 0, lambda: n >= factor and r.old not in self._clipped)
        self._clipped |= {r.outer, r.inner} if r.old in self._clipped else {r.inner} if tail is Tail.CLIP else set()
        if r.old in self._gone:
            self._gone |= {r.outer, r.inner}
            part = float(r.inner not in self._tails)
        elif tail is Tail.PEEL and r.inner in self._tails:
            self._gone |= {r.outer, r.inner}
            self._rests.append((loops, n % factor, step))
            blocks = inside = 1
        elif tail is Tail.PEEL and r.inner in self._peeled:
            blocks, part = max(1, n // factor), 1.0 if n >= factor else 0.0
        elif r.inner in self._tails:  # there is no tail in this version
            part = 0.0
        elif tail is not Tail.SHIFT:
            inside = factor if tail is Tail.PREDICATE else inside
            part = n / (blocks * inside)
            if tail is Tail.PEEL:
                self.with_tails.append(r.inner)
        if part != 1.0:
            self.part *= part
            self.partial.append((loops, part))
        self.sizes[r.outer], self.sizes[r.inner] = blocks, inside
        self.of[r.outer] = self.of[r.inner] = self.of[r.old]
        self.step[r.outer], self.step[r.inner] = step * factor, step
        self.fastest[r.outer] = self.fastest[r.inner] = self.fastest[r.old]

    def _fuse(self, r: Fuse) -> None:
        rows, columns = self.sizes[r.outer], self.sizes[r.inner]
        self._rewritten.append((r, (rows, columns)))
        self.sizes[r.fused] = rows * columns
        self.of[r.fused] = self.of[r.outer] | self.of[r.inner]
        self.step[r.fused], self.fastest[r.fused] = self.step[r.inner], self.fastest[r.inner]

    def versions(self) -> list[CountedLoops]:
        """The loops of the whole blocks, and those of the tails of peeled splits."""
        if not self.with_tails:
            return [self]
        names = self.with_tails[-MOST_PEELED:]
        which = chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
        every = (CountedLoops(self.nest, self.extents, frozenset(names), frozenset(tails)) for tails in which)
        return [v for v in every if v.part]

    def trips(self, name: str) -> int:
        return self.sizes[name]

    def iterations(self, depth: int) -> float:
        """The number of iterations of the first `depth` loops together."""
        open_loops = set(self.names[:depth])
        parts = [part for s, part in self.partial if open_loops.issuperset((*s.blocks, *s.inside))]
        return prod(map(self.trips, self.names[:depth])) * prod(parts)

    @property
    def points(self) -> float:
        """How often the innermost statement runs."""
        return prod(map(self.trips, self.names)) * self.part

    def ranges(self, outside: int) -> dict[str, int]:
        """The number of values that each variable takes in one iteration of the first `outside` loops."""
        at = {name: 1 if k < outside else self.sizes[name] for k, name in enumerate(self.names)}
        for r, sizes in reversed(self._rewritten):
            if isinstance(r, Split):
                outer, inner = at.pop(r.outer), at.pop(r.inner)
                at[r.old] = min(sizes[0], (outer - 1) * r.factor + inner)
            else:
                runs = at.pop(r.fused) > 1
                at[r.outer], at[r.inner] = sizes if runs else (1, 1)
        return at


class InnermostLoops:
    """The loops of a definition that are part of one iteration of its innermost serial or parallel loop."""

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
        """The variables of partitioned loops, which have separate code where conditions do not hold everywhere."""
        loops = self.loops
        named = [x.name for x in loops.nest.loops if x.partition == "always" and loops.trips(x.name) > 1]
        return self.along.union(*(loops.of[name] for name in named))

    def standing_still(self, variables: frozenset[str]) -> int:
        """The trip count of the innermost loops that change none of some variables."""
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
        """All copies, if they are few enough to find out which of them share values."""
        copies = tuple((self.loops.fastest[n], self.loops.step[n], self.loops.trips(n)) for n in self.copied)
        return copies if prod(n for _, _, n in copies) <= MOST else ()

    def copies(self, variables: frozenset[str]) -> int:
        """The number of distinct copies of what depends on some variables."""
        return prod(self.loops.trips(n) for n in self.copied if not variables.isdisjoint(self.loops.of[n]))
