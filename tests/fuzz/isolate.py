"""Running a check in a process of its own: a crash or an endless loop of compiled code becomes an ordinary failure,
which Hypothesis can shrink."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable

_SECONDS = 60


def isolated(check: Callable[[], None]) -> None:
    """Run `check` in a child process; raise AssertionError if it fails in any way."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none of them
        child = os.fork()
    if child == 0:
        os.close(reader)
        _run(check, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = f"ran longer than {_SECONDS} s" if number == signal.SIGALRM else f"died of {signal.Signals(number).name}"
        raise AssertionError(f"the compiled pipeline {what}")
    failure = pickle.loads(data)
    if failure is not None:
        raise AssertionError(failure)


def _run(check: Callable[[], None], writer: int) -> None:
    """In the child: report and leave without the clean-up that belongs to the parent."""
    signal.alarm(_SECONDS)
    failure = None
    try:
        check()
    except BaseException:
        failure = traceback.format_exc()
    with os.fdopen(writer, "wb") as pipe:
        pickle.dump(failure, pipe)
    os._exit(0)
