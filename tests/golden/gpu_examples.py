"""Small pipelines on GPUs whose lowering is kept as text: for each pass that is for GPUs alone, one that shows it."""

from __future__ import annotations

from typing import Any

import pantile as pt

from .examples import FLOATS, Example, X, Y, around, blur, edges

ROW, COLUMN = pt.vars("i j")
OFFSETS = pt.Input("offsets", "int32", ndim=1)
LUT = pt.Input("lut", "float32", ndim=1)


def window() -> tuple[pt.Func, Any]:
    rows, out = pt.Func("rows"), pt.Func("out")
    rows[Y, X] = FLOATS[Y, X] + FLOATS[Y + 1, X]
    out[Y, X] = rows[Y, X] + rows[Y, X + 1]
    return out, (FLOATS.shape[0] - 1, FLOATS.shape[1] - 1)


def scan() -> tuple[pt.Func, Any]:
    out, r = pt.Func("out"), pt.RDom((1, FLOATS.shape[0] - 1), names="y")
    out[Y, X] = FLOATS[Y, X]
    out[r.y, X] = out[r.y, X] * 0.5 + out[r.y - 1, X]
    return out, FLOATS.shape


def looked_up() -> tuple[pt.Func, Any]:
    out = pt.Func("out")
    out[X] = LUT[pt.clamp(OFFSETS[X] + X, 0, LUT.shape[0] - 1)]
    return out, OFFSETS.shape


def product() -> tuple[pt.Func, Any]:
    a, b, out = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), names="k")
    out[ROW, COLUMN] = pt.sum(a[ROW, r.k] * b[r.k, COLUMN], over=r)
    return out, (a.shape[0], b.shape[1])


def copied_rows() -> tuple[pt.Func, Any]:
    double, rows, out = pt.Func("double"), pt.Func("rows"), pt.Func("out")
    double[Y, X] = FLOATS[Y, X] * 2
    rows[Y, X] = double[Y, X]
    out[Y, X] = rows[Y, X] + rows[Y + 1, X]
    return out, (FLOATS.shape[0] - 1, FLOATS.shape[1])


def half_product() -> tuple[pt.Func, Any]:
    a, b, out = pt.Input("a", "float16", ndim=2), pt.Input("b", "float16", ndim=2), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), names="k")
    out[ROW, COLUMN] = pt.sum(pt.cast("float32", a[ROW, r.k]) * pt.cast("float32", b[r.k, COLUMN]), over=r)
    return out, (a.shape[0], b.shape[1])


def whole_product() -> tuple[pt.Func, Any]:
    a, b = pt.Input("a", "float16", shape=(64, 96)), pt.Input("b", "float16", shape=(96, 24))
    out, r = pt.Func("out"), pt.RDom((0, 96), names="k")
    out[ROW, COLUMN] = pt.sum(pt.cast("float32", a[ROW, r.k]) * pt.cast("float32", b[r.k, COLUMN]), over=r)
    return out, (64, 24)


def of_lanes(s: pt.StageSchedule, i: str, j: str, *around: str) -> pt.StageSchedule:
    s = s.split(i, "i8", "il", 8).split(j, "j8", "jn", 8).split("jn", "jl", "j2", 2)
    return s.reorder(*around, "i8", "j8", "il", "jl", "j2").lane("il", "jl").unroll("i8").vectorize("j2")


