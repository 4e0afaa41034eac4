"""Every file that is saved and read again, with odd values in every place: it is read, or as good as not there."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile import schedule_cache, tuning_results, untrusted_json
from pantile.autoschedule import STRATEGIES
from pantile.machine import host
from pantile.machine.measure import Rates
from pantile.runtime import cache, kernels

from ..odd_values import ODD, assert_made_or_refused
from .examples import blur, picture

SIZES = {"img": (400, 600)}
THREADS = 2
LITERALS = ["Infinity", "-Infinity", "NaN", "1e999", "-1e999", "1" * 5000, "[" * 2000, '{"a": 1, "a": 2}', "\ud800"]


def literals() -> list[str]:
    """As text: JSON has no more than some of these."""
    values = [v for v in ODD if type(v) in (bool, int, float, str, list, dict, type(None))]
    short = [v for v in values if not (type(v) is int and v.bit_length() > 4000)]
    return [*(json.dumps(v) for v in short), *LITERALS]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something lies in what JSON says."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))


def texts(text: bytes) -> Iterator[bytes]:
    """The text with each odd value in each place; without each place; and cut short."""
    whole, mark = json.loads(text), "<here>"
    for path in places(whole):
        changed, rest = [copy.deepcopy(whole)], list(path)
        at: Any = changed
        for key in [0, *rest][:-1]:
            at = at[key]
        last = rest[-1] if rest else 0
        at[last] = mark
        written = json.dumps(changed[0])
        yield from (written.replace(json.dumps(mark), odd).encode("utf-8", "surrogatepass") for odd in literals())
        del at[last]
        if changed:
            yield json.dumps(changed[0]).encode()
    yield from (text[:n] for n in range(0, len(text), 97))
    yield from (b"\xff" + text, text + b"]", b"[" + text + b"]", b"\0" * 9)


def test_winners_of_tuning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))
    p = blur(schedule="plain")
    problem, schedule = p.problem(**SIZES), pt.Schedule(pt.on("down").parallel("y"))
    tuning_results.write(problem, THREADS, tuning_results.Winner(schedule, "greedy", 0.002, 0.003, 7))
    (file,) = tuning_results.files()
    monkeypatch.setattr(tuning_results, "_check", lambda problem, schedule: None)  # takes long, and is tested elsewhere
    read = 0
    for text in texts(file.read_bytes()):
        file.write_bytes(text)
        winner = tuning_results.read(problem, THREADS)
        if winner is not None:
            assert type(winner.tried) is int and np.isfinite([winner.seconds, winner.auto_seconds]).all()
            assert isinstance(winner.name, str) and isinstance(winner.schedule, pt.Schedule)
            read += 1
    assert read  # another name or time is one, too


def test_infinitely_many_tried_schedules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))
    problem = blur(schedule="plain").problem(**SIZES)
    tuning_results.write(problem, THREADS, tuning_results.Winner(pt.Schedule(), "greedy", 0.002, 0.003, 7))
    (file,) = tuning_results.files()
    assert tuning_results.read(problem, THREADS) is not None
    file.write_text(file.read_text().replace('"tried": 7', '"tried": Infinity'))
    assert tuning_results.read(problem, THREADS) is None


def test_schedules_that_strategies_found() -> None:
    problem = blur(schedule="plain").with_schedule("plain", machine=pt.machine.named("i7-6700")).problem(**SIZES)
    answer = STRATEGIES["auto"]().find(problem)
    text, read = schedule_cache._to_bytes(answer), 0
    assert schedule_cache._from_bytes(text) == schedule_cache._from_bytes(schedule_cache._to_bytes(answer)) is not None
    for changed in texts(text):
        found = schedule_cache._from_bytes(changed)
        if found is not None:
            assert str(found.report) and [f"{a.name} {a.seconds:.3g}" for a in found.report.alternatives] != [0]
            read += 1
    assert read


def test_rates_of_the_machine(tmp_path: Path) -> None:
    rates = Rates(2.0, pt.machine.Issue(2, 2, 2, 1), (64e9, 32e9), 10e9, 15e9, {"gather": 2.0})
    host._keep(tmp_path, "this one", rates)
    file, read = tmp_path / host.FILE_NAME, 0
    assert host._read(tmp_path) == {"this one": rates}
    for text in texts(file.read_bytes()):
        file.write_bytes(text)
        read += any(isinstance(r, Rates) and r.ghz > 0 for r in host._read(tmp_path).values())
    assert read


def test_schedules_of_users() -> None:
    schedule = pt.Schedule(pt.on("down").split("y", "yo", "yi", 8, tail="shift").parallel("yo"))
    read = 0
    for text in texts(schedule.to_json().encode()):
        found = assert_made_or_refused(
            lambda text=text: pt.Schedule.from_json(text.decode("utf-8", "surrogateescape")), __file__
        )
        read += found is not None and bool(str(found))
    assert read


CODE = [b"", b"\n", b"null\n", b'["f", [], false, [Infinity]]\n', b"[1, 2, 3, 4]\n" + b"\0" * 9]


@pytest.mark.parametrize("content", CODE)
@pytest.mark.parametrize("target", ["host", "cuda-sim"])
def test_code_that_is_none(monkeypatch: pytest.MonkeyPatch, target: str, content: bytes) -> None:
    pixels = picture(9, 8)
    assert pt.get_num_threads()  # code of the thread pool is kept, too, and is there from now on
    monkeypatch.setattr(cache, "read", lambda name: content)
    monkeypatch.setattr(kernels, "_kernels", {})
    p = blur(schedule="plain", target=target, name=f"blur_{len(content)}")
    np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))


def test_kinds() -> None:
    assert untrusted_json.fits({"a": [1, 2], "b": {"c": 0.5}}, {"a": [int], "b": {...: untrusted_json.NUMBER}})
    for other in ({"a": [1], "b": {"c": True}}, {"a": [1]}, {"a": 1, "b": {}}, {"a": [], "b": {}, "c": 0}, []):
        assert not untrusted_json.fits(other, {"a": [int], "b": {...: untrusted_json.NUMBER}})
