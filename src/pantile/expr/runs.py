"""Runs: neighbours at places that data decides, which each lane of a vector loads at once.

t[i], t[i + 1], t[i + 2] of 32 bits     ->     a run of two elements, and one element
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dataclass import dataclass
from .types import DType

_RUN_BYTES = 16  # a vector register
_LEAST_BYTES = 4  # narrower elements take longer to take apart than to load, but for the bytes of a pixel
_PIXELS = (4, 3)  # of so many bytes


@dataclass(frozen=True)
class Run:
    """Neighbouring offsets, from the first on."""

    first: int
    width: int


def runs(offsets: Iterable[int], dtype: DType, lanes: int) -> dict[int, Run]:
    """The run that serves each offset: gapless stretches, cut into the longest that one load of a lane may bring."""
    ordered, widths = sorted(set(offsets)), _widths(dtype, lanes)
    there, found = set(ordered), dict[int, Run]()
    for first in ordered:
        if first in found:
            continue
        width = next((n for n in widths if there.issuperset(range(first, first + n))), 1)
        found |= {first + k: Run(first, width) for k in range(width)}
    return found


def _widths(t: DType, lanes: int) -> tuple[int, ...]:
    """How many elements a run may have, the most first."""
    if t.bytes == 1 and not t.is_bool:
        return _PIXELS if lanes % 2 == 0 else ()  # two lanes at a time
    widest = _RUN_BYTES // t.bytes
    if t.bytes < _LEAST_BYTES or lanes % widest:
        return ()
    return tuple(1 << k for k in range(widest.bit_length() - 1, 0, -1))
