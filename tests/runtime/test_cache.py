"""The compile cache on disk: what is written is read again, and nothing that is wrong with it is an error."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from pantile.cache_directory import DIRECTORY_VARIABLE
from pantile.runtime import cache
from pantile.runtime.cache import Directory

NAME = cache.key("a name")
SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that everything uses."""
    path = tmp_path / "cache"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(path))
    return path


def file(directory: Path) -> Path:
    (found,) = directory.iterdir()
    return found


def test_what_is_written_is_read(directory: Path) -> None:
    assert cache.read(NAME) is None
    cache.write(NAME, b"content")
    assert cache.read(NAME) == b"content"
    assert cache.info() == cache.Info(directory, 1, file(directory).stat().st_size)


def test_only_this_user_can_read_it(directory: Path) -> None:
    cache.write(NAME, b"content")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert file(directory).stat().st_mode & 0o777 == 0o600


def test_fetch_makes_once(directory: Path) -> None:
    assert cache.fetch(NAME, lambda: b"made") == b"made"
    assert cache.fetch(NAME, lambda: b"made again") == b"made"


def test_keys_tell_parts_apart() -> None:
    keys = [cache.key(*parts) for parts in ((), ("a",), ("b",), ("a", "b"), ("ab",), ("a", ""))]
    assert len(set(keys)) == len(keys) and cache.key("a") == keys[1]


DAMAGE = {
    "empty": b"",
    "short": b"pantile",
    "no content": b"pantile\x01" + bytes(32),
    "somebody else's": b"\x7fELF" + bytes(100),
}


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE.keys())
def test_another_file_in_its_place(directory: Path, data: bytes) -> None:
    cache.write(NAME, b"content")
    file(directory).write_bytes(data)
    assert cache.read(NAME) is None
    assert cache.fetch(NAME, lambda: b"made again") == b"made again" == cache.read(NAME)


def test_every_damaged_byte_and_every_truncation_is_noticed(directory: Path) -> None:
    cache.write(NAME, b"content")
    path = file(directory)
    whole = path.read_bytes()
    for k in range(len(whole)):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
        assert cache.read(NAME) is None
        path.write_bytes(whole[:k])
        assert cache.read(NAME) is None
    path.write_bytes(whole + b"x")
    assert cache.read(NAME) is None


def test_an_entry_under_another_name_is_refused(directory: Path) -> None:
    cache.write(NAME, b"content")
    other = cache.key("another name")
    file(directory).rename(directory / f"{other}.code")
    assert cache.read(other) is None


def test_a_directory_in_its_place(directory: Path) -> None:
    cache.write(NAME, b"content")
    path = file(directory)
    path.unlink()
    path.mkdir()
    assert cache.fetch(NAME, lambda: b"made") == b"made"
    assert [p.name for p in directory.iterdir()] == [path.name]


def test_a_link_in_its_place(directory: Path, tmp_path: Path) -> None:
    cache.write(NAME, b"content")
    path = file(directory)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.read(NAME) is None


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def socket_file(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(here)


def loop(path: Path) -> None:
    path.symlink_to(path)


def huge(path: Path) -> None:
    path.touch(0o600)
    os.truncate(path, 1 << 40)


def unreadable(path: Path) -> None:
    path.touch(0o000)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, socket_file, loop, huge, unreadable, device])
def test_no_file_in_its_place(directory: Path, make: Callable[[Path], None]) -> None:
    """Nobody waits for it: a pipe without a writer would be waited for until there is one."""
    cache.write(NAME, b"content")
    path = file(directory)
    path.unlink()
    make(path)
    assert cache.read(NAME) is None
    assert cache.fetch(NAME, lambda: b"made again") == b"made again" == cache.read(NAME)
    path.unlink()
    make(path)
    cache.info()
    assert cache.clear() == 1 and not list(directory.iterdir())


def test_a_file_that_others_may_write_is_refused(directory: Path) -> None:
    cache.write(NAME, b"content")
    file(directory).chmod(0o666)
    assert cache.read(NAME) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_is_refused_with_one_warning(directory: Path, mode: int) -> None:
    directory.mkdir()
    directory.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"not kept on disk: .*/cache belongs to another user or others may write"):
        assert cache.fetch(NAME, lambda: b"made") == b"made"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.write(NAME, b"content")
    assert not list(directory.iterdir()) and cache.info() == cache.Info(None, 0, 0)


def test_a_directory_of_another_user_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert cache.read(NAME) is None


@pytest.mark.parametrize("path", ["/dev/null", "/proc/nowhere/cache"])
def test_what_cannot_be_a_directory_turns_it_off(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, path)
    assert cache.fetch(NAME, lambda: b"made") == b"made"
    assert cache.read(NAME) is None and cache.clear() == 0 and cache.info().directory is None


def test_a_disk_that_is_full_leaves_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.write(NAME, b"content")
    assert not list(directory.iterdir())


def test_an_interrupted_write_leaves_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.write(NAME, b"content")
    assert not list(directory.iterdir())


def test_what_was_used_longest_ago_is_removed(tmp_path: Path) -> None:
    small = Directory(tmp_path, limit=3 * 1100)
    names = [cache.key(str(k)) for k in range(4)]
    for k, name in enumerate(names[:3]):
        small.write(name, bytes(1000))
        os.utime(tmp_path / f"{name}.code", (k, k))
    assert small.read(names[0]) is not None  # used now
    small.write(names[3], bytes(1000))
    assert [small.read(name) is not None for name in names] == [True, False, True, True]


def test_what_was_never_finished_is_removed_after_a_while(tmp_path: Path) -> None:
    old, new = tmp_path / "old.part", tmp_path / "new.part"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    Directory(tmp_path).write(NAME, b"content")
    assert not old.exists() and new.exists()


def test_clear(directory: Path) -> None:
    for k in range(3):
        cache.write(cache.key(str(k)), b"content")
    (directory / "other.part").touch()
    (directory / "not ours.txt").touch()
    assert cache.clear() == 3
    assert [p.name for p in directory.iterdir()] == ["not ours.txt"]


PROGRAM = """
import numpy as np, pantile as pt
x = pt.vars("x")[0]
img, f = pt.Input("img", "int32", 1), pt.Func("f")
f[x] = img[x] + 1
p = pt.Pipeline(f)
assert (p(img=np.arange(99, dtype=np.int32)) == np.arange(99) + 1).all()
print(*sorted(p.timings))
"""


def run(directory: Path) -> set[str]:
    """The steps that a new process takes."""
    environment = {**os.environ, DIRECTORY_VARIABLE: str(directory), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_another_process_neither_lowers_nor_compiles(directory: Path) -> None:
    assert {"inline", "llvm"} <= run(directory)
    assert run(directory) == {"key", "cache", "load"}
    for path in directory.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert {"inline", "llvm"} <= run(directory)
    assert run(directory) == {"key", "cache", "load"}
