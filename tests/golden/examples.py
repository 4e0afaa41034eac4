"""Small pipelines whose lowering is kept as text: for each pass, one that shows what it does.

An example is a pipeline and sections; a section is the loop nest after one pass under one schedule. The file
<name>.txt beside this one holds them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pantile as pt

Y, X = pt.vars("y x")
IMG = pt.Input("img", "uint16", ndim=2)
FLOATS = pt.Input("img", "float32", ndim=2)
RGB = pt.Input("img", "uint8", shape=(None, None, 3))


@dataclass(frozen=True)
class Section:
    title: str
    schedule: pt.Schedule
    after: str  # the name of a pass; "graph" is what comes into the first


@dataclass(frozen=True)
class Example:
    name: str
    about: str
    build: Callable[[], tuple[pt.Func, Any]]  # output, shape
    sections: tuple[Section, ...]
    target: str = "aarch64"


def blur() -> tuple[pt.Func, Any]:
    blur_x, blur_y = pt.Func("blur_x"), pt.Func("blur_y")
    blur_x[Y, X] = (IMG[Y, X] + IMG[Y, X + 1] + IMG[Y, X + 2]) // 3
    blur_y[Y, X] = (blur_x[Y, X] + blur_x[Y + 1, X] + blur_x[Y + 2, X]) // 3
    return blur_y, (IMG.shape[0] - 2, IMG.shape[1] - 2)


def edges() -> tuple[pt.Func, Any]:
    out, src = pt.Func("out"), pt.edge(FLOATS)
    out[Y, X] = src[Y, X - 1] + src[Y, X + 1]
    return out, FLOATS.shape


def largest() -> tuple[pt.Func, Any]:
    out, src = pt.Func("out"), pt.edge(FLOATS)
    out[Y, X] = functools.reduce(pt.maximum, [src[Y, X + k] for k in range(-2, 3)])
    return out, FLOATS.shape


def inner_points() -> tuple[pt.Func, Any]:
    out, (height, width) = pt.Func("out"), FLOATS.shape
    inside = functools.reduce(operator.and_, ((i > 0) & (i < n - 1) for i, n in ((Y, height), (X, width))))
    out[Y, X] = pt.select(inside, FLOATS[Y - 1, X] + FLOATS[Y + 1, X] + FLOATS[Y, X - 1] + FLOATS[Y, X + 1], 0)
    return out, FLOATS.shape


def sweeps() -> tuple[pt.Func, Any]:
    def sweep(before: Any) -> pt.Func:
        v = pt.Func("v")
        v[Y, X] = before[Y, X] + before[Y + 1, X]
        return v

    return pt.iterate(FLOATS, sweep, times=4), (FLOATS.shape[0] - 4, FLOATS.shape[1])


def weighted_sweeps() -> tuple[pt.Func, Any]:
    weights = iter((0.25, 0.5, 0.75, 1.5))

    def sweep(before: Any) -> pt.Func:
        v = pt.Func("v")
        v[Y, X] = before[Y, X] + before[Y + 1, X] * next(weights)
        return v

    return pt.iterate(FLOATS, sweep, times=4), (FLOATS.shape[0] - 4, FLOATS.shape[1])


def multiplied() -> tuple[pt.Func, Any]:
    (i, j), out = pt.vars("i j"), pt.Func("out")
    a, b = pt.Input("a", "float32", shape=(64, None)), pt.Input("b", "float32", shape=(None, 64))
    r = pt.RDom((0, a.shape[1]), names="k")
    out[i, j] = pt.sum(a[i, r.k] * b[r.k, j], over=r)
    return out, (a.shape[0], b.shape[1])


def beside() -> tuple[pt.Func, Any]:
    (c,), out = pt.vars("c"), pt.Func("out")
    out[Y, X, c] = RGB[Y, X, c] + RGB[Y, X + 1, c]
    return out, (RGB.shape[0], RGB.shape[1] - 1, 3)


def upsampled() -> tuple[pt.Func, Any]:
    out = pt.Func("out")
    out[Y, X] = FLOATS[Y, X // 2] * 0.75 + FLOATS[Y, X // 2 + X % 2] * 0.25
    return out, (FLOATS.shape[0], 2 * FLOATS.shape[1] - 2)


def interleaved() -> tuple[pt.Func, Any]:
    out = pt.Func("out")
    out[Y, X] = pt.select(X % 2 == 0, FLOATS[Y, X // 2], FLOATS[Y, X // 2] + FLOATS[Y, X // 2 + 1])
    return out, (FLOATS.shape[0], 2 * FLOATS.shape[1] - 2)


def pointwise_then_stencil() -> tuple[pt.Func, Any]:
    bright, out = pt.Func("bright"), pt.Func("out")
    bright[Y, X] = FLOATS[Y, X] * 2.0 + 1.0
    out[Y, X] = bright[Y, X] + bright[Y, X + 1]
    return out, (FLOATS.shape[0], FLOATS.shape[1] - 1)


def box() -> tuple[pt.Func, Any]:
    r = pt.RDom((0, 3), (0, 3), names="y x")
    out = pt.Func("out")
    out[Y, X] = pt.sum(IMG[Y + r.y, X + r.x], over=r) // 9
    return out, (IMG.shape[0] - 2, IMG.shape[1] - 2)


def box_of_bytes() -> tuple[pt.Func, Any]:
    img, out = pt.Input("img", "uint8", ndim=1), pt.Func("out")
    r = pt.RDom((0, 3), names="x")
    out[X] = pt.cast("uint8", pt.sum(img[X + r.x], over=r) // 3)
    return out, (img.shape[0] - 2,)


def row_sums() -> tuple[pt.Func, Any]:
    r = pt.RDom((0, FLOATS.shape[1]), names="x")
    total = pt.Func("total")
    total[Y] = 0.0
    total[Y] += FLOATS[Y, r.x]
    return total, (FLOATS.shape[0],)


def weighted_bytes() -> tuple[pt.Func, Any]:
    img, wide = pt.Input("bytes", "uint8", ndim=1), pt.Func("wide")
    r, out = pt.RDom((0, 99), names="x"), pt.Func("out")
    wide[X] = pt.edge(img)[X]
    out[X] = pt.sum(wide[X + r.x] * FLOATS[0, r.x], over=r)
    return out, img.shape


def three_in_a_row() -> tuple[pt.Func, Any]:
    r, out = pt.RDom((0, 3), names="x"), pt.Func("out")
    out[Y, X] = pt.sum(FLOATS[Y, X + r.x], over=r)
    return out, (FLOATS.shape[0], FLOATS.shape[1] - 2)


def channels() -> tuple[pt.Func, Any]:
    c, pair, out = pt.Var("c"), pt.Func("pair"), pt.Func("out")
    pair[Y, X, c] = FLOATS[Y, X] * pt.cast("float32", c)
    out[Y, X] = pair[Y, X, 0] + pair[Y, X, 1]
    return out, FLOATS.shape


def inverted_colours() -> tuple[pt.Func, Any]:
    c, out = pt.Var("c"), pt.Func("out")
    out[Y, X, c] = 255 - RGB[Y, X, c]
    return out, RGB.shape


def swapped_colours() -> tuple[pt.Func, Any]:
    c, out = pt.Var("c"), pt.Func("out")
    out[Y, X, c] = RGB[Y, X, 2 - c]
    return out, RGB.shape


def columns_of_colours() -> tuple[pt.Func, Any]:
    c, r, out = pt.Var("c"), pt.RDom((0, 17), names="y"), pt.Func("out")
    out[Y, X, c] = pt.cast("uint16", 0)
    out[Y, X, c] += RGB[Y + r.y, X, c]
    return out, (RGB.shape[0] - 16, RGB.shape[1], 3)


def steps() -> tuple[pt.Func, Any]:
    r, out = pt.RDom((1, FLOATS.shape[0] - 1), (1, FLOATS.shape[1] - 1), names="y x"), pt.Func("out")
    out[Y, X] = FLOATS[Y, X]
    out[r.y, r.x] = pt.minimum(out[r.y, r.x], pt.minimum(out[r.y - 1, r.x], out[r.y, r.x - 1]) + 1.0)
    return out, FLOATS.shape


def moved() -> tuple[pt.Func, Any]:
    place = X * 1.5 + FLOATS[0, 0]
    left, out = pt.cast("int32", pt.floor(place)), pt.Func("out")
    src = pt.edge(FLOATS)
    out[Y, X] = (src[Y, left] + src[Y, left + 1]) * place
    return out, FLOATS.shape


def nine_rows() -> tuple[pt.Func, Any]:
    out = pt.Func("out")
    out[Y, X] = sum((FLOATS[Y + k, X] for k in range(1, 9)), FLOATS[Y, X])
    return out, (FLOATS.shape[0] - 8, FLOATS.shape[1])


def triangle() -> tuple[pt.Func, Any]:
    r = pt.RDom((0, FLOATS.shape[1]), names="k")
    out = pt.Func("out")
    out[Y, X] = pt.sum(FLOATS[Y, r.k] * FLOATS[X, r.k], over=r.where(X <= Y))
    return out, (FLOATS.shape[0], FLOATS.shape[0])


AT_ROOT = pt.Schedule(pt.on("blur_y"), pt.on("blur_x"))
AT_ROW = AT_ROOT.replace(pt.on("blur_x").compute_at("blur_y", "y"))
SLIDING = AT_ROOT.replace(pt.on("blur_x").store_root().compute_at("blur_y", "y"))
PLAIN = pt.Schedule(pt.on("out"))
PIXELS = pt.Schedule(pt.on("out").vectorize("x", 4).unroll("c"))
SUMS_OF_PIXELS = pt.Schedule(pt.on("out").update().vectorize("x", 8).unroll("c").reorder("y", "x", "r.y", "c", "x_v"))
VECTOR = pt.Schedule(pt.on("out").vectorize("x", 4))
WITHIN = pt.Schedule(pt.on("out").update().compute_with("out", "x"))
WRITTEN_OUT = pt.Schedule(pt.on("out").update().unroll("r.x").compute_with("out", "x"))
TILED = pt.Schedule(
    pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 32, 64).vectorize("xi", 8).parallel("yo"),
    pt.on("blur_x").compute_at("blur_y", "xo").vectorize("x", 8),
)
FUSED = pt.Schedule(pt.on("out"), pt.on("pair").fuse("x", "c", "i").vectorize("i", 8))
STRIPS = pt.Schedule(
    pt.on("blur_y").split("y", "strip", "row", 64).vectorize("x", 8).parallel("strip"),
    pt.on("blur_x").store_at("blur_y", "strip").compute_at("blur_y", "row").vectorize("x", 8),
)


def around(name: str, schedule: pt.Schedule, before: str) -> tuple[Section, ...]:
    """Before and after the pass."""
    return (Section(f"before {name}", schedule, before), Section(f"after {name}", schedule, name))


PACKED = pt.Schedule(
    pt.on("b").copy_in("sums", "panels", "k", "j"),
    pt.on("panels")
    .split_storage("j", "panel", "lane", 8)
    .reorder_storage("panel", "k", "lane")
    .split("j", "p", "lane", 8, tail="guard")
    .reorder("p", "k", "lane")
    .vectorize("lane"),
    pt.on("out").copy_out("sums").split("j", "p", "lane", 8, tail="guard").reorder("p", "i", "lane").vectorize("lane"),
    pt.on("sums")
    .compute_at("out", "p")
    .update()
    .split("i", "it", "row", 2)
    .reorder("it", "r.k", "row", "j")
    .vectorize("j", 8)
    .unroll("row"),
)
PLANES = pt.Schedule(
    pt.on("img").copy_in("out", "planes", "y", "x", "c"),
    pt.on("planes").compute_at("out", "y").reorder_storage("c", "y", "x").unroll("c").vectorize("x", 8),
    pt.on("out").unroll("c").vectorize("x", 8),
)

EXAMPLES = [
    Example("inline", "A stage without loops of its own takes the place of every read of it.",
            pointwise_then_stencil, around("inline", PLAIN, "graph")),
    Example("inline_reduction", "A small constant reduction is written out where it is read.",
            box, around("inline", PLAIN, "graph")),
    Example("expand", "A sum whose loops are unrolled in those of its pure definition is written out.",
            three_in_a_row, (Section("a serial loop", WITHIN, "nest"), Section("unrolled", WRITTEN_OUT, "nest"))),
    Example("convert", "Bytes that many terms convert to floats are stored as floats.",
            weighted_bytes, around("convert", pt.Schedule(pt.on("out"), pt.on("wide")), "inline")),
    Example("narrow", "Sums that fit 16 bits are computed in them.", box_of_bytes, around("narrow", PLAIN, "inline")),
    Example("nest", "Each stage is computed where the schedule says, over what is read of it there.", blur, (
        Section("blur_x at root", AT_ROOT, "nest"),
        Section("blur_x at each row of blur_y", AT_ROW, "nest"),
    )),
    Example("tiles", "Overlapped tiles: each tile of blur_y computes the rows and columns of blur_x it needs.",
            blur, (Section("after nest", TILED, "nest"), Section("the kernel", TILED, "simplify"))),
    Example("slide", "Stored outside the loop that computes it, a stage computes only what is new.", blur, (
        Section("stored where it is computed", AT_ROW, "nest"),
        Section("stored at root", SLIDING, "nest"),
    )),
    Example("fold_storage", "A buffer along which a stage slides keeps only the rows in use.",
            blur, around("fold_storage", SLIDING, "nest")),
    Example("split_storage", "A matrix in panels, each of them contiguous, and sums in blocks on their way out.",
            multiplied, (*around("split_storage", PACKED, "fold_storage"), Section("the kernel", PACKED, "simplify"))),
    Example("planes", "Interleaved pixels, copied row by row into planes.",
            beside, (Section("the kernel", PLANES, "simplify"),)),
    Example("simplify", "Index arithmetic in normal form, trivial lets and branches gone.",
            blur, around("clean", AT_ROW, "fold_storage")),
    Example("trim", "A loop runs only where the condition of an update may hold.",
            triangle, around("trim", PLAIN, "clean")),
    Example("trim_vectors", "The same in vectors: one on the diagonal stores the lanes below it.", triangle, (
        Section("the kernel", pt.Schedule(pt.on("out").update().reorder("r.k", "x").vectorize("x", 4)), "simplify"),
    )),
    Example("unswitch", "What a loop does not change is decided outside of it.",
            inner_points, around("unswitch", PLAIN, "trim")),
    Example("partition_masks", "At an edge, lanes that load under conditions run one after the other.",
            inner_points, around("partition", VECTOR, "unswitch")),
    Example("partition", "A steady middle without clamps, and edges that keep them.",
            edges, around("partition", PLAIN, "unswitch")),
    Example("partition_vectors", "The same where the loop runs over vectors.",
            edges, around("partition", VECTOR, "unswitch")),
    Example("vectorize", "A vector loop becomes straight code on vectors.",
            pointwise_then_stencil, around("vectorize", VECTOR, "partition")),
    Example("vectorize_parity", "What knows x as x // 2 and x % 2 is computed for even and for odd lanes.",
            upsampled, around("vectorize", VECTOR, "partition")),
    Example("vectorize_interleave", "A choice by parity is an interleaving of what each side has to compute.",
            interleaved, around("vectorize", VECTOR, "partition")),
    Example("unroll", "An unrolled loop becomes its iterations.",
            pointwise_then_stencil, around("unroll", pt.Schedule(pt.on("out").unroll("x", 2)), "vectorize")),
    Example("collect", "What clamped lanes read is put into rows, which vectors are loaded from.",
            largest, around("collect", pt.Schedule(pt.on("out").vectorize("x", 16)), "unroll")),
    Example("promote", "What a loop accumulates is held in registers while it runs.", row_sums,
            around("promote", pt.Schedule(pt.on("total").update().unroll("y", 2).reorder("y", "r.x", "y_u")),
                   "unroll")),
    Example("share_memory", "A buffer that is used no more gives its memory to another.",
            sweeps, around("share_memory", pt.Schedule(*(pt.on(f"v_{k}") for k in range(1, 5))), "promote")),
    Example("flatten", "Buffers become flat memory; inside a parallel loop they have a place in the thread's arena.",
            blur, around("flatten", STRIPS, "share_memory")),
    Example("flatten_channels", "A short last dim is packed, so that it makes one dense row with the dim before it.",
            channels, around("flatten", FUSED, "share_memory")),
    Example("peel", "Updates must not run twice: what a split leaves over runs in a loop of its own.", row_sums, (
        Section("the kernel", pt.Schedule(pt.on("total").update().reorder("r.x", "y").vectorize("y", 4)), "simplify"),
    )),
    Example("narrow_indices", "Places that data decides are clamped, and coordinates converted, in 32 bits.",
            moved, around("narrow_indices", VECTOR, "simplify")),
    Example("pixels", "Sums of channels lie in registers as pixels do in memory.",
            columns_of_colours, around("pixels", SUMS_OF_PIXELS, "simplify")),
    Example("interleave", "The channels of a pixel are stored at once.",
            swapped_colours, around("interleave", PIXELS, "simplify")),
    Example("interleave_alike", "Channels that are computed alike are rows of numbers.",
            inverted_colours, around("interleave", PIXELS, "simplify")),
    Example("reassociate", "Windows side by side begin with what they have in common.", nine_rows,
            around("reassociate", pt.Schedule(pt.on("out").unroll("y", 4).reorder("y", "x", "y_u")), "interleave")),
    Example("carry", "What the iteration before has stored is compared last.",
            steps, around("carry", PLAIN, "reassociate")),
    Example("outline", "Parallel loops become kernels; loops that are alike become one.", weighted_sweeps,
            around("outline", pt.Schedule(*(pt.on(f"v_{k}").parallel("y") for k in range(1, 5))), "carry")),
    Example("outline_nested", "A kernel launches what is parallel inside of it.",
            pointwise_then_stencil, around("outline", pt.Schedule(pt.on("out").parallel("y").parallel("x")), "carry")),
    Example("strips", "Sliding inside parallel strips: the kernel as code generation gets it.",
            blur, (Section("the kernel", STRIPS, "simplify"),)),
]  # fmt: skip