SERIAL = pt.Schedule(pt.on("blur_y"), pt.on("blur_x").compute_root())
TILES = pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
IN_SHARED = pt.Schedule(TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x").store_in("shared"))
IN_LARGER_BLOCKS = IN_SHARED.replace(TILES.threads(320))
THROUGH_L2 = IN_SHARED.replace(TILES.cache_loads("img", "cg"))
PERSISTENT = IN_SHARED.replace(TILES.persistent())
IN_REGISTERS = pt.Schedule(
    pt.on("blur_y")
    .tile("y", "x", "yo", "xo", "yi", "xi", 32, 32)
    .split("yi", "ty", "row", 4)
    .reorder("yo", "xo", "ty", "xi", "row")
    .block("yo", "xo")
    .thread("ty", "xi")
    .unroll("row"),
    pt.on("blur_x").compute_at("blur_y", "xi").unroll("y"),
)
WARPS = pt.Schedule(
    pt.on("out")
    .split("y", "yo", "w", 4)
    .split("x", "xo", "lane", 31)
    .reorder("yo", "xo", "w", "lane")
    .block("yo", "xo")
    .warp("w")
    .lane("lane"),
    pt.on("rows").compute_at("out", "w").lane("x"),
)
OF_WARPS = pt.Schedule(
    pt.on("out")
    .tile("y", "x", "yo", "xo", "w", "lane", 8, 31)
    .split("w", "w", "row", 2)
    .reorder("yo", "xo", "w", "row", "lane")
    .block("yo", "xo")
    .warp("w")
    .lane("lane"),
    pt.on("rows").compute_at("out", "w").store_in("shared").lane("y", "x"),
)
HYBRID = pt.Schedule(
    pt.on("out")
    .tile("y", "x", "yo", "xo", "w", "xi", 4, 64)
    .split("xi", "xt", "lane", 32)
    .reorder("yo", "xo", "w", "xt", "lane")
    .block("yo", "xo")
    .warp("w")
    .lane("lane")
    .unroll("xt"),
    pt.on("rows").compute_at("out", "w").store_in("shared").lane("x").registers_from("x", 33),
)
PIXELS = pt.Schedule(pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi"))
COLUMNS = pt.Schedule(
    pt.on("out")
    .split("x", "xo", "xi", 32)
    .reorder("xo", "xi", "y")
    .block("xo")
    .thread("xi")
    .update()
    .split("x", "xo", "xi", 32)
    .reorder("xo", "xi", "r.y")
    .block("xo")
    .thread("xi")
    .unroll("r.y", 2)
)
PIECES = pt.Schedule(pt.on("out").split("x", "xo", "xi", 64).block("xo").thread("xi"))
PRODUCT = pt.Schedule(
    pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ti", "tj", 8, 16).block("ib", "jb").thread("ti", "tj"),
    pt.on("sums")
    .compute_at("out", "jb")
    .store_in("register")
    .thread("i", "j")
    .update()
    .split("r.k", "ko", "ki", 8, tail="peel")
    .reorder("ko", "i", "j", "ki")
    .thread("i", "j"),
    pt.on("b").copy_in("sums", "right", "k", "j"),
    pt.on("right").compute_at("sums", "ko").store_in("shared").thread("k", "j").compute_ahead(1),
)
TENSOR_CORES = pt.Schedule(
    of_lanes(
        pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ii", "ji", 16, 32).split("ji", "w", "jw", 8),
        "ii", "jw", "ib", "jb", "w",
    ).block("ib", "jb").warp("w"),
    of_lanes(pt.on("sums").compute_at("out", "w").store_in("register"), "i", "j")
    .update()
    .split("i", "io", "row", 16)
    .split("j", "jo", "column", 8)
    .split("r.k", "ko", "term", 16)
    .reorder("ko", "io", "jo", "row", "column", "term")
    .tensor_core("row", "column", "term"),
)  # fmt: skip


def in_cores(name: str, outer: str, inner: str) -> pt.StageSchedule:
    stage = pt.on(name).compute_at("sums", "ko").store_in("shared").compute_ahead(2)
    stage = stage.split_storage(inner, "core", "of_core", 8).reorder_storage("core", outer, "of_core")
    return stage.split(inner, "parts", "part", 8, tail="guard").thread(outer, "parts").vectorize("part")


WARPGROUPS = pt.Schedule(
    of_lanes(
        pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ii", "ji", 64, 24).split("ii", "w", "iw", 16),
        "iw", "ji", "ib", "jb", "w",
    ).block("ib", "jb").warp("w"),
    of_lanes(pt.on("sums").compute_at("out", "jb").store_in("register").split("i", "w", "iw", 16), "iw", "j", "w")
    .warp("w")
    .update()
    .split("i", "w", "row", 16)
    .split("j", "jo", "column", 24)
    .split("r.k", "ko", "term", 16, tail="peel")
    .reorder("ko", "w", "jo", "row", "column", "term")
    .warp("w")
    .tensor_core("row", "column", "term"),
    pt.on("a").copy_in("sums", "left", "i", "k"),
    in_cores("left", "i", "k"),
    pt.on("b").copy_in("sums", "right", "k", "j"),
    in_cores("right", "k", "j"),
)  # fmt: skip
COPIES = pt.Schedule(
    pt.on("out").tile("y", "x", "yo", "xo", "row", "xi", 4, 32).block("yo", "xo").thread("xi"),
    pt.on("double").compute_at("out", "xo").thread("y", "x"),
    pt.on("rows").compute_at("out", "row").thread("x").compute_ahead(),
)

# Examples of parts of a pass.
OF_PARTS = {
    "own_registers": "distribute_registers",
    "lane_registers": "distribute_registers",
    "block_threads": "map_threads",
    "cache_loads": "outline",
    "linearized_points": "map_warps",
    "core_matrices": "tensorize",
    "products_in_flight": "software_pipeline",
    "warp_memory": "flatten",
}

GPU_EXAMPLES = [
    Example(name, about, build, around(OF_PARTS.get(name, name), schedule, before), target="cuda-sim")
    for name, about, build, schedule, before in (
        ("make_blocks", "What no block loop was asked for is a block of its own.", blur, SERIAL, "unswitch"),
        ("partition_blocks", "A block that lies inside of the picture needs no clamps.", edges, PIXELS, "make_blocks"),
        ("decide_layouts", "Threads share the sums of a block.", product, PRODUCT, "split_storage"),
        ("tensorize", "A warp multiplies 16 by 16 numbers with 16 by 8 others.", half_product, TENSOR_CORES,
         "partition_blocks"),
        ("core_matrices", "A warpgroup multiplies what lies in shared memory.", whole_product,
         WARPGROUPS, "partition_blocks"),
        ("hybrid_tiles", "The right half of a row is in registers of lanes.", window, HYBRID, "promote"),
        ("insert_warp_barriers", "Lanes wait before they read what others have stored in memory of their warp.", window,
         OF_WARPS, "hybrid_tiles"),
        ("map_warps", "The lanes of a warp are threads.", window, WARPS, "insert_warp_barriers"),
        ("linearized_points", "Lanes take the points of a box in turn.", window, OF_WARPS, "insert_warp_barriers"),
        ("distribute_registers", "Sums of a block are those of its threads.", product, PRODUCT, "map_warps"),
        ("own_registers", "Registers are known by constant indices.", blur, IN_REGISTERS, "map_warps"),
        ("lane_registers", "Lanes have parts of a row, and get others by shuffles.", window, WARPS, "map_warps"),
        ("map_lanes", "Lanes of a warp exchange what they have computed.", window, WARPS, "distribute_registers"),
        ("map_threads", "Threads take the points of a box in turn.", blur, IN_SHARED, "map_lanes"),
        ("block_threads", "A block has more threads than its tile has points.", blur, IN_LARGER_BLOCKS, "map_lanes"),
        ("cache_loads", "Kernels know by which operator they load.", blur, THROUGH_L2, "flatten_grid"),
        ("software_pipeline", "The next piece of a matrix is copied beside the products of this one.", product, PRODUCT,
         "map_threads"),
        ("products_in_flight", "Warpgroups begin the products of a slice, and wait for those of the one before.",
         whole_product, WARPGROUPS, "map_threads"),
        ("warp_memory", "Each warp has shared memory of its own.", window, OF_WARPS, "software_pipeline"),
        ("hoist_loads", "Loads that a store does not change come before it.", scan, COLUMNS, "carry"),
        ("flatten_grid", "Two block loops become the number of a block.", edges, PIXELS, "hoist_loads"),
        ("widen_indices", "A place that data decides is computed in 64 bits.", looked_up, PIECES, "outline"),
        ("persistent_blocks", "Blocks loop over tiles.", blur, PERSISTENT, "widen_indices"),
        ("async_copies", "A copy of what the kernel itself has stored is not asynchronous.", copied_rows, COPIES,
         "persistent_blocks"),
        ("insert_barriers", "Threads wait before they read what others have stored.", blur, IN_SHARED, "async_copies"),
        ("fence_proxies", "Matrix instructions see what threads have copied.", whole_product, WARPGROUPS,
         "insert_barriers"),
    )
]  # fmt: skip
