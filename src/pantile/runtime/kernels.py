"""All code of this process, by key. Each piece is compiled, or read from the disk cache, and loaded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..errors import PantileError
from ..forks import Lock
from . import cache

T = TypeVar("T")
# Runs a step and records its time by name.
Timed = Callable[[str, Callable[[], Any]], Any]

_kernels: WeakValueDictionary[str, Any] = WeakValueDictionary()
_locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # each while a thread holds it or waits for it
_lock = Lock()  # protects `_locks`


def kernel(key: str, compile: Callable[[], bytes], load: Callable[[bytes], T], timed: Timed) -> T:
    """The loaded code for a key, from memory or disk or newly compiled. Threads with the same key wait for the
    first."""
    loaded: T | None = _kernels.get(key)
    if loaded is not None:
        return loaded
    with _lock:
        mine = _locks.setdefault(key, Lock())
    with mine:
        loaded = _kernels.get(key)
        if loaded is None:
            artifact = timed("cache", lambda: cache.read(key))
            loaded = None if artifact is None else timed("load", lambda: _load_cached(artifact, load))
            if loaded is None:
                compiled = _compile_and_cache(key, compile)
                loaded = timed("load", lambda: load(compiled))
            _kernels[key] = loaded
    return loaded


def _load_cached(kept: bytes, load: Callable[[bytes], T]) -> T | None:
    """Load code from the disk cache; None if the entry is invalid."""
    try:
        return load(kept)
    except PantileError:
        raise
    except Exception:  # any error in reading; our own errors would occur again when the code is compiled anew
        return None


def _compile_and_cache(key: str, compile: Callable[[], bytes]) -> bytes:
    compiled = compile()
    cache.write(key, compiled)
    return compiled
