"""What strategies do grows with the pipeline, and no faster: calls of functions are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.greedy import Greedy, _GreedySearch

from .problems import MODELS, chain, problem_of

# These look at sets of stages, whose number is bounded otherwise (test_fusion_size).
GROUPING = ("dp", "polymage")


def pointwise(count: int) -> pt.Pipeline:
    """A chain that can be inlined as a whole."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before: Any = img
    for k in range(count):
        f = pt.Func(f"f{k}")
        f[y, x] = before[y, x] * 1.5 + img[y, x]
        before = f
    return pt.Pipeline(before, shape=img.shape)


def wide(count: int) -> pt.Pipeline:
    """One stage that reads many others."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    total: Any = img[y, x]
    for k in range(count):
        f = pt.Func(f"f{k}")
        f[y, x] = img[y, x] * (k + 1.5) + pt.sqrt(img[y, x + 1])
        total = total + f[y + 1, x]
    out = pt.Func("out")
    out[y, x] = total
    return pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 1))


def chebyshev(count: int) -> pt.Pipeline:
    """Every stage is read twice: as a tree, the last one doubles with each further one or two."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before, last = pt.Func("t0"), pt.Func("t1")
    before[y, x] = 1.0
    last[y, x] = img[y, x]
    for k in range(2, count):
        t = pt.Func(f"t{k}")
        t[y, x] = 2 * img[y, x] * last[y, x] - before[y, x]
        before, last = last, t
    return pt.Pipeline(last, shape=img.shape)


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python are called, comprehensions and all."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        """Told of calls alone, since it returns nothing that would be told of what happens inside of them."""
        nonlocal count
        count += 1

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("strategy", [name for name in MODELS if name not in GROUPING])
@pytest.mark.parametrize("build", [chain, pointwise, wide, chebyshev])
def test_twice_the_stages_are_twice_the_work(build: Callable[[int], pt.Pipeline], strategy: str) -> None:
    few, more = (problem_of(build(n), img=(2000, 2000)) for n in (20, 40))
    find = STRATEGIES[strategy]().find
    assert calls(lambda: find(more)) < 2.5 * calls(lambda: find(few))


def test_stages_that_join_alike_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each merge changes the group that all others may join, but they are alike."""
    evaluated: list[str] = []
    evaluate = _GreedySearch.evaluate_group_merge

    def counted(self: _GreedySearch, producer: str, consumer: str) -> object:
        evaluated.append(producer)
        return evaluate(self, producer, consumer)

    monkeypatch.setattr(_GreedySearch, "evaluate_group_merge", counted)
    found = Greedy().find(problem_of(alike(40), img=(2000, 2000)))
    assert found.report.counts["merges evaluated"] > 10 * len(evaluated)


def alike(count: int) -> pt.Pipeline:
    """One stage that reads many others, which differ in a weight."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    total: Any = 0.0
    for k in range(count):
        f = pt.Func(f"f{k}")
        f[y, x] = img[y, x] * (k + 1.5) + img[y, x + 1] + img[y, x + 2]
        total = total + f[y, x] + f[y + 1, x]
    out = pt.Func("out")
    out[y, x] = total
    return pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 2))
