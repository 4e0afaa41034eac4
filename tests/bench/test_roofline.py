"""Least times from counted work and measured rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pantile.apps import APPS
from pantile.bench import roofline
from pantile.bench.roofline import Bound, bound, host_ceilings
from pantile.machine import ceilings
from pantile.machine.ceilings import Ceilings
from tests.bench.fakes import TWICE

RATES = Ceilings(copy_bytes=1e9, fma_operations=4e9, int_operations=1e9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; measuring takes no time and is written down."""
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(roofline, "busy_cores", lambda: 0.0)
    return tmp_path / "cache"


def test_the_longer_of_the_two() -> None:
    assert (Bound(2.0, 1.0).ms, Bound(2.0, 1.0).limit) == (2.0, "memory")
    assert (Bound(1.0, 3.0).ms, Bound(1.0, 3.0).limit) == (3.0, "arithmetic")


def test_bytes_and_operations_at_full_rate() -> None:
    found = bound(TWICE.build(), {"img": (1000, 1000)}, RATES)
    assert (found.memory_ms, found.arithmetic_ms) == (pytest.approx(8.0), pytest.approx(1.0))
    blur = bound(APPS["blur"].build(), {"img": (102, 202)}, RATES)
    assert blur.arithmetic_ms == pytest.approx(1e-6 * 3 * 200 * 202 / 2), "twice as many 16-bit operations at once"


def test_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(roofline, "measure", lambda *how: asked.append(how) or RATES)
    for _ in range(2):
        assert host_ceilings(2) == RATES
    assert host_ceilings(1) == RATES
    assert [threads for threads, _ in asked] == [2, 1]


def test_a_busy_machine_is_measured_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "measure", lambda *_: RATES)
    monkeypatch.setattr(roofline, "busy_cores", lambda: 1.0)
    host_ceilings(2)
    assert not (folder / roofline.FILE_NAME).exists()


@pytest.mark.parametrize("content", ["", "nonsense", "[]", json.dumps({"a": {"b": 1}})])
def test_a_file_that_is_not_ours_is_measured_anew(content: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "measure", lambda *_: RATES)
    host_ceilings(1)
    (folder / roofline.FILE_NAME).write_text(content)
    assert host_ceilings(1) == RATES


def test_the_measurement_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "STEPS", 100)
    monkeypatch.setattr(ceilings, "COPIED_BYTES", 1 << 16)
    monkeypatch.setattr(ceilings, "REPEATS", 1)
    found = ceilings.measure(threads=2, vector_bits=roofline.host_vector_bits())
    assert min(found.copy_bytes, found.fma_operations, found.int_operations) > 0
