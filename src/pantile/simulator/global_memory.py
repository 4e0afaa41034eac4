"""Global memory: the caller's arrays, and buffers that the host part allocates. All of them live for a whole call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dataclass import dataclass
from ..expr.types import DType
from ..reference.operations import held
from .accesses import (
    COMBINE,
    Around,
    ThreadAccess,
    bits,
    failure,
    from_memory,
    is_outside,
    race,
    refuse,
    to_memory,
    who,
)
from .active import Array
from .races import Accesses
from .traffic import Traffic

_strided = np.lib.stride_tricks.as_strided


@dataclass
class Global:
    """A buffer in global memory.

    Elements are numbered from the array's data pointer, so with negative strides some numbers are negative.
    """

    name: str
    dtype: DType
    data: Array  # flat
    low: int = 0  # the number of its first element
    legal: Array | None = None  # mask of the array's own elements; None for all
    written: Array | None = None  # mask of the initialized elements; None for all

    @staticmethod
    def fresh(name: str, dtype: DType, elements: int) -> Global:
        """Allocate an uninitialized buffer."""
        return Global(name, dtype, np.zeros(elements, dtype.numpy), written=np.zeros(elements, np.bool_))

    @staticmethod
    def of_array(name: str, dtype: DType, array: Array, writable: bool) -> Global:
        """Wrap the memory of an array with any strides, without a copy. A `writable` array counts as uninitialized."""
        if array.size == 0:
            return Global.fresh(name, dtype, 0)
        size = array.itemsize
        turned = tuple([slice(None, None, -1 if s < 0 else 1) for s in array.strides])
        rising = array[turned] if turned else array  # without dims this would be a scalar and not a view
        steps = [s // size for s in array.strides]
        reach = [(n - 1) * s for n, s in zip(array.shape, steps, strict=True)]
        span = sum(map(abs, reach)) + 1
        legal = None if rising.flags.c_contiguous else _own_elements(span, array.shape, list(map(abs, steps)))
        data = _strided(rising, (span,), (size,), writeable=writable)
        low = sum(n for n in reach if n < 0)
        return Global(name, dtype, data, low, legal, np.zeros(span, np.bool_) if writable else None)


def _own_elements(span: int, shape: Sequence[int], steps: Sequence[int]) -> Array:
    """The mask of an array's own elements.

    Strides may make dims overlap, so that there are more indices than memory has elements. Each dim is therefore
    covered by doubling, not index by index.
    """
    mask = np.zeros(span, np.bool_)
    mask[0] = True
    for n, step in zip(shape, steps, strict=True):
        done = 1 if step else n
        while done < n:
            shift = min(done, n - done) * step
            mask[shift:] |= mask[:-shift].copy()
            done = min(2 * done, n)
    return mask


class GlobalInLaunch:
    """Global memory as the kernel of one launch sees it; `accesses` is set if the kernel stores to it."""

    def __init__(self, memory: Global, accesses: Accesses | None, around: Around, traffic: Traffic | None) -> None:
        self._memory, self._accesses, self._around, self._traffic = memory, accesses, around, traffic

    def load(self, access: ThreadAccess) -> Array:
        m = self._memory
        place = self._checked(access, "read")
        if not len(m.data):
            return np.zeros(access.shape, held(m.dtype))
        self._check_written(access, place, "read")
        if self._traffic is not None:
            self._traffic.of_global("load", access, m.dtype.bytes)
        if self._accesses is not None:
            by = access.touch()
            clash = self._accesses.read(by.element - m.low, by, *who(self._around, by))
            if clash is not None:
                raise race(self._around, m.name, by, clash, "reads")
        return access.masked(from_memory(m.data.take(place, mode="clip"), m.dtype), m.dtype)

    def store(self, access: ThreadAccess, value: Array, loop: int) -> None:
        m = self._memory
        self._checked(access, "written")
        if self._traffic is not None:
            self._traffic.of_global("store", access, m.dtype.bytes)
        by = access.touch()
        place, block_epoch = by.element - m.low, who(self._around, by)
        new = to_memory(by.values(value), m.dtype)
        if self._accesses is None:
            raise failure(self._around, 0, None, f"{m.name} is written, which was not known to be")
        clash = self._accesses.write(place, by, *block_epoch, loop, bits(m.data[place]) == bits(new))
        m.data[place] = new
        clash = clash or self._accesses.overwritten(place, by, *block_epoch, bits(m.data[place]) != bits(new))
        if clash is not None:
            raise race(self._around, m.name, by, clash, "writes")
        if m.written is not None:
            m.written[place] = True

    def combine(self, access: ThreadAccess, value: Array, name: str) -> None:
        m = self._memory
        places = self._checked(access, "combined")
        self._check_written(access, places, "combined")
        if self._traffic is not None:
            self._traffic.of_global("store", access, m.dtype.bytes)
        by = access.touch()
        place = by.element - m.low
        if self._accesses is None:
            raise failure(self._around, 0, None, f"{m.name} is combined, which was not known to be")
        clash = self._accesses.combine(place, by, *who(self._around, by))
        if clash is not None:
            raise race(self._around, m.name, by, clash, "combines")
        COMBINE[name](m.data, place, to_memory(by.values(value), m.dtype))

    def _checked(self, access: ThreadAccess, action: str) -> Array:
        """The positions of the accessed elements in memory. Raises an error if some are not elements of the array."""
        m = self._memory
        place: Array = access.element.astype(np.int64) - m.low
        if m.legal is None and not is_outside(place, len(m.data)):
            return place
        outside = (place < 0) | (place >= len(m.data))
        if m.legal is not None:
            outside |= ~m.legal.take(place, mode="clip")

        def message(index: int) -> str:
            has = f"elements {m.low} .. {m.low + len(m.data) - 1}" if len(m.data) else "no elements"
            gaps = "" if m.legal is None or not m.low <= index < m.low + len(m.data) else ", but not this one"
            return f"{m.name} is {action} at element {index} of its memory, which has {has}{gaps}"

        refuse(self._around, access, outside, message)
        return place

    def _check_written(self, access: ThreadAccess, place: Array, action: str) -> None:
        m = self._memory
        if m.written is not None and not (written := m.written.take(place, mode="clip")).all():
            why = "of its memory, which nobody has written"
            refuse(self._around, access, ~written, lambda k: f"{m.name} is {action} at element {k} {why}")
