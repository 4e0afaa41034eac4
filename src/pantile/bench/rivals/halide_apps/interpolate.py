"""Multi-scale interpolation of a planar image with an alpha channel: ten levels."""

from collections.abc import Mapping

import halide as hl

BEAM_SIZE = 1
DEPTH = 10
CLAMPED = 4  # this level reads the one before through a boundary condition
STRIP_ROWS = 32
GPU_TILE, SMALL_GPU_TILE = (32, 32), (32, 2)

X, Y, C = hl.Var("x"), hl.Var("y"), hl.Var("c")


def build(images: Mapping[str, hl.ImageParam], target: hl.Target, *, manual: bool) -> hl.Func:
    """Return the colours of ``images["img"]``, those missing filled in from around."""
    source = images["img"]
    lanes = target.natural_vector_size(hl.Float(32))
    padded = hl.BoundaryConditions.repeat_edge(source)

    weighted, own = _premultiplied(padded, "weighted"), _premultiplied(padded, "own")
    downs = [weighted]
    on_gpu = target.has_gpu_feature()
    for level in range(1, DEPTH):
        before = own if level == 1 and manual and not on_gpu else downs[-1]
        downs.append(_down(before, level, source))

    coarsest = hl.Func(f"filled_{DEPTH - 1}")
    coarsest[X, Y, C] = downs[-1][X, Y, C]
    filled, across = [coarsest], []
    for level in reversed(range(DEPTH - 1)):
        result = hl.Func(f"filled_{level}")
        alpha = hl.f32(1) - downs[level][X, Y, 3]
        along_x, up = _up(filled[-1], level)
        across.append(along_x)
        result[X, Y, C] = downs[level][X, Y, C] + alpha * up[X, Y, C]
        filled.append(result)
    filled.reverse()
    across.reverse()
    output = hl.Func("output")
    output[X, Y, C] = filled[0][X, Y, C] / filled[0][X, Y, 3]

    if manual and on_gpu:
        gpu_expert(source, output, downs, filled, across)
    elif manual:
        strip, row, lane = hl.Var("strip"), hl.Var("row"), hl.Var("lane")
        for level in range(1, DEPTH - 1):
            tasks = downs[level].compute_root().reorder(X, C, Y).split(Y, strip, row, 8).parallel(strip)
            tasks.vectorize(X, lanes)
        own.store_at(downs[1], strip).compute_at(downs[1], row).reorder(C, X, Y).unroll(C).vectorize(X, lanes)
        output.bound(C, 0, 3).bound(X, 0, source.width()).bound(Y, 0, source.height())
        output.split(X, X, lane, lanes).split(Y, strip, row, STRIP_ROWS).reorder(lane, C, X, row, strip)
        output.unroll(C).vectorize(lane).parallel(strip)
        for level in range(1, DEPTH):
            filled[level].store_at(output, strip).compute_at(output, row).vectorize(X, lanes)
    return output


def gpu_expert(
    source: hl.ImageParam, output: hl.Func, downs: list[hl.Func], filled: list[hl.Func], across: list[hl.Func]
) -> None:
    """On the way down a kernel per level; on the way up one per two of them, and the finest three in one."""
    tile_x, tile_y, thread_x, thread_y = (hl.Var(n) for n in ("tile_x", "tile_y", "thread_x", "thread_y"))
    inner_x, inner_y = hl.Var("inner_x"), hl.Var("inner_y")

    def tiled(f: hl.Func) -> None:
        """Threads make two by two pixels."""
        _whole(f).reorder(C, X, Y).tile(X, Y, tile_x, tile_y, thread_x, thread_y, *GPU_TILE, hl.TailStrategy.RoundUp)
        f.tile(thread_x, thread_y, inner_x, inner_y, 2, 2).gpu_blocks(tile_x, tile_y).gpu_threads(thread_x, thread_y)
        f.unroll(inner_x).unroll(inner_y).unroll(C)

    def in_tile(f: hl.Func, columns: int, rows: int) -> None:
        """Threads make so many pixels."""
        _whole(f).compute_at(output, tile_x).reorder(C, X, Y).tile(X, Y, inner_x, inner_y, columns, rows)
        f.unroll(inner_x).unroll(inner_y).unroll(C).gpu_threads(X, Y)

    output.bound(C, 0, 3).bound(X, 0, source.width()).bound(Y, 0, source.height())
    tiled(output)
    for down in downs[1:]:
        _whole(down).compute_root().reorder(C, X, Y).unroll(C).gpu_tile(X, Y, thread_x, thread_y, *SMALL_GPU_TILE)
    for level in range(3, DEPTH, 2):
        tiled(filled[level].compute_root())
    in_tile(across[1], 2, 1)
    in_tile(filled[1], 2, 2)
    _whole(filled[2]).compute_at(output, tile_x).reorder(C, X, Y).unroll(C).gpu_threads(X, Y)


def _whole(f: hl.Func) -> hl.Func:
    """Without loops of their own at the edges, which newer releases of Halide make unless told."""
    return f.never_partition_all() if hasattr(f, "never_partition_all") else f


def _premultiplied(padded: hl.Func, name: str) -> hl.Func:
    """Colours times alpha, and alpha."""
    f = hl.Func(name)
    f[X, Y, C] = hl.select(C < 3, padded[X, Y, C] * padded[X, Y, 3], padded[X, Y, 3])
    return f


def _down(f: hl.Func, level: int, source: hl.ImageParam) -> hl.Func:
    """Weigh by 1 2 1 along x and then along y, at every other pixel."""

    def before(x: hl.Expr, y: hl.Expr) -> hl.Expr:
        if level == CLAMPED:
            x = hl.clamp(x, 0, source.width() / 2 ** (level - 1))
            y = hl.clamp(y, 0, source.height() / 2 ** (level - 1))
        return f[x, y, C]

    across, down = hl.Func(f"down_x_{level}"), hl.Func(f"down_{level}")
    across[X, Y, C] = _weighted([before(2 * X + d, hl.Expr(Y)) for d in (-1, 0, 1)])
    down[X, Y, C] = _weighted([across[X, 2 * Y + d, C] for d in (-1, 0, 1)])
    return down


def _weighted(taps: list[hl.Expr]) -> hl.Expr:
    return (taps[0] + hl.f32(2) * taps[1] + taps[2]) * hl.f32(0.25)


def _up(f: hl.Func, level: int) -> tuple[hl.Func, hl.Func]:
    """Twice the size along x, and along both: means of the nearest pixels."""
    across, up = hl.Func(f"up_x_{level}"), hl.Func(f"up_{level}")
    across[X, Y, C] = (f[X / 2, Y, C] + f[(X + 1) / 2, Y, C]) / hl.f32(2)
    up[X, Y, C] = (across[X, Y / 2, C] + across[X, (Y + 1) / 2, C]) / hl.f32(2)
    return across, up
