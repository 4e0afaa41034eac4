"""What sioutas-thesis chapter 5 says of its algorithms."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import Problem
from pantile.autoschedule.common import footprint
from pantile.autoschedule.reuse import Reuse, TilingAnalysis, _ReuseSearch
from pantile.autoschedule.sliding.overlap import WHOLE, StageReuse, overlaps
from pantile.autoschedule.sliding.sliding_loops import INLINE, Level, SegmentLoops
from pantile.autoschedule.sliding.sliding_tiles import SlidingTiles
from pantile.machine import named

from .problems import chain, problem_of

I7 = named("i7-6700")
BLUR = (4802, 6402)


def blur() -> Problem:
    return problem_of(APPS["blur"].build(), I7, img=BLUR)


def analysis(problem: Problem, *members: str) -> TilingAnalysis:
    return TilingAnalysis(SlidingTiles(problem, StageReuse(problem), members), Reuse().w)


# ---- blur, the motivational example (§5.3)


def test_blur_slides_inside_tiles() -> None:
    """Figure 5.2c: blur_x is computed at the row, stored at the tile, and folded to 3 rows."""
    p = APPS["blur"].build().with_schedule("reuse", estimates={"img": BLUR}, machine=I7)
    assert '.compute_at("blur_y", "y_i").store_at("blur_y", "y_o")' in str(p.schedule)
    loops = p.loops()
    assert len(re.findall(r"blur_y\.y_i(?: \+ \d)?\)?%3", loops)) > 3  # every access is to one of three rows
    group = Reuse().find(blur()).report.groups[0]
    assert group.costs["folded bytes"] == 3 * group.levels[0]["x"] * 2  # equation 5.9
    assert group.costs["other bytes"] == 0


@pytest.mark.parametrize(("tx", "ty"), [(64, 32), (256, 8)])
def test_buffers_of_blur(tx: int, ty: int) -> None:
    """What is stored per tile, and what a row of it needs, in elements."""
    facts = blur().facts
    tile = footprint.boxes(facts, ("blur_x", "blur_y"), "blur_y", {"y": ty, "x": tx})
    row = footprint.boxes(facts, ("blur_x", "blur_y"), "blur_y", {"y": 1, "x": tx})
    assert footprint.points(tile["blur_x"]) == tx * (ty + 2)  # 5.8
    assert footprint.points(row["blur_x"]) == 3 * tx  # 5.9
    assert footprint.points(tile["img"]) == (tx + 2) * (ty + 2)  # 5.10
    assert footprint.points(row["img"]) == 3 * (tx + 2)  # 5.11


def test_costs_of_blur() -> None:
    problem = blur()
    a = analysis(problem, "blur_x", "blur_y")
    tx, ty = a.tiles.sizes["x"], a.tiles.sizes["y"]
    tiles = np.ceil(6400 / tx) * np.ceil(4800 / ty)
    rows = SegmentLoops(("y", "x"), (), "x")
    levels = a.stage_fusion(rows)
    assert levels == {"blur_x": Level(rows.level("y"), rows.tile)}
    fits = (6400 % tx == 0) & (4800 % ty == 0)  # footnote 1: bounds are multiples of tiles
    assert fits.any()
    needed = a.tiles.footprint(rows, levels, rows.tile).boxes["blur_x"]
    computed = footprint.points(needed) * a.tiles.iterations(rows, rows.tile)
    assert (computed == tx * (ty + 2) * tiles)[fits].all()  # 5.3
    assert problem.facts.points("blur_x") == 6400 * 4802  # 5.4
    loads = a.tiles.load_cost("img", rows, levels, levels["blur_x"])
    assert (loads == (ty + 2) * tiles)[fits].all()  # 5.6
    columns = SegmentLoops(("x", "y"), (), "x")  # Figure 5.4
    levels = a.stage_fusion(columns)
    loads = a.tiles.load_cost("img", columns, levels, levels["blur_x"])
    assert (loads == 3 * (ty + 2) * tx * tiles)[fits].all()  # 5.13


def test_tile_constraints() -> None:
    """§5.4: lines and vectors along the innermost loop; 5.14: enough tiles; 5.15: no tile below the overlap."""
    a = analysis(blur(), "blur_x", "blur_y")
    inner = a.tiles.sizes["x"][a.tiles.sizes["x"] < 6400]
    assert (inner % 32 == 0).all() and (inner % a.tiles.lanes == 0).all()
    assert a.tiles.sizes["y"].min() == 2
    found = a.best()
    assert 4800 / found.tile["y"] >= I7.threads
    assert found.inter[0] == "y" and found.intra == ("y", "x")


# ---- Algorithms 4 and 5


def stages(**definitions: str) -> pt.Pipeline:
    """Stages of y and x, the last one the output, by their definitions."""
    y, x = pt.vars("y x")
    names: dict[str, object] = {"y": y, "x": x, "img": pt.edge(pt.Input("img", "float32", ndim=2)), "pt": pt}
    for name, definition in definitions.items():
        f = names[name] = pt.Func(name)
        f[y, x] = eval(definition, names)
    return pt.Pipeline(f, shape=(1000, 2000))


def fused(pipeline: pt.Pipeline) -> tuple[dict[str, Level], SegmentLoops]:
    problem = problem_of(pipeline, I7, img=(1000, 2000))
    problem = problem.inlined(problem.facts.trivial)
    a = analysis(problem, *(s.name for s in problem.graph.stages))
    nest = SegmentLoops(("y", "x"), (), "x")
    return a.inline_trivial_stages(a.stage_fusion(nest)), nest


DEAR = "pt.exp({0}[y, x]) * pt.sin({0}[y, x])"


def test_overlap_along_the_innermost_loop_computes_whole_rows() -> None:
    levels, nest = fused(stages(a=DEAR.format("img"), b="a[y, x - 1] + a[y, x + 1]"))
    assert levels["a"] == nest.at(nest.level("y"))


def test_nothing_is_computed_a_vector_at_a_time() -> None:
    """What only the channels of the output share is computed by rows around them, where its edges can be cut off."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=2)
    src, filtered, out = pt.mirror(img), pt.Func("filtered"), pt.Func("out")
    filtered[y, x] = pt.cast("int16", src[y, x - 1]) + src[y, x + 1] + src[y - 1, x] + src[y + 1, x]
    out[y, x, c] = filtered[y, x] * pt.cast("int16", c) + img[y, x]
    p = pt.Pipeline(out, (*img.shape, 3), schedule="reuse", estimates={"img": (2000, 3000)}, machine=I7)
    assert '.compute_at("out", "y_i")' in str(p.schedule) and '"out", "x' not in str(p.schedule)


