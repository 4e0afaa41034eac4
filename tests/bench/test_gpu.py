"""Benchmarks on a GPU, as far as they can be had without one: on a device that is made of NumPy."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pantile import machine
from pantile.apps import APPS
from pantile.bench import gpu, main, predictions, session
from pantile.bench.console import Console
from pantile.bench.contender import ON_GPU, Label, Task, Unavailable
from pantile.bench.predictions import compare, variations
from pantile.bench.rivals import gpu_timing, gpu_worker
from pantile.bench.rivals.gpu_timing import TimedWork
from pantile.bench.rivals.gpu_worker import GpuWorker
from pantile.bench.rivals.process import programs
from pantile.bench.rivals.registry import GPU_RIVALS
from pantile.bench.rivals.serving import Preparation
from pantile.runtime.cuda import graphs
from tests.bench.fakes import TWICE, FakeContender, rival, unavailable


class FakeDevice(ModuleType):
    """Calls take a millisecond, graphs of them half as long."""

    def __init__(self) -> None:
        super().__init__("fake_device")
        self.call_ms, self.captures = 1.0, True

    def put(self, array: Any) -> Any:
        return np.array(array)

    def get(self, array: Any) -> Any:
        return np.array(array)

    def wait(self) -> None:
        pass

    def elapsed_ms(self, work: Callable[[], object], calls: int) -> float:
        work()
        return calls * getattr(work, "ms", self.call_ms)

    def captured(self, work: Callable[[], object], calls: int) -> Callable[[], object]:
        if not self.captures:
            raise RuntimeError("not while capturing")

        def replay() -> None:
            work()

        replay.ms = calls * self.call_ms / 2  # type: ignore[attr-defined]
        return replay


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    made = FakeDevice()
    monkeypatch.setattr(gpu, "library", lambda: made)
    return made


def test_predictions_are_compared_on_it(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schedule is predicted, compiled and timed, unless it is predicted to take long."""
    app = replace(APPS["blur"], sizes={"small": {"img": (40, 64)}})
    found = compare([app], 1, Console(), partial(gpu.OnGpu, size="small", target="cuda-sim"))
    assert {"expert", "plain"} <= {r.schedule for r in found}
    assert all(r.predicted_ms > 0 and r.measured_ms == 0.5 for r in found)
    monkeypatch.setattr(predictions, "LONGEST_S", 0.0)
    assert not compare([app], 1, Console(), partial(gpu.OnGpu, size="small", target="cuda-sim"))


def test_schedules_for_gpus_are_changed() -> None:
    found = [how for how, _ in variations(APPS["blur"], {"img": (300, 400)}, 12, "sm_90")]
    assert len(found) == 12 and {"expert", "plain", "greedy"} <= set(found)
    assert any(how.endswith(", changed") for how in found)


# ---- timing


@pytest.mark.parametrize(("ms", "calls"), [(0.03, 334), (4.0, 3), (25.0, 1), (1e-5, gpu_timing.MOST_CALLS)])
def test_a_sample_is_as_many_calls_as_fill_it(ms: float, calls: int) -> None:
    made: list[int] = []

    def elapsed_ms(n: int) -> float:
        made.append(n)
        return n * ms

    assert gpu_timing.per_call_ms(elapsed_ms, 3) == pytest.approx([ms] * 3)
    assert made[-3:] == [calls] * 3


def test_samples_at_a_stretch_are_few() -> None:
    assert len(gpu_timing.per_call_ms(lambda n: 20.0 * n, 100)) == gpu_timing.MOST_SAMPLES


def test_the_least_times_so_far() -> None:
    assert gpu_timing.least({"a": 2.0, "b": 1.0}, a=[3.0, 1.5], b=[], c=[4.0]) == {"a": 1.5, "b": 1.0, "c": 4.0}
    assert gpu_timing.better([2.0, 3.0], [2.5]) == [2.0, 3.0]
    assert gpu_timing.better([2.0], []) == [2.0]


def test_work_is_timed_by_calls_and_as_a_graph(device: FakeDevice) -> None:
    timed = TimedWork(device, lambda: None)
    assert timed.called_ms(2) == [1.0, 1.0]
    assert timed.captured_ms(2) == [0.5, 0.5]


def test_what_cannot_be_captured_is_called(device: FakeDevice) -> None:
    device.captures = False
    timed = TimedWork(device, lambda: None)
    assert timed.captured_ms(2) == []
    assert timed.why == "RuntimeError: not while capturing"


# ---- ours


def test_our_own_contender(device: FakeDevice) -> None:
    inputs = TWICE.inputs("small")
    made = _prepared(inputs)
    np.testing.assert_array_equal(made.outputs()[0], 2 * inputs["img"])
    assert made.label == Label("pantile", "plain", ON_GPU)
    assert made.time(2) == [0.5, 0.5]
    assert made.details == {"called_ms": 1.0, "captured_ms": 0.5, "launched_ms": 1.0}


def test_graphs_are_switched_off_for_a_while() -> None:
    assert graphs.enabled
    with gpu.without_graphs():
        assert not graphs.enabled
    assert graphs.enabled


def _prepared(inputs: dict[str, Any]) -> gpu.GpuContender:
    """This machine takes NumPy's arrays where a GPU takes PyTorch's."""
    return gpu.prepare_on_gpu(TWICE, "plain", "host", inputs)


