"""The lowering passes for GPUs only. Each is a function in the module of the same name."""

from .async_copies import async_copies
from .block_starts import Starts
from .decide_layouts import decide_layouts
from .distribute_registers import distribute_registers
from .fence_proxies import fence_proxies
from .flatten_grid import flatten_grid
from .fragments import Storage
from .hoist_loads import hoist_loads
from .hybrid_tiles import TileSplit, hybrid_tiles
from .insert_barriers import insert_barriers
from .insert_warp_barriers import insert_warp_barriers
from .make_blocks import make_blocks
from .map_lanes import map_lanes
from .map_threads import map_threads
from .map_warps import map_warps
from .partition_blocks import partition_blocks
from .persistent_blocks import persistent_blocks
from .software_pipeline import software_pipeline
from .tensorize import tensorize
from .widen_indices import widen_indices

__all__ = [
    "Starts",
    "Storage",
    "TileSplit",
    "async_copies",
    "decide_layouts",
    "distribute_registers",
    "fence_proxies",
    "flatten_grid",
    "hoist_loads",
    "hybrid_tiles",
    "insert_barriers",
    "insert_warp_barriers",
    "make_blocks",
    "map_lanes",
    "map_threads",
    "map_warps",
    "partition_blocks",
    "persistent_blocks",
    "software_pipeline",
    "tensorize",
    "widen_indices",
]
