"""Reads that are a star rather than a box: of the box around them, they touch a part.

    f[y - 1, x] + f[y + 1, x] + f[y, x]; g[z - 1, y, x] + g[z + 1, y, x] + g[z, y - 1, x] + g[z, y + 1, x]

The first are all of a box of 3 rows. Of the 3 by 3 rows around the second, one iteration reads 4; a tile of 16 by 16 of
them, nearly all of 18 by 18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, prod

from ..dataclass import dataclass
from .linear_forms import NOTHING, LinearForm

Place = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Star:
    """Reads of one source by the same slopes: along all of its axes but the last one, where each begins."""

    forms: tuple[LinearForm, ...]
    places: frozenset[Place]

    def filled(self, extents: Mapping[str, int]) -> float:
        """The part that is read of the box around all reads while loops run over such extents."""
        sizes = [1 + ceil(sum(abs(s) * (extents.get(v, 1) - 1) for v, s in f.slopes) - NOTHING) for f in self.forms]
        ends = [(min(along), max(along)) for along in zip(*self.places, strict=True)]
        around: float = prod(b - a + n for (a, b), n in zip(ends, sizes, strict=True))
        return _union(self.places, sizes) / around


def star(accesses: Sequence[tuple[LinearForm, ...]]) -> Star | None:
    """The star of all reads of a source; None if they are a box, or are not known."""
    slopes = {tuple(f.slopes for f in forms) for forms in accesses}
    if len(slopes) > 1 or any(f.decided is not None or f.rounded or f.low != f.high for a in accesses for f in a):
        return None
    places = frozenset(tuple(f.low for f in forms[:-1]) for forms in accesses)
    if len(places) == prod(len(set(along)) for along in zip(*places, strict=True)):
        return None
    return Star(accesses[0][:-1], places)


def _union(places: frozenset[Place], sizes: Sequence[int]) -> float:
    """The size of the union of boxes of one size that begin at such places."""
    if not sizes:
        return 1.0
    first, others = sizes[0], sizes[1:]
    cuts = sorted({end for p in places for end in (p[0], p[0] + first)})
    known: dict[frozenset[Place], float] = {}
    total = 0.0
    for a, b in pairwise(cuts):
        inside = frozenset(p[1:] for p in places if p[0] <= a < p[0] + first)
        if inside not in known:
            known[inside] = _union(inside, others) if inside else 0.0
        total += (b - a) * known[inside]
    return total
