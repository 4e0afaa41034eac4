"""Asynchronous copies in flight, by the groups of the threads that have issued them."""

from __future__ import annotations

import numpy as np

from .active import Active, Array, Touch
from .races import Accesses, Epochs


class Copies:
    """The asynchronous copies of a batch of blocks.

    A thread counts its groups from 1 on; a copy belongs to the group that the thread will commit next.
    """

    def __init__(self, blocks: int, units: int, threads: int) -> None:
        self._units = units
        self._ended = np.zeros((blocks, threads), np.int32)
        self.group = np.zeros(blocks * units, np.int32)  # group of the copy in flight to a unit; 0 for none
        self._thread = np.zeros(blocks * units, np.int32)  # the thread that issued it
        self._any = False

    def are_coming(self, place: Array) -> bool:
        """Whether copies to some units are in flight."""
        return self._any and bool(self.group[place].any())

    def begin(self, place: Array, by: Touch) -> None:
        self.group[place] = self._ended[by.block, by.thread] + 1
        self._thread[place] = by.thread
        self._any = True

    def end_group(self, active: Active) -> None:
        self._ended[active.mask] += 1

    def wait(self, active: Active, groups: int, epochs: Epochs, accesses: Accesses) -> None:
        """Complete all but the last groups of these threads; others see their elements as written at this time."""
        coming = np.flatnonzero(self.group)
        block, thread = coming // self._units, self._thread[coming]
        arrived = active.mask[block, thread] & (self.group[coming] <= self._ended[block, thread] - groups)
        place = coming[arrived]
        self.group[place] = 0
        accesses.arrived(place, thread[arrived], epochs.of(block[arrived], thread[arrived]))
        self._any = bool(self.group.any())
