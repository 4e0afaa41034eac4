"""Progress of slow operations, as one line on the terminal that is erased at the end.

    pantile: compiling blend: nest, stage 31 of 45, 3 s

Nothing is shown during the first two seconds, or if standard error is not a terminal or PANTILE_PROGRESS is 0. Working
threads only record their state. A separate thread, which runs only while there is work and a terminal, checks the clock
and writes. If there are several tasks, the one that started first is shown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TextIO

from .forks import Lock

VARIABLE = "PANTILE_PROGRESS"
PATIENCE = 2.0  # seconds before the line is shown
PAUSE = 0.1  # seconds between updates
_WIPE = "\r\x1b[K"


class Task:
    """A task, its current step, and the task inside of that step."""

    def __init__(self, what: str, since: float) -> None:
        self.what, self.since = what, since
        self.step = ""
        self.counted = 0
        self.part: Task | None = None

    def __str__(self) -> str:
        part = self.part  # a local copy, since another thread may end the task
        return self.what + (f": {self.step}" if self.step else "") + (f"; {part}" if part is not None else "")


class Progress:
    """The tasks of a process, and the line that shows one of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._tasks: list[Task] = []
        self._watcher: threading.Thread | None = None
        self._shown: TextIO | None = None  # the terminal that shows the line
        self._current: ContextVar[Task | None] = ContextVar("task", default=None)
        os.register_at_fork(after_in_child=self._reset_in_child)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show a task while it runs, if it takes a long time."""
        if _terminal() is None:
            yield
            return
        task, outer = Task(what, self._clock()), self._current.get()
        token = self._current.set(task)
        self._begin(task, outer)
        try:
            yield
        finally:
            self._end(task, outer)
            self._current.reset(token)

    def step(self, text: str) -> None:
        """Record the current step of this thread's task, which may be done on behalf of another thread."""
        task = self._current.get()
        if task is not None:
            task.step = text

    def count(self, what: str) -> None:
        """Count one more item of a step whose total is unknown."""
        task = self._current.get()
        if task is not None:
            task.counted += 1
            task.step = f"{task.counted} {what}"

    def show(self) -> None:
        """Write the line if a task has run long enough."""
        with self._lock:
            terminal, now = _terminal(), self._clock()
            late = next((w for w in self._tasks if now - w.since >= PATIENCE), None)
            if terminal is not None and late is not None:
                line = f"pantile: {late}, {now - late.since:.0f} s"
                self._shown = terminal
                _write(terminal, _WIPE + line[: _columns(terminal) - 1])

    def _begin(self, task: Task, outer: Task | None) -> None:
        if outer is not None:
            outer.part = task
            return
        with self._lock:
            self._tasks.append(task)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="pantile progress", daemon=True)
                with suppress(RuntimeError):  # if there are too many threads, nothing is shown
                    self._watcher.start()

    def _end(self, task: Task, outer: Task | None) -> None:
        if outer is not None:
            outer.part = None
            return
        with self._lock:
            self._tasks = [w for w in self._tasks if w is not task]
            if self._shown is not None:
                _write(self._shown, _WIPE)
                self._shown = None

    def _watch(self) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                if not self._tasks:
                    self._watcher = None
                    return
                self.show()

    def _reset_in_child(self) -> None:
        """Forget the tasks and the writing thread of the parent in a forked child."""
        self._tasks, self._watcher, self._shown = [], None, None


def _terminal() -> TextIO | None:
    """Standard error, if it is a terminal and progress is enabled."""
    stream = sys.stderr
    if os.environ.get(VARIABLE, "1") == "0" or os.environ.get("TERM") == "dumb" or stream is None:
        return None
    try:
        return stream if stream.isatty() else None
    except (OSError, ValueError):
        return None  # it is closed


def _columns(terminal: TextIO) -> int:
    try:
        return os.get_terminal_size(terminal.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _write(terminal: TextIO, text: str) -> None:
    """Write to the terminal; a closed one is ignored."""
    with suppress(OSError, ValueError):
        terminal.write(text)
        terminal.flush()


_progress = Progress()
doing, step, count = _progress.doing, _progress.step, _progress.count
