"""dp and polymage on long and wide pipelines: what they do is counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.analysis import access
from pantile.autoschedule import Dp, Polymage, Strategy
from pantile.autoschedule.fusion import aligned, dimensional_reuse
from pantile.autoschedule.fusion.aligned_group import AlignedGroup
from pantile.expr.nodes import Expr
from pantile.expr.visit import walk
from pantile.graph.nodes import Graph

from .problems import HASWELL, chain, problem_of

BOTH = pytest.mark.parametrize("strategy", [Dp(), Polymage()], ids=["dp", "polymage"])


def fan(count: int) -> pt.Pipeline:
    """One stage that reads so many others, each in two places."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    parts = [pt.Func(f"f{k}") for k in range(count)]
    for k, f in enumerate(parts):
        f[y, x] = img[y, x] * (k + 1) + img[y, x + 1]
    out = pt.Func("out")
    out[y, x] = sum(f[y, x] + f[y, x + 1] for f in parts)
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 2))


def chebyshev(count: int) -> pt.Pipeline:
    """t[n] = 2 x t[n - 1] - t[n - 2]: written out as a tree, it has as many leaves as Fibonacci's numbers grow."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before: list[Any] = [pt.Func("t0"), pt.Func("t1")]
    before[0][y, x] = img[y, x] * 0 + 1
    before[1][y, x] = img[y, x]
    for k in range(2, count):
        t = pt.Func(f"t{k}")
        t[y, x] = 2 * img[y, x] * before[-1][y, x] - before[-2][y, x]
        before.append(t)
    return pt.Pipeline(before[-1], shape=img.shape)


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Nodes that are walked to see what is read, and stages of the groups that are looked at."""
    found: Counter[str] = Counter()

    def counted(*roots: Expr) -> Iterator[Expr]:
        for e in walk(*roots):
            found["nodes"] += 1
            yield e

    init = AlignedGroup.__init__

    def made(self: AlignedGroup, *args: Any) -> None:
        init(self, *args)
        found["groups"] += 1
        found["stages"] += len(self.names)

    monkeypatch.setattr(access, "walk", counted)
    monkeypatch.setattr(AlignedGroup, "__init__", made)
    assert aligned.accesses is dimensional_reuse.accesses is access.accesses
    return found


def nodes(graph: Graph) -> int:
    return sum(1 for s in graph.stages for d in s.definitions for _ in walk(*d.values))


@BOTH
@pytest.mark.parametrize("make", [chain, fan, chebyshev])
def test_expressions_are_walked_a_few_times(make: Any, strategy: Strategy, visits: Counter[str]) -> None:
    """For what they read, for crops, for reuse along each dim, and for loops once inlined; however often a stage is
    looked at in some group."""
    for count in (12, 24):
        visits.clear()
        problem = problem_of(make(count), HASWELL, img=(500, 500))
        inlined = strategy.find(problem).report.inlined
        assert visits["nodes"] <= 6 * (nodes(problem.graph) + nodes(problem.inlined(inlined).graph))


@pytest.mark.parametrize("make", [chain, fan])
def test_dp_looks_at_a_bounded_number_of_groups(make: Any, visits: Counter[str]) -> None:
    """Rounds of at most 2000 states, of which three limits are tried; or greedy merging of 16 stages at most."""
    count = 150
    found = Dp().find(problem_of(make(count), HASWELL, img=(500, 500))).report
    assert visits["groups"] <= 3 * 3 * 2000
    if make is chain:
        assert found.counts["states explored"] <= 2 * 2000
        assert found.remarks[0].startswith("Algorithm 5")
    else:
        assert found.counts["merges evaluated"] <= 16 * count
        assert "merged greedily" in found.remarks[0]


def test_polymage_looks_at_each_merge_once(visits: Counter[str]) -> None:
    for make in (chain, fan):
        visits.clear()
        found = Polymage().find(problem_of(make(60), HASWELL, img=(500, 500))).report
        assert visits["groups"] <= 4 * 60
        assert found.counts["merges"] >= 30


@BOTH
def test_a_recurrence_runs(strategy: Strategy) -> None:
    scheduled = chebyshev(16).with_schedule(strategy)
    img = np.random.default_rng(0).random((40, 70), np.float32)
    np.testing.assert_allclose(scheduled(img=img), scheduled.reference(img=img), rtol=1e-3, atol=1e-3)


# ---- values of a stage that nobody reads


def unused(kind: str) -> pt.Pipeline:
    """`pair` has two values, the second of which is read: what only the first one needs is not needed at all."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    other, pair, out = pt.Func("other"), pt.Func("pair"), pt.Func("out")
    if kind == "scan":
        r = pt.RDom((1, img.shape[1] - 1))
        other[y, x] = img[y, x]
        other[y, r[0]] += other[y, r[0] - 1]
    else:
        other[y, x] = img[y, x] * img[y, x] + 1
    pair[y, x] = (other[y, x] * 2, img[y, x] + 1)
    if kind == "stencil":
        out[y, x] = pair[y, x][1] + pair[y, x + 1][1]
    else:
        out[y, x] = pair[y, x][1]
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1))


@BOTH
@pytest.mark.parametrize("kind", ["scan", "pointwise", "stencil"])
def test_a_value_that_nobody_reads(kind: str, strategy: Strategy) -> None:
    scheduled = unused(kind).with_schedule(strategy)
    img = np.random.default_rng(0).random((40, 70), np.float32)
    np.testing.assert_allclose(scheduled(img=img), scheduled.reference(img=img), rtol=1e-4)
