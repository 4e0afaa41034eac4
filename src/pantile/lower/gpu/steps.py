"""The steps of lowering for GPUs, by the names that the list of passes has for them."""

from .ahead import ahead as load_ahead
from .asynchronous import asynchronous as copy_asynchronously
from .barriers import with_barriers as place_barriers
from .blocks import blocks as make_blocks
from .computed_ahead import computed_ahead as compute_ahead
from .edges import edges as decide_edges
from .grid import grid as collapse
from .own import own as number_registers
from .spread import spread as spread_out
from .starts import Starts
from .threads import threads as deal_out
from .warps import warps as share_among_lanes
from .wide import wide as widen

__all__ = [
    "collapse", "compute_ahead", "copy_asynchronously", "deal_out", "decide_edges", "load_ahead", "make_blocks",
    "number_registers", "place_barriers", "share_among_lanes", "spread_out", "widen", "Starts",
]  # fmt: skip
