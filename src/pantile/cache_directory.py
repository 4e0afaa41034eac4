"""The user's cache directory: compiled code, and the measured rates of the machine.

It is PANTILE_CACHE_DIR, or pantile in XDG_CACHE_HOME (~/.cache). A path that cannot be a directory, such as /dev/null,
disables the cache.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import stat
import warnings
from pathlib import Path

DIRECTORY_VARIABLE = "PANTILE_CACHE_DIR"
UNFINISHED = ".part"  # suffix of files that are being written
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Opening never blocks, even if there is a pipe instead of a file, and follows no link.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def directory() -> Path | None:
    """The cache directory; None if there is none that only this user can write to."""
    return _opened(os.environ.get(DIRECTORY_VARIABLE) or _default())


def is_ours(status: os.stat_result) -> bool:
    """Whether only this user can have written to a file or directory, given its status."""
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


def read(path: Path, limit: int, used: bool = False) -> bytes | None:
    """The content of a file of at most `limit` bytes if it is ours, else None. `used` updates its time of use."""
    try:
        with open(os.open(path, _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not (is_ours(status) and stat.S_ISREG(status.st_mode) and status.st_size <= limit):
                return None
            content = file.read(limit + 1)
            if used:
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())
            return content
    except OSError:
        return None


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by this user only."""
    unfinished = path.with_name(secrets.token_hex(16) + UNFINISHED)
    handle = os.open(unfinished, _WRITE, 0o600)
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
    """The directory, created if necessary; None if it cannot be used. Warns once if it is unsafe to use."""
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
