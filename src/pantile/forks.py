"""Support for forks. A child process has the memory of all threads, but only the thread that forked continues in it.

The state of the other threads is frozen in the child, even in the middle of an operation. There are three remedies, in
this order:
- Data guarded by a `Lock` is always consistent, so the child simply opens the lock.
- LLVM has its own locks and caches, so a fork waits until no thread is inside LLVM. It also waits for late imports.
- If that takes longer than a fork may wait, the child runs existing code but refuses to compile more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from weakref import WeakSet

from llvmlite.binding import ffi

from .errors import RunError

PATIENCE = 30.0  # seconds that a fork waits for LLVM; only enormous kernels take that long


class Lock:
    """A reentrant lock that is open in a forked child, unless the thread that forked holds it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    def open_in_child(self) -> None:
        """Replace the lock if a thread that does not exist in the child holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: WeakSet[Lock] = WeakSet()


def check_llvm() -> None:
    """Raise an error if LLVM cannot be used; called before anything is compiled or loaded."""
    if _llvm_is_broken:
        raise RunError(
            "this process was forked while another thread was compiling, and cannot compile; fork before, wait for "
            "that thread, or start processes afresh, as multiprocessing.get_context('spawn') does"
        )


importing = threading.RLock()  # held during late imports, because Python's import locks stay locked in a child

# ---- llvmlite has a lock around every call into LLVM. While a thread holds it, no other thread is inside LLVM.

_llvm_is_broken = False
_forking = threading.local()
_team = threading.local()


class _LlvmLock:
    """llvmlite's lock. Its holder may let other threads work in LLVM, which then pass without locking. LLVM needs no
    lock if each thread has its own context."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        return getattr(_team, "is_member", False) or self.lock.acquire(blocking, timeout)

    def release(self) -> None:
        if not getattr(_team, "is_member", False):
            self.lock.release()


_llvm_lock = _LlvmLock(ffi.lib._lock._lock)
ffi.lib._lock._lock = _llvm_lock


@contextmanager
def llvm_for_a_team() -> Iterator[None]:
    """Reserve LLVM for this thread and the threads that work for it; a fork waits for all of them."""
    with ffi.lib._lock:
        yield


@contextmanager
def in_team() -> Iterator[None]:
    """Let this thread work in LLVM for the thread that holds the lock and waits for it."""
    _team.is_member = True
    try:
        yield
    finally:
        _team.is_member = False


def is_in_llvm() -> bool:
    """Whether this thread holds LLVM's lock."""
    return bool(_llvm_lock.lock._is_owned())


def _wait_for_others() -> None:
    importing.acquire()  # before LLVM's lock, since modules may call LLVM while they are imported
    _forking.holds_llvm = _llvm_lock.lock.acquire(timeout=PATIENCE)


def _let_go() -> None:
    if _forking.holds_llvm:
        _llvm_lock.lock.release()
    importing.release()


def _start_child() -> None:
    global _llvm_is_broken
    if not _forking.holds_llvm:
        _llvm_is_broken = True
        _llvm_lock.lock = threading.RLock()  # destructors of LLVM's objects still take the lock
    _let_go()
    for lock in list(_locks):
        lock.open_in_child()


os.register_at_fork(before=_wait_for_others, after_in_parent=_let_go, after_in_child=_start_child)
