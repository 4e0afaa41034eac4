"""How much of what a launch accesses is still in L2, from the launches before it.

    blur_x: writes 60 MB of blur_x      blur_y finds some of it in L2: less than 50 MB were accessed since
    blur_y: reads blur_x, writes out

An access finds data in L2 if few other data have been accessed since the last access to the same array. Calls follow
each other, so that the first launches find what the last ones left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Footprint = Mapping[str, int]  # the bytes of each array that a launch accesses
_SHARPNESS = 4  # of the transition from data that stay in L2 to data that do not
_FAR = 8.0  # times the capacity: hardly anything stays for so long


def shares_in_l2(launches: Sequence[Footprint], capacity: float) -> list[dict[str, float]]:
    """For each launch, the fraction of its accesses to each array that L2 serves. `capacity` is in bytes."""
    return [
        {name: 1 / (1 + (_since(launches, k, name, _FAR * capacity) / capacity) ** _SHARPNESS) for name in launch}
        for k, launch in enumerate(launches)
    ]


def _since(launches: Sequence[Footprint], k: int, name: str, most: float) -> float:
    """The bytes accessed from the last launch before launch k that accessed an array, up to launch k; if there are
    more than `most`, at least so many."""
    accessed: dict[str, int] = {}
    total = 0.0
    for before in range(k - 1, k - 1 - len(launches), -1):
        launch = launches[before]
        for other, size in launch.items():
            more = size - accessed.get(other, 0)
            if more > 0:
                accessed[other] = size
                total += more
        if name in launch or total > most:
            break
    return total
