"""Pipelines, schedules and what they are made of as copies, and in processes that are started afresh."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.analysis.fingerprint import fingerprint
from pantile.expr.nodes import Op
from pantile.expr.visit import walk

Y, X = pt.vars("y x")
PHOTO = np.random.default_rng(0).integers(0, 256, (37, 53), dtype=np.uint8)
CURVE = np.linspace(0, 2, 256, dtype=np.float32)


def blur(**options: Any) -> pt.Pipeline:
    img, gain = pt.Input("img", "uint8", 2), pt.Param("gain", "float32", default=0.5)
    src, r = pt.edge(img), pt.RDom((-1, 3), (-1, 3), names="y x")
    rows, out = pt.Func("rows"), pt.Func("out")
    rows[Y, X] = pt.sum(src[Y + r.y, X + r.x], over=r.where(r.y != r.x))
    out[Y, X] = gain * rows[Y, X] + pt.table(CURVE)[img[Y, X]]
    return pt.Pipeline(out, **options)


def by_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


Copy = Callable[[Any], Any]
copies = pytest.mark.parametrize("make", [by_pickle, copy.copy, copy.deepcopy])


@copies
@pytest.mark.parametrize("schedule", [None, "greedy", pt.Schedule(pt.on("rows").parallel("y"))])
def test_a_copy_of_a_pipeline_is_the_same_pipeline(make: Copy, schedule: Any) -> None:
    p = blur(schedule=schedule, strict=True)
    for again in (make(p), make(p.compile(img=(37, 53)))):
        assert str(again) == str(p)
        assert again.options == p.options
        assert fingerprint(again.graph) == fingerprint(p.graph)
        np.testing.assert_array_equal(again(img=PHOTO), p(img=PHOTO))
        np.testing.assert_array_equal(again.reference(img=PHOTO), p.reference(img=PHOTO))
        assert again.schedule == p.schedule


@copies
def test_what_a_strategy_has_found_goes_along(make: Copy) -> None:
    p = blur(schedule="greedy", estimates={"img": (2000, 3000)})
    again = make(p)
    assert again.schedule == p.schedule
    assert again.explain() == p.explain()


@copies
def test_a_pipeline_for_another_machine_stays_so(make: Copy) -> None:
    p = blur(target="riscv64")
    assert make(p).options.target == p.options.target


def test_tables_stay_constant() -> None:
    for graph in (by_pickle(blur()).graph, copy.deepcopy(blur()).graph):
        table = next(i.table for i in graph.inputs if i.table is not None)
        assert not table.flags.writeable
    assert not by_pickle(pt.table(CURVE)).array.flags.writeable


def test_what_is_shared_stays_shared() -> None:
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    e = pt.cast("int32", img[Y, X])
    for _ in range(60):
        e = e + (e >> 1)  # written out, 2**60 operations
    f[Y, X] = e
    p = pt.Pipeline(f)
    again = by_pickle(p)
    count = [sum(isinstance(e, Op) for e in walk(*q.graph.stages[0].pure.values)) for q in (p, again)]
    assert count[0] == count[1] == 120


def test_deep_expressions_and_long_pipelines() -> None:
    img = pt.Input("img", "int32", 1)
    before: Any = img
    for k in range(300):
        f = pt.Func(f"f{k}")
        e = before[X]
        for _ in range(8):
            e = e * 3 ^ 5
        f[X] = e
        before = f
    p = pt.Pipeline(before)
    assert fingerprint(by_pickle(p).graph) == fingerprint(p.graph)
    assert fingerprint(copy.deepcopy(p).graph) == fingerprint(p.graph)


@copies
def test_copies_of_what_pipelines_are_made_of(make: Copy) -> None:
    img = pt.Input("img", "uint8", 2)
    r = pt.RDom((0, 3)).where(pt.Var("x") > 1)
    f = pt.Func("f")
    f[Y, X] = pt.sum(pt.edge(img)[Y, X + r[0]], over=r)
    again = make(f)
    np.testing.assert_array_equal(pt.Pipeline(again)(img=PHOTO), pt.Pipeline(f)(img=PHOTO))
    for thing in (X + 1, img, img[Y, X], pt.Param("p", "int32", 3), r, pt.on("f").parallel("y"), img.shape[0]):
        assert repr(make(thing)) == repr(thing)
    p = pt.Pipeline(f)
    assert make(p.schedule) == p.schedule


@copies
def test_an_error_names_the_line_that_it_named(make: Copy) -> None:
    with pytest.raises(pt.UserError) as caught:
        pt.Func("2")
    again = make(caught.value)
    assert str(again) == str(caught.value)
    assert again.where == caught.value.where


# ---- other processes


def run(p: pt.Pipeline, gain: float) -> tuple[np.ndarray, list[str]]:
    return p(img=PHOTO, gain=gain), list(p.timings)


def test_pipelines_run_in_processes_started_afresh_with_code_from_the_cache() -> None:
    """As joblib and Dask do, too."""
    p = blur(schedule="greedy")
    expected = {gain: p(img=PHOTO, gain=gain) for gain in (0.25, 0.5, 3.0)}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for gain, (result, steps) in zip(expected, pool.map(run, [p] * 3, expected), strict=True):
            np.testing.assert_array_equal(result, expected[gain])
            assert "key" in steps and "llvm" not in steps
        with pytest.raises(pt.UserError, match=r"Param 'gain' \(from .*test_pickle.py:\d+\) is given 'a'"):
            pool.submit(run, p, "a").result()  # type: ignore[arg-type]
