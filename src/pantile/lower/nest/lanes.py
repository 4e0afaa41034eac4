"""Which lanes of a warp take an iteration of a lane loop, where these are nested.

lane for y in 0..2:          2 threads, 16 apart
    lane for x in 0..16:     16 threads
"""

from __future__ import annotations

import math

from ...expr.linear import simplify
from ...expr.nodes import Const
from ...schedule.plan import Split
from ...schedule.refuse import unknown_lanes
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind, Memory
from ...target.layout import Digit, Unit
from .loops import DefinitionLoops


def lane_digit(loops: DefinitionLoops, depth: int, memory: Memory) -> Digit | None:
    """The digit of a lane's number that the loop at `depth` counts; None if it is no lane loop, or if that is not
    known and lanes may take its points in turn, since these lie in shared memory."""
    first, *inner = (x for x in loops.nest.loops[depth:] if x.name not in loops.gone)
    if loops.kind(first) is not Kind.LANE:
        return None
    inside = [x for x in inner if loops.kind(x) is Kind.LANE]
    sizes = [_iterations(loops, x.name) for x in inside]
    if None in sizes and memory is Memory.SHARED:
        return None
    if None in sizes:
        unknown = inside[sizes.index(None)]
        raise unknown_lanes(loops.stage, unknown.mark, unknown.name)
    weight = math.prod(n for n in sizes if n is not None)
    return Digit(_iterations(loops, first.name) or max(WARP_SIZE // weight, 1), Unit.THREAD, weight)


def _iterations(loops: DefinitionLoops, name: str) -> int | None:
    """The iterations of a loop in whole blocks, if that is a constant."""
    sizes: dict[str, int] = {}
    for r in loops.nest.rewrites:
        if isinstance(r, Split):
            whole = sizes.pop(r.old, 0)
            sizes |= {r.outer: -(-whole // r.factor), r.inner: r.factor}
        else:
            sizes[r.fused] = sizes.pop(r.outer, 0) * sizes.pop(r.inner, 0)
    extent = simplify(loops.ranges[name].high - loops.ranges[name].low + 1)
    return sizes.get(name) or (int(extent.value) if isinstance(extent, Const) else None)
