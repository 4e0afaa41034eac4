"""The memory of intermediate arrays, and the dependences between launches.

The memory of a call is one allocation, in which arrays with disjoint live ranges share memory. For example, a chain of
stages alternates between two arrays, which stay in the device's cache. A launch waits for earlier launches that access
the same memory, unless both only read it; transitive dependences are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.nodes import Kernel, Store
from ...ir.visit import walk
from ..launches import Allocation, LaunchPlan, PlannedLaunch

ALIGNMENT = 256  # bytes, as for the driver's allocations
_MOST_COMPARED = 512  # launches; longer lists run sequentially


def places(plan: LaunchPlan) -> tuple[dict[str, int], int]:
    """The offset of each array in bytes, and the total size. Arrays are placed in order of decreasing size, each at the
    lowest offset that is free during its live range."""
    used = _live_ranges(plan.launches)
    placed: list[tuple[int, int, int, int]] = []
    at, total = {}, 0
    for a in sorted(plan.allocations, key=lambda a: -_bytes(a)):
        begin, size = 0, _bytes(a)
        first, last = used.get(a.name, (0, -1))
        for other, end, since, until in sorted(placed):
            if since <= last and first <= until and begin < end and other < begin + size:
                begin = end
        placed.append((begin, begin + size, first, last))
        at[a.name] = begin
        total = max(total, begin + size)
    return at, total


def _live_ranges(launches: Sequence[PlannedLaunch]) -> dict[str, tuple[int, int]]:
    """The first and the last launch that use each buffer."""
    used: dict[str, tuple[int, int]] = {}
    for k, launch in enumerate(launches):
        for name in launch.buffers:
            used[name] = used.get(name, (k, k))[0], k
    return used


def _bytes(a: Allocation) -> int:
    return rounded(a.elements * a.dtype.bytes)


def rounded(size: int) -> int:
    """Round an offset or size up to the alignment of arrays."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def written_buffers(kernel: Kernel) -> tuple[bool, ...]:
    """Whether a kernel writes each of its buffers."""
    stored = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    return tuple(b.name in stored for b in kernel.buffers)


def dependencies(
    launches: Sequence[PlannedLaunch], writes: Sequence[Sequence[bool]], where: dict[str, tuple[int, int]]
) -> list[list[int]]:
    """The earlier launches that each launch waits for. `where` has the byte range of each intermediate array. Arguments
    are assumed to share memory only if no launch writes to it."""
    if len(launches) > _MOST_COMPARED:
        return [[k - 1] if k else [] for k in range(len(launches))]
    touched = [_accesses(launch, w, where) for launch, w in zip(launches, writes, strict=True)]
    before: list[int] = []  # for each launch, a bit set of the launches that it depends on, directly or transitively
    dependencies_of = []
    for k, mine in enumerate(touched):
        waits, known = [], 0
        for j in range(k - 1, -1, -1):
            if not known >> j & 1 and _meet(touched[j], mine):
                waits.append(j)
                known |= before[j] | 1 << j
        before.append(known)
        dependencies_of.append(waits)
    return dependencies_of


_Touched = list[tuple[str, int, int, bool]]


def _accesses(launch: PlannedLaunch, writes: Sequence[bool], where: dict[str, tuple[int, int]]) -> _Touched:
    """The accesses of a launch: for each of its buffers, an argument or a byte range of the call's memory, and whether
    the launch writes it."""
    return [
        ("", *where[name], w) if name in where else (name, 0, 1, w)
        for name, w in zip(launch.buffers, writes, strict=True)
    ]


def _meet(a: _Touched, b: _Touched) -> bool:
    return any(
        (w or x) and name == other and low < end and begin < high
        for name, low, high, w in a
        for other, begin, end, x in b
    )
