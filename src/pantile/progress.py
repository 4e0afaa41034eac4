"""Whatever takes long says so on a terminal: one line of what is being done and how far it is, wiped at the end.

    pantile: compiling blend: nest, stage 31 of 45, 3 s

Nothing is said for two seconds, nor where standard error is no terminal, nor if PANTILE_PROGRESS is 0. Those who work
only note what they are at; a thread that lives as long as somebody works, and only if there is a terminal, looks at the
clock and writes. Of several works at once the one that began first is shown.
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
PATIENCE = 2.0  # seconds until something is said
PAUSE = 0.1  # seconds between two looks at the clock
_WIPE = "\r\x1b[K"


class Task:
    """Something that is done, the step that it is at, and what is done in that step, which may have steps in turn."""

    def __init__(self, what: str, since: float) -> None:
        self.what, self.since = what, since
        self.step = ""
        self.counted = 0
        self.part: Task | None = None

    def __str__(self) -> str:
        part = self.part  # another thread may end it meanwhile
        return self.what + (f": {self.step}" if self.step else "") + (f"; {part}" if part is not None else "")


class Progress:
    """The works of a process, and the line that shows one of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._works: list[Task] = []
        self._watcher: threading.Thread | None = None
        self._shown: TextIO | None = None  # where there is a line
        self._current: ContextVar[Task | None] = ContextVar("work", default=None)
        os.register_at_fork(after_in_child=self._alone)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Shows what is done inside, if that takes long."""
        if _terminal() is None:
            yield
            return
        work, outer = Task(what, self._clock()), self._current.get()
        token = self._current.set(work)
        self._begin(work, outer)
        try:
            yield
        finally:
            self._end(work, outer)
            self._current.reset(token)

    def step(self, text: str) -> None:
        """Notes how far the work of this thread is, which may be done on behalf of another."""
        work = self._current.get()
        if work is not None:
            work.step = text

    def count(self, what: str) -> None:
        """Notes that one more of something is done, of which nobody knows how many there will be."""
        work = self._current.get()
        if work is not None:
            work.counted += 1
            work.step = f"{work.counted} {what}"

    def show(self) -> None:
        """Writes the line, if somebody has worked long enough."""
        with self._lock:
            terminal, now = _terminal(), self._clock()
            late = next((w for w in self._works if now - w.since >= PATIENCE), None)
            if terminal is not None and late is not None:
                line = f"pantile: {late}, {now - late.since:.0f} s"
                self._shown = terminal
                _write(terminal, _WIPE + line[: _columns(terminal) - 1])

    def _begin(self, work: Task, outer: Task | None) -> None:
        if outer is not None:
            outer.part = work
            return
        with self._lock:
            self._works.append(work)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="pantile progress", daemon=True)
                with suppress(RuntimeError):  # there may be too many threads; then nothing is said
                    self._watcher.start()

    def _end(self, work: Task, outer: Task | None) -> None:
        if outer is not None:
            outer.part = None
            return
        with self._lock:
            self._works = [w for w in self._works if w is not work]
            if self._shown is not None:
                _write(self._shown, _WIPE)
                self._shown = None

    def _watch(self) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                if not self._works:
                    self._watcher = None
                    return
                self.show()

    def _alone(self) -> None:
        """Forget, in a forked child, who worked and the thread that writes: neither is there."""
        self._works, self._watcher, self._shown = [], None, None


def _terminal() -> TextIO | None:
    """Standard error, if somebody sees it and wants to."""
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
    """A terminal that is gone is no reason to fail."""
    with suppress(OSError, ValueError):
        terminal.write(text)
        terminal.flush()


_progress = Progress()
doing, step, count = _progress.doing, _progress.step, _progress.count
