"""The memory that compiling takes, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pantile.bench import memory
from pantile.bench.contender import Unavailable


def test_compiling_takes_some() -> None:
    assert 20 < memory.peak_megabytes("blur", "expert", "small") < 600


def test_a_failure_is_told() -> None:
    with pytest.raises(Unavailable, match="is not a schedule"):
        memory.peak_megabytes("blur", "best", "small")


def test_systems_without_status_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STATUS", Path("/nowhere"))
    assert memory.peak_bytes() > 1e6


def test_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:       3 kB\n")
    monkeypatch.setattr(memory, "MACHINE", tmp_path / "meminfo")
    assert memory.free_bytes() == 3 * 1024
    monkeypatch.setattr(memory, "MACHINE", tmp_path / "none")
    assert memory.free_bytes() is None
