"""The memory that compiling takes, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pantile.bench import memory
from pantile.bench.contender import Unavailable


def test_compiling_takes_some() -> None:
    assert 20 < memory.peak_megabytes("blur", "expert", "small") < 600


def test_a_failure_is_told() -> None:
    with pytest.raises(Unavailable, match="KeyError"):
        memory.peak_megabytes("blur", "best", "small")


def test_systems_without_status_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STATUS", Path("/nowhere"))
    assert memory.peak_bytes() > 1e6
