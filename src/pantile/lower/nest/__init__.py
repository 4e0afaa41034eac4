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

The nest is built from consumers to producers: the required region of a stage is what the statements after it read, over
the loops in between, so that each stage's loops are built knowing their extents. Where a stage is stored outside the
loop it is computed in, `slide` cuts its region down to what is new. Names: loop variables are stage.loop, regions
stage.dim.min and .max.

    build           the driver: puts stages, their memory and their versions around their consumers
    context         the context in which a statement is built
    regions         the required region of a stage, and what of it can be computed (`required`)
    slide, early    what earlier iterations have computed; loops that start early for that, and what waits in them
    make_loops      the bounds of a definition's loops (`loops`), from its dims through splits and fuses (`rewrites`)
    loop_builder    these loops, one inside the other
    point           the stores inside all loops
"""

from .build import LoopNest, build_nest

__all__ = ["LoopNest", "build_nest"]
