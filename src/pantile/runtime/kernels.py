"""All code of the process, by key: each piece is compiled (or read from the disk cache) and loaded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..forks import Lock
from . import cache

T = TypeVar("T")
# Runs a step and notes under its name how long it took.
Timed = Callable[[str, Callable[[], Any]], Any]

_kernels: WeakValueDictionary[str, Any] = WeakValueDictionary()
_locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # each as long as somebody holds it or waits
_lock = Lock()  # of the locks


def kernel(key: str, compile: Callable[[], bytes], load: Callable[[bytes], T], timed: Timed) -> T:
    """What was loaded, from memory, from disk or compiled. Threads that ask for the same one wait for the first."""
    found: T | None = _kernels.get(key)
    if found is not None:
        return found
    with _lock:
        mine = _locks.setdefault(key, Lock())
    with mine:
        found = _kernels.get(key)
        if found is None:
            artifact = timed("cache", lambda: cache.read(key)) or _compiled(key, compile)
            found = _kernels[key] = timed("load", lambda: load(artifact))
    return found


def _compiled(key: str, compile: Callable[[], bytes]) -> bytes:
    compiled = compile()
    cache.write(key, compiled)
    return compiled
