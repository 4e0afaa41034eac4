"""The shared memory of a block. Buffers with disjoint live ranges may occupy the same bytes, but must not read each
other's values."""

from __future__ import annotations

import numpy as np

from ..expr.types import DType
from ..target.gpu import WARP_SIZE
from .accesses import (
    COMBINE,
    Around,
    SimulationError,
    ThreadAccess,
    bits,
    check_inside,
    failure,
    from_memory,
    race,
    to_memory,
    who,
)
from .active import Active, Array, Touch
from .matrices import MatrixReads
from .races import Accesses, Epochs
from .traffic import Traffic


class SharedMemory:
    """The shared memory of all blocks of a batch. It is divided into units of the size of the smallest element in
    it."""

    def __init__(self, blocks: int, size: int, unit: int, threads: int) -> None:
        self.size, self.unit, self.warps = size, unit, threads // WARP_SIZE
        self.units = -(-size // unit)
        self.bytes = np.zeros((blocks, size), np.uint8)
        self.owner = np.zeros(blocks * self.units, np.int32)  # the number of the buffer that wrote a unit; 0 for none
        self.names = [""]  # the names of buffers, by number
        self.accesses = Accesses(blocks * self.units, threads, across_blocks=False)
        self.copies = Copies(blocks, self.units, threads)
        self.matrices = MatrixReads(blocks, self.units, threads)

    def fence_proxy(self, active: Active) -> None:
        """Make the writes of these threads, and their copies that have arrived, visible to the tensor cores."""
        place = np.flatnonzero(self.matrices.unfenced)
        block, thread = place // self.units, self.accesses.writer(place)
        is_fenced = active.mask[block, thread] & (self.copies.group[place] == 0)
        self.matrices.unfenced[place[is_fenced]] = False

    def wait_matrices(self, active: Active, products: int, epochs: Epochs) -> None:
        """Complete products of matrices. To other threads, their matrices count as read at this time."""
        for place, by in self.matrices.wait(active, products):
            self.accesses.read(place, by, by.block, epochs.of(by.block, by.thread))


class SharedBuffer:
    """A buffer in shared memory. Each allocation makes a new, uninitialized buffer."""

    def __init__(
        self,
        memory: SharedMemory,
        name: str,
        dtype: DType,
        elements: int,
        offset: int,
        around: Around,
        traffic: Traffic | None,
        apart: int = 0,
    ) -> None:
        """If `apart` is not 0, each warp has its own copy of the buffer, `apart` bytes after the previous warp's."""
        self.memory, self._around, self._traffic = memory, around, traffic
        self._name, self._dtype, self._elements, self._offset = name, dtype, elements, offset
        end = offset + elements * dtype.bytes + apart * (memory.warps - 1)
        if offset < 0 or end > memory.size:
            text = f"{name} is at bytes {offset} .. {end - 1} of shared memory, of which there are {memory.size}"
            raise failure(around, 0, None, text)
        if offset % dtype.bytes or apart % dtype.bytes:
            raise failure(around, 0, None, f"{name}, of {dtype}, is at byte {offset} of shared memory: not aligned")
        self._data = memory.bytes[:, offset:end].view(dtype.numpy)
        self._apart = apart // dtype.bytes
        self._parts = dtype.bytes // memory.unit  # units per element
        self._number = len(memory.names)
        memory.names.append(name)

    def load(self, access: ThreadAccess) -> Array:
        touch = self._read(access)
        if self._traffic is not None:
            self._traffic.of_shared("load", access, self._offset, self._dtype.bytes)
        return self._loaded(touch)

    def load_matrix(self, access: ThreadAccess) -> Array:
        """Load elements of a matrix that warpgroups begin to multiply; each thread loads some of them."""
        touch = self._read(access)
        matrices = self.memory.matrices
        for place in self._places(touch):
            if matrices.unfenced[place].any():
                entry = int(np.argmax(matrices.unfenced[place]))
                text = f"{self._name} is multiplied at element {touch.element[entry]}, which nobody has fenced since"
                raise failure(self._around, int(touch.block[entry]), int(touch.thread[entry]), f"{text} it was written")
            matrices.begin(place, touch)
        return self._loaded(touch)

    def is_aligned(self, element: Array, bytes_: int) -> bool:
        """Whether all of these elements are aligned to this number of bytes."""
        return not ((self._offset + element * self._dtype.bytes) % bytes_).any()

    def _loaded(self, touch: Touch) -> Array:
        return touch.spread(from_memory(self._data[touch.block, self._at(touch)], self._dtype))

    def _read(self, access: ThreadAccess) -> Touch:
        """Check and record a load, and return its entries."""
        touch = self._touch(access, "read")
        by = who(self._around, touch)
        for place in self._places(touch):
            owner = self.memory.owner[place]
            if (owner != self._number).any():
                raise self._stale(touch, owner)
            if self.memory.copies.are_coming(place):
                raise self._too_early(touch, self.memory.copies.group[place] > 0, "reads")
            clash = self.memory.accesses.read(place, touch, *by)
            if clash is not None:
                raise race(self._around, self._name, touch, clash, "reads")
        return touch

    def store(self, access: ThreadAccess, value: Array, loop: int, asynchronous: bool = False) -> None:
        touch = self._touch(access, "written")
        by, places = who(self._around, touch), self._places(touch)
        new = to_memory(touch.values(value), self._dtype)
        same = bits(self._data[touch.block, self._at(touch)]) == bits(new)
        self._data[touch.block, self._at(touch)] = new
        unlike = bits(self._data[touch.block, self._at(touch)]) != bits(new)
        for place in places:
            self._check_unread(touch, place)
            if self.memory.copies.are_coming(place):
                raise self._too_early(touch, self.memory.copies.group[place] > 0, "writes")
            clash = self.memory.accesses.write(place, touch, *by, loop, same)
            clash = clash or self.memory.accesses.overwritten(place, touch, *by, unlike)
            if clash is not None:
                raise race(self._around, self._name, touch, clash, "writes")
            self.memory.owner[place] = self._number
            self.memory.matrices.unfenced[place] = True
        if asynchronous:
            for place in places:
                self.memory.copies.begin(place, touch)
        if self._traffic is not None:
            self._traffic.of_shared("store", access, self._offset, self._dtype.bytes)

    def combine(self, access: ThreadAccess, value: Array, name: str) -> None:
        touch = self._touch(access, "combined")
        by = who(self._around, touch)
        for place in self._places(touch):
            owner = self.memory.owner[place]
            if (owner != self._number).any():
                raise self._stale(touch, owner)
            self._check_unread(touch, place)
            self.memory.matrices.unfenced[place] = True
            clash = self.memory.accesses.combine(place, touch, *by)
            if clash is not None:
                raise race(self._around, self._name, touch, clash, "combines")
        COMBINE[name](self._data, (touch.block, self._at(touch)), to_memory(touch.values(value), self._dtype))
        if self._traffic is not None:
            self._traffic.of_shared("store", access, self._offset, self._dtype.bytes)

    def _touch(self, access: ThreadAccess, action: str) -> Touch:
        check_inside(self._around, access, self._elements, f"{self._name} is {action}", "shared memory")
        return access.touch()

    def _at(self, touch: Touch) -> Array:
        """The accessed elements, counted from the beginning of the first warp's copy of the buffer."""
        if not self._apart:
            return touch.element
        at: Array = touch.element + touch.thread // WARP_SIZE * self._apart
        return at

    def _places(self, touch: Touch) -> list[Array]:
        """The units of each entry: first the first unit of all entries, then the second unit, and so on."""
        first = touch.block * self.memory.units + self._offset // self.memory.unit + self._at(touch) * self._parts
        return [first + part for part in range(self._parts)]

    def _too_early(self, touch: Touch, wrong: Array, verb: str) -> SimulationError:
        entry = int(np.argmax(wrong))
        block, thread = int(touch.block[entry]), int(touch.thread[entry])
        text = f"{verb} {self._name} at element {touch.element[entry]}, to which a copy is on its way"
        text += " that nobody has waited for"
        return failure(self._around, block, thread, text)

    def _check_unread(self, touch: Touch, place: Array) -> None:
        """Raise an error for a write to a matrix that is being multiplied."""
        wrong = self.memory.matrices.are_read(place)
        if wrong.any():
            entry = int(np.argmax(wrong))
            text = f"writes {self._name} at element {touch.element[entry]}, which a warpgroup multiplies and has not"
            thread = int(touch.thread[entry])
            raise failure(self._around, int(touch.block[entry]), thread, f"{text} waited for")

    def _stale(self, touch: Touch, owner: Array) -> SimulationError:
        entry = int(np.argmax(owner != self._number))
        other = self.memory.names[int(owner[entry])]
        why = f"holds a value of {other}" if other and other != self._name else "nobody has written"
        text = f"{self._name} is read at element {touch.element[entry]} of shared memory, which {why}"
        return failure(self._around, int(touch.block[entry]), int(touch.thread[entry]), text)


class Copies:
    """The asynchronous copies of a batch of blocks.

    A thread numbers its groups from 1. A copy belongs to the group that its thread will commit next.
    """

    def __init__(self, blocks: int, units: int, threads: int) -> None:
        self._units = units
        self._ended = np.zeros((blocks, threads), np.int32)
        self.group = np.zeros(blocks * units, np.int32)  # the group of the copy in flight to a unit; 0 for none
        self._thread = np.zeros(blocks * units, np.int32)  # the thread that issued that copy
        self._any = False

    def are_coming(self, place: Array) -> bool:
        """Whether a copy to some of these units is in flight."""
        return self._any and bool(self.group[place].any())

    def begin(self, place: Array, by: Touch) -> None:
        self.group[place] = self._ended[by.block, by.thread] + 1
        self._thread[place] = by.thread
        self._any = True

    def end_group(self, active: Active) -> None:
        self._ended[active.mask] += 1

    def wait(self, active: Active, groups: int, epochs: Epochs, accesses: Accesses) -> None:
        """Complete all but the last `groups` groups of these threads. To other threads, their elements count as written
        at this time."""
        coming = np.flatnonzero(self.group)
        block, thread = coming // self._units, self._thread[coming]
        arrived = active.mask[block, thread] & (self.group[coming] <= self._ended[block, thread] - groups)
        place = coming[arrived]
        self.group[place] = 0
        accesses.arrived(place, thread[arrived], epochs.of(block[arrived], thread[arrived]))
        self._any = bool(self.group.any())
