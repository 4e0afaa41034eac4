"""Running things in a process of their own: a crash or an endless loop of compiled code becomes an ordinary failure,
which Hypothesis can shrink and a campaign can count."""

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
_PATIENCE = 4  # times as long by the clock, for what waits and what runs beside others
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
    """Run a test of many cases, each of them `isolated`, in one child: a large process takes as long to fork as a small
    case takes to compile. If that fails, each case has a child of its own, and Hypothesis can tell which one it is."""
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
    """A child that does `work` and writes to a pipe, for so many seconds of the processor at most: its id, and where to
    read."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none of them
        child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        for limit in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(limit, signal.SIG_DFL)  # whatever whoever started the tests makes of them
        limit_time(seconds)
        warnings.simplefilter("error", NotFound)  # a search that fails is no reason to compute plainly here
        np.seterr(divide="raise", over="raise", invalid="raise")  # users would see NumPy's warnings
        with os.fdopen(writer, "wb") as pipe:
            work(pipe)
    finally:
        os._exit(0)  # without the clean-up that belongs to the parent


def limit_time(seconds: int) -> None:
    """Have this process end after so many seconds of the processor from now on."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_PATIENCE * seconds)


def ended(child: int) -> tuple[str, str | None]:
    """Wait for a child: whether it came to a normal end, a crash or a timeout, and what to say of it."""
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
