"""Private memory of a thread: registers and the stack."""

from __future__ import annotations

import numpy as np

from ..expr.types import DType
from ..reference.operations import held
from .accesses import Around, ThreadAccess, failure, refuse
from .active import Array


class Private:
    """A buffer of which each thread has one. Its representation is that of values, since nothing else sees it."""

    def __init__(self, name: str, dtype: DType, elements: int, shape: tuple[int, int], around: Around) -> None:
        self._name, self._dtype, self._elements, self._around = name, dtype, elements, around
        self._data = np.zeros((elements, *shape), held(dtype))
        self._written = np.zeros((elements, *shape), np.bool_)

    def load(self, access: ThreadAccess) -> Array:
        self._check(access, "read")
        k = self._same_for_all(access)
        if k is not None:
            written, value = self._written[k], self._data[k].copy()
        else:
            place = self._place(access)
            written, value = self._written[place], self._data[place]
        why = "of registers, which the thread has not written"
        refuse(self._around, access, ~written, lambda k: f"{self._name} is read at element {k} {why}")
        return access.masked(value, self._dtype)

    def store(self, access: ThreadAccess, value: Array, loop: int) -> None:
        self._check(access, "written")
        k = self._same_for_all(access)
        if k is not None and access.mask is None:
            np.copyto(self._data[k], value, where=access.active.mask)
            self._written[k] |= access.active.mask
            return
        touch = access.touch()
        place = (touch.element, touch.block, touch.thread)
        self._data[place] = touch.values(value)
        self._written[place] = True

    def combine(self, access: ThreadAccess, value: Array, name: str) -> None:
        raise failure(self._around, 0, None, f"{self._name} is combined atomically, and is each thread's own")

    def _same_for_all(self, access: ThreadAccess) -> int | None:
        """The one element that all threads access, if the index is uniform."""
        if access.element.size > 1 or access.lanes > 1:
            return None
        k = int(access.element.reshape(()))
        return k if 0 <= k < self._elements else None

    def _place(self, access: ThreadAccess) -> tuple[Array, Array, Array]:
        """The position of each lane of each thread; inactive ones have an arbitrary one."""
        blocks, threads = self._data.shape[1:]
        inner = (1,) * (len(access.shape) - 2)
        index = np.broadcast_to(access.element, access.shape)
        return (
            np.clip(index, 0, self._elements - 1),
            np.arange(blocks).reshape(-1, 1, *inner),
            np.arange(threads).reshape(1, -1, *inner),
        )

    def _check(self, access: ThreadAccess, action: str) -> None:
        outside = (access.element < 0) | (access.element >= self._elements)
        where = f"of registers, where it has {self._elements}"
        refuse(self._around, access, outside, lambda k: f"{self._name} is {action} at element {k} {where}")
