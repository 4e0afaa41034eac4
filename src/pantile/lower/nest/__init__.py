"""Build the loop nest: graph + plan -> loops, with a Produce and a Realize where each stage is computed and stored.

    out[y, x] = f[y - 1, x] + f[y + 1, x], f computed at out's y, becomes

    produce out:
        parallel for out.y in 0..h:
            let f.y.min = out.y - 1; let f.y.max = out.y + 1; ...
            realize f: [out.y - 1..out.y + 2, 0..w]
            produce f:
                for f.y in f.y.min..f.y.min + 3:
                    for f.x in 0..w: f[f.y, f.x] = ...
            for out.x in 0..w:
                out[out.y, out.x] = f[out.y - 1, out.x] + f[out.y + 1, out.x]

The nest is built from consumers to producers. The required region of a stage is what the statements after it read, over
the loops in between, so the extents of a stage's loops are known when they are built. If a stage is stored outside of
the loop that computes it, `slide` reduces its region to the new part. Loop variables are named stage.loop, the ends of
regions stage.dim.min and stage.dim.max.

    build           the driver: places stages, their memory and their versions before and around their consumers
    context         the context in which a statement is built
    regions         the required region of a stage, and the part of it that can be computed (`required`)
    slide, early    reuse of what earlier iterations have computed; loops that start early for it, and predicates
    make_loops      the bounds of a definition's loops (`loops`), from its dims through splits and fuses (`rewrites`)
    loop_builder    these loops, nested
    point           the stores inside all loops
"""

from .build import LoopNest, build_nest

__all__ = ["LoopNest", "build_nest"]
