"""Reading the machine's description from the system's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pantile import machine
from pantile.bench import quiet
from pantile.bench.machine import describe


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up system whose files are still to be written."""
    monkeypatch.setattr(machine, "CPU_FOLDER", tmp_path)
    monkeypatch.setattr(machine, "CPU_INFO", tmp_path / "cpuinfo")
    return tmp_path


def test_full_description(system: Path) -> None:
    files = {
        "cpuinfo": "processor : 0\nmodel name : Made Up 3000\n",
        "cpufreq/scaling_governor": "performance\n",
        "cpufreq/cpuinfo_max_freq": "2500000\n",
        "cache/index0/level": "1\n",
        "cache/index0/type": "Data\n",
        "cache/index0/size": "64K\n",
        "cache/index0/coherency_line_size": "64\n",
        "cache/index0/shared_cpu_list": "0-1\n",
    }
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text)
    found = machine.detect()
    assert (found.cpu, found.governor, found.max_mhz) == ("Made Up 3000", "performance", 2500.0)
    assert found.caches == (machine.Cache(1, "Data", 65536, 64, "0-1"),)


def test_a_system_that_tells_nothing(system: Path) -> None:
    found = machine.detect()
    assert found.cpu and found.cores >= 1
    assert (found.caches, found.governor, found.max_mhz) == ((), None, None)


def test_description_goes_to_json() -> None:
    described = json.loads(json.dumps(describe()))
    assert {"cpu", "architecture", "cores", "caches", "os", "python", "versions", "governor"} <= described.keys()
    assert described["versions"]["llvmlite"]


def test_busy_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores for 100 ticks each, of which 150 were idle and the rest work, interrupts or another guest's."""
    statistics = tmp_path / "stat"
    monkeypatch.setattr(quiet, "STATISTICS", statistics)
    statistics.write_text("cpu 10 0 0 1000 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nintr 5\n")
    later = "cpu 40 5 5 1140 10 5 0 5 0 0\ncpu0 0\ncpu1 0\nintr 6\n"
    monkeypatch.setattr("time.sleep", lambda _: statistics.write_text(later))
    assert quiet.busy_cores() == pytest.approx(0.5)


def test_no_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STATISTICS", tmp_path / "missing")
    assert quiet.busy_cores(seconds=0) is None
