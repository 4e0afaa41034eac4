"""Memory traffic: sectors of global memory, and bank conflicts in shared memory.

The 32 threads of a warp access memory together. Global memory moves in sectors of 32 bytes, and an access moves every
sector of which some active thread needs a byte. Shared memory has 32 banks of 4 bytes. Each bank serves one word per
pass, and threads that need the same word share it. An access of 8 bytes per thread is served in two half-warps, and one
of 16 bytes in four quarters. A vector with contiguous lanes is one access; any other vector is one access per lane.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..target.gpu import BANK_WIDTH, BANKS, LONGEST_ACCESS, SECTOR, WARP_SIZE
from .accesses import ThreadAccess
from .active import Array

_NOTHING = np.iinfo(np.int64).max


class Traffic:
    """Sums over all accesses of a launch, by kind of access: load or store."""

    def __init__(self) -> None:
        self.global_accesses: Counter[str] = Counter()  # requests of warps
        self.global_sectors: Counter[str] = Counter()
        self.global_bytes: Counter[str] = Counter()  # bytes that threads access
        self.shared_accesses: Counter[str] = Counter()
        self.shared_passes: Counter[str] = Counter()  # passes over the banks
        self.bank_conflicts: Counter[str] = Counter()  # additional passes due to bank conflicts

    def of_global(self, kind: str, access: ThreadAccess, size: int) -> None:
        for bytes_, width in _requests(access, 0, size):
            active = bytes_.reshape(-1, WARP_SIZE) != _NOTHING
            self.global_accesses[kind] += int(active.any(axis=1).sum())
            self.global_sectors[kind] += int(_sectors(bytes_, width).sum())
            self.global_bytes[kind] += int(active.sum()) * width

    def of_shared(self, kind: str, access: ThreadAccess, offset: int, size: int) -> None:
        for bytes_, width in _requests(access, offset, size):
            together = min(WARP_SIZE, WARP_SIZE * BANK_WIDTH // width)
            phases = bytes_.reshape(-1, together)
            first = phases // BANK_WIDTH
            later = range(max(1, width // BANK_WIDTH))
            words = np.concatenate([np.where(phases == _NOTHING, _NOTHING, first + k) for k in later], axis=1)
            passes = _most_in_a_bank(words)
            self.shared_accesses[kind] += int((bytes_.reshape(-1, WARP_SIZE) != _NOTHING).any(axis=1).sum())
            self.shared_passes[kind] += int(passes.sum())
            self.bank_conflicts[kind] += int(np.maximum(passes - 1, 0).sum())


def sectors(access: ThreadAccess, size: int) -> Array:
    """The number of sectors of global memory that each warp requests."""
    return sum((_sectors(bytes_, width) for bytes_, width in _requests(access, 0, size)), np.array(0))


def _sectors(bytes_: Array, width: int) -> Array:
    warps = bytes_.reshape(-1, WARP_SIZE)
    # Looking at the first and last byte suffices, since an access is no longer than a sector.
    ends = np.concatenate([warps, np.where(warps == _NOTHING, _NOTHING, warps + width - 1)], axis=1)
    return _distinct(np.where(ends == _NOTHING, _NOTHING, ends // SECTOR))


def _requests(access: ThreadAccess, offset: int, size: int) -> list[tuple[Array, int]]:
    """The requests of warps. Each has the first byte that each thread accesses, and the number of bytes per thread."""
    index = np.broadcast_to(access.element, access.shape).astype(np.int64)
    chosen = access.active.lanes(access.mask, access.lanes)
    start = index * size + offset
    if chosen is not None:
        start = np.where(chosen, start, _NOTHING)
    if access.lanes == 1:
        return [(start, size)]
    lanes = min(access.lanes, LONGEST_ACCESS // size)
    if access.lanes % lanes == 0 and access.mask is None and (np.diff(access.element, axis=2) == 1).all():
        return [(start[:, :, k], size * lanes) for k in range(0, access.lanes, lanes)]
    return [(start[:, :, k], size) for k in range(access.lanes)]


def _new_in_rows(rows: Array) -> tuple[Array, Array]:
    """Sort each row. Return the sorted rows, and a mask of the first occurrence of each number."""
    ordered = np.sort(rows, axis=1)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered, new & (ordered != _NOTHING)


def _distinct(rows: Array) -> Array:
    """The number of distinct numbers in each row."""
    counts: Array = _new_in_rows(rows)[1].sum(axis=1)
    return counts


def _most_in_a_bank(words: Array) -> Array:
    """The maximum number of distinct words in one bank, per row."""
    ordered, new = _new_in_rows(words)
    row = np.broadcast_to(np.arange(len(words))[:, None], ordered.shape)
    counts = np.bincount((row * BANKS + ordered % BANKS)[new], minlength=len(words) * BANKS)
    most: Array = counts.reshape(-1, BANKS).max(axis=1)
    return most
