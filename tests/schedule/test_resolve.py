"""Every directive and the plan it makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pantile import schedule as pt
from pantile.errors import UserError
from pantile.graph.nodes import Graph
from pantile.schedule import Schedule, StageSchedule, resolve
from pantile.schedule.plan import Fuse, Loop, Nest, Plan, PrefetchPlan, Site, Split, StagePlan
from pantile.target.description import GENERIC
from pantile.target.kinds import Kind, Memory
from tests.schedule import pipelines


def plan(graph: Graph, *stages: StageSchedule) -> Plan:
    return resolve(graph, Schedule(*stages))[1]


def blur_y(*stages: StageSchedule) -> StagePlan:
    return plan(pipelines.blur(), *stages).stages["blur_y"]


def loops(nest: Nest) -> str:
    return " ".join(x.name if x.kind == "serial" else f"{x.kind}:{x.name}" for x in nest.loops)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pt.on("blur_y"), "y x"),
        (pt.on("blur_y").split("x", "xo", "xi", 8), "y xo xi"),
        (pt.on("blur_y").split("x", "x", "xi", 8), "y x xi"),
        (pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 4, 8), "yo xo yi xi"),
        (pt.on("blur_y").tile("x", "xo", "xi", 8), "y xo xi"),
        (pt.on("blur_y").reorder("x", "y"), "x y"),
        (pt.on("blur_y").split("y", "yo", "yi", 4).reorder("x", "yo"), "x yi yo"),
        (pt.on("blur_y").fuse("y", "x", "p"), "p"),
        (pt.on("blur_y").vectorize("x", 8), "y x vector:x_v"),
        (pt.on("blur_y").unroll("x", 8), "y x unroll:x_u"),
        (pt.on("blur_y").parallel("y", 8), "parallel:y y_p x"),
        (pt.on("blur_y").parallel("y"), "parallel:y x"),
        (pt.on("blur_y").parallel("y").parallel("x"), "parallel:y parallel:x"),
        (pt.on("blur_y").unroll("x"), "y unroll:x"),  # the output's shape is constant
        (pt.on("blur_y").split("x", "xo", "xi", 8).vectorize("xi"), "y xo vector:xi"),
        (pt.on("blur_y").vectorize("x", 8).unroll("y", 2).reorder("y", "x", "x_v", "y_u"), "y x vector:x_v unroll:y_u"),
        (pt.on("blur_y").vectorize("x", 8).unroll("y", 2).reorder("y", "x", "y_u", "x_v"), "y x unroll:y_u vector:x_v"),
    ],
)
def test_loops(asked: StageSchedule, expected: str) -> None:
    assert loops(blur_y(asked).nests[0]) == expected


def test_rewrites_are_kept_in_order() -> None:
    asked = pt.on("blur_y").split("x", "xo", "xi", 8).fuse("y", "xo", "t").vectorize("xi")
    assert blur_y(asked).nests[0].rewrites == (Split("x", "xo", "xi", 8, "shift"), Fuse("y", "xo", "t"))
    assert blur_y(pt.on("blur_y").parallel("y", 4)).nests[0].rewrites == (Split("y", "y", "y_p", 4, "shift"),)


@pytest.mark.parametrize("tail", ["shift", "guard", "peel"])
def test_tails_as_asked(tail: str) -> None:
    assert blur_y(pt.on("blur_y").split("x", "a", "b", 8, tail=tail)).nests[0].rewrites[0] == Split(
        "x", "a", "b", 8, tail
    )


def test_tails_by_default() -> None:
    asked = pt.on("c").vectorize("j", 8).update().reorder("k", "j").vectorize("j", 8).unroll("k", 4)
    pure, update = plan(pipelines.product(), asked).stages["c"].nests
    assert [r.tail for r in pure.rewrites if isinstance(r, Split)] == ["shift"]
    assert [r.tail for r in update.rewrites if isinstance(r, Split)] == ["guard", "guard"]


def test_partition() -> None:
    assert blur_y(pt.on("blur_y").partition("x", "never")).nests[0].loops[1] == Loop("x", "serial", "never")


def test_an_update_has_pure_dims_outside_reduction_loops() -> None:
    made = plan(pipelines.product(), pt.on("c").update().parallel("i").reorder("k", "j").vectorize("j", 8))
    assert loops(made.stages["c"].nests[0]) == "i j"
    assert loops(made.stages["c"].nests[1]) == "parallel:i k j vector:j_v"
    assert loops(plan(pipelines.product(), pt.on("c")).stages["c"].nests[1]) == "i j k"
    back = plan(pipelines.product(), pt.on("c").update(0).unroll("k", 2).pure().reorder("j", "i"))
    assert [loops(n) for n in back.stages["c"].nests] == ["j i", "i j k unroll:k_u"]


def test_places() -> None:
    made = plan(
        pipelines.blur(),
        pt.on("blur_y").split("y", "yo", "yi", 8).parallel("yo"),
        pt.on("blur_x").compute_at("blur_y", "yi").store_at("blur_y", "yo").fold_storage("y", 4).store_in("stack"),
    ).stages["blur_x"]
    assert made.compute == Site("blur_y", 0, "yi")
    assert made.store == Site("blur_y", 0, "yo")
    assert made.folds == {"y": 4}
    assert made.memory == "stack"


def test_a_stage_is_stored_where_it_is_computed_unless_asked() -> None:
    inside = pt.on("blur_x").compute_at("blur_y", "y")
    assert plan(pipelines.blur(), pt.on("blur_y"), inside).stages["blur_x"].store == Site("blur_y", 0, "y")
    assert plan(pipelines.blur(), pt.on("blur_y"), inside.store_root()).stages["blur_x"].store is None
    assert plan(pipelines.blur(), pt.on("blur_x")).stages["blur_x"].compute is None


def test_inlined_stages_are_not_in_the_plan() -> None:
    assert list(plan(pipelines.blur(), pt.on("blur_x").compute_inline()).stages) == ["blur_y"]


def test_a_place_must_enclose_readers_behind_inlined_stages() -> None:
    made = plan(
        pipelines.diamond(),
        pt.on("out"),
        pt.on("a").compute_at("out", "y"),
        pt.on("b").compute_inline(),
        pt.on("c").compute_at("out", "x"),
    )
    assert made.stages["a"].compute == Site("out", 0, "y")


def test_a_place_may_be_a_loop_of_a_reader_of_readers() -> None:
    made = plan(
        pipelines.diamond(),
        pt.on("out"),
        pt.on("a").compute_at("out", "y").store_root(),
        pt.on("b").compute_at("out", "y"),
        pt.on("c").compute_at("out", "x"),
    )
    assert made.stages["a"].compute == Site("out", 0, "y")


def test_a_place_in_an_update() -> None:
    made = plan(pipelines.box(9), pt.on("out"), pt.on("sum").compute_at("out", "x").store_in("register"))
    assert made.stages["sum"].compute == Site("out", 0, "x")
    assert made.stages["sum"].memory == "register"


def test_storage_order() -> None:
    assert plan(pipelines.blur(), pt.on("blur_x").reorder_storage("x", "y")).stages["blur_x"].storage == ("x", "y")
    assert plan(pipelines.blur(), pt.on("blur_x")).stages["blur_x"].storage == ("y", "x")


def test_nontemporal_and_prefetch() -> None:
    made = blur_y(pt.on("blur_y").nontemporal().prefetch("blur_x", "y", 2))
    assert made.nontemporal
    assert made.prefetches == (PrefetchPlan("blur_x", "y", 2),)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("img.shape[1] >= 64", "img.shape.1 >= 64"),
        ("gain == 1.0", "gain == 1"),
        ("gain > 0 and not img.shape[0] % 8 == 0", "(gain > 0) & ~(img.shape.0%8 == 0)"),
        ("64 <= img.shape[0] < 128", "(img.shape.0 >= 64) & (img.shape.0 < 128)"),
        ("(-gain < 0.5) | (gain / 2 > 8 // 3)", "(-gain < 0.5) | (gain/2 > 2)"),
    ],
)
def test_conditions(written: str, meant: str) -> None:
    assert str(blur_y(pt.on("blur_y").specialize(written)).specializations[0]) == meant


def test_compute_with() -> None:
    made = plan(pipelines.two_outputs(), pt.on("f").parallel("y"), pt.on("g").parallel("y").compute_with("f", "y"))
    assert (made.stages["g"].with_stage, made.stages["g"].with_loop) == ("f", "y")
    assert made.stages["g"].compute is None


def test_compute_with_inside_a_tile() -> None:
    made = plan(
        pipelines.diamond(),
        pt.on("out"),
        pt.on("b").compute_at("out", "y"),
        pt.on("c").compute_with("b", "x"),
        pt.on("a").compute_at("c", "y"),
    )
    assert made.stages["c"].compute == Site("out", 0, "y")
    assert made.stages["a"].compute == Site("b", 0, "y")  # shared loops belong to the stage that has them


def test_places_inside_loops_that_are_partly_shared() -> None:
    x_of_c = pt.on("c").compute_with("b", "y")
    made = plan(pipelines.fan(), pt.on("b"), x_of_c, pt.on("a").compute_at("c", "x").store_at("c", "y"))
    assert made.stages["a"].compute == Site("c", 0, "x")
    assert made.stages["a"].store == Site("b", 0, "y")


def test_reduction_loops_move_where_the_order_of_terms_does_not_matter() -> None:
    swapped = pt.on("total").update().reorder("r.x", "r.y")
    assert loops(plan(pipelines.total(), swapped).stages["total"].nests[1]) == "r.x r.y"
    for graph in (pipelines.total(), pipelines.total("float32", "max")):
        resolve(graph, Schedule(swapped), strict=True)


def test_loops_that_carry_nothing_run_in_any_order() -> None:
    made = plan(pipelines.scan(), pt.on("f").update().reorder("r.x", "y").vectorize("y", 8))
    assert loops(made.stages["f"].nests[1]) == "r.x y vector:y_v"
    made = plan(pipelines.scatter(), pt.on("f").update().reorder("r.y", "x").parallel("r.y").vectorize("x", 8))
    assert loops(made.stages["f"].nests[1]) == "parallel:r.y x vector:x_v"


def test_small_reductions_may_be_inlined() -> None:
    assert "sum" not in plan(pipelines.box(8, helper=False), pt.on("sum").compute_inline()).stages


def test_what_a_target_has_not_is_refused() -> None:
    serial = replace(GENERIC, loops=(Kind.SERIAL, Kind.UNROLL), memories=(Memory.AUTO, Memory.HEAP))
    mistake = r'\.parallel\("y"\): .*generic has no parallel loops; leave it serial; there are serial, unroll'
    with pytest.raises(UserError, match=mistake):
        resolve(pipelines.blur(), Schedule(pt.on("blur_y").parallel("y")), target=serial)
    on_stack = Schedule(pt.on("blur_x").compute_root().store_in("stack"), pt.on("blur_y").unroll("x", 2))
    with pytest.raises(UserError, match=r"generic has no such memory; leave it out; there are auto, heap"):
        resolve(pipelines.blur(), on_stack, target=serial)
    assert resolve(pipelines.blur(), on_stack)[1].target is GENERIC
