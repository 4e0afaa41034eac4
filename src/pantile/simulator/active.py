"""The active threads of a batch of blocks, and which of them access which elements.

Many blocks are simulated at a time, with all their threads in lockstep. A value is an array that broadcasts to (blocks,
threads), or to (blocks, threads, lanes) if it is a vector; a uniform value has size 1 there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..dataclass import cached_property

Array = np.ndarray[Any, np.dtype[Any]]


class Touch(NamedTuple):
    """One entry for each element that a statement accesses: its number, and the block and thread that access it.

    `chosen` says which of all lanes of all threads these are; None for all.
    """

    element: Array
    block: Array  # counted from 0 within the batch
    thread: Array
    shape: tuple[int, ...]  # that of all lanes of all threads
    chosen: Array | None

    def values(self, of: Array) -> Array:
        """The entries of a value."""
        if of.size == 1:
            return np.full(len(self.block), of.reshape(()))
        full = of if of.shape == self.shape else np.broadcast_to(of, self.shape)
        return full.reshape(-1) if self.chosen is None else full[self.chosen]

    def spread(self, entries: Array) -> Array:
        """Entries as a value, which is 0 where nothing was accessed."""
        if self.chosen is None:
            return entries.reshape(self.shape)
        result = np.zeros(self.shape, entries.dtype)
        result[self.chosen] = entries
        return result


class Active:
    """The active threads: a mask over (blocks, threads)."""

    def __init__(self, mask: Array) -> None:
        self.mask = mask

    @cached_property
    def count(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def is_whole(self) -> bool:
        return self.count == self.mask.size

    def where(self, condition: Array) -> Active:
        """The active threads for which a condition holds."""
        both: Array = self.mask & condition
        return Active(both)

    def first(self, condition: Array) -> tuple[int, int] | None:
        """The first block and thread for which a condition holds, in any lane."""
        held = condition if condition.ndim == 2 else condition.any(axis=2)
        matching = np.argwhere(self.mask & held)
        return (int(matching[0][0]), int(matching[0][1])) if len(matching) else None

    def lanes(self, mask: Array | None, lanes: int) -> Array | None:
        """The active lanes of an access that has a mask; None for all."""
        if mask is None and (self.is_whole or lanes == 1):
            return None if self.is_whole else self.mask
        shape = self.mask.shape if lanes == 1 else (*self.mask.shape, lanes)
        active = self.mask if lanes == 1 else self.mask[:, :, None]
        return np.broadcast_to(active if mask is None else active & mask, shape)

    def touch(self, index: Array, mask: Array | None, lanes: int) -> Touch:
        """The elements that active threads access at `index`, in the lanes where `mask` holds."""
        if mask is None:
            whole = self._whole.get(lanes)
            if whole is None:
                whole = self._whole[lanes] = self._touch(None, lanes)
        else:
            whole = self._touch(mask, lanes)
        return whole._replace(element=whole.values(index).astype(np.int64))

    @cached_property
    def _whole(self) -> dict[int, Touch]:
        """What is the same for all accesses of so many lanes that have no mask."""
        return {}

    def _touch(self, mask: Array | None, lanes: int) -> Touch:
        """A touch of no element yet."""
        chosen = self.lanes(mask, lanes)
        shape = self.mask.shape if lanes == 1 else (*self.mask.shape, lanes)
        block, thread = np.nonzero(np.ones(shape, np.bool_) if chosen is None else chosen)[:2]
        return Touch(block, block, thread, shape, chosen)
