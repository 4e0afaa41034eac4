"""Campaigns: cases are reproducible, crashes are counted, and failures are shown and reduced."""

from __future__ import annotations

import os
import signal
import warnings
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pantile as pt
from pantile.backends.backend import Values
from pantile.backends.cuda import Cuda
from pantile.backends.cuda_sim import SimulatedCall
from pantile.errors import InternalError, RunError
from pantile.graph.nodes import Graph
from pantile.ir.nodes import Program
from pantile.runtime.cuda import driver
from pantile.runtime.cuda.driver import DeviceCrash
from pantile.schedule_cache import NotFound
from pantile.target import GPUS, Target

from ..autoschedule.problems import GPU_MODELS
from ..codegen.nvptx.assembler import assembled, needs_assembler
from . import campaign, ways
from .campaign import Campaign
from .harness import pipeline_of
from .reduce import outcome, reduced
from .schedules import schedules
from .seeded import seeded
from .ways import EXCEPTION, LONG, MISMATCH, REFUSED, RIGHT, SAME, StepEnded, StepStarted, Tell, cases


def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, work: object, seeds: list[int], target: str = "host"
) -> Campaign:
    monkeypatch.setenv("PANTILE_CACHE_DIR", os.devnull)  # as in campaigns: each case is new
    if work is not None:
        monkeypatch.setattr(campaign, "run_case", work)
    limits = {"limit": 60, "simulation_limit": 1}
    found = Campaign(
        Namespace(jobs=2, out=tmp_path, case=None, schedules=1, strategies=1, target=target, debug=False, **limits)
    )
    found.run(iter(seeds), float("inf"))
    return found


def die_of(number: signal.Signals) -> None:
    """End this process at once, without the stack traces that pytest shows for a process that crashes."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def test_every_seed_is_a_case() -> None:
    """The generators raise no errors, and draw the same case for the same seed."""
    for seed in range(30):
        case = seeded(seed)(cases())
        assert case == seeded(seed)(cases())
        assert str(seeded(seed)(schedules(pipeline_of(case).graph, case.strict)))


def test_ways_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run(monkeypatch, tmp_path, None, [1, 2])
    assert found.cases == 2
    assert sum(found.outcomes.values()) == 2 * 4
    assert {outcome for _, outcome in found.outcomes} <= {RIGHT, SAME, REFUSED}
    assert not list(tmp_path.iterdir())


def test_on_the_simulated_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = run(monkeypatch, tmp_path, None, [4002, 4003], "cuda-sim")
    assert found.cases == 2
    assert {label for label, _ in found.outcomes} == {"prepare", "default", "random 1", "greedy", "polymage_gpu"}
    assert {outcome for _, outcome in found.outcomes} <= {RIGHT, SAME, REFUSED}


def test_simulated_cases_become_code_of_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Code that LLVM or NVIDIA's assembler rejects is a failure, even if the simulator runs it."""

    def refuses(self: Cuda, program: Program, text: str, target: Target, debug: bool) -> bytes:
        raise InternalError("LLVM refuses the generated code")

    monkeypatch.setattr(Cuda, "artifact", refuses)
    found = run(monkeypatch, tmp_path, None, [4001], "cuda-sim")
    ways = {(way, EXCEPTION): 1 for way in ("default", "random 1", "autogpu")}
    assert found.outcomes == {("prepare", RIGHT): 1, **ways}
    assert "LLVM refuses the generated code" in (tmp_path / "4001-default-exception.py").read_text()


def test_what_runs_on_a_gpu_is_simulated_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Races that a GPU does not detect are failures. Here, another simulator stands for the GPU."""
    calls: list[int] = []
    simulated = SimulatedCall.run

    def races(self: SimulatedCall, arrays: Sequence[Any], numbers: Values, threads: int) -> bool:
        calls.append(threads)
        assert len(calls) % 2, "a race"
        return simulated(self, arrays, numbers, threads)

    monkeypatch.setattr(SimulatedCall, "run", races)
    monkeypatch.setattr(ways, "pipeline_of", lambda case, target: pipeline_of(case, target="cuda-sim"))
    found = run(monkeypatch, tmp_path, None, [4001], "cuda")
    outcomes = {(way, MISMATCH): 1 for way in ("default", "random 1", "autogpu")}
    assert found.outcomes == {("prepare", RIGHT): 1, **outcomes}
    assert "a race" in (tmp_path / "4001-default-mismatch.py").read_text()


@needs_assembler
def test_the_assembler_refuses_what_llvm_does_not_know() -> None:
    with pytest.raises(InternalError, match="ptxas refuses the generated code"):
        assembled(".version 8.0\n.target sm_90\n.address_size 64\n.func f() { no.such.instruction; }", GPUS["sm_90"])


def test_children_find_the_driver_untouched() -> None:
    """A process that was forked from one that has used the driver cannot use it."""
    for target in ("cuda", "cuda-sim"):
        campaign.warm_up(target)
    assert driver._found is None


def test_behind_a_lost_context_the_other_ways_are_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel that fails destroys the context of its process, so another process continues."""
    calls: list[int] = []

    def crashes(self: SimulatedCall, arrays: object, numbers: object, threads: int) -> bool:
        calls.append(threads)
        raise DeviceCrash("the context is lost") if len(calls) == 1 else RunError("the context was lost before")

    monkeypatch.setattr(SimulatedCall, "run", crashes)
    found = run(monkeypatch, tmp_path, None, [4001], "cuda-sim")
    assert found.cases == 1
    assert found.outcomes["default", EXCEPTION] == found.outcomes["random 1", EXCEPTION] == 1
    assert sum(found.outcomes[strategy, EXCEPTION] for strategy in GPU_MODELS) == 1
    assert found.failed() == 3
    assert all("DeviceCrash: the context is lost" in p.read_text() for p in tmp_path.iterdir())


