"""What halide-autoscheduler §5.4 says of GPUs: groups are kernels, with intermediate buffers in shared memory."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.greedy import Greedy
from pantile.machine import named
from pantile.simulator import counting

from .problems import problem_of

K40 = named("K40")


def test_the_parameters_of_gpus() -> None:
    """ "Setting the PARALLELISM_THRESHOLD to 128, VECTOR_WIDTH to 32, and CACHE_SIZE to 48 KB": the paper's, and what
    somebody has given instead. That a thread computes four points is ours."""
    problem = problem_of(APPS["blur"].build(), K40, img=(4802, 6402))
    assert Greedy()._for(problem) == Greedy(32, 128, 48 << 10, 10.0, 128, 2048, 4)
    assert Greedy(cache_size=16 << 10)._for(problem) == Greedy(32, 128, 16 << 10, 10.0, 128, 2048, 4)


@pytest.mark.parametrize("app", ["blur", "unsharp", "harris", "bilateral_grid", "camera_pipe"])
def test_groups_are_kernels(app: str) -> None:
    """ "The outer tile loops as GPU block grid dimensions and the inner tile loops as GPU thread block dimensions."
    Tiles have 128 points at least, and at most 1,024, as hardware has not the 2,048 threads of the paper."""
    problem = problem_of(APPS[app].build(), K40, **APPS[app].arguments("paper"))
    found = Greedy().find(problem)
    assert "blocks have 1024 threads at most" in str(found.report)
    assert not any("scheduled on their own" in remark for remark in found.report.remarks)
    together = [g for g in found.report.groups if g.members]
    assert together
    for group in together:
        (tile,) = group.levels
        assert 128 <= prod(tile.values()) <= 1024
        marks = {d.verb: d.args for d in found.schedule.on(group.output).directives if d.verb in ("block", "thread")}
        assert len(marks["block"]) == len(tile) and len(marks["thread"]) == len(tile)
        for member in group.members:
            at = next(d for d in found.schedule.on(member).directives if d.verb == "compute_at")
            assert at.args == (group.output, marks["block"][-1])


def test_intermediate_buffers_are_in_shared_memory_and_save_loads() -> None:
    """A third of the sectors of harris, whose plain schedule is three kernels."""
    app = APPS["harris"]
    arguments = app.arguments("small")
    counted = {}
    for how in ("plain", "greedy"):
        pipeline = app.build().with_options(target="cuda-sim")
        pipeline = pipeline.with_schedule(how, estimates=app.arguments("paper") if how == "greedy" else None)
        with counting() as counts:
            result = pipeline(**arguments)
        np.testing.assert_allclose(result, pipeline.reference(**arguments), rtol=2e-4, atol=1e-3)
        counted[how] = [c.traffic.global_sectors["load"] for c in counts]
    assert len(counted["greedy"]) == 1 and sum(counted["greedy"]) < sum(counted["plain"]) / 3


@pytest.mark.parametrize("target", ["cuda-sim", "sm_80"])
def test_it_is_reached_by_name(target: str) -> None:
    pipeline = APPS["blur"].build().with_options(target=target)
    pipeline = pipeline.with_schedule("greedy", estimates={"img": (4802, 6402)})
    assert ".entry" in pipeline.asm("sm_80")
    text = pipeline.explain()
    assert "1 kernel" in text and "greedy for" in text and "tiles: y" in text


def test_sizes_come_with_the_first_call() -> None:
    pipeline = APPS["blur"].build().with_options(target="cuda-sim").with_schedule("greedy")
    with pytest.raises(pt.UserError, match="at its first call, for the sizes of that call"):
        str(pipeline.schedule)
    assert len(pipeline.predict(img=(4802, 6402)).kernels) == 1
    assert pipeline.report is not None and pipeline.report.machine == "H200"


def test_other_strategies_say_that_they_know_cpus_alone() -> None:
    with pytest.raises(pt.UserError, match="K40 is a GPU, and this strategy schedules for CPUs"):
        pt.autoschedule.STRATEGIES["reuse"]().find(problem_of(APPS["blur"].build(), K40, img=(4802, 6402)))
