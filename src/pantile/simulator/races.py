"""Data race detection, which records the last accesses of each element of memory.

Two threads of a block race if both access an element, at least one of them writes it, and no barrier lies between the
accesses. A barrier of the block always separates them; a barrier of a warp does if both are lanes of that warp. Two
blocks race if both access an element in one launch and at least one of them writes it, whatever barriers there are.

Writes do not race if their order does not matter: threads of a block may write equal bits in the same thread loop, and
blocks may write equal bits, as overlapping tiles do. Atomic updates of the same element do not race with each other,
but they do race with plain reads and writes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..target.gpu import WARP_SIZE
from .active import Array, Touch

_NOBODY, _MANY = -1, -2


class Clash(NamedTuple):
    """A race: the index of the racing entry of a touch, the kind of the earlier access, and who made that access."""

    entry: int
    before: str
    block: int  # counted from 0 in the launch; -2 for several
    thread: int | None  # None for several, or for another block


class Epochs(NamedTuple):
    """The epochs of the last barrier of each block and of each warp in it, or of each entry of a touch. Barriers of the
    launch are numbered, and an epoch is the number of one."""

    block: Array
    warp: Array

    def of(self, block: Array, thread: Array) -> Epochs:
        """The epochs of the given threads."""
        return Epochs(self.block[block], self.warp[block, thread // WARP_SIZE])


class _Now(NamedTuple):
    """The state that the marks of earlier accesses are compared with."""

    thread: Array
    epochs: Epochs
    mine: Array  # the marks of the current accesses
    before: Array  # smaller marks belong to accesses before the last barrier of the block
    some_warps: bool  # whether some warp has passed a barrier of its own since


class Accesses:
    """The last accesses of each element.

    The mark of an access is `epoch*_who + who`, where `epoch` is that of the thread's last barrier, so marks grow with
    time. `who` is a thread's number, or `threads + w` for several threads of warp w, or the largest number for threads
    of several warps.
    """

    def __init__(self, places: int, threads: int, across_blocks: bool) -> None:
        self._threads, self._across = threads, across_blocks
        self._many = threads + threads // WARP_SIZE
        self._who = self._many + 1
        self._written = np.zeros(places, np.int64)
        self._loop = np.zeros(places, np.int32)
        self._combined: Array | None = None  # whether the last write to each element was atomic; None before the first
        self._writer = np.full(places if across_blocks else 0, _NOBODY, np.int32)
        self._read: Array | None = None  # allocated at the first read
        self._reader = np.zeros(0, np.int32)
        self._last: _Now | None = None

    def read(self, place: Array, by: Touch, block: Array, epochs: Epochs) -> Clash | None:
        """Record reads, unless they race; `block` and `epochs` are those of each entry."""
        clash = self._clash_with_writes(place, block, by, epochs, np.True_)
        if clash is None:
            self._note_reads(place, block, by, epochs)
        return clash

    def write(self, place: Array, by: Touch, block: Array, epochs: Epochs, loop: int, same: Array) -> Clash | None:
        """Record writes in a thread loop, unless they race; `same` is a mask of writes that change nothing."""
        mark = self._now(by.thread, epochs).mine
        unlike = ~same
        clash = self._clash_with_writes(place, block, by, epochs, unlike | (self._loop[place] != loop), unlike)
        if clash is None and self._read is not None:
            clash = self._clash_with_reads(place, block, by, epochs)
        if clash is None:
            self._written[place] = mark
            self._loop[place] = loop
            if self._combined is not None:
                self._combined[place] = False
            if self._across:
                self._writer[place] = block
        return clash

    def combine(self, place: Array, by: Touch, block: Array, epochs: Epochs) -> Clash | None:
        """Record atomic updates, unless they race; several threads may update the same element."""
        if self._combined is None:
            self._combined = np.zeros(len(self._written), np.bool_)
        plain = ~self._combined[place]
        clash = self._clash_with_writes(place, block, by, epochs, plain, plain)
        if clash is None and self._read is not None:
            clash = self._clash_with_reads(place, block, by, epochs)
        if clash is None:
            self._note(self._written, place, by, epochs)
            self._combined[place] = True
            if self._across:
                writer = self._writer[place]
                self._writer[place] = np.where((writer == _NOBODY) | (writer == block), block, _MANY)
                self._writer[place[self._writer[place] != block]] = _MANY
        return clash

    def overwritten(self, place: Array, by: Touch, block: Array, epochs: Epochs, unlike: Array) -> Clash | None:
        """Find an entry whose element another entry of the same write has overwritten. `unlike` is a mask of entries
        whose element no longer has the bits that they wrote."""
        if not unlike.any():
            return None
        others = self._written[place] != self._now(by.thread, epochs).mine
        if self._across:
            others |= self._writer[place] != block
        return self._found(unlike & others, "written", place, block)

    def arrived(self, place: Array, thread: Array, epochs: Epochs) -> None:
        """Record asynchronous copies as writes when threads have waited for them."""
        self._written[place] = self._mark(thread, epochs)

    def writer(self, place: Array) -> Array:
        """The thread that has last written each element."""
        thread: Array = self._written[place] % self._who
        return thread

    def _mark(self, who: Array, epochs: Epochs) -> Array:
        mark: Array = epochs.warp * self._who + who
        return mark

    def _now(self, thread: Array, epochs: Epochs) -> _Now:
        """The state for accesses by these threads, cached because they often make several consecutive accesses."""
        now = self._last
        if now is None or now.thread is not thread or now.epochs is not epochs:
            some_warps = bool((epochs.warp != epochs.block).any())
            now = _Now(thread, epochs, self._mark(thread, epochs), epochs.block * self._who, some_warps)
            self._last = now
        return now

    def _is_unordered(self, last: Array, by: Touch, epochs: Epochs) -> Array:
        """Whether no barrier separates earlier accesses, given by their marks, from current ones by other threads."""
        now = self._now(by.thread, epochs)
        unordered: Array = last >= now.before
        if now.some_warps:
            is_before = last < epochs.warp * self._who
            unordered &= ~(is_before & (self._warp(last % self._who) == by.thread // WARP_SIZE))
        unordered &= last != now.mine
        return unordered

    def _warp(self, who: Array) -> Array:
        """The warp that the `who` of a mark belongs to; -1 if it stands for several warps."""
        warp = np.where(who < self._threads, who // WARP_SIZE, who - self._threads)
        return np.where(who == self._many, -1, warp)

    def _note(self, marks: Array, place: Array, by: Touch, epochs: Epochs) -> None:
        """Record accesses; several threads may access the same element."""
        mine = self._now(by.thread, epochs).mine
        last = marks[place]
        unordered = self._is_unordered(last, by, epochs)
        if unordered.any():
            warp = by.thread // WARP_SIZE
            is_mine = self._warp(last % self._who) == warp
            several = self._mark(np.where(is_mine, self._threads + warp, self._many), epochs)
            mine = np.where(unordered, several, mine)
        marks[place] = mine
        won = marks[place]
        lost = np.flatnonzero(won != mine)  # entries whose mark was overwritten by another entry for the same element
        if len(lost):
            won, warp = won[lost], self._warp(mine[lost] % self._who)
            is_same = (self._warp(won % self._who) == warp) & (warp >= 0)
            marks[place[lost]] = won - won % self._who + np.where(is_same, self._threads + warp, self._many)
            apart = lost[~is_same]
            marks[place[apart]] = won[~is_same] - won[~is_same] % self._who + self._many

    def _clash_with_writes(
        self,
        place: Array,
        block: Array,
        by: Touch,
        epochs: Epochs,
        matters: Array | np.bool_,
        across_matters: Array | np.bool_ = np.True_,
    ) -> Clash | None:
        last = self._written[place]
        clash = self._is_unordered(last, by, epochs) & matters
        if self._across:
            writer = self._writer[place]
            others = (writer != _NOBODY) & (writer != block)
            clash = np.where(others, across_matters, clash)
        return self._found(clash, "written", place, block)

    def _clash_with_reads(self, place: Array, block: Array, by: Touch, epochs: Epochs) -> Clash | None:
        assert self._read is not None
        last = self._read[place]
        clash = self._is_unordered(last, by, epochs)
        if self._across:
            reader = self._reader[place]
            clash = np.where((reader != _NOBODY) & (reader != block), True, clash)
        return self._found(clash, "read", place, block)

    def _note_reads(self, place: Array, block: Array, by: Touch, epochs: Epochs) -> None:
        if self._read is None:
            self._read = np.zeros(len(self._written), np.int64)
            self._reader = np.full(len(self._writer), _NOBODY, np.int32)
        self._note(self._read, place, by, epochs)
        if self._across:
            reader = self._reader[place]
            mine = np.where((reader == _NOBODY) | (reader == block), block, _MANY)
            self._reader[place] = mine
            self._reader[place[self._reader[place] != mine]] = _MANY

    def _found(self, clash: Array, before: str, place: Array, block: Array) -> Clash | None:
        if not clash.any():
            return None
        entry = int(np.argmax(clash))
        marks = self._written if before == "written" or self._read is None else self._read
        owners = self._writer if before == "written" else self._reader
        other = int(owners[place[entry]]) if self._across else int(block[entry])
        thread = int(marks[place[entry]] % self._who)
        alone = thread < self._threads and other == block[entry]
        return Clash(entry, before, other, thread if alone else None)
