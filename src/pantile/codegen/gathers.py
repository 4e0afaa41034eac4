"""Which gathers read neighbouring elements in every lane.

`t[i]`, `t[i + 1]`, ... with the same vector `i` of places that data decides read one short run per lane. Each lane then
loads its run at once, and the runs are transposed into one vector per offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..expr.linear import Linear, linear
from ..expr.nodes import Load
from ..expr.types import DType

_RUN_BYTES = 16  # a vector register
_LEAST_BYTES = 4  # narrower elements take longer to take apart than to load
Family = tuple[object, ...]


@dataclass(frozen=True)
class Run:
    """Neighbouring offsets, from the first on."""

    first: int
    width: int


def places(load: Load) -> Linear:
    """A vector of indices as a sum of vectors, and what all lanes add to it."""
    return linear(load.indices[0])


def family(load: Load) -> Family:
    """What gathers have in common that differ by a constant."""
    terms = frozenset((k, c) for k, (_, c) in places(load).terms.items())
    return (load.buffer, load.lanes, terms)


def runs(loads: Iterable[Load]) -> dict[Family, dict[int, Run]]:
    """Per family of these gathers, the run that serves each offset."""
    offsets: dict[Family, set[int]] = {}
    widest: dict[Family, int] = {}
    for load in loads:
        offsets.setdefault(family(load), set()).add(places(load).constant)
        widest[family(load)] = _widest(load.dtype, load.lanes)
    return {f: _cover(sorted(found), widest[f]) for f, found in offsets.items()}


def _widest(t: DType, lanes: int) -> int:
    widest = _RUN_BYTES // t.bytes
    return widest if t.bytes >= _LEAST_BYTES and lanes % widest == 0 else 1


def _cover(offsets: list[int], widest: int) -> dict[int, Run]:
    """Cut gapless stretches into the longest runs whose width is a power of two."""
    found: dict[int, Run] = {}
    for first in offsets:
        if first in found:
            continue
        width = widest
        while width > 1 and not all(first + k in offsets for k in range(width)):
            width //= 2
        found |= {first + k: Run(first, width) for k in range(width)}
    return found