def test_what_fails_while_schedules_are_drawn_is_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program has the pipeline, and says how to run the case again."""

    def fails(target: str, graph: Graph, strict: bool) -> object:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(ways, "schedules_for", fails)
    found = run(monkeypatch, tmp_path, None, [4001], "cuda-sim")
    assert found.outcomes["random 1", EXCEPTION] == 1
    text = (tmp_path / "4001-random1-exception.py").read_text()
    assert "python -m tests.fuzz.campaign --target cuda-sim --case 4001" in text
    names: dict[str, object] = {}
    exec(compile(text, "<program>", "exec"), names)
    assert isinstance(names["pipeline"], pt.Pipeline)


def test_a_search_that_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The warning that a pipeline runs under the plain schedule instead is an error in campaigns."""

    def falls_back(seed: int, schedules: int, strategies: int, target: str, debug: bool, skip: int, tell: Tell) -> None:
        tell(StepStarted(0, "prepare", "# seed"))
        try:
            warnings.warn("it runs plainly", NotFound, stacklevel=1)
        except NotFound:
            tell(StepEnded(0, "prepare", EXCEPTION))
        else:
            tell(StepEnded(0, "prepare", RIGHT))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as outside of tests
        assert run(monkeypatch, tmp_path, falls_back, [1]).outcomes == {("prepare", EXCEPTION): 1}


def test_behind_a_crash_the_other_ways_are_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def dies(seed: int, schedules: int, strategies: int, target: str, debug: bool, skip: int, tell: Tell) -> None:
        for step, label in enumerate(["prepare", "default", "random 1", "dp"]):
            if step >= skip:
                tell(StepStarted(step, label, f"# {label}"))
                if label == "random 1":
                    die_of(signal.SIGSEGV)
                tell(StepEnded(step, label, MISMATCH if label == "dp" else RIGHT, "differs"))

    found = run(monkeypatch, tmp_path, dies, [5])
    assert found.cases == 1
    assert found.outcomes == {
        ("prepare", RIGHT): 1,
        ("default", RIGHT): 1,
        ("random 1", "crash"): 1,
        ("dp", MISMATCH): 1,
    }
    assert found.failed() == 2
    written = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert written == {
        "5-random1-crash.py": "# seed 5, random 1: crash\n# died of SIGSEGV\n# random 1\n",
        "5-dp-mismatch.py": "# seed 5, dp: mismatch\n# differs\n# dp\n",
    }


def test_failures_are_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that the failure does not need is removed."""
    text = "\n".join([
        "import numpy as np", "import pantile as pt", "x = pt.Var('x')", "a = pt.Input('a', 'int32', ndim=1)",
        "f = pt.Func('f')", "f[x] = (a[x] + 3) // 7", "pipeline = pt.Pipeline(f)", "a = np.arange(9, dtype='int32')",
        "found = pipeline(a=a, num_threads=1)", "expected = pipeline.reference(a=a)",
    ])  # fmt: skip
    assert outcome(text) == "right"
    assert reduced(text) == text
    monkeypatch.setattr("tests.fuzz.reduce.outcome", lambda text: "mismatch" if "//" in text else "right")
    assert reduced(text).splitlines()[:-2] == ["# mismatch", "a // 1"]


def test_a_simulation_that_takes_long_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def works_forever(
        seed: int, schedules: int, strategies: int, target: str, debug: bool, skip: int, tell: Tell
    ) -> None:
        for step, label in enumerate(["prepare", "default", "random 1"]):
            if step >= skip:
                tell(StepStarted(step, label, f"# {label}", simulates=label == "default"))
                while label == "default":
                    pass  # until it reaches the time limit for simulation
                if label == "random 1":
                    die_of(signal.SIGPROF)
                tell(StepEnded(step, label, RIGHT))

    found = run(monkeypatch, tmp_path, works_forever, [7], "cuda-sim")
    assert found.outcomes["default", LONG] == 1
    assert found.outcomes["random 1", "timeout"] == 1, "it was not known to be compiled"
    assert found.failed() == 1
