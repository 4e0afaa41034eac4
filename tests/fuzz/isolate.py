"""Runs checks in a process of their own, so that a crash or an endless loop of compiled code becomes an ordinary
failure, which Hypothesis can shrink and a campaign can count."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from pantile.schedule_cache import NotFound

from ..long import LONG

_SECONDS = 60
_PATIENCE = 4  # the factor by which elapsed time may exceed CPU time, for processes that wait or compete with others
_is_shared = False  # whether this process is the child of a whole test


def isolated(check: Callable[[], None]) -> None:
    """Run `check` in a child process; raise AssertionError if it fails in any way."""
    if _is_shared:
        limit_time(_SECONDS)
        check()
        return
    child, reader = forked(lambda pipe: pickle.dump(_failure(check), pipe), _SECONDS)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, death = ended(child)
    if death is not None:
        raise AssertionError(f"the compiled pipeline {death}")
    failure = pickle.loads(data)
    if failure is not None:
        raise AssertionError(failure)


def isolated_together(test: Callable[[], None]) -> None:
    """Run a test of many cases, each of them `isolated`, in one child, since forking a large process takes as long as
    compiling a small case. If the test fails, each case runs in a child of its own, so that Hypothesis can find the
    failing one."""
    if LONG:
        return test()
    try:
        isolated(lambda: _shared(test))
    except AssertionError as failure:
        test()
        raise AssertionError(f"fails only where cases share a process: {failure}") from None


def _shared(test: Callable[[], None]) -> None:
    global _is_shared
    _is_shared = True
    test()


def forked(work: Callable[[BinaryIO], None], seconds: int) -> tuple[int, int]:
    """Fork a child that does `work`, which writes to a pipe, within this number of seconds of CPU time. Return its id
    and the read end of the pipe."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forks with threads: the child uses none of them
        child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        for limit in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(limit, signal.SIG_DFL)  # the process that started the tests may have set handlers
        limit_time(seconds)
        warnings.simplefilter("error", NotFound)  # a failing search must not fall back to the plain schedule here
        np.seterr(divide="raise", over="raise", invalid="raise")  # users would see these as NumPy's warnings
        with os.fdopen(writer, "wb") as pipe:
            work(pipe)
    finally:
        os._exit(0)  # without the cleanup, which belongs to the parent


def limit_time(seconds: int) -> None:
    """Make this process end after this number of seconds of CPU time, counted from now."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_PATIENCE * seconds)


def ended(child: int) -> tuple[str, str | None]:
    """Wait for a child. Return whether its end was normal, a crash or a timeout, and a message about it."""
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return "normal", None
    number = os.WTERMSIG(status)
    if number in (signal.SIGALRM, signal.SIGPROF):
        return "timeout", "ran for too long"
    return "crash", f"died of {signal.Signals(number).name}"


def _failure(check: Callable[[], None]) -> str | None:
    try:
        check()
    except BaseException:
        return traceback.format_exc()
    return None
