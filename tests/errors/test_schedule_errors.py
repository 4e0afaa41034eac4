"""Every way in which a schedule can be refused, and what the refusal says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

import pantile as lang
from pantile import schedule as pt
from pantile.errors import UserError
from pantile.expr.nodes import const, op
from pantile.expr.types import INDEX
from pantile.graph.nodes import Graph
from pantile.schedule import Schedule, StageSchedule, resolve
from tests.reference.hand_built import X, Y, graph, load, stage, update
from tests.schedule import pipelines

Case = tuple[Callable[[], Graph], tuple[StageSchedule, ...], str]


def f32_total() -> Graph:
    return pipelines.total("float32")


def total_with_param() -> Graph:
    return replace(pipelines.total(), params=pipelines.blur().params)


def big_box() -> Graph:
    return pipelines.box(9)


def of_any_size() -> Graph:
    """g reads f, over the shape of its input."""
    y, x = lang.vars("y x")
    img, f, g = lang.Input("img", "float32", 2), lang.Func("f"), lang.Func("g")
    f[y, x] = img[y, x] * 2
    g[y, x] = f[y, x] + 1
    return lang.Pipeline(g).graph


def stated() -> Graph:
    """f says where it ends."""
    (x,) = lang.vars("x")
    f, g = lang.Func("f", domain=((0, 9),)), lang.Func("g")
    f[x] = x * 2
    g[x] = f[x] + 1
    return lang.Pipeline(g, shape=(9,)).graph


def read_twice() -> Graph:
    """Both definitions of g read f."""
    y, x = lang.vars("y x")
    f, g = lang.Func("f"), lang.Func("g")
    f[y, x] = y + x
    g[y, x] = f[y, x]
    g[y, x] += f[y + 1, x]
    return lang.Pipeline(g, shape=(5, 7)).graph


def crossed() -> Graph:
    """a -> c and d -> b, so that a with b and c with d cannot both share loops."""
    a = stage("a", "y x", load("img", "float32", Y, X))
    d = stage("d", "y x", load("img", "float32", Y, X) + 1.0)
    c = stage("c", "y x", load("a", "float32", Y, X))
    b = stage("b", "y x", load("d", "float32", Y, X))
    shape = (64, 64)
    return graph(a, d, c, b, out=tuple((n, shape) for n in "abcd"), inputs=pipelines.FLOATS)


def beside(dims: str) -> Callable[[], Graph]:
    """a[y, x] and b with other dims."""

    def made() -> Graph:
        a = stage("a", "y x", load("img", "float32", Y, X))
        b = stage("b", dims, load("img", "float32", Y, const(0, INDEX)))
        return graph(a, b, out=(("a", (64, 64)), ("b", (64,) * b.ndim)), inputs=pipelines.FLOATS)

    return made


def twice() -> Graph:
    """Two updates: one stays at its point, the other reads the row before."""
    stays = update((Y, X), load("f", "float32", Y, X) + 1.0)
    strays = update((Y, X), load("f", "float32", Y, X) + load("f", "float32", Y - 1, X))
    return graph(
        stage("f", "y x", load("img", "float32", Y, X), updates=(stays, strays)),
        out=(("f", (64, 64)),),
        inputs=pipelines.FLOATS,
    )


OUT = pt.on("out")
BLUR_Y = pt.on("blur_y")
BLUR_X = pt.on("blur_x")

LOOPS: list[Case] = [
    (pipelines.blur, (pt.on("blur_z").parallel("y"),),
     "pt.on(\"blur_z\").parallel(\"y\"): the pipeline has no stage 'blur_z'; did you mean 'blur_y'?"),
    (pipelines.blur, (BLUR_Y.parallel("z"),),
     ("pt.on(\"blur_y\").parallel(\"z\"): the pure definition has no loop 'z'; there are: y, x "
     "(blur_y is defined at picture.py:7)")),
    (pipelines.product, (pt.on("c").update().unroll("kk"),), "update 0 has no loop 'kk'; did you mean 'k'?"),
    (pipelines.blur, (BLUR_Y.split("y", "yo", "x", 8),), "'x' already names a loop of the pure definition"),
    (pipelines.blur, (BLUR_Y.split("y", "yo", "yi", 8).split("x", "xo", "y", 8),), "'y' already names a loop"),
    (pipelines.blur, (BLUR_Y.split("y", "yo", "yo", 8),), "'yo' already names a loop"),
    (pipelines.blur, (BLUR_Y.fuse("y", "x", "p").split("p", "y", "x", 8),), "'x' already names a loop"),
    (pipelines.blur, (BLUR_Y.parallel("y").split("y", "yo", "yi", 8),),
     "loop y is already parallel; write the split before .parallel(\"y\")"),
    (pipelines.blur, (BLUR_Y.parallel("y").vectorize("y"),), "loop y is already parallel by .parallel(\"y\")"),
    (pipelines.blur, (BLUR_Y.parallel("y").fuse("y", "x", "p"),), "loop y is already parallel; write the fuse before"),
    (pipelines.blur, (BLUR_Y.fuse("x", "y", "p"),),
     "loop y is not directly inside loop x (the loops are y, x); reorder them first"),
    (pipelines.blur, (BLUR_Y.reorder("x", "x"),), "a loop is named twice"),
    (of_any_size, (pt.on("f").compute_root().vectorize("x"),),
     'the extent of loop x is not known when compiling; split it by a constant, as in .vectorize("x", 8)'),
    (of_any_size, (pt.on("f").compute_root().unroll("x"),), 'split it by a constant, as in .unroll("x", 8)'),
    (of_any_size, (pt.on("g").unroll("x"),), 'split it by a constant, as in .unroll("x", 8)'),
    (pipelines.blur, (BLUR_Y.vectorize("y", 8),),
     'pt.on("blur_y").vectorize("y", 8): loop x (serial) lies inside the vector loop y_v; reorder y_v innermost'),
    (pipelines.blur, (BLUR_Y.vectorize("y", 8).vectorize("x", 8).reorder("y", "x", "y_v", "x_v"),),
     "loop x_v (vector) lies inside the vector loop y_v"),
    (pipelines.product, (pt.on("c").update().vectorize("j", 8, tail="shift"),),
     'tail="shift" would apply update 0 more often than once to some points; use tail="guard"'),
    (pipelines.product, (pt.on("c").update(1).parallel("i"),), "c has only updates 0..0"),
    (pipelines.blur, (BLUR_X.update().parallel("y"),), "blur_x has no update definitions"),
]  # fmt: skip

ORDER: list[Case] = [
    (pipelines.total, (pt.on("total").update().parallel("r.y"),),
     ("the iterations of loop r.y of update 0 touch the same elements of total; write .rfactor(\"r.y\", \"u\") to "
     "reduce in two steps, and parallel the loop u of pt.on(\"total_u\").update()")),
    (pipelines.product, (pt.on("c").update().vectorize("k", 4),),
     'write .split("k", "outer", "inner", 4).rfactor("inner", "u")'),
    (pipelines.histogram, (pt.on("hist").update().parallel("r.y"),), 'write .rfactor("r.y", "u")'),
    (pipelines.scan, (pt.on("f").update().vectorize("r.x"),),
     "touch the same elements of f; only loops that do not carry values can be vector; leave this one serial"),
    (pipelines.product, (pt.on("c").update().fuse("j", "k", "jk").parallel("jk"),),
     'write .rfactor(loop, "u") with a reduction loop'),
    (pipelines.two_loop_scan, (pt.on("f").update().reorder("r.x", "r.y"),),
     "the loops r.y, r.x of update 0 carry values from one iteration to the next; leave them in this order"),
    (pipelines.two_loop_scan, (pt.on("f").update().tile("r.y", "r.x", "a", "b", "c", "d", 4, 4),), "carry values"),
]  # fmt: skip

PLACES: list[Case] = [
    (pipelines.blur, (BLUR_X.compute_at("blur_z", "y"),), "there is no stage 'blur_z'; did you mean 'blur_y'?"),
    (pipelines.blur, (BLUR_Y, BLUR_X.compute_at("blur_y", "yo")), "blur_y has no loop 'yo'; did you mean 'y'?"),
    (read_twice, (pt.on("g"), pt.on("f").store_root().compute_at("g", "y")),
     "f is computed in loops of several definitions of g; leave it out: what is computed in a loop is stored there"),
    (pipelines.blur, (BLUR_X.compute_at("blur_x", "y"),), "a stage cannot be placed inside its own loops"),
    (pipelines.blur, (BLUR_Y.compute_at("blur_x", "y"), BLUR_X), "an output is computed at root"),
    (pipelines.blur, (BLUR_Y.compute_inline(),), "an output cannot be inlined"),
    (pipelines.diamond, (pt.on("b"), pt.on("c"), pt.on("a").compute_at("b", "y")),
     ("a is also read by the pure definition of c, which does not run inside that loop; choose a loop around all that "
     "reads it, or compute c inside that loop too")),
    (pipelines.diamond, (OUT, pt.on("b").compute_at("out", "x"), pt.on("c"), pt.on("a").compute_at("out", "y")),
     "a is also read by the pure definition of c"),
    (pipelines.diamond, (pt.on("a"), pt.on("b").compute_at("a", "y")),
     "b is read by the pure definition of out, which does not run inside that loop"),
    (pipelines.diamond, (pt.on("b").compute_at("c", "y"), pt.on("c").compute_at("b", "y")), "does not run inside"),
    (pipelines.diamond, (pt.on("b").compute_inline(), pt.on("a").compute_at("b", "y")),
     "b is inlined and has no loops"),
    (pipelines.blur, (BLUR_Y.vectorize("x", 8), BLUR_X.compute_at("blur_y", "x_v")),
     "loop x_v of blur_y is a vector, so nothing can be computed inside it; choose the loop outside it"),
    (pipelines.blur, (BLUR_Y, BLUR_X.compute_at("blur_y", "y").store_at("blur_y", "x")),
     "blur_x is computed at loop y of blur_y, which that loop does not enclose"),
    (pipelines.blur, (BLUR_Y, BLUR_X.store_at("blur_y", "y")), "blur_x is computed at root, which that loop does not"),
    (pipelines.blur, (BLUR_Y.parallel("y"), BLUR_X.compute_at("blur_y", "x").store_root()),
     ("the parallel loop y of blur_y lies between the memory and the computation, so threads would share what each of "
     'them overwrites; store it inside: .store_at("blur_y", "y")')),
    (big_box, (pt.on("sum").compute_inline(),), "sum has update definitions, which need its values in memory"),
    (pipelines.blur, (BLUR_X.compute_inline().parallel("y"),), "the stage is inlined, so it has no loops"),
]  # fmt: skip

MEMORY: list[Case] = [
    (pipelines.blur, (BLUR_Y.store_in("stack"),), "an output is stored in the caller's array"),
    (pipelines.blur, (BLUR_Y.reorder_storage("x", "y"),), "an output is laid out as the caller's array is"),
    (pipelines.blur, (BLUR_X.reorder_storage("x", "z"),), "blur_x has no dim 'z'; there are: y, x"),
    (pipelines.blur, (BLUR_X.reorder_storage("x", "x"),), "a dim is named twice"),
    (pipelines.blur, (BLUR_X.fold_storage("z", 4),), "blur_x has no dim 'z'"),
    (pipelines.blur, (BLUR_Y.split_storage("x", "xo", "xi", 4),),
     "an output is laid out as the caller's array is; split the storage of a copy of it, such as by copy_out"),
    (pipelines.blur, (BLUR_X.split_storage("z", "zo", "zi", 4),), "blur_x has no dim 'z'; there are: y, x"),
    (pipelines.blur, (BLUR_X.split_storage("x", "xo", "xi", 4).reorder_storage("y", "x"),),
     "blur_x has no dim 'x'; did you mean 'xo'?"),
    (pipelines.blur, (BLUR_X.split_storage("x", "xo", "xo", 4),), "two dims would have one name; choose other names"),
    (pipelines.blur, (BLUR_X.split_storage("x", "xo", "y", 4),), "two dims would have one name"),
    (pipelines.blur, (BLUR_X.split_storage("y", "yo", "yi", 4).split_storage("x", "y", "xi", 4),),
     "two dims would have one name"),
    (pipelines.blur, (BLUR_X.pad_storage("x", 8).split_storage("x", "xo", "xi", 8),),
     'x is padded, by .pad_storage("x", 8) before it; pad "xo" or "xi" after it'),
    (pipelines.blur, (BLUR_X.pad_storage("x", 8).split_storage("x", "x", "xi", 8),),
     'x is padded, by .pad_storage("x", 8) before it; pad "x" or "xi" after it'),
    (pipelines.blur, (BLUR_Y, BLUR_X.store_root().compute_at("blur_y", "y").fold_storage("y", 4)
                      .split_storage("y", "yo", "yi", 4)),
     "y is folded, and a circle has no panels; drop one of the two"),
    (pipelines.blur, (BLUR_Y, BLUR_X.compute_at("blur_y", "y").fold_storage("y", 4)),
     "no loop lies between the memory and the computation, so nothing is kept in a circle; store it further out"),
    (pipelines.blur, (BLUR_Y, BLUR_X.compute_at("blur_y", "y").nontemporal()),
     "values stored inside a loop are read again at once and belong in the cache"),
    (pipelines.blur, (BLUR_Y.prefetch("img", "y", 1), BLUR_X),
     "nothing in the loops of blur_y reads 'img'; there are: blur_x"),
    (pipelines.blur, (BLUR_Y.prefetch("blur_x", "z", 1),), "the pure definition has no loop 'z'"),
    (pipelines.blur, (BLUR_Y.specialize("gian > 1"),), "gian is not a param of this pipeline (it has: gain)"),
    (pipelines.blur, (BLUR_Y.specialize("img.shape[2] > 1"),),
     "img.shape[2] is not the extent of an input (there are: img.shape[0..1])"),
    (pipelines.blur, (BLUR_Y.specialize("gain"),), "gain is float32, not a condition"),
    (pipelines.blur, (BLUR_Y.specialize("gain in (1, 2)"),), "(1, 2) cannot stand in a condition"),
    (pipelines.blur, (BLUR_Y.specialize("gain is 1"),), "gain is 1 cannot stand in a condition; use == !="),
    (pipelines.blur, (BLUR_Y.specialize("gain ** 2 > 1"),), "gain ** 2 cannot stand in a condition"),
    (pipelines.blur, (BLUR_Y.specialize("gain == 'a'"),), "'a' cannot stand in a condition"),
    (pipelines.blur, (BLUR_Y.specialize("1 // 0 == gain"),), "1 // 0 == gain has no value"),
    (pipelines.blur, (BLUR_Y.specialize("img.shape[True] > 1"),), "img.shape[True] is not the extent of an input"),
    (pipelines.blur, (BLUR_Y.specialize("__import__('os').system('ls')"),), "cannot stand in a condition"),
]  # fmt: skip

TOGETHER: list[Case] = [
    (pipelines.two_outputs, (pt.on("f").parallel("y"), pt.on("g").compute_with("f", "y")),
     "the loops down to y differ: serial y here, parallel y in f; split, order and mark them alike in both"),
    (pipelines.two_outputs, (pt.on("f").split("y", "yo", "yi", 4), pt.on("g").split("y", "yo", "yi", 8)
                             .compute_with("f", "yo")), "the loops down to yo differ"),
    (pipelines.blur, (BLUR_Y, BLUR_X.compute_with("blur_y", "y")),
     "one of blur_x and blur_y needs the other, so one must come first; use compute_at"),
    (crossed, (pt.on("a"), pt.on("b").compute_with("a", "y"), pt.on("c"), pt.on("d").compute_with("c", "y")),
     "needs the other"),
    (big_box, (OUT, pt.on("sum").compute_with("out", "y")), "a stage with updates runs several loop nests"),
    (pipelines.diamond, (OUT, pt.on("b"), pt.on("c").compute_at("out", "y").compute_with("b", "y")),
     "c and b are asked for at different places"),
    (crossed, (pt.on("a"), pt.on("b").compute_with("a", "y"), pt.on("d").compute_with("b", "y")),
     "b itself shares the loops of another stage"),
    (pipelines.product, (pt.on("c").parallel("i").update().compute_with("c", "i"),),
     ("the loops down to i differ: serial i in update 0, parallel i in the pure definition; split, order and mark them "
      "alike in both")),
    (pipelines.product, (pt.on("c").split("j", "j", "b", 4).update().split("j", "j", "b", 8).compute_with("c", "j"),),
     "the loops down to j differ"),
    (pipelines.product, (pt.on("c").update().compute_with("c", "m"),), "the pure definition has no loop 'm'"),
    (pipelines.product, (pt.on("c").vectorize("j", 4).update().vectorize("j", 4).reorder("i", "j", "j_v", "k")
                         .unroll("k").compute_with("c", "j_v"),),
     "loop j_v is a vector, and what lies inside is computed at once; share a loop outside it"),
    (pipelines.scan, (pt.on("f").update().compute_with("f", "x"),), "update 0 has no loop 'x'"),
    (twice, (pt.on("f").update(1).compute_with("f", "y"),),
     "update 0 comes before it, and does not run in loop y; share the same loops by .update(0), too"),
    (twice, (pt.on("f").update(0).compute_with("f", "y").update(1).compute_with("f", "y"),),
     ("update 1 reads f at other places along y, which other iterations make; share loops outside those over y, or "
      "none")),
    (beside("y"), (pt.on("a"), pt.on("b").compute_with("a", "y")), "dims differ: y here, y, x in a"),
    (beside("x y"), (pt.on("a"), pt.on("b").reorder("y", "x").compute_with("a", "y")), "dims differ: x, y here"),
]  # fmt: skip

RFACTOR: list[Case] = [
    (pipelines.total, (pt.on("total").rfactor("r.y", "u"),),
     "it applies to an update, and this is the pure definition"),
    (pipelines.total, (pt.on("total").update().rfactor("r.z", "u"),), "update 0 has no reduction loop 'r.z'"),
    (pipelines.scan, (pt.on("f").update().rfactor("r.x", "u"),), "does not combine each value with a new one"),
    (pipelines.histogram, (pt.on("hist").update().rfactor("r.y", "i"),), "'i' already names a loop of hist"),
    (pipelines.total, (pt.on("total").update().rfactor("r.y", "u").rfactor("r.y", "u"),),
     "the stage of partial results would be called 'total_u', which exists"),
    (total_with_param, (pt.on("total").update().rfactor("r.y", "gain"),), "'gain' already names a param"),
    (pipelines.total, (pt.on("total").update().rfactor("r.y", "r.y", "u", "v"),),
     "a loop is named twice; name each loop once"),
    (pipelines.total, (pt.on("total").update().rfactor("r.y", "r.x", "u", "u"),),
     "a loop is named twice; name each loop once"),
    (pipelines.total, (pt.on("total").update().unroll("r.x", 2).rfactor("r.y", "u"),),
     '.unroll("r.x", 2) comes before it on the same update, and only splits of reduction loops may'),
    (pipelines.total, (pt.on("total").update().split("r.x", "v", "v", 2).rfactor("v", "u"),),
     '.split("r.x", "v", "v", 2) before it uses a name twice'),
]  # fmt: skip

STRIPS: list[Case] = [
    (pipelines.scan, (pt.on("f").strips("r.x", "s", 8),), "it applies to an update, and this is the pure definition"),
    (pipelines.scan, (pt.on("f").update().strips("r.y", "s", 8),), "update 0 has no reduction loop 'r.y'"),
    (pipelines.total, (pt.on("total").update().strips("r.y", "s", 8),), "over one loop without conditions"),
    (pipelines.two_loop_scan, (pt.on("f").update().strips("r.y", "s", 8),), "only scans of one value, over one loop"),
    (pipelines.product, (pt.on("c").update().strips("k", "s", 8),), "loop k does not go along one dim"),
    (pipelines.scan, (pt.on("f").update().strips("r.x", "y", 8),), "'y' already names a loop of f, or a param"),
    (pipelines.scan, (pt.on("f").update().strips("r.x", "s", 8).strips("r.x", "t", 8),),
     "this scan runs in strips already; drop one of the two"),
    (pipelines.scan, (pt.on("f").update().strips("r.x", "s", 8).unroll("r.x", 2),),
     'update 0 runs in strips, as stage f_s; write it on("f_s")'),
    (lambda: scans(3), (pt.on("f").update(0).unroll("r.x", 2).update(1).strips("r.x", "s", 8),),
     'update 0 comes before a scan in strips, as stage f_s_given; write it on("f_s_given")'),
    (lambda: scans(3), (pt.on("f").update(1).strips("r.x", "s", 8).update(2).strips("r.y", "t", 8),),
     "update 2 has no reduction loop 'r.y'"),
    (lambda: scan_by(2), (pt.on("f").update().strips("r.x", "s", 8),),
     "x does not go up or down by 1 with loop r.x; leave it whole"),
    (lambda: scan_by(1, 2), (pt.on("f").update().strips("r.x", "s", 8),),
     "reads f where it stores, and one place before it; leave it whole"),
    (lambda: scan_by(1, 1, "max"), (pt.on("f").update().strips("r.x", "s", 8),),
     "a value is not a multiple of the one before it plus something else; leave it whole"),
]  # fmt: skip


def scans(count: int) -> Graph:
    """One after the other."""
    return scan_by(1, count=count)


def scan_by(step: int, back: int = 1, kind: str = "add", count: int = 1) -> Graph:
    """f[y, step*r.x] from f[y, step*r.x - back] and img, so many times."""
    r = pipelines.RX
    value = op(kind, load("f", "float32", pipelines.Y, r * step - back), load("img", "float32", pipelines.Y, r))
    up = update((pipelines.Y, r * step), value, over=(("r.x", 2, 20),))
    made = stage("f", "y x", load("img", "float32", pipelines.Y, pipelines.X), updates=(up,) * count)
    return graph(made, out=(("f", (64, 64)),), inputs=pipelines.FLOATS)


def many_copies() -> Iterator[StageSchedule]:
    """Each a copy of the one before."""
    for k in range(257):
        yield pt.on(f"a{k}" if k else "a").clone_in("b", f"a{k + 1}", 0)


CLONES: list[Case] = [
    (pipelines.blur, (BLUR_X.clone_in("blur_z", "copy"),), "'blur_z' does not read blur_x; did you mean 'blur_y'?"),
    (pipelines.blur, (BLUR_X.clone_in("blur_x", "copy"),), "'blur_x' does not read blur_x"),
    (pipelines.blur, (BLUR_Y.clone_in("blur_x", "copy"),), "'blur_x' does not read blur_y; there are: none"),
    (pipelines.blur, (BLUR_X.clone_in("blur_y", "img"),), "'img' exists; choose another name for the copy"),
    (pipelines.blur, (BLUR_X.clone_in("blur_y", "blur_y"),), "'blur_y' exists"),
    (pipelines.blur, (BLUR_X.clone_in("blur_y", "gain"),), "'gain' exists"),
    (pipelines.blur, (BLUR_X.clone_in("blur_y", "copy", 2),), "blur_y reads blur_x at 2 places; count them from 0"),
    (pipelines.blur, (BLUR_X.clone_in("blur_y", "a", 0).clone_in("blur_y", "b", 1, 0),),
     "a is read at one of these places already; name each once"),
    (pipelines.blur, (pt.on("blur_x").clone_in("blur_y", "copy").compute_at("blur_y", "y"),),
     "all that read this stage read copies of it; drop this directive"),
    (pipelines.blur, (pt.on("img").clone_in("blur_x", "copy"),),
     "img is an input, which is not computed; copy its values by copy_in"),
    (pipelines.blur, (pt.on("img").copy_out("copy"),), "img is an input, which is not computed"),
    (pipelines.blur, (pt.on("img").copy_in("blur_y", "copy", "y", "x"),),
     "'blur_y' does not read img; did you mean 'blur_x'?"),
    (pipelines.blur, (pt.on("img").copy_in("blur_x", "blur_x", "y", "x"),),
     "'blur_x' exists; choose another name for the copy"),
    (pipelines.blur, (pt.on("img").copy_in("blur_x", "copy"),), "img has 2 dims, and 0 are named; name each once"),
    (pipelines.blur, (BLUR_X.copy_in("blur_y", "copy", "y"),), "blur_x has 2 dims, and 1 are named; name each once"),
    (pipelines.blur, (BLUR_X.copy_in("blur_y", "copy", "y", "y"),), "a dim is named twice; name each once"),
    (pipelines.blur, (BLUR_X.copy_in("blur_y", "copy", "y", "gain"),), "'gain' already names a param"),
    (pipelines.blur, (BLUR_X.copy_in("blur_y", "copy", 2),), "blur_y reads blur_x at 2 places; count them from 0"),
    (pipelines.blur, (BLUR_X.copy_in("blur_y", "a", 0).clone_in("blur_y", "a", 1),),
     '.copy_in("blur_y", "a", 0) makes \'a\' otherwise; choose another name, or ask alike'),
    (pipelines.blur, (pt.on("copy"), BLUR_X.copy_in("blur_y", "copy").copy_in("copy", "again")),
     "'copy' does not read blur_x"),
    (pipelines.blur, (pt.on("img").copy_in("blur_x", "copy", "y", "x").parallel("y"),),
     ("'img' is an input, which has no loops and no memory of its own; ask for a copy of it by "
      'pt.on("img").copy_in(consumer, name, *dims)')),
    (pipelines.blur, (pt.on("img").parallel("y"),), "'img' is an input, which has no loops"),
    (pipelines.blur, (BLUR_Y.copy_out("img"),), "'img' exists; choose another name for the copy"),
    (pipelines.blur, (BLUR_Y.copy_out("a").copy_out("b"),), "blur_y is a copy of a already; ask for it once"),
    (pipelines.blur, (BLUR_Y, BLUR_X.copy_in("blur_y", "copy").compute_inline(), pt.on("copy").parallel("z")),
     "the pure definition has no loop 'z'"),
    (pipelines.blur, (BLUR_X.panels("z", "p", "lane", 8),), "blur_x has no dim 'z'; there are: y, x"),
    (pipelines.blur, (BLUR_Y.panels("x", "p", "lane", 8),),
     "an output is no larger than the caller's array; cut the dims of a copy of it, such as by copy_out"),
    (pipelines.blur, (BLUR_X.panels("x", "p", "p", 8),), "two dims, loops or params would have one name"),
    (pipelines.blur, (BLUR_X.panels("x", "x", "lane", 8),), "two dims, loops or params would have one name"),
    (pipelines.blur, (BLUR_X.panels("x", "p", "gain", 8),), "two dims, loops or params would have one name"),
    (pipelines.blur, (BLUR_X.panels("x", "p", "lane", 8).panels("p", "q", "r", 8).panels("y", "p", "s", 8),),
     "two dims, loops or params would have one name"),
    (pipelines.blur, (BLUR_X, BLUR_Y.copy_out("sums"), pt.on("sums").panels("x", "p", "lane", 8)),
     ("a panel may stick out of what is needed along x, and what sums reads need not be there; use split_storage, or "
      "cut what it reads into panels, too")),
    (stated, (pt.on("f").panels("x", "p", "lane", 8),),
     "the domain of f is stated, and a panel may stick out of it; use split_storage"),
    (pipelines.diamond, tuple(many_copies()),
     "there would be 257 copies of stages; clone less, at most 256 altogether"),
]  # fmt: skip


def many_splits() -> StageSchedule:
    chain = BLUR_Y
    for k in range(63):
        chain = chain.split("x", "x", f"x{k}", 2)
    return chain


def many_versions(stage: StageSchedule, count: int) -> StageSchedule:
    for k in range(count):
        stage = stage.specialize(f"gain > {k}")
    return stage


SIZES: list[Case] = [
    (pipelines.blur, (BLUR_Y.unroll("x", 64).unroll("y", 64),),
     'pt.on("blur_y").unroll("x", 64): unrolled loops around it would make 4096 copies of the pure definition; unroll '
     "to at most 256 altogether"),
    (pipelines.blur, (BLUR_Y.unroll("y", 32), BLUR_X.compute_at("blur_y", "y_u").unroll("x", 32)),
     'pt.on("blur_x").unroll("x", 32): unrolled loops around it would make 1024 copies of the pure definition'),
    (pipelines.blur, (BLUR_Y.split("x", "xo", "xi", 1000).unroll("xi"),), "would make 1000 copies"),
    (pipelines.blur, (BLUR_Y.split("x", "xo", "xi", 512).vectorize("xi"),),
     'pt.on("blur_y").vectorize("xi"): vectors of the pure definition would have 512 lanes; use at most 256'),
    (pipelines.blur, (BLUR_Y.vectorize("x", 256).unroll("y", 64).reorder("y", "x", "y_u", "x_v"),),
     ("would make 64 copies of the pure definition, of 256 lanes each; unroll and vectorize to at most 8192 values "
     "altogether")),
    (pipelines.blur, (many_splits(),), "the pure definition has 64 loops already; split less often"),
    (pipelines.blur, (many_versions(BLUR_Y, 32),),
     "there would be 33 versions of blur_y; specialize for less, to at most 32 altogether"),
    (pipelines.blur, (many_versions(BLUR_Y, 5), many_versions(BLUR_X.compute_at("blur_y", "y"), 6)),
     "there would be 42 versions of blur_x"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "asked", "text"), [
    *SIZES, *LOOPS, *ORDER, *PLACES, *MEMORY, *TOGETHER, *RFACTOR, *STRIPS, *CLONES,
])  # fmt: skip
def test_refused(make: Callable[[], Graph], asked: tuple[StageSchedule, ...], text: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(make(), Schedule(*asked))
    assert text in str(caught.value)
    assert str(caught.value).startswith(__file__), "an error starts with the line of the directive"
    assert "pt.on(" in str(caught.value)


STRICT: list[Case] = [
    (f32_total, (pt.on("total").update().reorder("r.x", "r.y"),),
     "another order of the loops r.y, r.x would round float sums differently, and strict=True forbids that"),
    (f32_total, (pt.on("total").update().rfactor("r.x", "u"),),
     "partial sums of floats round differently, and strict=True forbids that; drop rfactor, or compile without strict"),
    (pipelines.scan, (pt.on("f").update().strips("r.x", "s", 8),),
     "scans of floats in strips round differently, and strict=True forbids that"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "asked", "text"), STRICT)
def test_refused_when_strict(make: Callable[[], Graph], asked: tuple[StageSchedule, ...], text: str) -> None:
    resolve(make(), Schedule(*asked))
    with pytest.raises(UserError) as caught:
        resolve(make(), Schedule(*asked), strict=True)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda: pt.on(3), "3 is not a name"),
        (lambda: pt.on(""), "'' is not a name"),
        (lambda: pt.on("a b"), "'a b' cannot be the name of a stage, loop, dim or buffer; those are words of letters"),
        (lambda: pt.on('f"\n'), "'f\"\\n' cannot be the name of a stage"),
        (lambda: pt.on("x" * 100_000), "xxx' cannot be the name of a stage"),
        (lambda: BLUR_X.split("x", "x.lo", "xi", 4), "'x.lo' cannot be the name of a new loop; use letters, digits"),
        (lambda: BLUR_X.unroll("x", 10**6), 'pt.on("blur_x").unroll: the factor is 1000000; give at most 256'),
        (lambda: BLUR_X.vectorize("x", 257), "the factor is 257; give at most 256"),
        (lambda: BLUR_X.split("x", "xo", "xi", 2**31), "the factor is 2147483648; give at most 1073741824"),
        (lambda: BLUR_X.split("x", "xo", "xi", 10**5000), "the factor is an integer of 16610 bits; give at most"),
        (lambda: BLUR_X.fold_storage("y", 2**60), "the extent is 1152921504606846976; give at most 1048576"),
        (lambda: BLUR_X.compute_ahead(9), "the number of iterations is 9; give at most 8"),
        (lambda: BLUR_X.compute_ahead(0), "the number of iterations is 0; give an integer of at least 1"),
        (lambda: BLUR_X.pad_storage("y", 2**60), "the number of entries is 1152921504606846976; give at most 16384"),
        (lambda: BLUR_X.prefetch("img", "y", 2**60), "the distance is 1152921504606846976; give at most 1048576"),
        (lambda: BLUR_X.update(10**5000), "the number of the update is an integer of 16610 bits; give at most"),
        (lambda: BLUR_X.store_in(["stack"]), "memory is ['stack']; use one of"),  # type: ignore[arg-type]
        (lambda: BLUR_X.specialize("1 + " * 300 + "1 > 0"), "has 1205 characters; use at most 1000"),
        (lambda: BLUR_X.specialize("-" * 500 + "1 > 0"), "has operations more than 100 deep inside each other; write"),
        (lambda: BLUR_X.specialize("(" * 300 + "1" + ")" * 300), "is not a Python expression: too many nested"),
        (lambda: BLUR_X.specialize("'\udc80' == 1"), "is not a Python expression"),
        (lambda: Schedule.from_json("[" * 100_000), "its lists are nested too deeply"),
        (
            lambda: BLUR_X.split("x", "xo", "xi", 0),
            'pt.on("blur_x").split: the factor is 0; give an integer of at least 1',
        ),
        (lambda: BLUR_X.vectorize("x", 2.5), "the factor is 2.5"),  # type: ignore[arg-type]
        (lambda: BLUR_X.split("x", "xo", "xi", 8, tail="wrap"), "tail is 'wrap'; use one of auto, shift, guard, peel"),
        (lambda: BLUR_X.tile("y", "x", 8), "tile: 3 arguments; give n old loops"),
        (lambda: BLUR_X.update().rfactor("r.y", "r.x", "u"), "rfactor: 3 arguments; give n reduction loops and n new"),
        (lambda: BLUR_X.store_in("disk"), "memory is 'disk'; use one of auto, heap, shared, stack, register"),
        (lambda: BLUR_X.partition("x", "maybe"), "mode is 'maybe'; use one of auto, never, always"),
        (lambda: BLUR_X.fold_storage("y", 0), "the extent is 0"),
        (lambda: BLUR_X.prefetch("img", "y", 0), "the distance is 0"),
        (lambda: BLUR_X.update(-1), "the number of the update is -1; give an integer of at least 0"),
        (lambda: BLUR_X.specialize(1), "is written as text"),  # type: ignore[arg-type]
        (lambda: BLUR_X.specialize("a >"), "the condition 'a >' is not a Python expression"),
        (lambda: Schedule(BLUR_X, BLUR_X), "stage 'blur_x' is scheduled twice"),
        (lambda: Schedule("blur_x"), "a Schedule is made of pt.on(...) chains, not of 'blur_x'"),  # type: ignore[arg-type]
        (lambda: Schedule.from_json("{}"), 'this is not a saved schedule: a schedule has "format": 1'),
        (lambda: Schedule.from_json('{"format": 1, "stages": {"f": [["melt"]]}}'), "there is no directive 'melt'"),
        (lambda: Schedule.from_json("["), "this is not a saved schedule"),
        (lambda: Schedule.from_json('{"format": 1, "stages": {"f": [["split"]]}}'), "this is not a saved schedule"),
    ],
)
def test_refused_where_it_is_written(write: Callable[[], object], text: str) -> None:
    with pytest.raises(UserError) as caught:
        write()
    assert text in str(caught.value)
    assert str(caught.value).startswith(__file__)
