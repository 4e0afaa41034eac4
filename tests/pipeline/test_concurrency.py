"""Many threads on one pipeline, forks, and a compile that is interrupted."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pantile import scheduled_pipeline

from .examples import blur, picture


def test_threads_that_call_at_once_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = scheduled_pipeline.compile_kernel

    def counting(*args: Any) -> Any:
        compiled.append(threading.current_thread().name)
        return original(*args)

    monkeypatch.setattr(scheduled_pipeline, "compile_kernel", counting)
    p, gate = blur(name="at_once"), threading.Barrier(8)
    pixels = [picture(50, 60, seed=k) for k in range(8)]

    def call(k: int) -> np.ndarray:
        gate.wait()
        return np.stack([p(img=pixels[k], num_threads=2) for _ in range(20)])

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(call, range(8)))
    assert len(compiled) == 1
    for k, results in enumerate(found):
        assert (results == p.reference(img=pixels[k])).all()


def test_an_interrupted_compile_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    original = scheduled_pipeline.compile_kernel

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    p, pixels = blur(name="interrupted"), picture(9, 9)
    monkeypatch.setattr(scheduled_pipeline, "compile_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        p(img=pixels)
    monkeypatch.setattr(scheduled_pipeline, "compile_kernel", original)
    assert np.array_equal(p(img=pixels), p.reference(img=pixels))


def in_child(work: Any) -> int:
    """The exit status of a forked child: 0 if `work` returns something true."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_calls_and_compiles() -> None:
    p, pixels = blur(), picture(80, 90)
    expected = p(img=pixels, num_threads=2)

    def work() -> bool:
        mine = blur(strict=True, name="in_child")
        again = p(img=pixels, num_threads=2)
        return np.array_equal(again, expected) and np.array_equal(mine(img=pixels, num_threads=2), expected)

    assert in_child(work) == 0
    assert np.array_equal(p(img=pixels, num_threads=2), expected)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    original, begun, go_on = scheduled_pipeline.compile_kernel, threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        begun.set()
        go_on.wait(60)
        return original(*args)

    p, pixels = blur(name="while_compiling"), picture(20, 30)
    monkeypatch.setattr(scheduled_pipeline, "compile_kernel", slow)
    compiling = threading.Thread(target=p, kwargs={"img": pixels})
    compiling.start()
    begun.wait(60)

    def work() -> bool:
        scheduled_pipeline.compile_kernel = original
        return np.array_equal(p(img=pixels), p.reference(img=pixels))

    try:
        assert in_child(work) == 0
    finally:
        go_on.set()
        compiling.join()
    assert np.array_equal(p(img=pixels), p.reference(img=pixels))


def test_a_kernel_outlives_its_pipeline_while_it_runs() -> None:
    pixels = picture(400, 500)
    expected = blur()(img=pixels)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: blur()(img=pixels), range(12)))
    assert all(np.array_equal(f, expected) for f in found)
