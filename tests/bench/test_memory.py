"""The memory that compiling takes, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pantile.bench import extras
from pantile.bench.contender import Unavailable


def test_compiling_takes_some() -> None:
    assert 20 < extras.peak_megabytes("blur", "expert", "small") < 600


def test_a_failure_is_told() -> None:
    with pytest.raises(Unavailable, match="is not a schedule"):
        extras.peak_megabytes("blur", "best", "small")


def test_systems_without_status_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "STATUS", Path("/nowhere"))
    assert extras.peak_bytes() > 1e6


def test_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:       3 kB\n")
    monkeypatch.setattr(extras, "MACHINE", tmp_path / "meminfo")
    assert extras.free_bytes() == 3 * 1024
    monkeypatch.setattr(extras, "MACHINE", tmp_path / "none")
    assert extras.free_bytes() is None
