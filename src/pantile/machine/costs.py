"""The costs of instructions and of starting loops: the constants of the cost model, measured by `pantile calibrate`.

Cycles are of one core, per instruction on a whole vector, when many are in flight at once. The defaults are those of a
Neoverse N1, which differ little from those of other cores of its decade.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dataclass import dataclass
from ..parameters import Rate, check_fields


@dataclass(frozen=True)
class Costs:
    """The costs of instructions, in cycles unless they say otherwise; `Issue` has arithmetic, loads and stores."""

    mul: Rate = 2.0  # of integers
    shift: Rate = 0.6
    widen: Rate = 0.6  # to the next wider type, or the next narrower one
    convert: Rate = 1.7  # between floats and integers
    div: Rate = 6.0
    sqrt: Rate = 6.0
    idiv: Rate = 5.5  # of integers, per element
    shuffle: Rate = 0.5
    gather: Rate = 1.8  # per element, one by one
    lookup: Rate | None = None  # the same at places that data decide, if one instruction loads all of a vector
    scalar: Rate = 0.36  # an operation on one element
    latency: Rate = 2.0  # until a sum can be added to
    iteration: Rate = 2.5  # instructions of an innermost loop that count and go on
    row: Rate = 6.0  # to begin an innermost loop
    stage: Rate = 20.0  # to begin a stage
    line: Rate = 65.0  # until a line comes from the cache that cores share, if nothing is sent ahead
    far_line: Rate = 150.0  # the same from memory
    stream: Rate = 40.0  # to begin a long run of elements from the cache that cores share
    far_stream: Rate = 80.0  # the same from memory
    store_line: Rate = 4.0  # to store to a line that the second cache has
    task_s: Rate = 5e-8  # of a parallel loop, in seconds
    region_s: Rate = 4e-6  # to begin a parallel loop
    call_s: Rate = 1.5e-5
    dispatch: Rate = 3.2  # instructions per cycle, of all kinds
    window: Rate = 110.0  # instructions that are under way at a time, at most

    def __post_init__(self) -> None:
        check_fields(self)


USUAL = Costs()
_LARGE = {"shuffle": 1.0}  # of cores with the longest vectors, which one unit shuffles
_GATHERING = {"lookup": 0.8}  # of those that load such elements by one instruction


def of_core(measured: Mapping[str, float], vector_bits: int, gathers: bool = False) -> Costs:
    """What was measured, by names of fields, and all else as usual on a core with such vectors and instructions."""
    usual = (_LARGE if vector_bits >= 512 else {}) | (_GATHERING if gathers else {})
    return Costs(**{**usual, **measured})
