"""When formulas are rewritten, and what a person sees of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pantile as pt

from .examples import X, Y, agrees, picture, stages, window, windowed


def test_a_schedule_by_hand_is_for_the_stages_that_users_wrote() -> None:
    by_hand = windowed(schedule=pt.Schedule(pt.on("box").parallel("y")))
    assert by_hand.rewritten is by_hand.graph
    assert "algebra" not in by_hand.explain()
    assert agrees(by_hand)


def test_a_schedule_that_was_found_can_be_written_by_hand() -> None:
    p = windowed()
    again = p.with_schedule(eval(repr(p.schedule), {"pt": pt}))
    assert set(p.schedule) == {"img_edge", "box_rows", "box"}
    assert again.schedule == p.schedule and stages(again) == stages(p)
    assert agrees(again)


@pytest.mark.parametrize("strategy", ["naive", "greedy", "posttile"])
def test_strategies_schedule_what_is_computed(strategy: str) -> None:
    p = windowed(schedule=strategy)
    assert agrees(p)
    assert set(p.schedule) == {"img_edge", "box_rows", "box"}
    assert p.with_schedule(p.schedule).schedule == p.schedule


def test_it_is_explained() -> None:
    said = "  box: a sum of 7 x 7 terms, those of r.x first: 147 -> 42 operations per value; new: box_rows[y, x]"
    assert windowed().explain().endswith(f"algebra (algebra=False computes the formulas as written):\n{said}")
    p = windowed(schedule="greedy", estimates={"img": (400, 500)})
    assert "\n\ngreedy for " in p.explain() and p.explain().endswith(said)


def test_it_can_be_turned_off() -> None:
    p = windowed(algebra=False)
    assert p.rewritten is p.graph and "algebra" not in p.explain()
    assert stages(windowed().with_options(algebra=False)) == ["box"]
    assert stages(p.with_options(algebra=True)) == ["box_rows", "box"]
    with pytest.raises(pt.UserError, match="algebra='no': pass True or False"):
        windowed(algebra="no")


def test_copies_are_rewritten_alike() -> None:
    p = windowed()
    assert stages(pickle.loads(pickle.dumps(p))) == stages(p)
    assert stages(pickle.loads(pickle.dumps(p.with_options(algebra=False)))) == ["box"]


def test_the_graph_and_the_reference_are_the_users() -> None:
    p = windowed()
    assert [s.name for s in p.graph.stages] == ["img_edge", "box"]
    assert p.work(img=(100, 100)).operations == windowed(algebra=False).work(img=(100, 100)).operations


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    img, box_rows, box, r = pt.Input("img", "uint8", 2), pt.Func("box_rows"), pt.Func("box"), window(7, 7)
    box_rows[Y, X] = pt.edge(img)[Y, X]
    box[Y, X] = pt.sum(box_rows[Y + r.y, X + r.x], over=r)
    p = pt.Pipeline(box, shape=(40, 50))
    assert stages(p) == ["box_rows", "box_rows1", "box"]
    assert agrees(p)


def test_messages_are_about_what_users_wrote() -> None:
    img, box, r = pt.Input("img", "uint8", ndim=2), pt.Func("box"), window(7, 7)
    box[Y, X] = pt.sum(img[Y + r.y, X + r.x], over=r)
    p = pt.Pipeline(box, shape=(40, 50))
    with pytest.raises(pt.UserError, match=r"box .*reads img.*outside|Func 'box'") as refused:
        p(img=np.zeros((40, 50), np.uint8))
    assert "box_rows" not in str(refused.value)


def test_what_reads_too_much_when_it_is_stored_is_computed_as_written() -> None:
    """Two places of a stage that is written into what reads it; stored, it would be the box around them."""
    img, box, out = pt.Input("img", "uint8", ndim=2), pt.Func("box"), pt.Func("out")
    r = pt.RDom((0, 5), (0, 5), names="y x")
    box[Y, X] = pt.sum(pt.cast("int32", img[Y + r.y, X + r.x]), over=r)
    out[X] = box[pt.clamp(X * 1000, 0, 2), X]
    p = pt.Pipeline(out, shape=(30,))
    data = picture(p)
    np.testing.assert_array_equal(p(img=data), p.reference(img=data))
