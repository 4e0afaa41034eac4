"""The steps of lowering for GPUs, by the names that the list of passes has for them."""

from .ahead import ahead as load_ahead
from .barriers import with_barriers as place_barriers
from .blocks import blocks as make_blocks
from .edges import edges as decide_edges
from .grid import grid as collapse
from .spread import spread as spread_out
from .threads import threads as deal_out
from .wide import wide as widen

__all__ = ["collapse", "deal_out", "decide_edges", "load_ahead", "make_blocks", "place_barriers", "spread_out", "widen"]