def test_the_outermost_overlap_counts() -> None:
    levels, nest = fused(stages(a=DEAR.format("img"), b="a[y, x - 1] + a[y + 1, x + 1]"))
    assert levels["a"] == Level(nest.level("y"), nest.tile)


def test_stages_without_overlap_are_inlined() -> None:
    levels, _ = fused(stages(a=DEAR.format("img"), b="a[y, x] + 1"))
    assert levels["a"] == INLINE


def test_producers_take_the_place_of_trivial_stages() -> None:
    """Algorithm 5: b costs no more than a load of it; a, which was to be inlined into it, is stored instead."""
    levels, nest = fused(stages(a=DEAR.format("img"), b="a[y, x] * 2", c="b[y, x] + b[y + 1, x]"))
    assert levels["b"] == INLINE
    assert levels["a"] == Level(nest.level("y"), nest.tile)


def test_stages_enclose_what_reads_them() -> None:
    """a overlaps along x only, but b, which reads it, is computed at rows: a row of a comes with every row of b."""
    definitions = {"a": DEAR.format("img"), "b": "pt.exp(a[y, x - 1] + a[y, x + 1])", "c": "b[y, x] + b[y + 1, x]"}
    levels, nest = fused(stages(**definitions))
    assert levels["b"] == Level(nest.level("y"), nest.tile)
    assert levels["a"].compute == nest.level("y")


