"""The parameters of all launches of a call, in one block of memory. They are packed once, and later calls update only
the addresses and params that have changed."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ...codegen.entry import KernelEntry
from ...dataclass import dataclass

_ADDRESS = struct.Struct("<Q")
_ALIGNMENT = 16
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ParamSlot:
    """A param of the pipeline as a launch argument, which may differ in each call."""

    number: int


@dataclass(frozen=True)
class LaunchArguments:
    """The arguments of a launch. A buffer is the number of one of the call's addresses, and an offset in bytes."""

    entry: KernelEntry
    scalars: tuple[Any, ...]  # each a ParamSlot or a number
    buffers: tuple[tuple[int, int], ...]


class Parameters:
    """The frames of the launches of one call, one after another."""

    def __init__(self, launches: Sequence[LaunchArguments]) -> None:
        self._launches = launches
        self._starts, size = [], 0
        for g in launches:
            self._starts.append(size)
            size += -(-g.entry.size // _ALIGNMENT) * _ALIGNMENT
        self._memory = ctypes.create_string_buffer(max(_ALIGNMENT, size))
        base = ctypes.addressof(self._memory)
        # For the driver, a list of the addresses of each launch's parameters. Its only parameter is its frame.
        self._lists = [ctypes.c_void_p(base + at) for at in self._starts]
        self.lists = [ctypes.addressof(one) for one in self._lists]
        self._places = _places(launches, self._starts)
        self._takers = _takers(launches)
        self._addresses: dict[int, int] = {}
        self._latest: list[int] | None = None  # addresses
        self._numbers: tuple[object, ...] | None = None

    def change(self, addresses: Sequence[int], numbers: Sequence[Any]) -> AbstractSet[int]:
        """Update addresses and numbers that have changed. Return the launches that use them."""
        if addresses == self._latest and not self._takers:
            return _NONE
        changed: set[int] = set()
        before = self._addresses
        if self._numbers is None or self._takers:
            changed = self._repack(addresses, numbers)
        self._latest = list(addresses)
        for which, places in self._places:
            address = addresses[which]
            if before.get(which) != address:
                before[which] = address
                for k, place, offset in places:
                    _ADDRESS.pack_into(self._memory, place, address + offset)
                    changed.add(k)
        return changed

    def _repack(self, addresses: Sequence[int], numbers: Sequence[Any]) -> set[int]:
        """Pack the numbers of launches again if they have changed. Return these launches; at first, all of them."""
        now = tuple([repr(numbers[k]) for k in self._takers])  # NaN differs from itself, and -0.0 is not 0.0
        if now == self._numbers:
            return set()
        concerned = {k for of in self._takers.values() for k in of}
        if self._numbers is None:
            concerned = set(range(len(self._launches)))
        for k in concerned:
            g = self._launches[k]
            scalars = [numbers[v.number] if isinstance(v, ParamSlot) else v for v in g.scalars]
            frame = g.entry.pack(scalars, [addresses[which] + offset for which, offset in g.buffers])
            ctypes.memmove(ctypes.addressof(self._memory) + self._starts[k], frame, len(frame))
        self._numbers = now
        return concerned


def _places(launches: Sequence[LaunchArguments], starts: Sequence[int]) -> list[tuple[int, list[tuple[int, int, int]]]]:
    """The uses of each address of a call. Each is a launch, the offset in its frame, and the offset to add to the
    address."""
    places: dict[int, list[tuple[int, int, int]]] = {}
    for k, (g, at) in enumerate(zip(launches, starts, strict=True)):
        slots = g.entry.slots[len(g.entry.scalars) :]
        for slot, (which, offset) in zip(slots, g.buffers, strict=True):
            places.setdefault(which, []).append((k, at + slot.byte, offset))
    return list(places.items())


def _takers(launches: Sequence[LaunchArguments]) -> dict[int, list[int]]:
    """For each param that may change, the launches that take it."""
    takers: dict[int, list[int]] = {}
    for k, g in enumerate(launches):
        for v in g.scalars:
            if isinstance(v, ParamSlot):
                takers.setdefault(v.number, []).append(k)
    return takers
