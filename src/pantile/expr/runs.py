"""Runs: adjacent elements at data-dependent indices, which each lane of a vector loads at once.

t[i], t[i + 1], t[i + 2] of 32 bits     ->     a run of two elements, and one element
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dataclass import dataclass
from .types import DType

_RUN_BYTES = 16  # a vector register
_LEAST_BYTES = 4  # narrower elements take longer to extract than to load, except for the bytes of a pixel
_PIXELS = (4, 3)  # bytes of a pixel


@dataclass(frozen=True)
class Run:
    """A run of `width` adjacent offsets that begins at `first`."""

    first: int
    width: int


def runs(offsets: Iterable[int], dtype: DType, lanes: int) -> dict[int, Run]:
    """Map each offset to its run. Contiguous offsets are split into the longest runs that one load per lane can
    fetch."""
    ordered, widths = sorted(set(offsets)), _widths(dtype, lanes)
    present, run_of = set(ordered), dict[int, Run]()
    for first in ordered:
        if first in run_of:
            continue
        width = next((n for n in widths if present.issuperset(range(first, first + n))), 1)
        run_of |= {first + k: Run(first, width) for k in range(width)}
    return run_of


def _widths(t: DType, lanes: int) -> tuple[int, ...]:
    """The numbers of elements that a run may have, in decreasing order."""
    if t.bytes == 1 and not t.is_bool:
        return _PIXELS if lanes % 2 == 0 else ()  # two lanes at a time
    widest = _RUN_BYTES // t.bytes
    if t.bytes < _LEAST_BYTES or lanes % widest:
        return ()
    return tuple(1 << k for k in range(widest.bit_length() - 1, 0, -1))
