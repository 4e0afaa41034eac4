"""Passes that map loops to GPUs: they form kernels of blocks, distribute points to threads, and insert barriers.

    decide_layouts        decide which thread holds which element of a buffer in registers
    make_blocks           divide loops into block loops, which run on the device, and the rest, which stays on the host
    partition_blocks      let each block test once whether it is inside; if so, it runs without clamps (`block_starts`:
                          whether that is worth a version)
    tensorize             turn the loops of matrix products into matrix instructions, with the fragments of each lane
    hybrid_tiles          split a warp's tile at a column: shared memory before it, registers of lanes after it
    insert_warp_barriers  insert the barriers at which the lanes of a warp wait for each other
    map_warps             turn warp loops into thread loops
    distribute_registers  turn buffers in registers into registers of each thread, with constant indices and shuffles
    map_lanes             map lane loops to the threads of a warp, which also compute reductions together
    map_threads           map each thread loop to a loop over all points, which the threads of a block share
    software_pipeline     load or compute the data of a later iteration during the current one
    hoist_loads           move loads before the stores that do not change what they load
    flatten_grid          turn directly nested block loops into one
    widen_indices         compute indices that depend on data in 64 bits
    persistent_blocks     launch only as many blocks as the GPU holds at once, each of which loops over tiles
    async_copies          make copies to shared memory for which threads do not wait one by one
    insert_barriers       insert the barriers at which threads wait for each other
    fence_proxies         make what threads write visible to the matrix instructions of warpgroups

The passes down to `hoist_loads` change loops (`lower/passes.py`); the others make kernels of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_imports import imported_later

if TYPE_CHECKING:
    from . import passes as passes
else:
    __getattr__, __dir__ = imported_later(__name__, passes="passes")
