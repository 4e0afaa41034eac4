"""Data race detection: the last accesses of each element of memory.

Two threads of a block race where both touch a place, at least one of them writes it, and no barrier is in between. Two
blocks race where both touch a place in one launch and one of them writes it, whatever barriers there are. What several
write is no race where it does not matter who is the last: threads of a block may write equal bits in one and the same
thread loop, and blocks may write equal bits, which overlapping tiles do. Nor do threads and blocks race that combine a
place atomically, all of them; with plain reads and writes they do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .active import Array, Touch

_NOBODY, _MANY = -1, -2


class Clash(NamedTuple):
    """An entry of a touch that races: which one, what was done there before, and by whom."""

    entry: int
    before: str
    block: int  # counted from 0 in the launch; -2 for several
    thread: int | None  # None for several, or for another block


class Accesses:
    """The last accesses of each element.

    A thread's mark is `epoch*(threads + 1) + thread`, where epochs are counted by barriers and thread number `threads`
    stands for several; marks grow with time.
    """

    def __init__(self, places: int, threads: int, across_blocks: bool) -> None:
        self._threads, self._across = threads, across_blocks
        self._written = np.zeros(places, np.int64)
        self._loop = np.zeros(places, np.int32)
        self._combined: Array | None = None  # whether an element was last written atomically, once one is
        self._writer = np.full(places if across_blocks else 0, _NOBODY, np.int32)
        self._read: Array | None = None  # allocated at the first read
        self._reader = np.zeros(0, np.int32)

    def read(self, place: Array, by: Touch, block: Array, epoch: Array) -> Clash | None:
        """Note reads; `block` and `epoch` are those of each entry."""
        now, mark = self._marks(by, epoch)
        clash = self._clash_with_writes(place, block, now, mark, np.True_)
        if clash is None:
            self._note_reads(place, block, now, mark)
        return clash

    def write(self, place: Array, by: Touch, block: Array, epoch: Array, loop: int, same: Array) -> Clash | None:
        """Note writes in a thread loop; `same` tells where they change nothing."""
        now, mark = self._marks(by, epoch)
        unlike = ~same
        clash = self._clash_with_writes(place, block, now, mark, unlike | (self._loop[place] != loop), unlike)
        if clash is None and self._read is not None:
            clash = self._clash_with_reads(place, block, now, mark)
        if clash is None:
            self._written[place] = mark
            self._loop[place] = loop
            if self._combined is not None:
                self._combined[place] = False
            if self._across:
                self._writer[place] = block
        return clash

    def combine(self, place: Array, by: Touch, block: Array, epoch: Array) -> Clash | None:
        """Note atomic writes, of which several threads may make some to one element."""
        if self._combined is None:
            self._combined = np.zeros(len(self._written), np.bool_)
        now, mark = self._marks(by, epoch)
        plain = ~self._combined[place]
        clash = self._clash_with_writes(place, block, now, mark, plain, plain)
        if clash is None and self._read is not None:
            clash = self._clash_with_reads(place, block, now, mark)
        if clash is None:
            _mark(self._written, place, now, mark, now + self._threads)
            self._combined[place] = True
            if self._across:
                writer = self._writer[place]
                self._writer[place] = np.where((writer == _NOBODY) | (writer == block), block, _MANY)
                self._writer[place[self._writer[place] != block]] = _MANY
        return clash

    def overwritten(self, place: Array, by: Touch, block: Array, epoch: Array, unlike: Array) -> Clash | None:
        """After writes: an entry whose element another entry has changed, as the mask `unlike` tells."""
        if not unlike.any():
            return None
        _, mark = self._marks(by, epoch)
        others = self._written[place] != mark
        if self._across:
            others |= self._writer[place] != block
        return self._found(unlike & others, "written", place, block)

    def arrived(self, place: Array, thread: Array, epoch: Array) -> None:
        """Note asynchronous copies as writes when threads wait for them."""
        self._written[place] = epoch * (self._threads + 1) + thread

    def _marks(self, by: Touch, epoch: Array) -> tuple[Array, Array]:
        now = epoch * (self._threads + 1)
        return now, now + by.thread

    def _clash_with_writes(
        self,
        place: Array,
        block: Array,
        now: Array,
        mark: Array,
        matters: Array | np.bool_,
        across_matters: Array | np.bool_ = np.True_,
    ) -> Clash | None:
        last = self._written[place]
        clash = (last >= now) & (last != mark) & matters
        if self._across:
            writer = self._writer[place]
            others = (writer != _NOBODY) & (writer != block)
            clash = np.where(others, across_matters, clash)
        return self._found(clash, "written", place, block)

    def _clash_with_reads(self, place: Array, block: Array, now: Array, mark: Array) -> Clash | None:
        assert self._read is not None
        last = self._read[place]
        clash = (last >= now) & (last != mark)
        if self._across:
            reader = self._reader[place]
            clash = np.where((reader != _NOBODY) & (reader != block), True, clash)
        return self._found(clash, "read", place, block)

    def _note_reads(self, place: Array, block: Array, now: Array, mark: Array) -> None:
        if self._read is None:
            self._read = np.zeros(len(self._written), np.int64)
            self._reader = np.full(len(self._writer), _NOBODY, np.int32)
        _mark(self._read, place, now, mark, now + self._threads)
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
        thread = int(marks[place[entry]] % (self._threads + 1))
        alone = thread < self._threads and other == block[entry]
        return Clash(entry, before, other, thread if alone else None)


def _mark(marks: Array, place: Array, now: Array, mark: Array, several: Array) -> None:
    """Note accesses of which several threads may make some to one element in one epoch."""
    last = marks[place]
    mine = np.where((last >= now) & (last != mark), several, mark)
    marks[place] = mine
    lost = marks[place] != mine  # another entry has the same element
    marks[place[lost]] = several[lost]
