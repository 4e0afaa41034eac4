"""A chain of 32 stencils of 5x5 on 16-bit integers."""

import itertools
from collections.abc import Mapping

import halide as hl

BEAM_SIZE = 1
STAGES = 32
STORED = 11  # every so many stages one is stored whole
GPU_TILE = (60, 8)
TILES = 4  # along each axis of a stage that is stored whole


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the last stage of the chain on ``images["img"]``, of the same shape."""
    source = images["img"]
    x, y = hl.Var("x"), hl.Var("y")
    chain = [hl.BoundaryConditions.repeat_edge(source)]
    for k in range(STAGES):
        after = hl.Func(f"stage_{k + 1}")
        before, total = chain[-1], hl.cast(hl.UInt(16), 0)
        for i in range(-2, 3):
            for j in range(-2, 3):
                total = total + hl.cast(hl.UInt(16), (i + 3) * (j + 3)) * before[x + i, y + j]
        after[x, y] = total
        chain.append(after)
    if manual and target.has_gpu_feature():
        gpu_expert(chain, x, y)
    elif manual:
        extents = [source.get().dim(axis).extent() for axis in range(2)]
        _schedule(chain, x, y, extents, target.natural_vector_size(hl.UInt(16)))
    return chain[-1]


def gpu_expert(chain: list[hl.Func], x: hl.Var, y: hl.Var) -> None:
    """A kernel per stage: what a tile reads is copied to shared memory, and what a thread reads of that, for two by two
    pixels, to registers.
    """
    thread_x, thread_y, inner_x, inner_y = (hl.Var(n) for n in ("thread_x", "thread_y", "inner_x", "inner_y"))
    for before, f in itertools.pairwise(chain):
        f.compute_root().gpu_tile(x, y, thread_x, thread_y, *GPU_TILE)
        f.tile(thread_x, thread_y, inner_x, inner_y, 2, 2).unroll(inner_x).unroll(inner_y)
        u, v = before.args()
        tile = before.in_()
        tile.compute_at(f, x).tile(u, v, inner_x, inner_y, 2, 2).vectorize(inner_x).unroll(inner_y).gpu_threads(u, v)
        tile.in_().compute_at(f, thread_x).vectorize(u, 2).unroll(u).unroll(v)


def _schedule(chain: list[hl.Func], x: hl.Var, y: hl.Var, extents: list[int], lanes: int) -> None:
    """Whole stages in tiles, one task each; the stages before them, a row at a time, in the same tiles."""
    tile_x, tile_y, inner_x, inner_y = hl.Var("tile_x"), hl.Var("tile_y"), hl.Var("inner_x"), hl.Var("inner_y")
    task = hl.Var("task")
    pending: list[hl.Func] = []
    for stage, f in enumerate(chain):
        left = STAGES - stage
        if left % STORED:
            pending.append(f)
            continue
        columns, rows = ((extent + 4 * left) // TILES for extent in extents)
        f.compute_root().tile(x, y, tile_x, tile_y, inner_x, inner_y, columns, rows)
        f.fuse(tile_x, tile_y, task).parallel(task).vectorize(inner_x, lanes)
        for g in pending:
            g.store_at(f, task).compute_at(f, inner_y).vectorize(g.args()[0], lanes)
        pending = []
