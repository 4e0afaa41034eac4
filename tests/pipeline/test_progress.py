"""What takes long says so on a terminal. The clock is given, so that nothing here waits for seconds to pass."""

from __future__ import annotations

import io
import os
import pty
import sys
import threading
from typing import TextIO

import numpy as np
import pytest

import pantile as pt
from pantile import progress
from pantile.progress import PATIENCE, VARIABLE, Progress

from .forking import run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def watched_by(monkeypatch: pytest.MonkeyPatch, stream: TextIO) -> tuple[Progress, Clock]:
    """Progress on a stream, of which the test says when it is looked at. (pytest has a stderr of its own per phase.)"""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(Progress, "_watch", lambda self: None)
    clock = Clock()
    return Progress(clock), clock


def test_nothing_is_said_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    watched, clock = watched_by(monkeypatch, terminal)
    with watched.doing("compiling f"):
        clock.now += PATIENCE - 0.01
        watched.show()
    assert terminal.getvalue() == ""


def test_a_line_says_what_is_done_and_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    watched, clock = watched_by(monkeypatch, terminal)
    with watched.doing("tuning"):
        watched.step("1 of 9")
        with watched.doing("compiling f"):
            watched.step("nest, stage 3 of 7")
            clock.now += 5
            watched.show()
        clock.now += 1
        watched.show()
    lines = terminal.getvalue().split("\r\x1b[K")
    first, then = "pantile: tuning: 1 of 9; compiling f: nest, stage 3 of 7, 5 s", "pantile: tuning: 1 of 9, 6 s"
    assert lines == ["", first, then, ""]


def test_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    watched, clock = watched_by(monkeypatch, terminal)
    with watched.doing("dp"):
        for _ in range(3):
            watched.count("groups")
        clock.now += 3
        watched.show()
    assert "dp: 3 groups, 3 s" in terminal.getvalue()


def test_an_error_finds_the_line_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    watched, clock = watched_by(monkeypatch, terminal)

    def interrupted() -> None:
        with watched.doing("compiling f"):
            clock.now += 3
            watched.show()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith("\r\x1b[K")
    watched.show()
    assert terminal.getvalue().count("compiling") == 1


def test_of_several_threads_the_first_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    watched, clock = watched_by(monkeypatch, terminal)
    begun, over = threading.Event(), threading.Event()

    def other() -> None:
        with watched.doing("second"):
            begun.set()
            over.wait()

    thread = threading.Thread(target=other)
    with watched.doing("first"):
        thread.start()
        begun.wait()
        clock.now += 3
        watched.show()
    watched.show()
    over.set()
    thread.join()
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", "pantile: first, 3 s", "", "pantile: second, 3 s", ""]


@pytest.mark.parametrize("why", ["no terminal", "not wanted", "closed"])
def test_silence(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    stream = io.StringIO() if why == "no terminal" else Terminal()
    watched, clock = watched_by(monkeypatch, stream)
    if why == "not wanted":
        monkeypatch.setenv(VARIABLE, "0")
    if why == "closed":
        stream.close()
    with watched.doing("compiling f"):
        clock.now += 3
        watched.show()
    assert why == "closed" or stream.getvalue() == ""


def test_compiling_on_a_pseudo_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a clock that runs fast, LLVM takes long: it is held until it has been said."""
    monkeypatch.setenv("PANTILE_CACHE_DIR", os.devnull)
    ours, theirs = pty.openpty()
    clock, said = Clock(), b""
    watched = Progress(clock)

    def step(text: str) -> None:
        nonlocal said
        watched.step(text)
        clock.now += 10
        while text.startswith("LLVM") and b"LLVM" not in said:
            said += os.read(ours, 1000)

    monkeypatch.setattr("pantile.scheduled_pipeline.doing", watched.doing)
    monkeypatch.setattr(progress, "step", step)
    y, x = pt.vars("y x")
    img, f = pt.Input("img", "float32", ndim=2), pt.Func("f")
    f[y, x] = img[y, x] * 12345.0
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        pt.Pipeline(f)(img=np.ones((4, 4), np.float32))
        monkeypatch.undo()
        while not said.endswith(b"\r\x1b[K"):
            said += os.read(ours, 1000)
    os.close(ours)
    assert b"\r\x1b[Kpantile: compiling f: LLVM, " in said


FORKING = """
import pty
from pantile.progress import Progress
times = iter(range(0, 10**9, 100))
watched = Progress(lambda: next(times))
ours, theirs = pty.openpty()
sys.stderr = os.fdopen(theirs, "w")

def work(number):
    with watched.doing("in the parent"):
        time.sleep(0.001)

def said():
    ours, theirs = pty.openpty()
    sys.stderr = os.fdopen(theirs, "w")
    with watched.doing("in the child"):
        watched.show()
        return b"pantile: in the child" in os.read(ours, 1000)

with Background(work):
    results = [child(said) for _ in range(20)]
sys.stderr = sys.__stderr__
print(*set(results))
"""


def test_a_forked_child_shows_its_own() -> None:
    assert run(FORKING).split() == ["right"]