def test_what_a_resting_consumer_reads_is_computed_per_tile() -> None:
    """b slides along with every eighth row of c; a would be computed again in the seven others."""
    definitions = {
        "a": DEAR.format("img"),
        "b": "pt.exp(a[y - 2, x] + a[y + 2, x])",
        "c": "b[y // 8, x] + b[y // 8 + 1, x]",
    }
    levels, nest = fused(stages(**definitions))
    assert levels == {"b": Level(nest.level("y"), nest.tile), "a": nest.at(nest.tile)}


def test_full_reuse() -> None:
    """What no index mentions is shared as a whole."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "float32", ndim=2)
    gray, out = pt.Func("gray"), pt.Func("out")
    gray[y, x] = pt.exp(img[y, x])
    out[y, x, c] = gray[y, x] * c
    problem = problem_of(pt.Pipeline(out, shape=(*img.shape, 64)), I7, img=(100, 100))
    assert overlaps(problem.graph.stage["gray"], problem.graph.stage["out"]) == {"c": WHOLE}


# ---- Algorithms 7 and 8


def test_segments_are_cut_at_stages_with_several_consumers() -> None:
    """Algorithm 7 on A -> B -> {C, D} -> E."""
    dear = "pt.exp({0}[y, x] + {0}[y + 1, x])"
    p = stages(
        A=dear.format("img"),
        B=dear.format("A"),
        C=dear.format("B"),
        D="pt.sin(B[y, x] + B[y + 2, x])",
        E="C[y, x] + C[y + 1, x] + D[y, x] + D[y + 1, x]",
    )
    search = _ReuseSearch(problem_of(p, I7, img=(1000, 2000)), Reuse())
    (whole,) = search.segments(search.barriers())
    assert set(whole) == set("ABCDE") and whole[-1] == "E"
    assert [set(s) for s in search.group_stages(whole)] == [{"A", "B"}, {"C", "D", "E"}]


@pytest.mark.parametrize("cache_size", [1 << 13, 1 << 15, 1 << 18, None])
def test_segments_fit_the_cache(cache_size: int | None) -> None:
    """Algorithm 8: a pipeline is cut only where its buffers exceed the cache, and then into parts that do not."""
    parameters = Reuse(cache_size=cache_size, most_stored=12)
    search = _ReuseSearch(problem_of(chain(12), I7, img=(2000, 1000)), parameters)
    (whole,) = search.segments(search.barriers())
    found = search.scheduled(whole)
    assert [m for t in found for m in (*t.members, t.output)] == list(whole)
    assert all(t.working_set <= search.csize for t in found)
    fits = search.tiling_analysis(whole).working_set <= search.csize
    assert (len(found) == 1) == fits
    assert fits == (cache_size is None or cache_size >= 1 << 18)


def test_segments_store_few_stages() -> None:
    """All 24 stages fit the cache, but their common loop would take long to compile."""
    problem = problem_of(chain(24), I7, img=(2000, 1000))
    assert len(Reuse(most_stored=30).find(problem).report.groups) == 1
    assert all(len(g.members) <= 8 for g in Reuse(most_stored=8).find(problem).report.groups)


def test_panels_end_segments() -> None:
    """Sums that are laid out in panels are read at remainders: they have a segment and registers of their own."""
    app = APPS["gemm"]
    found = Reuse().find(problem_of(app.build(), I7, **app.sizes["paper"]))
    assert "ab" in [g.output for g in found.report.groups]
    assert '.unroll("r.k", 4)' in str(found.schedule["ab"])


# ---- results


@pytest.mark.parametrize("cache_size", [1 << 13, None])
def test_results(cache_size: int | None) -> None:
    rng = np.random.default_rng(0)
    img = rng.random((61, 45), np.float32)
    strategy = Reuse(cache_size=cache_size)
    p = chain(7).with_schedule(strategy, estimates={"img": (2000, 1000)}, machine=I7)
    assert ("compute_at" in str(p.schedule)) == (cache_size is None or "store_at" in str(p.schedule))
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)


def test_what_the_chapter_does_not_treat_is_computed_at_root() -> None:
    app = APPS["hist_eq"]
    found = Reuse().find(problem_of(app.build(), I7, **app.sizes["small"]))
    assert any("computed at root" in r and "histogram" in r for r in found.report.remarks)
