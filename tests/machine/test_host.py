"""Reading the machine's description from the system's files, and measuring the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from pantile.bench.machine import describe
from pantile.errors import shown
from pantile.machine import Cache, Cpu, Issue, detect, host, measure
from pantile.machine.measure import Rates

from ..odd_values import ODD

RATES = Rates(2.0, Issue(2, 2, 2, 1), (64e9, 32e9), 10e9, 15e9)


def is_json(value: object) -> bool:
    return type(value) in (bool, int, float, str, list, dict, type(None)) and value != 10**5000


def is_a_number(value: object) -> bool:
    return type(value) in (int, float)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A made-up system whose files are still to be written; measuring takes no time."""
    monkeypatch.setattr(host, "CPU_FOLDER", tmp_path)
    monkeypatch.setattr(host, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(host, "measure", lambda *_: RATES)
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "kept"))
    detect.cache_clear()
    yield tmp_path
    detect.cache_clear()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def cache(index: int, level: int, kind: str, size: str, sharing: str) -> dict[str, str]:
    found = {"level": level, "type": kind, "size": size, "shared_cpu_list": sharing, "coherency_line_size": 64}
    return {f"cache/index{index}/{name}": f"{value}\n" for name, value in found.items()}


def test_full_description(system: Path) -> None:
    write(system, {"cpuinfo": "processor : 0\nmodel name : Made Up 3000\n", "cpufreq/scaling_governor": "powersave\n"})
    write(system, cache(0, 1, "Data", "64K", "0") | cache(1, 1, "Instruction", "64K", "0"))
    write(system, cache(2, 2, "Unified", "2M", "0-1,4") | {"cache/index2/ways_of_associativity": "16\n"})
    found = detect()
    assert (found.name, found.ghz, host.governor()) == ("Made Up 3000", 2.0, "powersave")
    assert found.caches == (Cache(65536, 64, 8, 1, 64e9), Cache(2 << 20, 64, 16, 3, 32e9))
    assert found.l2.per_core == (2 << 20) // 3
    assert (found.memory_bandwidth(1), found.memory_bandwidth(2)) == (10e9, 15e9)


def test_a_system_that_tells_nothing(system: Path) -> None:
    found = detect()
    assert found.name and found.cores >= 1 and found.l1.size > 0


def test_measured_once(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = detect()
    monkeypatch.setattr(host, "measure", lambda *_: pytest.fail("measured again"))
    assert again() == first


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("content", ["", "nonsense", "[]", "5", "null", "\0", DEEP, json.dumps({"a": {"b": 1}})])
def test_a_file_that_is_not_ours_is_measured_anew(content: str, system: Path) -> None:
    write(system, {f"kept/{host.FILE_NAME}": content})
    (system / "kept").chmod(0o700)
    assert detect().ghz == 2.0


@pytest.mark.parametrize("wrong", [w for w in ODD if is_json(w) and w not in (True, RATES.ghz)], ids=shown)
@pytest.mark.parametrize("name", [f.name for f in fields(Rates)])
def test_a_file_with_wrong_types_is_measured_anew(name: str, wrong: object, system: Path) -> None:
    """What fits, such as another clock, counts: nobody can tell that it is not true."""
    first = detect()
    path = system / "kept" / host.FILE_NAME
    ((key, kept),) = json.loads(path.read_text()).items()
    path.write_text(json.dumps({key: {**kept, name: wrong}}))
    found = again()
    assert found == first or is_a_number(wrong)


def test_a_pipe_in_the_place_of_the_file(system: Path) -> None:
    first = detect()
    path = system / "kept" / host.FILE_NAME
    path.unlink()
    os.mkfifo(path, 0o600)
    assert again() == first


def test_another_process_measures_no_more(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = detect()
    monkeypatch.setattr(host, "measure", lambda *_: pytest.fail("measured a second time"))
    assert again() == first, "every process schedules for the same machine"


def test_a_directory_that_cannot_be_written(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(host.cache_directory, "write", write)
    assert detect().ghz == 2.0


def again() -> Cpu:
    """What another process would find."""
    detect.cache_clear()
    return detect()


@pytest.mark.parametrize("sizes", [(1 << 14, 1 << 16), (1 << 14, 1 << 16, 1 << 16)], ids=len)
def test_the_measurement_itself(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two caches may be of the same size."""
    small = {"STEPS": 100, "COPIED_BYTES": (1 << 16, 1 << 17), "TOUCHED_BYTES": 1 << 16}
    for name, value in small.items():
        monkeypatch.setattr(measure, name, value)
    found = measure.measure(sizes, cores=2, vector_bits=128, rounds=1)
    issue = found.issue
    rates = (found.ghz, issue.fma, issue.int, issue.load, issue.store, *found.caches)
    assert 0 < found.core_bandwidth <= found.bandwidth
    assert min(rates) > 0 and len(found.caches) == len(sizes)
    assert min(found.caches) >= found.core_bandwidth  # even if other processes had one of them meanwhile


def test_description_goes_to_json(system: Path) -> None:
    described = json.loads(json.dumps(describe()))
    assert {"cpu", "architecture", "cores", "caches", "os", "python", "versions", "governor"} <= described.keys()
    assert described["versions"]["llvmlite"]


def test_busy_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores for 100 ticks each, of which 150 were idle and the rest work, interrupts or another guest's."""
    statistics = tmp_path / "stat"
    monkeypatch.setattr(host, "STATISTICS", statistics)
    statistics.write_text("cpu 10 0 0 1000 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nintr 5\n")
    later = "cpu 40 5 5 1140 10 5 0 5 0 0\ncpu0 0\ncpu1 0\nintr 6\n"
    monkeypatch.setattr("time.sleep", lambda _: statistics.write_text(later))
    assert host.busy_cores() == pytest.approx(0.5)


def test_no_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "STATISTICS", tmp_path / "missing")
    assert host.busy_cores(seconds=0) is None
