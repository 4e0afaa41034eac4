"""What halide-autoscheduler says of its algorithm."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.common.locality import overlaps
from pantile.autoschedule.greedy import Greedy, TunedGreedy, _GreedySearch
from pantile.machine import named
from pantile.schedule.schedule import Schedule

from .problems import matrix_product, problem_of

XEON = named("haswell-e5-2620-v3")


def figure_4() -> pt.Pipeline:
    """A -> B -> {C, D} -> E: stencils of 3 x 3 pixels, which are not worth inlining into each other."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    a, b, c, d, e = (pt.Func(n) for n in "ABCDE")

    def stencil(f: pt.Func | pt.Input | pt.Expr) -> pt.Expr:
        return sum(f[y + i, x + j] * (1 + i + j) for i in range(3) for j in range(3))

    a[y, x] = stencil(img)
    b[y, x] = stencil(a)
    c[y, x] = stencil(b)
    d[y, x] = stencil(b) * 0.5
    e[y, x] = stencil(c) + stencil(d)
    return pt.Pipeline(e, shape=(img.shape[0] - 8, img.shape[1] - 8))


def search(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> _GreedySearch:
    problem = problem_of(pipeline, XEON, **shapes)
    return _GreedySearch(problem, Greedy()._for(problem))


def test_merging_opportunities_of_figure_4() -> None:
    """§4.2.2: "A-B, C-E, and D-E are potential merging opportunities, but B-C and B-D are not"."""
    assert set(search(figure_4(), img=(1032, 1032)).opportunities()) == {("A", "B"), ("C", "E"), ("D", "E")}


def test_groups_have_one_output() -> None:
    found = Greedy().find(problem_of(figure_4(), XEON, img=(1032, 1032)))
    assert [(g.output, set(g.members)) for g in found.report.groups] in (
        [("B", {"A"}), ("E", {"C", "D"})],
        [("E", {"A", "B", "C", "D"})],
    )


def test_parameters_of_the_machines() -> None:
    """§5.1 and §5.4."""
    xeon = Greedy()._for(problem_of(figure_4(), XEON, img=(100, 100)))
    assert xeon == Greedy(vector_width=16, parallelism_threshold=12, cache_size=256 << 10, load_cost=10)
    arm = Greedy()._for(problem_of(figure_4(), named("cortex-a57"), img=(100, 100)))
    assert arm == Greedy(vector_width=8, parallelism_threshold=8, cache_size=512 << 10, load_cost=10)


def test_reuse_per_direction() -> None:
    """§4.1, Figure 5: going down, a vertical stencil reads two of three rows again; going right, nothing."""
    facts = problem_of(APPS["blur"].build(), img=(1002, 1002)).facts
    assert overlaps(facts, ("blur_y",), "blur_y") == {"y": 2 * 1000, "x": 0}


def test_pointwise_stages_are_inlined() -> None:
    """§4.3: into all consumers or none; repeating a stencil's three loads three times costs more than storing it."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    bright, blurred, out = pt.Func("bright"), pt.Func("blurred"), pt.Func("out")
    bright[y, x] = img[y, x] * 2
    blurred[y, x] = bright[y, x] + bright[y + 1, x] + bright[y + 2, x]
    out[y, x] = blurred[y, x] + blurred[y, x + 1] + blurred[y, x + 2]
    pipeline = pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2))
    found = Greedy().find(problem_of(pipeline, XEON, img=(1004, 1000)))
    assert found.report.inlined == ("bright",)


def test_a_matrix_product_is_tiled_in_all_loops() -> None:
    """§3.2, Figure 3: "tiling the output and reduction loop dimensions"."""
    found = Greedy().find(problem_of(matrix_product(), XEON, a=(2048, 2048), b=(2048, 2048)))
    ((tile,),) = [group.levels for group in found.report.groups]
    assert set(tile) == {"i", "j", "k.0"}
    assert 4 * (tile["i"] * tile["k.0"] + tile["k.0"] * tile["j"] + tile["i"] * tile["j"]) <= 256 << 10


def test_sums_are_blocks_of_registers() -> None:
    """§5.4: "treating registers as an additional level of the memory hierarchy"; `explain` says so."""
    app = APPS["conv_layer"]
    found = Greedy().find(problem_of(app.build(), named("neoverse-n1"), **app.sizes["paper"]))
    assert "sums are computed in blocks that fill registers: out_sums" in str(found.report)
    assert '.vectorize("co_i", 16)' in repr(found.schedule["out_sums"])
    assert '.unroll("y_i", 4)' in repr(found.schedule["out_sums"])


def test_long_sums_are_not_inlined() -> None:
    """Of 49 terms, each with an exponential: no need to write them out to see that repeating them does not pay."""
    app = APPS["nl_means"]
    found = Greedy().find(problem_of(app.build(), XEON, **app.sizes["paper"]))
    assert found.report.inlined == ("img_edge", "weight")


def test_a_merge_is_evaluated_again_only_where_its_groups_changed() -> None:
    """A-B, C-E, D-E; the second of C-E and D-E again when the first is merged; and B-E, where B has one consumer."""
    found = Greedy().find(problem_of(figure_4(), XEON, img=(1032, 1032)))
    assert found.report.counts == {"merges evaluated": 5}


def test_the_innermost_dim_stays_innermost() -> None:
    """§4.4: c, along which the ratio is reused, goes inside y; x stays where it is."""
    found = search(APPS["unsharp"].build(), img=(3, 2560, 1536))
    found.merge_all()
    assert found.as_group("out").order == ("y", "c", "x")


def test_the_cache_limits_tiles() -> None:
    """§5.1: "the performance gap is completely bridged when the auto-scheduler uses the L1 cache size"."""
    app = APPS["unsharp"]
    problem = problem_of(app.build(), XEON, **app.sizes["paper"])
    areas = []
    for size in (32 << 10, 256 << 10):
        (group,) = [g for g in Greedy(cache_size=size).find(problem).report.groups if g.output == "out"]
        areas.append(group.levels[0]["y"] * group.levels[0]["x"])
    assert areas[0] < areas[1]


def test_strips_of_columns_are_wide() -> None:
    """What is read again from row to row pays for whole columns, were not each of their rows a page of memory."""
    two_cores = replace(named("neoverse-n1"), cores=2, threads=2)
    problem = problem_of(APPS["blur"].build(), two_cores, img=(1082, 1922))
    (group,) = Greedy().find(problem).report.groups
    (level,) = group.levels
    assert level.get("x", 1920) >= 512 or level.get("y", 1080) <= 256


@pytest.mark.parametrize(("app", "different"), [("interpolate", 6), ("blur", 3)])
def test_six_points_are_measured(app: str, different: int) -> None:
    """§5.1: CACHE_SIZE (32, 128, 256 KB) x LOAD_COST (10, 20), equal schedules once; the fastest is kept."""
    problem = problem_of(APPS[app].build(), XEON, **APPS[app].sizes["paper"])
    points = [Greedy(cache_size=kb << 10, load_cost=cost) for kb in (32, 128, 256) for cost in (10.0, 20.0)]
    schedules = [p.find(problem).schedule for p in points]
    measured: list[Schedule] = []

    def seconds(schedule: Schedule) -> float:
        measured.append(schedule)
        return 1.0 if schedule == schedules[-1] else 2.0

    found = TunedGreedy().find(replace(problem, measure=seconds))
    assert len(measured) == different == found.report.counts["schedules tried"]
    assert set(measured) == set(schedules)
    assert found.schedule == schedules[-1]


def test_the_full_search_has_the_points_of_the_paper() -> None:
    """§5.1 lists four thresholds, sixteen load costs, three widths and six sizes of caches."""
    points = TunedGreedy.full().points
    assert len(set(points)) == 1152
    assert points[0] == Greedy(vector_width=4, parallelism_threshold=6, cache_size=16 << 10, load_cost=5.0)
    assert points[-1] == Greedy(vector_width=16, parallelism_threshold=24, cache_size=512 << 10, load_cost=80.0)
    assert len(TunedGreedy().points) == 6


def test_tuning_runs_the_pipeline() -> None:
    app = APPS["blur"]
    pipeline = app.build().with_schedule("greedy_tuned", machine=XEON)
    pipeline(**app.inputs("small"))
    assert "schedules tried" in pipeline.explain()


def test_of_tiles_that_cost_the_same_the_one_with_the_longest_rows_is_taken() -> None:
    """A mirrored input is read near a tile, too, so that strips of whole rows are not dearer than squares."""
    y, x, c = pt.vars("y x c")
    img = pt.Input("img", "uint8", ndim=2)
    src, wide, out = pt.mirror(img), pt.Func("wide"), pt.Func("out")
    wide[y, x] = pt.cast("int16", src[y, x]) * src[y, x] // 7 * src[y, x]
    out[y, x, c] = wide[y - 2, x] + wide[y + 2, x] + wide[y, x - 2] + wide[y, x + 2] + pt.cast("int16", c)
    p = pt.Pipeline(out, shape=(*img.shape, 3))
    (group,) = Greedy(cache_size=1 << 20).find(problem_of(p, named("i7-6700"), img=(2000, 3000))).report.groups
    assert group.members == ("wide",) and set(group.levels[0]) == {"y"}
