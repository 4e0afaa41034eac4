"""The heuristic of polymage-plus §2.2, and its tuner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Polymage, TunedPolymage
from pantile.autoschedule.polymage import within
from pantile.schedule.schedule import Schedule

from .problems import HASWELL, chain, problem_of


def transposed() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = img[x, y]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]))


def groups(pipeline: pt.Pipeline, strategy: Polymage) -> list[tuple[str, ...]]:
    found = strategy.find(problem_of(pipeline, HASWELL, img=(2000, 2000))).report
    return [(*g.members, g.output) for g in found.groups]


def test_merges_with_a_single_child_only() -> None:
    """b and c read a. With d, which reads both, they become one group, and then a has a single child; if both are
    wanted, a has two children and stays alone."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    a, b, c, d = (pt.Func(n) for n in "abcd")
    a[y, x] = img[y, x] * img[y, x]
    b[y, x] = a[y, x] + 1
    c[y, x] = a[y, x] * 2
    d[y, x] = b[y, x] / c[y, x]
    (together,) = groups(pt.Pipeline(d, shape=img.shape), Polymage())
    assert sorted(together) == ["a", "b", "c", "d"]
    assert sorted(groups(pt.Pipeline([b, c], shape=[img.shape] * 2), Polymage())) == [("a",), ("b",), ("c",)]


def test_the_tolerance_limits_the_overlap() -> None:
    """Each of eight stencils needs two more rows: 32-row tiles of all of them overlap by more than a fifth."""
    assert len(groups(chain(8), Polymage((32, 256), 0.9))) == 1
    assert 1 < len(groups(chain(8), Polymage((32, 256), 0.2))) < 8
    assert len(groups(chain(8), Polymage((8, 256), 0.01))) == 8


def test_all_groups_have_the_same_tiles() -> None:
    found = Polymage((64, 128), 0.2).find(problem_of(chain(8), HASWELL, img=(2000, 2000))).report
    assert {tuple(level.items()) for g in found.groups for level in g.levels} == {(("y", 64), ("x", 128))}


def test_one_stage_has_tiles_only_if_it_does_not_stream() -> None:
    (alone,) = Polymage().find(problem_of(chain(1), HASWELL, img=(2000, 2000))).report.groups
    (turned,) = Polymage().find(problem_of(transposed(), HASWELL, img=(2000, 2000))).report.groups
    assert alone.levels == () and turned.levels == ({"y": 32, "x": 256},)


def test_short_sums_inside_expressions_are_written_out() -> None:
    """As PolyMage's Stencil is: nobody asked for a stage of their own. What is named and what is long stays a stage."""
    y, x = pt.vars("y x")
    img, out, named = pt.Input("img", "float32", ndim=2), pt.Func("out"), pt.Func("named")
    short, long = pt.RDom((0, 3), (0, 3)), pt.RDom((0, 5), (0, 5))
    named[y, x] = pt.sum(img[y + short[0], x + short[1]], over=short)
    again = pt.sum(named[y + short[0], x + short[1]], over=short)
    out[y, x] = again / 9 + pt.sum(img[y + long[0], x + long[1]], over=long)
    p = pt.Pipeline(out, shape=(1900, 1900))
    assert Polymage().find(problem_of(p, HASWELL, img=(2000, 2000))).report.inlined == ("out_sum",)


def test_tuning_keeps_the_fastest() -> None:
    """Every schedule is measured once."""
    measured: list[Schedule] = []

    def seconds(schedule: Schedule) -> float:
        measured.append(schedule)
        return 1.0 if '"y_o", "y_i", 16' in str(schedule) else 2.0

    problem = replace(problem_of(chain(3), HASWELL, img=(2000, 2000)), measure=seconds)
    found = TunedPolymage(tile_sizes=(8, 16, 256), tolerances=(0.2, 0.5)).find(problem)
    assert '"y_o", "y_i", 16' in str(found.schedule)
    assert len(measured) == len(set(measured)) == found.report.counts["schedules tried"]


def test_the_points_of_the_tuner() -> None:
    """§2.4: 147 choices, 7^2 tile sizes and three tolerances; §7.4.1 names 24 among them. Every one is tried."""
    points = list(TunedPolymage()._points())
    sizes = (8, 16, 24, 32, 64, 128, 256)
    assert len(points) == len(set(points)) == 147
    assert {p.tile_sizes for p in points} == {(y, x) for y in sizes for x in sizes}
    assert {p.tolerance for p in points} == {0.2, 0.4, 0.5}


def test_all_points_are_measured() -> None:
    """Of a single stage, all tolerances give the same schedule: 49 are left."""
    measured: list[Schedule] = []

    def seconds(schedule: Schedule) -> float:
        measured.append(schedule)
        return 2.0 - ('"y_o", "y_i", 24' in str(schedule)) - ('"x_o", "x_i", 24' in str(schedule)) / 2

    problem = replace(problem_of(transposed(), HASWELL, img=(2000, 2000)), measure=seconds)
    found = TunedPolymage().find(problem)
    assert len(measured) == len(set(measured)) == 49 == found.report.counts["schedules tried"]
    assert found.report.groups[0].levels == ({"y": 24, "x": 24},)


def test_the_keyboard_ends_tuning() -> None:
    """With the best so far; before there is any, as always."""
    times = iter([3.0, 2.0, KeyboardInterrupt])

    def seconds(_: Schedule) -> float:
        found = next(times)
        if found is KeyboardInterrupt:
            raise KeyboardInterrupt
        return found

    problem = replace(problem_of(chain(3), HASWELL, img=(2000, 2000)), measure=seconds)
    found = TunedPolymage(tolerances=(0.4,)).find(problem)
    assert found.report.counts == {"schedules tried": 2, "best ms": 2000.0}
    assert "stopped by the keyboard" in str(found.report)
    times = iter([KeyboardInterrupt])
    with pytest.raises(KeyboardInterrupt):
        TunedPolymage().find(problem)


def test_tuning_runs_the_pipeline() -> None:
    tuned = TunedPolymage(tile_sizes=(16, 32), tolerances=(0.4,), budget=0.0)
    pipeline = chain(2).with_schedule(tuned)
    img = np.random.default_rng(0).random((100, 120), np.float32)
    np.testing.assert_allclose(pipeline(img=img), pipeline.reference(img=img), rtol=1e-5)


def test_a_budget_of_time() -> None:
    said: list[str] = []
    assert list(within(60.0, "tuning", range(3), 3, said.append)) == [0, 1, 2]
    assert len(said) == 3 and said[2].startswith("tuning [################        ] 2/3, ")
    assert list(within(0.0, "tuning", range(3), 3)) == [0]
