"""Pipelines that strategies schedule: when, for what sizes and machines, and what they say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Found, Problem, Report, Strategy
from pantile.target import CPUS

MACHINE = pt.machine.named("neoverse-n1")


@dataclass(frozen=True)
class Recording(Strategy):
    """Schedules nothing, and remembers what for."""

    name: ClassVar[str] = "recording"
    asked: list[Problem] = field(default_factory=list, compare=False)

    def find(self, problem: Problem) -> Found:
        self.asked.append(problem)
        return Found(pt.Schedule(pt.on("g").parallel("y")), Report(self.name, problem.machine.name, {}, ()))


def pipeline(**options: Any) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, gain = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32", default=2)
    g = pt.Func("g")
    g[y, x] = img[y, x] * gain
    return pt.Pipeline(g, machine=MACHINE, **options)


def test_at_the_first_call() -> None:
    strategy = Recording()
    p = pipeline(schedule=strategy)
    assert not strategy.asked
    for n in (5, 7):
        np.testing.assert_array_equal(p(img=np.ones((n, 4), np.float32), gain=3), np.full((n, 4), 3))
    (problem,) = strategy.asked
    assert problem.shapes == {"g": (5, 4)}
    assert problem.scalars == {"gain": 3.0, "img.shape.0": 5, "img.shape.1": 4}
    assert p.schedule == pt.Schedule(pt.on("g").parallel("y"))


def test_for_estimates() -> None:
    strategy = Recording()
    p = pipeline(schedule=strategy, estimates={"img": (100, 200)})
    p(img=np.ones((3, 4), np.float32))
    assert [problem.shapes for problem in strategy.asked] == [{"g": (100, 200)}]
    assert p.explain().endswith("\n\nrecording for neoverse-n1: 0 groups")


def test_when_compiling_for_shapes() -> None:
    strategy = Recording()
    pipeline(schedule=strategy).compile(img=(8, 9))
    assert [problem.shapes for problem in strategy.asked] == [{"g": (8, 9)}]


@pytest.mark.parametrize("look", [lambda p: p.schedule, lambda p: p.explain(), lambda p: p.loops(), lambda p: p.asm(),
                                  lambda p: p.llvm(), lambda p: p.compile()])  # fmt: skip
def test_nothing_to_show_before(look: Any) -> None:
    with pytest.raises(pt.UserError) as caught:
        look(pipeline(schedule=Recording()))
    assert str(caught.value).endswith(
        "g is scheduled (recording) at its first call, for the sizes of that call; call it first, or state the "
        'expected sizes, such as estimates={"img": (1080, 1920)}'
    )


def test_empty_arrays_tell_nothing() -> None:
    strategy = Recording()
    p = pipeline(schedule=strategy)
    assert p(img=np.ones((0, 4), np.float32)).shape == (0, 4)
    p(img=np.ones((2, 4), np.float32))
    assert [problem.shapes for problem in strategy.asked] == [{"g": (2, 4)}]


def test_what_needs_no_schedule() -> None:
    strategy = Recording()
    p = pipeline(schedule=strategy)
    assert p.work(img=(4, 4)).bytes == 128
    assert p.reference(img=np.ones((2, 2), np.float32)).sum() == 8
    assert "g" in str(p) and "img" in repr(p) and not strategy.asked


def test_once_for_calls_at_the_same_time() -> None:
    strategy = Recording()
    p = pipeline(schedule=strategy)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: p(img=np.ones((n, 4), np.float32)), range(1, 9)))
    assert len(strategy.asked) == 1


def test_for_the_target_by_default() -> None:
    strategy = Recording()
    p = pt.Pipeline.with_schedule(pipeline(target="x86-64-v4"), strategy, estimates={"img": (4, 4)})
    assert strategy.asked[0].machine.vector_bits == 512 and p.schedule


@pytest.mark.parametrize("to", CPUS)
def test_reads_a_foreign_target_and_no_other(to: str) -> None:
    strategy = Recording()
    pt.Pipeline.with_schedule(pipeline(target=to), strategy, estimates={"img": (4, 4)})
    read, given = strategy.asked[0].machine.target, CPUS[to]
    assert (read.architecture, read.vector_bits, read.registers) == (
        given.architecture,
        given.vector_bits,
        given.registers,
    )


def test_options_keep_the_strategy() -> None:
    strategy = Recording()
    pipeline(schedule=strategy, estimates={"img": (4, 4)}).with_options(strict=True)
    assert [problem.strict for problem in strategy.asked] == [False, True]


def test_written_by_hand() -> None:
    assert pipeline().explain().startswith("g runs under a hand-written schedule or the default one:\npt.Schedule(")


def test_not_a_schedule() -> None:
    with pytest.raises(pt.UserError) as caught:
        pipeline(schedule="fast")
    names = "'plain', 'naive', 'greedy'"
    assert f"schedule='fast' is not a schedule; pass pt.Schedule(pt.on(...)...), or one of {names}" in str(caught.value)


def test_measured() -> None:
    strategy = Recording()
    pipeline(schedule=strategy, estimates={"img": (16, 16)})
    assert strategy.asked[0].seconds(pt.Schedule()) > 0


@pytest.mark.parametrize("strategy", ["auto", "naive", "greedy", "dp", "polymage", "posttile", "kernel", "reuse"])
def test_sums_of_everything_are_made_in_parts(strategy: str) -> None:
    """By threads and lanes, under every strategy; `strict` floats as they are written."""
    img, total, mean, out = pt.Input("img", "float32", 2), pt.Func("total"), pt.Func("mean"), pt.Func("out")
    r, (y, x) = pt.RDom((0, img.shape[0]), (0, img.shape[1])), pt.vars("y x")
    total[()] = 0.0
    total[()] += img[r[0], r[1]]
    mean[()] = total[()] / (img.shape[0] * img.shape[1])
    out[y, x] = img[y, x] / mean[()]
    photo = np.random.default_rng(1).random((300, 200), np.float32)
    outputs = {"schedule": strategy, "shape": [img.shape, ()], "estimates": {"img": photo.shape}}
    for strict in (False, True):
        p = pt.Pipeline([out, mean], strict=strict, **outputs)
        for found, expected in zip(p(img=photo), p.reference(img=photo), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert ("total_blocks_lanes" in p.schedule) != strict
