"""The active threads of a batch of blocks, and the elements that each of them accesses.

Many blocks are simulated at a time, with all their threads in lockstep. A value is an array that broadcasts to (blocks,
threads), or to (blocks, threads, lanes) if it is a vector. A uniform value has size 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..dataclass import cached_property

Array = np.ndarray[Any, np.dtype[Any]]


class Touch(NamedTuple):
    """The elements that a statement accesses. Each access is an entry: an element's index, and its block and thread.

    `chosen` is a mask that selects the accessing lanes among all lanes of all threads; None selects all of them.
    """

    element: Array
    block: Array  # counted from 0 within the batch
    thread: Array
    shape: tuple[int, ...]  # the shape over all lanes of all threads
    chosen: Array | None

    def values(self, of: Array) -> Array:
        """Extract from a value the part of each entry."""
        if of.size == 1:
            return np.full(len(self.block), of.reshape(()))
        full = of if of.shape == self.shape else np.broadcast_to(of, self.shape)
        return full.reshape(-1) if self.chosen is None else full[self.chosen]

    def spread(self, entries: Array) -> Array:
        """Convert entries to a value, which is 0 in lanes that access nothing; the inverse of `values`."""
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
        """The active lanes of an access with an optional mask; None if all lanes of all threads are active."""
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
        """Touches by the active threads without a mask, by number of lanes; only their elements differ."""
        return {}

    def _touch(self, mask: Array | None, lanes: int) -> Touch:
        """A touch whose elements are not filled in yet."""
        chosen = self.lanes(mask, lanes)
        shape = self.mask.shape if lanes == 1 else (*self.mask.shape, lanes)
        block, thread = np.nonzero(np.ones(shape, np.bool_) if chosen is None else chosen)[:2]
        return Touch(block, block, thread, shape, chosen)
