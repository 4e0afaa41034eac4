"""What `pantile calibrate` measures, and that it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pantile.cli import main
from pantile.machine import Costs, Issue, calibrate, detect, host, measure
from pantile.machine.calibration import calibrated
from pantile.machine.description import USUAL, of_core
from pantile.machine.measure import Rates
from pantile.target import Target

RATES = Rates(2.0, Issue(2, 2, 2, 1), (64e9, 32e9), 10e9, 15e9)
FOUND = {"gather": 3.5, "shuffle": USUAL.shuffle}


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A system of usual caches, and a folder of its own; measuring takes no time."""
    monkeypatch.setattr(host, "data_caches", lambda: host._USUAL_CACHES)
    monkeypatch.setattr(host, "measure", lambda *_: RATES)
    monkeypatch.setattr(host, "calibrated", lambda *_: FOUND)
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "kept"))
    detect.cache_clear()
    yield tmp_path / "kept" / host.FILE_NAME
    detect.cache_clear()


def test_instructions_cost_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    found = calibrated(host.host(), 2.5, 2.0, told.append, rounds=1)
    assert all(0.05 <= found[name] <= 100 for name in ("mul", "div", "sqrt", "gather", "shuffle", "latency"))
    assert told[0] == "compiling loops" and "measuring gather" in told
    assert ("lookup" in found) == host.host().gathers


def test_costs_are_usual_until_they_are_measured_and_then_kept(system: Path) -> None:
    bits = detect().vector_bits
    assert detect().costs == of_core({}, bits, host.host().gathers)
    assert calibrate().costs == of_core(FOUND, bits, host.host().gathers)
    detect.cache_clear()
    assert detect().costs == of_core(FOUND, bits, host.host().gathers)
    ((_, kept),) = json.loads(system.read_text()).items()
    assert kept["costs"] == FOUND  # the others are those of whatever version reads it


def test_one_unit_shuffles_the_longest_vectors(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "host", lambda: Target("x86", 512, 32))
    large = detect().costs
    assert large.shuffle > USUAL.shuffle
    assert calibrate().costs == replace(large, **FOUND)  # as measured, be it the usual cost


def test_some_cores_look_up_by_one_instruction() -> None:
    assert of_core({}, 512).lookup is None
    assert of_core({}, 512, gathers=True).lookup < USUAL.gather  # type: ignore[operator]
    assert of_core({"lookup": 0.6}, 512, gathers=True).lookup == 0.6  # as measured


def test_files_from_before_there_were_costs(system: Path) -> None:
    first = detect()
    ((key, kept),) = json.loads(system.read_text()).items()
    del kept["costs"]
    system.write_text(json.dumps({key: kept}))
    detect.cache_clear()
    assert detect() == first


@pytest.mark.parametrize("costs", [{"gather": "dear"}, {"gather": -1.0}, {"unheard_of": 1.0}], ids=str)
def test_files_with_costs_that_are_none_are_ignored(costs: dict[str, object], system: Path) -> None:
    first = detect()
    ((key, kept),) = json.loads(system.read_text()).items()
    system.write_text(json.dumps({key: {**kept, "ghz": 3.0, "costs": costs}}))
    detect.cache_clear()
    assert detect() == first


def test_the_command_says_what_it_found(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate"]) == 0
    out = capsys.readouterr().out
    assert "2.00 GHz" in out and "gather 3.50" in out
    assert all(f.name not in out for f in fields(Costs) if f.name in ("widen", "convert"))


def test_loops_run_in_turn_and_the_quickest_of_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else a core does lasts longer than one loop."""
    ran: list[str] = []
    times = iter([3.0, 1.0, 2.0, 5.0])
    monkeypatch.setattr(measure, "_processor_time", lambda part: part() or next(times))
    told: list[str] = []
    loops = {"one": [lambda: ran.append("one")], "other": [lambda: ran.append("other")]}
    assert measure.quickest(loops, 2, told.append) == {"one": 2.0, "other": 1.0}
    assert ran == ["one", "other"] * 2 and told == ["one", "other"]
