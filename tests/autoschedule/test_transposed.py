"""Stages that read columns of a picture as their rows: in tiles, each of which is copied row by row before."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES, Auto
from pantile.autoschedule.search.transposes import by_copies
from pantile.schedule.schedule import Schedule

from .problems import ORDINARY, problem_of

c, y, x = pt.vars("c y x")
LARGE = (3000, 4096)


def masked() -> pt.Pipeline:
    img, mask, out = pt.Input("img", "uint32", ndim=2), pt.Input("mask", "uint32", ndim=2), pt.Func("out")
    out[y, x] = img[x, y] & mask[y, x]
    return pt.Pipeline(out, shape=mask.shape)


def planes() -> pt.Pipeline:
    img, out = pt.Input("img", "uint8", ndim=3), pt.Func("out")
    out[c, y, x] = img[c, x, y] + 1
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[2], img.shape[1]))


def doubled() -> pt.Pipeline:
    """Of a stage that is computed for this one alone."""
    img, twice, out = pt.Input("img", "float32", ndim=2), pt.Func("twice"), pt.Func("out")
    twice[y, x] = img[y, x] * 2
    out[y, x] = twice[x, y]
    return pt.Pipeline(out, shape=(img.shape[1], img.shape[0]))


def found(p: pt.Pipeline, **shapes: tuple[int, ...]) -> Schedule | None:
    problem = problem_of(p, ORDINARY, **shapes)
    return by_copies(problem, STRATEGIES["naive"]().find(problem).schedule, "out")


CASES = {
    "masked": (masked, {"img": LARGE, "mask": LARGE[::-1]}, {"img": (37, 130), "mask": (130, 37)}),
    "planes": (planes, {"img": (3, *LARGE)}, {"img": (2, 300, 271)}),
    "doubled": (doubled, {"img": LARGE}, {"img": (75, 201)}),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_right(name: str) -> None:
    build, large, small = CASES[name]
    p = build()
    schedule = found(p, **large)
    assert schedule is not None
    rng = np.random.default_rng(0)
    given = {i.name: rng.integers(0, 200, small[i.name]).astype(str(i.dtype)) for i in p.graph.inputs}
    np.testing.assert_array_equal(p.with_schedule(schedule)(**given), p.reference(**given))


def test_copies_and_masks_are_asked_for_early() -> None:
    schedule = found(masked(), img=LARGE, mask=LARGE[::-1])
    assert schedule is not None
    assert '.copy_in("out", "img_rows", "x_c", "y_c")' in repr(schedule.on("img"))
    assert '.prefetch("img", "x_c", ' in repr(schedule.on("img_rows"))
    assert '.prefetch("mask", "x_o", 1)' in repr(schedule.on("out"))


def test_what_is_computed_for_it_alone_is_computed_where_a_copy_would_be() -> None:
    schedule = found(doubled(), img=LARGE)
    assert schedule is not None and '.compute_at("out", "x_o")' in repr(schedule.on("twice"))
    assert ".copy_in(" not in repr(schedule)


def test_auto_transposes_by_copies() -> None:
    p = masked()
    for without, copies in ((None, True), (("transposes",), False)):
        schedule = Auto(without=without).find(problem_of(p, ORDINARY, img=LARGE, mask=LARGE[::-1])).schedule
        assert ("img_rows" in schedule) == copies


def test_what_caches_hold_or_nothing_transposes_is_left_alone() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = img[y, x] * 2
    assert found(pt.Pipeline(out, shape=img.shape), img=LARGE) is None
    assert found(doubled(), img=(100, 120)) is None


def test_a_stage_that_others_read_as_well_is_not_moved() -> None:
    img, f, out, plain = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out"), pt.Func("plain")
    f[y, x] = img[y, x] * 2
    out[y, x] = f[x, y]
    plain[y, x] = f[y, x] + 1
    p = pt.Pipeline((out, plain), shape=(img.shape, img.shape))
    problem = problem_of(p, ORDINARY, img=(4096, 4096))
    schedule = Schedule(pt.on("f").compute_inline(), pt.on("out").compute_root(), pt.on("plain").compute_root())
    assert by_copies(problem, schedule, "out") is None
