"""Matrices in shared memory that warpgroups multiply asynchronously.

A product is in flight from its instruction until the warpgroup has waited for it. While it is in flight, no thread may
write to its matrices. The tensor cores see what a thread has written only after that thread has executed a fence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..target.gpu import WARP_SIZE
from ..target.wgmma import WARPS
from .active import Active, Array, Touch

WARPGROUP = WARPS * WARP_SIZE  # threads


class _Read(NamedTuple):
    """A matrix of a product in flight. For each entry: the unit, the thread that reads it, and the product's number."""

    place: Array
    by: Touch
    number: Array


class MatrixReads:
    """The matrices that products in flight read, in a batch of blocks. A warpgroup numbers its products from 1."""

    def __init__(self, blocks: int, units: int, threads: int) -> None:
        self._begun = np.zeros((blocks, -(-threads // WARPGROUP)), np.int32)
        self._reads: list[_Read] = []
        self._readers = np.zeros(blocks * units, np.int32)  # the number of matrices in flight that contain a unit
        self.unfenced = np.zeros(blocks * units, np.bool_)

    def are_read(self, place: Array) -> Array:
        """Whether each unit belongs to a matrix in flight."""
        return self._readers[place] > 0

    def begin(self, place: Array, by: Touch) -> None:
        """Record units of a matrix of the product that the warpgroups begin next."""
        self._reads.append(_Read(place, by, self._begun[by.block, by.thread // WARPGROUP] + 1))
        np.add.at(self._readers, place, 1)

    def end_product(self, active: Active) -> None:
        self._begun[active.mask[:, ::WARPGROUP]] += 1

    def wait(self, active: Active, products: int) -> list[tuple[Array, Touch]]:
        """Complete all but the last `products` products of these warpgroups. Return the units that the completed ones
        have read."""
        done, left = list[tuple[Array, Touch]](), list[_Read]()
        for r in self._reads:
            last = self._begun[r.by.block, r.by.thread // WARPGROUP] - products
            is_done = active.mask[r.by.block, r.by.thread] & (r.number <= last)
            for chosen in (is_done, ~is_done):
                some = _Read(r.place[chosen], _chosen(r.by, chosen), r.number[chosen])
                if not len(some.place):
                    continue
                if chosen is is_done:
                    np.subtract.at(self._readers, some.place, 1)
                    done.append(some[:2])
                else:
                    left.append(some)
        self._reads = left
        return done


def _chosen(by: Touch, entries: Array) -> Touch:
    return by._replace(element=by.element[entries], block=by.block[entries], thread=by.thread[entries], chosen=None)
