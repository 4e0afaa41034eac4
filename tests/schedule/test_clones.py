"""clone_in changes the pipeline, never its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.graph.verify import verify
from pantile.schedule import Schedule, resolve
from tests.schedule import pipelines

IMAGE = np.random.default_rng(2).random((80, 80), dtype=np.float32)


def far() -> pt.Pipeline:
    """out reads a pair of values at four places, two of them far from the others."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    start, f, out = pt.Func("start"), pt.Func("f"), pt.Func("out")
    start[y, x] = pt.sqrt(img[y, x])
    f[y, x] = (start[y, x] + start[y, x + 1], start[y + 1, x])
    out[y, x] = f[y, x][0] + f[y + 40, x][1] * f[y + 40, x][0] - f[y + 1, x][0] / f[y + 41, x][1]
    return pt.Pipeline(out, shape=(30, 70))


def stages(p: pt.Pipeline, *asked: pt.StageSchedule) -> list[str]:
    graph, _ = resolve(p.graph, Schedule(*asked))
    verify(graph)
    return [s.name for s in graph.stages]


SCHEDULES: dict[str, tuple[Any, ...]] = {
    "all reads": (pt.on("f").clone_in("out", "g"), pt.on("g").compute_at("out", "y")),
    "some reads": (pt.on("f").clone_in("out", "g", 1, 3).compute_at("out", "y"), pt.on("g").compute_at("out", "y")),
    "each its own": (
        pt.on("f").clone_in("out", "g0", 0).clone_in("out", "g1", 1).clone_in("out", "g2", 2).clone_in("out", "g3", 3),
    ),
    "the producer too": (
        pt.on("f").clone_in("out", "g", 1, 3).compute_at("out", "y"),
        pt.on("g").compute_at("out", "y"),
        pt.on("start").clone_in("g", "start_g").compute_at("out", "y"),
        pt.on("start_g").compute_at("out", "y"),
    ),
    "a copy of a copy": (pt.on("f").clone_in("out", "g", 1, 3), pt.on("g").clone_in("out", "h", 1)),
    "inlined": (pt.on("f").clone_in("out", "g", 1), pt.on("g").compute_inline()),
}


@pytest.mark.parametrize("asked", SCHEDULES.values(), ids=SCHEDULES)
def test_values_stay_as_they_are(asked: tuple[Any, ...]) -> None:
    p = far()
    schedule = Schedule(pt.on("out"), *asked)
    assert Schedule.from_json(schedule.to_json()) == schedule
    np.testing.assert_allclose(p.with_schedule(schedule)(img=IMAGE), p.reference(img=IMAGE), rtol=1e-3)


def test_copies_come_right_behind_their_stage() -> None:
    assert stages(far(), *SCHEDULES["the producer too"]) == ["start", "start_g", "f", "g", "out"]


def test_updates_of_a_copy_are_of_the_copy() -> None:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    r = pt.RDom((1, 79), names="y")
    scan, a, b = pt.Func("scan"), pt.Func("a"), pt.Func("b")
    scan[y, x] = img[y, x]
    scan[r.y, x] = scan[r.y - 1, x] + img[r.y, x]
    a[y, x] = scan[y, x] + 1
    b[y, x] = scan[y, x + 40] + 2
    p = pt.Pipeline([a, b], shape=[(80, 30), (80, 30)])
    schedule = Schedule(pt.on("scan").clone_in("b", "scan_b"))
    graph, _ = resolve(p.graph, schedule)
    assert {e.buffer for e in graph.stage["scan_b"].updates[0].loads} == {"scan_b", "img"}
    for mine, expected in zip(p.with_schedule(schedule)(img=IMAGE), p.reference(img=IMAGE), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4)


def test_several_consumers_may_share_a_copy() -> None:
    changed, _ = resolve(pipelines.diamond(), Schedule(pt.on("a").clone_in("b", "copy").clone_in("c", "copy", 1)))
    verify(changed)
    reads = {n: sorted({e.buffer for d in changed.stage[n].definitions for e in d.loads}) for n in ("b", "c")}
    assert reads == {"b": ["copy"], "c": ["a", "copy"]}


def test_a_stage_that_decides_where_it_is_read_is_cloned_whole() -> None:
    (x,) = pt.vars("x")
    img = pt.Input("img", "uint8", ndim=1)
    f, out = pt.Func("f"), pt.Func("out")
    f[x] = img[x] // 4
    out[x] = f[f[x]] + f[x]
    p = pt.Pipeline(out, shape=(256,))
    data = np.random.default_rng(0).integers(0, 256, 256, np.uint8)
    np.testing.assert_array_equal(
        p.with_schedule(Schedule(pt.on("f").clone_in("out", "g")))(img=data), p.reference(img=data)
    )
    with pytest.raises(pt.UserError, match="values of f decide where out reads it; leave the numbers out"):
        p.with_schedule(Schedule(pt.on("f").clone_in("out", "g", 0)))


def test_a_copy_that_is_read_anywhere_is_not_stored() -> None:
    x, f, out = pt.Var("x"), pt.Func("f"), pt.Func("out")
    img, scale = pt.Input("img", "uint8", ndim=1), pt.Param("scale", "float32")
    f[x] = pt.cast("int32", pt.sqrt(pt.cast("float32", x)) * scale)
    out[x] = pt.edge(img)[f[x] + x]
    clones = pt.on("f").clone_in("out", "g"), pt.on("img_edge").clone_in("out", "near")
    p = pt.Pipeline(out, shape=img.shape).with_schedule(
        Schedule(*clones, pt.on("g").compute_root(), pt.on("near").compute_at("out", "x"))
    )
    with pytest.raises(pt.UserError, match=r"'near'.*has no known limits: g\[x\] \+ x may be"):
        p(img=np.zeros(9, np.uint8), scale=1.0)
