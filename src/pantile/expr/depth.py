"""A large stack for recursion that is as deep as a pipeline is long.

Expressions are walked without recursion (see `visit`). Statements of the loop IR are nested by the thousand where
stages are, code generation recurses along them, and LLVM recurses through expressions: that work runs on a separate
thread, with a stack that is large enough whatever the caller's is.
"""

from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

from ..errors import here, on_behalf_of
from ..forks import Lock, is_in_llvm
from .interpreter_settings import TemporarySetting

P = ParamSpec("P")
T = TypeVar("T")

_STACK = 512 << 20  # bytes of address space; only what is used takes memory
_DEEPEST = 300_000  # calls, each of which takes up to a kilobyte and a half of the stack
_FRAMES = 16 << 20  # bytes of address space, half of them for frames
_PATIENCE = 0.1  # seconds between checks whether a thread has ended

_deep_calls = TemporarySetting(sys.getrecursionlimit, sys.setrecursionlimit, lambda usual: max(usual, _DEEPEST)).inside
_starting = Lock()
_this_thread = threading.local()


def on_deep_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run on a large stack. It ends with the caller when that is interrupted."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_this_thread, "is_deep", False) or is_in_llvm():
            return function(*args, **kwargs)
        return side_by_side([partial(function, *args, **kwargs)])[0]

    return call


def side_by_side(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls in parallel, each on a large stack, and return their results. They end with the caller when that is
    interrupted; if one raises an error, the others are waited for."""
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
        # Waited for instead of the thread: Python 3.11 takes a thread for ended if `join` is interrupted.
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
        """Wait until the call has ended, in short intervals: a thread that waits for others may be interrupted, too."""
        while self._thread.is_alive() and not self._running.acquire(timeout=_PATIENCE):
            pass

    def interrupt(self) -> None:
        """Interrupt the call between two bytecodes of Python."""
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
                self._error = None  # or the traceback would keep itself alive
        return self._result[0]


def _with_frames_in_one_piece(call: Callable[[], T]) -> T:
    return call()


# Python keeps the frames of its calls in chunks of 16 KiB. At the end of one, each call maps another chunk and each
# return unmaps it: where a loop happens to be that deep, it takes up to 1.4 times as long. A frame that is larger than
# a chunk gets one of the next power of two, and what that has left is for the calls inside.
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
            if current != _STACK:  # another thread has changed it meanwhile
                threading.stack_size(current)
    return True
