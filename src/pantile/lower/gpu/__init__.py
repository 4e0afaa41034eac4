"""Passes that map loops to GPUs: they form kernels of blocks, distribute points to threads, and insert barriers.

    decide_layouts        which thread holds which element of what threads have in registers
    make_blocks           what runs on the device, in block loops, and what stays on the host
    partition_blocks      one decision per block: without clamps where all of it lies inside (`block_starts`: whether
                          that is worth a version)
    tensorize             the loops of products of matrices as matrix instructions, with the fragments of each lane
    hybrid_tiles          what a warp has in shared memory up to a column, and from there on in registers of its lanes
    map_warps             warp loops as thread loops
    distribute_registers  registers of each thread, with constant indices, and shuffles, as the layouts say
    map_lanes             lane loops as the threads of a warp, and reductions by all of them
    map_threads           each thread loop over all points that the threads of a block share
    software_pipeline     what a later iteration needs, loaded or computed beside what this one does
    hoist_loads           loads before the stores that do not change what they load
    flatten_grid          block loops that are directly inside each other, as one
    widen_indices         indices that depend on data, in 64 bits
    async_copies          copies to shared memory that threads do not wait for one by one
    insert_barriers       where threads wait for each other
    fence_proxies         where matrix instructions of warpgroups are to see what threads have written

The first ten change loops as they are built (`lower/passes.py`), the others make kernels of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_imports import imported_later

if TYPE_CHECKING:
    from . import passes as passes
else:
    __getattr__, __dir__ = imported_later(__name__, passes="passes")
