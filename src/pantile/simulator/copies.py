"""Asynchronous copies: which of them are on their way, by the groups of the threads that have begun them."""

from __future__ import annotations

import numpy as np

from .active import Active, Array, Touch
from .races import Accesses


class Copies:
    """Of all blocks that are gone through at once. A thread counts its groups from 1 on; what it copies belongs to the
    one that it will end next."""

    def __init__(self, blocks: int, units: int, threads: int) -> None:
        self._units = units
        self._ended = np.zeros((blocks, threads), np.int32)
        self.group = np.zeros(blocks * units, np.int32)  # of the copy that is on its way to a unit; 0 for none
        self._thread = np.zeros(blocks * units, np.int32)  # whose it is
        self._any = False

    def are_coming(self, place: Array) -> bool:
        """Whether some places wait for a copy."""
        return self._any and bool(self.group[place].any())

    def begin(self, place: Array, by: Touch) -> None:
        self.group[place] = self._ended[by.block, by.thread] + 1
        self._thread[place] = by.thread
        self._any = True

    def end_group(self, active: Active) -> None:
        self._ended[active.mask] += 1

    def wait(self, active: Active, groups: int, epochs: Array, accesses: Accesses) -> None:
        """All but the last groups of these threads arrive. That is when they are written, as others see it."""
        coming = np.flatnonzero(self.group)
        block, thread = coming // self._units, self._thread[coming]
        arrived = active.mask[block, thread] & (self.group[coming] <= self._ended[block, thread] - groups)
        place = coming[arrived]
        self.group[place] = 0
        accesses.arrived(place, thread[arrived], epochs[block[arrived]])
        self._any = bool(self.group.any())
