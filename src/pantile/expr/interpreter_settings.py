"""Settings of the Python interpreter that are other than usual while somebody works with expressions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Generic, TypeVar

from ..forks import Lock

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """The first to enter changes a setting for all threads, the last to leave restores it."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object], changed: Callable[[T], T]) -> None:
        self._read, self._write, self._changed = read, write, changed
        self._lock = Lock()
        self._inside: Counter[int] = Counter()  # how often each thread has entered
        self._usual: T | None = None  # known while somebody is inside
        os.register_at_fork(after_in_child=self._alone)

    @contextmanager
    def inside(self) -> Iterator[None]:
        me = get_ident()
        with self._lock:
            if not self._inside:
                self._usual = self._read()
                self._write(self._changed(self._usual))
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[me] -= 1
                self._left()

    def _alone(self) -> None:
        """In a forked child: threads that were inside will not leave."""
        me = get_ident()
        self._inside = Counter({me: self._inside[me]})
        self._left()

    def _left(self) -> None:
        """Restore the setting if nobody is inside."""
        self._inside = +self._inside
        if not self._inside and self._usual is not None:
            self._write(self._usual)
            self._usual = None
