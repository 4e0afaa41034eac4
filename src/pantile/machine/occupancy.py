"""How many blocks of a kernel a multiprocessor holds at a time: as its warps, shared memory and registers leave room.

The rules are those of NVIDIA's occupancy calculator, for all compute capabilities: registers are given to warps, in
units, and each sub-partition of a multiprocessor has a part of them; shared memory is given to blocks, in units, with
what the system takes of each.
"""

from __future__ import annotations

from typing import NamedTuple

from ..target.gpu import MOST_THREADS, WARP_SIZE
from .multiprocessor import Multiprocessor

_CHECKED = 4


class Occupancy(NamedTuple):
    """Blocks that a multiprocessor holds, what share of its warps these are, and what keeps more of them out."""

    blocks: int
    share: float
    limit: str  # blocks, threads, shared memory or registers


def occupancy(has: Multiprocessor, threads: int, shared: int, registers: int) -> Occupancy:
    """The occupancy of blocks of so many threads, bytes of shared memory, and registers per thread. Blocks that do not
    fit at all are none, by the limit that they exceed."""
    warps = _units(threads, WARP_SIZE)
    room = {
        "blocks": has.blocks,
        "threads": has.warps // warps if threads <= MOST_THREADS else 0,
        "shared memory": _by_shared_memory(has, shared),
        "registers": _by_registers(has, warps, max(1, registers)),
    }
    limit = min(room, key=lambda name: room[name])
    return Occupancy(room[limit], room[limit] * warps / has.warps, limit)


def _by_shared_memory(has: Multiprocessor, shared: int) -> int:
    if shared > has.shared_per_block:
        return 0
    of_block = _units(shared + has.shared_reserved, has.shared_unit) * has.shared_unit
    return has.shared // of_block if of_block else has.blocks


def _by_registers(has: Multiprocessor, warps: int, registers: int) -> int:
    of_warp = _units(registers * WARP_SIZE, has.register_unit) * has.register_unit
    # A launch is checked as if a block took as many registers in each of four sub-partitions, also where there are two.
    of_block = of_warp * _units(warps, _CHECKED) * _CHECKED
    if registers > has.registers_per_thread or of_block > has.registers_per_block:
        return 0
    return has.registers // has.sub_partitions // of_warp * has.sub_partitions // warps


def _units(amount: int, unit: int) -> int:
    """How many units hold an amount."""
    return -(-amount // unit)
