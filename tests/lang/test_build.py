"""Graphs from Funcs: order, names, shapes and arguments."""

from __future__ import annotations

import pantile as pt
from pantile.graph.show import show
from pantile.graph.verify import verify
from pantile.lang.build import build

Y, X, Z = pt.vars("y x z")


def test_the_pipeline_of_the_introduction() -> None:
    img = pt.Input("img", "uint8", ndim=3)
    gain = pt.Param("gain", "float32", default=1.5)
    src = pt.edge(img, axes=(0,))
    gray, box, out, hist = (pt.Func(n) for n in ("gray", "box", "out", "hist"))
    gray[Y, X] = 0.5 * src[Y, X, 0] + 0.5 * src[Y, X, 1]
    r = pt.RDom((-1, 3), (-1, 3))
    box[Y, X] = pt.sum(gray[Y // 2 + r[0], X + r[1]], over=r) / 9
    out[Y, X] = pt.cast("uint8", pt.clamp(gain * box[Y, X], 0, 255))
    h = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    hist[Z] = 0
    hist[img[h[0], h[1], 0]] += 1
    graph = build([out, hist], [img.shape[:2], (256,)])
    verify(graph)
    assert show(graph) == (
        "pipeline out\n"
        "  input img: uint8[img.shape.0, img.shape.1, img.shape.2]\n"
        "  param gain: float32 = 1.5\n"
        "  img_edge[d0, d1, d2]: uint8 = img[max(min(d0, img.shape.0 - 1), 0), d1, d2]\n"
        "  gray[y, x]: float32 = 0.5*float32(img_edge[y, x, 0]) + 0.5*float32(img_edge[y, x, 1])\n"
        "  box_sum[y, x]: float32 = 0\n"
        "  box_sum[y, x] = box_sum[y, x] + gray[y//2 + r.0, x + r.1]  over r.0 in -1 .. 2, r.1 in -1 .. 2\n"
        "  box[y, x]: float32 = box_sum[y, x]/9\n"
        "  out[y, x]: uint8 = uint8(max(min(gain*box[y, x], 255), 0))\n"
        "  hist[z]: int32 = 0\n"
        "  hist[img[r.0, r.1, 0]] = hist[img[r.0, r.1, 0]] + 1"
        "  over r.0 in 0 .. img.shape.0, r.1 in 0 .. img.shape.1\n"
        "  output out: uint8[img.shape.0, img.shape.1]\n"
        "  output hist: int32[256]\n"
    )


def test_unnamed_funcs_are_numbered_and_give_way_to_named_ones() -> None:
    a, b, named = pt.Func(), pt.Func(), pt.Func("f")
    a[X] = X
    b[X] = a[X]
    named[X] = b[X]
    assert [s.name for s in build(named, (3,)).stages] == ["f1", "f2", "f"]


def test_default_shape_is_that_of_the_first_declared_input_of_equal_rank() -> None:
    flat, first, second = pt.Input("flat", "int32", 1), pt.Input("a", "int32", 2), pt.Input("b", "int32", 2)
    f = pt.Func("f")
    f[Y, X] = second[Y, X] + first[Y, X] + flat[X]
    graph = build(f)
    assert [i.name for i in graph.inputs] == ["flat", "a", "b"]
    assert [str(e) for e in graph.outputs[0].shape] == ["a.shape.0", "a.shape.1"]


def test_symbolic_shapes_bring_their_inputs_and_params() -> None:
    like, n = pt.Input("like", "uint8", 1), pt.Param("n", "int32")
    f = pt.Func("f")
    f[Y, X] = Y
    graph = build(f, (like.shape[0] // 2 + 1, n))
    verify(graph)
    assert [i.name for i in graph.inputs] == ["like"]
    assert [p.name for p in graph.params] == ["n"]
    assert [str(e) for e in graph.outputs[0].shape] == ["like.shape.0//2 + 1", "index(n)"]


def test_some_shapes_may_be_left_out() -> None:
    img = pt.Input("img", "uint8", 2)
    f, g = pt.Func("f"), pt.Func("g")
    f[Y, X] = img[Y, X]
    g[X] = f[0, X]
    graph = build([f, g], [None, (3,)], name="both")
    assert graph.name == "both"
    assert [len(o.shape) for o in graph.outputs] == [2, 1]


def test_stated_domains_and_several_values_are_kept() -> None:
    n = pt.Param("n", "int32")
    f, g = pt.Func("f", domain=((1, n),)), pt.Func("g")
    f[X] = (X, 1.0)
    g[X] = f[X][1]
    graph = build(g, (3,))
    verify(graph)
    assert graph.stage["f"].buffers == ("f.0", "f.1")
    assert "  f[x]: int32, float32 = (x, 1)  for x in 1 .. 1 + n\n" in show(graph)
    assert [p.name for p in graph.params] == ["n"]


def test_a_graph_does_not_change_with_its_funcs() -> None:
    f = pt.Func("f")
    f[X] = X
    graph = build(f, (3,))
    f[X] += 1
    assert len(graph.stages[0].updates) == 0


def test_reduction_domains_of_equal_name_are_kept_apart_where_they_meet() -> None:
    r, s = pt.RDom((0, 2), name="k", names="y"), pt.RDom((0, 3), name="k", names="y")
    f, g = pt.Func("f"), pt.Func("g")
    f[X] = 0
    f[X] += r.y
    g[X] = f[X]
    g[X] += s.y
    g[X] += r.y * pt.sum(s.y, over=s)
    graph = build(g, (3,))
    names = {stage.name: [u.domain[0].name for u in stage.updates] for stage in graph.stages}
    assert names == {"f": ["k.y"], "g_sum": ["k1.y"], "g": ["k1.y", "k.y"]}


def test_domains_that_do_not_meet_keep_their_names() -> None:
    f = pt.Func("f")
    f[X] = 0
    f[X] += pt.RDom((0, 2))[0]
    f[X] += pt.RDom((0, 3))[0]
    assert [u.domain[0].name for u in build(f, (3,)).stages[0].updates] == ["r.0", "r.0"]


def test_pipelines_print_long_expressions_that_are_shared_once() -> None:
    img, f = pt.Input("img", "float32", 2), pt.Func("f")
    e = img[Y, X] * 2 + 1
    for _ in range(8):
        e = pt.sqrt(e * e + pt.abs(e)) / (1 + e)
    f[Y, X] = e
    p = pt.Pipeline(f, schedule="plain")
    assert "let e1 = " in str(p) and len(str(p)) < 800
    assert "let e1 = " in p.loops() and len(p.loops()) < 2000
