"""Settings of the Python interpreter that are other than usual while somebody works with expressions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """The first to enter changes a setting for all threads, the last to leave restores it."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object], changed: Callable[[T], T]) -> None:
        self._read, self._write, self._changed = read, write, changed
        self._lock = threading.Lock()
        self._inside = 0
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """The others are not there any more."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._write(self._usual)

    @contextmanager
    def inside(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._usual = self._read()
                self._write(self._changed(self._usual))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside = max(0, self._inside - 1)
                if self._inside == 0:
                    self._write(self._usual)
