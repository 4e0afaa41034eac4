"""Which gathers read neighbouring elements in every lane.

`t[i]`, `t[i + 1]`, ... with the same vector `i` of data-dependent indices read one short run per lane. Each lane then
loads its run at once, and the runs are transposed into one vector per offset. The bytes of a pixel become a number of
32 bits per lane, which leaves the general registers as it is, and each of them is shifted out of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..expr.linear import Linear, linear
from ..expr.nodes import Load
from ..expr.runs import Run
from ..expr.runs import runs as cut

Family = tuple[object, ...]


def places(load: Load) -> Linear:
    """A vector of indices as a sum of vectors, and the constant that all lanes add to it."""
    return linear(load.indices[0])


def family(load: Load) -> Family:
    """The key of the gathers whose indices differ only by a constant."""
    terms = frozenset((k, c) for k, (_, c) in places(load).terms.items())
    return (load.buffer, load.lanes, terms)


def runs(loads: Iterable[Load]) -> dict[Family, dict[int, Run]]:
    """For each family of these gathers, the run that serves each offset."""
    together: dict[Family, list[Load]] = {}
    for load in loads:
        together.setdefault(family(load), []).append(load)
    return {
        f: cut((places(load).constant for load in members), members[0].dtype, members[0].lanes)
        for f, members in together.items()
    }
