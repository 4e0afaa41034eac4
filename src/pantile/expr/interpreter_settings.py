"""Settings of the Python interpreter that are changed temporarily, while some thread works with expressions.

Expressions are many small objects, nearly all of which live until code is generated, so that Python need not look for
garbage among the young ones all the time.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Generic, TypeVar

from ..forks import Lock

T = TypeVar("T")
_YOUNG = 5_000_000  # objects made before a collection: a chain of some thousand stages
_Thresholds = tuple[int, int, int]


class TemporarySetting(Generic[T]):
    """A temporary setting: the first thread to enter changes it for all threads, the last to leave restores it."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object], changed: Callable[[T], T]) -> None:
        self._current, self._write, self._changed = read, write, changed
        self._lock = Lock()
        self._inside: Counter[int] = Counter()  # how often each thread has entered
        self._usual: T | None = None  # known while some thread is inside
        os.register_at_fork(after_in_child=self._forget_other_threads)

    @contextmanager
    def inside(self) -> Iterator[None]:
        me = get_ident()
        with self._lock:
            if not self._inside:
                self._usual = self._current()
                self._write(self._changed(self._usual))
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[me] -= 1
                self._restore_if_empty()

    def _forget_other_threads(self) -> None:
        """In a forked child, forget the other threads that were inside, which will not leave."""
        me = get_ident()
        self._inside = Counter({me: self._inside[me]})
        self._restore_if_empty()

    def _restore_if_empty(self) -> None:
        """Restore the setting if no thread is inside."""
        self._inside = +self._inside
        if not self._inside and self._usual is not None:
            self._write(self._usual)
            self._usual = None


def _rare(usual: _Thresholds) -> _Thresholds:
    """The thresholds of rare collections; a first threshold of 0 means that collection is off, and stays."""
    return (max(usual[0], _YOUNG), *usual[1:]) if usual[0] else usual


# Around statements, or as a decorator: with rare_collections(): ...
rare_collections = TemporarySetting[_Thresholds](gc.get_threshold, lambda t: gc.set_threshold(*t), _rare).inside
