"""The directory where a user's machine keeps what was found out once: compiled code, and the rates of the machine.

It is PANTILE_CACHE_DIR, or pantile in XDG_CACHE_HOME (~/.cache). What cannot be a directory, such as /dev/null, is
none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import tempfile
import warnings
from pathlib import Path

DIRECTORY_VARIABLE = "PANTILE_CACHE_DIR"
UNFINISHED = ".part"  # suffix of files that are being written
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def directory() -> Path | None:
    """The directory; None if there is none that only this user can write."""
    return _opened(os.environ.get(DIRECTORY_VARIABLE) or _default())


def is_ours(status: os.stat_result) -> bool:
    """Whether nobody else can have written it."""
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


def write(path: Path, content: bytes) -> None:
    """Write a file of the directory, for this user only. Others see the old content or the new, never a part."""
    handle, unfinished = tempfile.mkstemp(UNFINISHED, "", path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _default() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "pantile")


@functools.cache
def _opened(path: str) -> Path | None:
    """The directory, made if need be; None if it cannot be used. Warns once if it is unsafe to use."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError:
        return None
    if not is_ours(status):
        warnings.warn(
            f"compiled code is not kept on disk: {path} belongs to another user or others may write to it; "
            f"chmod 700 it, or choose another directory with {DIRECTORY_VARIABLE}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return Path(path)