def test_without_pytorch_and_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    with pytest.raises(Unavailable, match="PyTorch or CuPy"):
        gpu.library()


# ---- the command


@pytest.fixture
def _app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APPS, "twice", TWICE)
    monkeypatch.setattr(machine, "detect", lambda: machine.named("neoverse-n1"))


def bench(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "results.json"
    status = main(["twice", "--target", "cuda", "--repeat", "1", *options, "--json", str(file)])
    return status, json.loads(file.read_text())


@pytest.mark.usefixtures("_app")
def test_beside_rivals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], device: FakeDevice
) -> None:
    device.call_ms = 0.025
    monkeypatch.setattr(session, "prepare_on_gpu", lambda app, how, _, inputs: _prepared(inputs))
    fake, _ = rival(lambda img: 2 * img, schedules=("one", "two"))

    def enter(task: Task) -> FakeContender:
        assert task.threads == ON_GPU
        made = FakeContender(Label("fake", task.schedule, task.threads), 0.05, (2 * task.inputs["img"],))
        made.details = {"called_ms": 0.05}
        return made

    monkeypatch.setitem(GPU_RIVALS, "fake", replace(fake, enter=enter))
    status, document = bench(tmp_path, "--rivals", "fake:two,opencv,halide:adams2019")
    assert status == 0
    ours, theirs = document["results"]
    assert (ours["target"], ours["size"], theirs["target"]) == ("cuda", "paper", "cuda")
    assert (ours["ms"], ours["called_ms"], ours["captured_ms"]) == pytest.approx((0.0125, 0.025, 0.0125))
    assert (theirs["system"], theirs["schedule"], theirs["ms"]) == ("fake", "two", 0.05)
    assert "gpu" in document["machine"]
    told = capsys.readouterr()
    assert "note: opencv skipped: it does not run on target cuda; there are halide, torch, cupy, triton" in told.err
    assert "note: halide adams2019 skipped: it does not run on target cuda; " in told.err
    assert "twice: pantile plain 12.5 us, fake two 50.0 us" in told.err
    head = next(line.split() for line in told.out.splitlines() if line.startswith("app "))
    assert head[:7] == ["app", "system", "schedule", "us", "median", "called", "graph"]
    assert "fake two / pantile plain" in told.out


@pytest.mark.usefixtures("_app", "device")
def test_rivals_compile_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "prepare_on_gpu", lambda app, how, _, inputs: _prepared(inputs))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    both = threading.Barrier(2, timeout=60)

    def enter(task: Task) -> FakeContender:
        both.wait()
        return FakeContender(Label("fake", task.schedule, task.threads), 0.05, (2 * task.inputs["img"],))

    fake, _ = rival(lambda img: 2 * img, schedules=("one", "two"))
    monkeypatch.setitem(GPU_RIVALS, "fake", replace(fake, enter=enter))
    status, document = bench(tmp_path, "--rivals", "fake")
    assert status == 0
    assert [r["schedule"] for r in document["results"]] == ["plain", "one", "two"]


@pytest.mark.usefixtures("_app")
def test_where_nothing_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "prepare_on_gpu", unavailable("there is no GPU"))
    status, document = bench(tmp_path)
    assert (status, document["results"]) == (1, [])
    assert "error: twice: pantile expert: there is no GPU" in capsys.readouterr().err


def test_sizes_for_gpus_where_there_are_some() -> None:
    assert APPS["matmul"].size_called("gpu") == "gpu"
    assert APPS["blur"].size_called("gpu") == "paper"
    assert APPS["blur"].size_called("small") == "small"


# ---- rivals


def test_apps_of_rivals() -> None:
    filters, more = {"blur", "unsharp", "harris"}, {"stencil_chain", "hist_eq", "max_filter"}
    assert GPU_RIVALS["torch"].apps == filters | more | {"bilateral_grid", "matmul", "conv_layer"}
    assert GPU_RIVALS["triton"].apps == filters | {"matmul"}
    assert GPU_RIVALS["cupy"].apps == filters | more | {"iir_blur"}
    assert GPU_RIVALS["halide"].apps == programs("halide")


def test_a_library_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: FakeDevice) -> None:
    programs = ModuleType("fake_gpu_apps")
    programs.twice = lambda inputs, shapes: lambda: 2 * inputs["img"].reshape(shapes[0])  # type: ignore[attr-defined]
    package = gpu_worker.__name__.rpartition(".")[0]
    monkeypatch.setitem(gpu_worker.DEVICES, "fake", "fake_device")
    monkeypatch.setitem(sys.modules, f"{package}.fake_device", device)
    monkeypatch.setitem(sys.modules, f"{package}.fake_gpu_apps", programs)
    img = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.save(tmp_path / "img.npy", img)
    worker = GpuWorker("fake")
    answer = worker.prepare(Preparation("twice", "best", 0, {"img": str(tmp_path / "img.npy")}, [("<i4", [2, 3])]))
    assert set(answer) == {"schedule_s", "compile_s", "differs"}
    worker.run()
    worker.save([tmp_path / "out.npy"])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), 2 * img)
    assert worker.time(2) == {"runs_ms": [1.0, 1.0], "captured_ms": [0.5, 0.5], "no_graph": None}
