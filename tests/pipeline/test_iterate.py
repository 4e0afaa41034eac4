"""Steps that are applied as often as a call says."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")
START = np.random.default_rng(0).random((13, 17), np.float32)
N = pt.Param("n", "int32", default=2)


def sweep(img: pt.Input) -> Any:
    def step(before: Any) -> pt.Func:
        v, around = pt.Func("v", domain=img.shape), pt.edge(before)
        v[Y, X] = (around[Y - 1, X] + around[Y, X - 1] + around[Y, X + 1]) / 4
        return v

    return step


def heat() -> pt.Input:
    return pt.Input("img", "float32", 2)


def expected(times: int) -> np.ndarray:
    """By a chain whose length is written."""
    img = heat()
    result = pt.iterate(img, sweep(img), times=times)
    found: np.ndarray = pt.Pipeline(result).reference(img=START) if times else START
    return found


@pytest.mark.parametrize("target", [None, "cuda-sim"])
def test_a_param_says_how_many_steps_there_are(target: str | None) -> None:
    img = heat()
    p = pt.Pipeline(pt.iterate(img, sweep(img), times=N), schedule="plain", target=target)
    for times in (0, 1, 5, 3, 5):
        np.testing.assert_allclose(p(img=START, n=times), expected(times), rtol=1e-6)
        np.testing.assert_array_equal(p.reference(img=START, n=np.int64(times)), expected(times))
    np.testing.assert_allclose(p(img=START), expected(2), rtol=1e-6)
    assert [s.name for s in p.graph.stages if not s.helper] == ["v_1", "v_2"]


def test_the_param_and_the_state_may_be_read_further() -> None:
    img, out = heat(), pt.Func("out")
    state = pt.iterate(img, sweep(img), times=N)
    out[Y, X] = pt.edge(state)[Y, X - 1] * N
    p = pt.Pipeline(out, schedule="plain")
    shifted = np.pad(expected(3), ((0, 0), (1, 0)), "edge")[:, :-1]
    np.testing.assert_allclose(p(img=START, n=3), shifted * 3, rtol=1e-6)


def test_states_of_several_funcs() -> None:
    img, m = heat(), pt.Param("m", "uint8")

    def step(state: tuple[Any, Any]) -> tuple[pt.Func, pt.Func]:
        a, b = pt.Func("a"), pt.Func("b")
        a[Y, X] = state[1][Y, X]
        b[Y, X] = state[0][Y, X] + state[1][Y, X]
        return a, b

    first = pt.Func("first")
    first[Y, X] = img[Y, X] * 0
    p = pt.Pipeline(list(pt.iterate((first, img), step, times=m)), schedule="plain")
    for times, (a, b) in {0: (0, 1), 1: (1, 1), 6: (8, 13)}.items():
        got = p(img=np.ones((3, 4), np.float32), m=times)
        assert [v.tolist() for v in got] == [np.full((3, 4), v).tolist() for v in (a, b)]


def test_other_ways_to_make_and_to_look_at_it() -> None:
    img = heat()
    p = pt.Pipeline(pt.iterate(img, sweep(img), times=N), estimates={"img": (40, 50), "n": 3}, schedule="greedy")
    assert [s.name for s in p.graph.stages if not s.helper] == ["v_1", "v_2", "v_3"]
    for other in (p, p.with_schedule("plain"), p.with_options(strict=True)):
        assert other.compile(img=(13, 17), n=4) is other
        np.testing.assert_allclose(other(img=START, n=4), expected(4), rtol=1e-6)
        assert len(other.graph.stages) == len(p.graph.stages)  # of as many steps as were expected
    few, many = (p.work(img=(13, 17), n=n).operations["fma", 32] for n in (1, 8))
    assert many == 8 * few
    assert p.predict(img=(13, 17), n=8) is not None and "v_7" in p.explain(img=(13, 17), n=7)


@pytest.mark.parametrize("given", [-1, 2.5, True, None, "3"])
def test_numbers_of_steps_are_checked(given: object) -> None:
    img = heat()
    p = pt.Pipeline(pt.iterate(img, sweep(img), times=N), schedule="plain")
    with pytest.raises(
        pt.UserError,
        match=r"Param 'n' \(from .*\) is the number of steps of pt.iterate, and "
        r"is .*; pass a number that is not negative, like n=3",
    ):
        p(img=START, n=given)


def test_such_a_pipeline_is_not_pickled() -> None:
    img = heat()
    p = pt.Pipeline(pt.iterate(img, sweep(img), times=N), schedule="plain")
    with pytest.raises(pt.UserError, match="is Param 'n', so that it cannot be copied or sent"):
        pickle.dumps(p)
