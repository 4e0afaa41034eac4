"""All kernels of the process, by key: each is compiled (or read from the disk cache) and loaded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from ..forks import Lock
from . import cache
from .kernel import Kernel, ObjectCode

# Runs a step and notes under its name how long it took.
Timed = Callable[[str, Callable[[], Any]], Any]

_kernels: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # each as long as somebody holds it or waits
_lock = Lock()  # of the locks


def kernel(key: str, compile: Callable[[], ObjectCode], timed: Timed) -> Kernel:
    """The kernel, from memory, from disk or compiled. Threads that ask for the same one wait for the first."""
    found = _kernels.get(key)
    if found is not None:
        return found
    with _lock:
        mine = _locks.setdefault(key, Lock())
    with mine:
        found = _kernels.get(key)
        if found is None:
            compiled = timed("cache", lambda: _on_disk(key)) or _compiled(key, compile)
            found = _kernels[key] = timed("load", lambda: Kernel(compiled))
    return found


def _on_disk(key: str) -> ObjectCode | None:
    data = cache.read(key)
    return None if data is None else ObjectCode.from_bytes(data)


def _compiled(key: str, compile: Callable[[], ObjectCode]) -> ObjectCode:
    compiled = compile()
    cache.write(key, compiled.to_bytes())
    return compiled
