"""What GPUs need of loops: kernels made of blocks, threads that share the points of a stage, barriers between them.

    blocks      what runs on the device, in block loops, and what stays on the host
    edges       one decision per block: without clamps where all of it lies inside
    starts      whether that is worth a version: where a block begins is no more than a number
    warps       warp and lane loops as thread loops, whose threads exchange what they have (`exchanged`)
    spread      registers of a block as those of its threads
    own         places in registers of threads as numbers
    threads     each thread loop over all points that threads of a block share
    computed_ahead   what a later iteration needs, beside what this one does
    grid        block loops that are directly inside each other, as one
    wide        places that data finds, in 64 bits
    asynchronous     copies that threads do not wait for one by one
    barriers    where threads wait for each other

The first seven change loops as they are built (`lower/passes`), the others make kernels of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...later import imported_later

if TYPE_CHECKING:
    from .steps import Starts as Starts
    from .steps import collapse as collapse
    from .steps import compute_ahead as compute_ahead
    from .steps import copy_asynchronously as copy_asynchronously
    from .steps import deal_out as deal_out
    from .steps import decide_edges as decide_edges
    from .steps import load_ahead as load_ahead
    from .steps import make_blocks as make_blocks
    from .steps import number_registers as number_registers
    from .steps import place_barriers as place_barriers
    from .steps import share_among_lanes as share_among_lanes
    from .steps import spread_out as spread_out
    from .steps import widen as widen
else:
    _NAMES = (
        "collapse", "compute_ahead", "copy_asynchronously", "deal_out", "decide_edges", "load_ahead", "make_blocks",
        "number_registers", "place_barriers", "share_among_lanes", "spread_out", "widen", "Starts",
    )  # fmt: skip
    __getattr__, __dir__ = imported_later(__name__, **dict.fromkeys(_NAMES, "steps"))
