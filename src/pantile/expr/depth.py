"""A large stack for recursion that is as deep as a pipeline is long.

Expressions are walked without recursion (see `visit`). However, if a pipeline has thousands of stages, loop IR has
thousands of nested statements along which code generation recurses, and LLVM recurses through expressions. That work
runs on a separate thread with a large stack, independent of the caller's stack.

In the meantime, some settings of the interpreter are changed, such as the recursion limit. Garbage collection is made
rare, since expressions are many small objects and nearly all of them live until code is generated.
"""

from __future__ import annotations

import contextvars
import ctypes
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from threading import get_ident
from typing import Generic, ParamSpec, TypeVar

from ..errors import here, on_behalf_of
from ..forks import Lock, is_in_llvm

T = TypeVar("T")
_YOUNG = 5_000_000  # new objects before a collection: enough for a chain of some thousand stages
_Thresholds = tuple[int, int, int]


class TemporarySetting(Generic[T]):
    """A temporary setting. The first thread to enter changes it for all threads, and the last to leave restores it."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object], changed: Callable[[T], T]) -> None:
        self._current, self._write, self._changed = read, write, changed
        self._lock = Lock()
        self._inside: Counter[int] = Counter()  # how many times each thread has entered
        self._usual: T | None = None  # the value to restore, while some thread is inside
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
        """In a forked child, forget the other threads that were inside, since they will never leave."""
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
    """The thresholds for rare collections. If the first threshold is 0, collection is off and stays off."""
    return (max(usual[0], _YOUNG), *usual[1:]) if usual[0] else usual


# Around statements, or as a decorator: with rare_collections(): ...
rare_collections = TemporarySetting[_Thresholds](gc.get_threshold, lambda t: gc.set_threshold(*t), _rare).inside


P = ParamSpec("P")

_STACK = 512 << 20  # bytes of address space; only used pages take memory
_DEEPEST = 300_000  # calls, each of which takes up to 1.5 KB of the stack
_FRAMES = 16 << 20  # bytes of address space, half of them for frames
_PATIENCE = 0.1  # seconds between checks whether a thread has ended

_deep_calls = TemporarySetting(sys.getrecursionlimit, sys.setrecursionlimit, lambda usual: max(usual, _DEEPEST)).inside
_starting = Lock()
_this_thread = threading.local()


def on_deep_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run on a large stack. If the caller is interrupted, so is the function."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_this_thread, "is_deep", False) or is_in_llvm():
            return function(*args, **kwargs)
        return side_by_side([partial(function, *args, **kwargs)])[0]

    return call


def side_by_side(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls in parallel, each on a large stack, and return their results. If the caller is interrupted, so are
    the calls. If one of them raises an error, the others are still waited for."""
    works = [_StackCall(call) for call in calls]
    try:
        for work in works:
            work.start()
        for work in works:
            work.wait()
    except BaseException:
        for work in works:
            work.interrupt()
        for work in works:
            work.wait()
        raise
    return [work.result() for work in works]


class _StackCall(Generic[T]):
    """A call on behalf of a waiting thread, in its context and with its line for messages."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call, self._context, self._where = call, contextvars.copy_context(), here()
        self._error: BaseException | None = None
        self._result: list[T] = []
        self._thread = threading.Thread(target=self._run, name="pantile", daemon=True)
        # `wait` waits for this lock, not for the thread: Python 3.11 considers a thread ended if `join` is interrupted.
        self._running = threading.Lock()

    def start(self) -> None:
        """Run the call on a large stack, or on this thread if there is no memory for one."""
        self._running.acquire()
        if not _start(self._thread):
            self._result.append(self._call())
            self._running.release()

    def _run(self) -> None:
        _this_thread.is_deep = True
        try:
            with on_behalf_of(self._where), _deep_calls():
                self._result.append(self._context.run(_with_frames_in_one_piece, self._call))
        except BaseException as error:
            self._error = error
        finally:
            self._running.release()

    def wait(self) -> None:
        """Wait until the call has ended, in short intervals, so that a thread that waits for others can be
        interrupted."""
        while self._thread.is_alive() and not self._running.acquire(timeout=_PATIENCE):
            pass

    def interrupt(self) -> None:
        """Interrupt the call between two Python bytecodes."""
        if self._thread.ident is not None and self._thread.is_alive():
            thread = ctypes.c_ulong(self._thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))

    def result(self) -> T:
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # otherwise, the traceback would keep itself alive
        return self._result[0]


def _with_frames_in_one_piece(call: Callable[[], T]) -> T:
    return call()


# Python keeps the frames of calls in chunks of 16 KiB. At the end of a chunk, each call maps another chunk and each
# return unmaps it, so a loop that happens to run at that depth takes up to 1.4 times as long. A frame that is larger
# than a chunk gets a chunk of the next power of two, whose remaining space serves the calls inside it.
_with_frames_in_one_piece.__code__ = _with_frames_in_one_piece.__code__.replace(co_stacksize=_FRAMES // 2 // 8)


def _start(thread: threading.Thread) -> bool:
    """Start a thread with a large stack, and return whether there was memory for one."""
    with _starting:
        usual = threading.stack_size(_STACK)
        try:
            thread.start()
        except RuntimeError:
            return False
        finally:
            current = threading.stack_size(usual)
            if current != _STACK:  # another thread has changed it in the meantime
                threading.stack_size(current)
    return True
