"""The loops of one definition for a box of its stage, with their trip counts.

y in blocks of 8, tail guard, 20 rows       3 blocks of 8 rows, of which 20 / 24 are computed
... and the rows of a block unrolled        two versions: 2 blocks of 8 rows, and a serial loop over 4
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations
from math import prod

from ..schedule.plan import Fuse, Nest, Split
from ..schedule.split_loops import SplitLoops, Tail, split_loops
from ..target.kinds import Kind

MOST_PEELED = 3  # splits of one definition whose tails have loops of their own here


class CountedLoops:
    """The loops of a definition for a box of its stage. Of `peeled` splits, by their inner loops, these are the loops
    of the whole blocks, or, of those among `tails`, those of the tail. All iterations of others count as alike."""

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
        self.step: dict[str, int] = dict.fromkeys(extents, 1)  # how far one iteration moves them
        self.fastest: dict[str, str] = {v: v for v in extents}  # of these, the one that changes with every iteration
        self.part = 1.0  # the part of the iterations that remains where the last blocks are partial
        self.partial: list[tuple[SplitLoops, float]] = []  # splits whose last blocks are, and what part there is of all
        self._rewritten: list[tuple[Split | Fuse, tuple[int, ...]]] = []  # and the extents of the loops before
        self._rests: list[tuple[SplitLoops, int, int]] = []  # the loops of tails: how many iterations of which step
        self._gone: set[str] = set()  # loops, also ones that are split again, that tails do not have
        self._clipped: set[str] = set()  # loops that are shorter in a last block: lowering knows of no whole one there
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
        """How many iterations the first `depth` loops have together."""
        open_loops = set(self.names[:depth])
        parts = [part for s, part in self.partial if open_loops.issuperset((*s.blocks, *s.inside))]
        return prod(map(self.trips, self.names[:depth])) * prod(parts)

    @property
    def points(self) -> float:
        """How often the innermost statement runs."""
        return prod(map(self.trips, self.names)) * self.part

    def ranges(self, outside: int) -> dict[str, int]:
        """How many values each variable takes in one iteration of the first `outside` loops."""
        at = {name: 1 if k < outside else self.sizes[name] for k, name in enumerate(self.names)}
        for r, sizes in reversed(self._rewritten):
            if isinstance(r, Split):
                outer, inner = at.pop(r.outer), at.pop(r.inner)
                at[r.old] = min(sizes[0], (outer - 1) * r.factor + inner)
            else:
                runs = at.pop(r.fused) > 1
                at[r.outer], at[r.inner] = sizes if runs else (1, 1)
        return at
