"""The compile cache on disk: object code by digest, in a directory that only this user can write to.

The content is executed as code, so a directory or file that another user could have written is not used. A file is
written under another name and then renamed. It starts with a digest of its content, and is replaced if it is invalid.
Without a usable directory (see `cache_directory`), everything works, but more slowly.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from .. import cache_directory
from ..dataclass import dataclass

LIMIT = 512 << 20  # bytes; beyond that, least recently used entries are removed
_MAGIC = b"pantile\x01"
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".code"
_ABANDONED = 3600.0  # seconds after which an unfinished file is abandoned
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Info:
    """The contents of the cache; `directory` is None if there is no usable one."""

    directory: Path | None
    entries: int
    bytes: int


def key(*parts: str) -> str:
    """The name of an entry: a digest of its dependencies and of the versions of Pantile and LLVM."""
    text = "\0".join([_BUILD, llvmlite.__version__, str(llvm.llvm_version_info), *parts])
    return hashlib.sha256(text.encode()).hexdigest()


def fetch(name: str, make: Callable[[], bytes]) -> bytes:
    """The entry with this name, created by `make` if it is missing."""
    content = read(name)
    if content is None:
        content = make()
        write(name, content)
    return content


def read(name: str) -> bytes | None:
    """The entry, or None if there is no valid one."""
    directory = _directory()
    return None if directory is None else directory.read(name)


def write(name: str, content: bytes) -> None:
    """Store the entry if possible."""
    directory = _directory()
    if directory is not None:
        directory.write(name, content)


def clear() -> int:
    """Remove all entries. Return their number."""
    directory = _directory()
    return 0 if directory is None else directory.clear()


def info() -> Info:
    """The directory of the cache and its contents."""
    directory = _directory()
    if directory is None:
        return Info(None, 0, 0)
    sizes = [size for _, size, _ in directory.entries()]
    return Info(directory.path, len(sizes), sum(sizes))


def _build() -> str:
    """The version and installation of Pantile: any edit or upgrade of its sources changes it."""
    stamps = []
    for place, _, files in os.walk(_PACKAGE):
        for name in files:
            if name.endswith(".py"):
                status = os.stat(os.path.join(place, name))
                stamps.append((place, name, status.st_size, status.st_mtime_ns))
    return repr(sorted(stamps))


_BUILD = _build()  # at import, because sources may be edited while this process runs


def _directory() -> Directory | None:
    path = cache_directory.directory()
    return None if path is None else _opened(path)


@functools.cache
def _opened(path: Path) -> Directory:
    return Directory(path)


class Directory:
    """The files of a cache. No method raises errors of the file system."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = path
        self.limit = limit
        self._bytes: int | None = None  # bytes, as last measured; None before

    def entries(self) -> list[tuple[float, int, str]]:
        """The time of last use, the size and the path of each entry, in order of last use."""
        return sorted(self._files(_SUFFIX))

    def _files(self, suffix: str) -> Iterator[tuple[float, int, str]]:
        with contextlib.suppress(OSError), os.scandir(self.path) as files:
            for file in files:
                if file.name.endswith(suffix):
                    with contextlib.suppress(OSError):  # another process has removed it
                        status = file.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, file.path

    def read(self, name: str) -> bytes | None:
        data = cache_directory.read(self._file(name), self.limit, used=True)
        return None if data is None else _content(name, data)

    def write(self, name: str, content: bytes) -> None:
        with contextlib.suppress(OSError):
            cache_directory.write(self._file(name), _MAGIC + _digest(name, content) + content)
            self._measure(len(content))

    def clear(self) -> int:
        """Remove everything. Return the number of entries."""
        for _, _, path in list(self._files(cache_directory.UNFINISHED)):
            _remove(path)
        return sum(_remove(path) for _, _, path in self.entries())

    def _file(self, name: str) -> Path:
        return self.path / (name + _SUFFIX)

    def _measure(self, size: int) -> None:
        """Account for a write. The whole directory is measured on the first write and when it may be too large."""
        if self._bytes is not None and self._bytes + size <= self.limit:
            self._bytes += size
        else:
            self._bytes = self._trim()

    def _trim(self) -> int:
        """Remove unfinished files and least recently used entries; return the size of the rest."""
        for used, _, path in list(self._files(cache_directory.UNFINISHED)):
            if used < time.time() - _ABANDONED:
                _remove(path)
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total > self.limit and _remove(path):
                total -= size
        return total


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _digest(name: str, content: bytes) -> bytes:
    """The digest of an entry's content and name, so that a renamed file counts as damaged."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _content(name: str, data: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST
    content = data[start:]
    return content if data[:start] == _MAGIC + _digest(name, content) else None
