"""Which gathers read neighbouring elements in every lane.

`t[i]`, `t[i + 1]`, ... with the same vector `i` of places that data decides read one short run per lane. Each lane then
loads its run at once, and the runs are transposed into one vector per offset. The bytes of a pixel become a number of
32 bits per lane, which leaves the general registers as it is, and each of them is shifted out of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dataclass import dataclass
from ..expr.linear import Linear, linear
from ..expr.nodes import Load
from ..expr.types import DType

_RUN_BYTES = 16  # a vector register
_LEAST_BYTES = 4  # narrower elements take longer to take apart than to load, but for the bytes of a pixel
_PIXELS = (4, 3)  # of so many bytes
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
    widths: dict[Family, tuple[int, ...]] = {}
    for load in loads:
        offsets.setdefault(family(load), set()).add(places(load).constant)
        widths[family(load)] = _widths(load.dtype, load.lanes)
    return {f: _cover(sorted(found), widths[f]) for f, found in offsets.items()}


def _widths(t: DType, lanes: int) -> tuple[int, ...]:
    """How many elements a run may have, the most first."""
    if t.bytes == 1 and not t.is_bool:
        return _PIXELS if lanes % 2 == 0 else ()  # two lanes at a time
    widest = _RUN_BYTES // t.bytes
    if t.bytes < _LEAST_BYTES or lanes % widest:
        return ()
    return tuple(1 << k for k in range(widest.bit_length() - 1, 0, -1))


def _cover(offsets: list[int], widths: tuple[int, ...]) -> dict[int, Run]:
    """Cut gapless stretches into the longest runs that there may be."""
    found: dict[int, Run] = {}
    for first in offsets:
        if first in found:
            continue
        width = next((n for n in widths if all(first + k in offsets for k in range(n))), 1)
        found |= {first + k: Run(first, width) for k in range(width)}
    return found
