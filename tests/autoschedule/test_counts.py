"""Histograms in parts, by threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.common.cpu_marking import counted_in_parts

from .problems import HASWELL, problem_of

PLACE, OTHER = pt.vars("i j")


def histogram(kind: str = "int32", weight: Any = 1) -> pt.Pipeline:
    img, f = pt.Input("img", "uint8", ndim=2), pt.Func("histogram")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), names="y x")
    f[PLACE] = pt.cast(kind, 0)
    f[img[r.y, r.x]] += pt.cast(kind, weight)
    return pt.Pipeline(f, shape=(256,))


def stages(p: pt.Pipeline, **shapes: tuple[int, ...]) -> list[str]:
    problem = problem_of(p, HASWELL, **shapes)
    return [s.name for s in counted_in_parts(problem, problem.graph.stages[-1])]


def test_large_pictures_are_counted_in_strips_and_turns() -> None:
    names = ["histogram", "histogram_strip", "histogram_strip_turn"]
    assert stages(histogram(), img=(2000, 3000)) == names
    assert stages(histogram("float32", 0.5), img=(2000, 3000)) == names


def test_small_ones_are_not() -> None:
    assert stages(histogram(), img=(20, 300)) == []


def test_what_has_loops_to_share_is_not() -> None:
    """A histogram for each row."""
    img, f = pt.Input("img", "uint8", ndim=2), pt.Func("f")
    r = pt.RDom((0, img.shape[1]), names="x")
    f[OTHER, PLACE] = 0
    f[OTHER, img[OTHER, r.x]] += 1
    assert stages(pt.Pipeline(f, shape=(img.shape[0], 256)), img=(2000, 3000)) == []


def test_what_is_no_sum_is_not() -> None:
    img, f = pt.Input("img", "uint8", ndim=2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), names="y x")
    f[PLACE] = 0
    f[img[r.y, r.x]] = pt.cast("int32", r.x)
    assert stages(pt.Pipeline(f, shape=(256,)), img=(2000, 3000)) == []


def test_strict_sums_of_floats_keep_their_order() -> None:
    problem = replace(problem_of(histogram("float32", 0.1), HASWELL, img=(2000, 3000)), strict=True)
    assert counted_in_parts(problem, problem.graph.stages[-1]) == ()


@pytest.mark.parametrize("strategy", [n for n, s in STRATEGIES.items() if s.for_cpus and not s.measures])
def test_results(strategy: str) -> None:
    img = np.random.default_rng(0).integers(0, 256, (700, 901), dtype=np.uint8)
    p = histogram().with_schedule(strategy, estimates={"img": img.shape})
    assert (p(img=img) == np.bincount(img.ravel(), minlength=256)).all()
    assert strategy == "naive" or "rfactor" in str(p.schedule)


def test_two_dims_and_one_loop() -> None:
    """A joint histogram of 16 x 16 places, of a long row of pairs."""
    img, f = pt.Input("img", "uint8", ndim=2), pt.Func("f")
    r = pt.RDom((0, img.shape[0]), names="x")
    f[OTHER, PLACE] = 0
    f[img[r.x, 0] // 16, img[r.x, 1] // 16] += 1
    pairs = np.random.default_rng(0).integers(0, 256, (1 << 20, 2), dtype=np.uint8)
    p = pt.Pipeline(f, shape=(16, 16), schedule="greedy", estimates={"img": pairs.shape})
    assert "rfactor" in str(p.schedule)
    expected = np.histogram2d(pairs[:, 0] // 16, pairs[:, 1] // 16, bins=(range(17), range(17)))[0]
    assert (p(img=pairs) == expected).all()
