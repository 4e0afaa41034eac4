"""Halide's programs compute what ours do, and its worker takes arrays of all kinds."""

from __future__ import annotations

import importlib
import platform
import re
from pathlib import Path

import numpy as np
import pytest

from pantile.apps import APPS
from pantile.bench import main
from pantile.bench.contender import Task, Unavailable
from pantile.bench.rivals import halide
from pantile.bench.rivals.process import BENCH_FOLDER, programs

from ..apps.short import SHORT
from ..long import LONG
from .shorter import FEWER, setting

PROGRAMS = Path(__file__).with_name("halide_programs")
OTHER_PROGRAMS = f"""\
import sys
sys.path.append(sys.argv[1])
import rivals.halide_apps
rivals.halide_apps.__path__.append({str(PROGRAMS)!r})
from rivals.halide_worker import main
main()
"""


@pytest.fixture(autouse=True)
def _installed() -> None:
    try:
        halide.find_python()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def _short_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest sizes are less than what published schedules compute at once in vectors of 64 bytes."""
    if platform.machine() == "x86_64":
        monkeypatch.setenv("HL_JIT_TARGET", "x86-64-linux-sse41-avx-avx2-f16c-fma")


# Half a minute to compile; `pantile bench` compares it, as all, before it times it.
SLOW = {"lens_blur"} if not LONG else set[str]()


@pytest.mark.parametrize("app", sorted((programs("halide") & APPS.keys()) - SLOW))
def test_agrees(app: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if app in FEWER:
        monkeypatch.setitem(APPS, app, SHORT[app][0])
        worker = halide.WORKER_PROGRAM.replace("from rivals", f"{setting(app)}\nfrom rivals")
        monkeypatch.setattr(halide, "WORKER_PROGRAM", worker)
    assert main([app, "--check", "--schedule", "plain", "--rivals", "halide:manual", "--size", "small"]) == 0
    assert re.search(f"note: {app}: halide manual, .* agrees with", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("app", "name"), [("stencil_chain", "STAGES"), ("local_laplacian", "DEPTH"), ("interpolate", "DEPTH")]
)
def test_whole_programs_have_as_many_stages_as_the_apps(app: str, name: str) -> None:
    number = getattr(importlib.import_module(f"pantile.apps.{app}"), name)
    assert f"\n{name} = {number}\n" in (BENCH_FOLDER / "rivals" / "halide_apps" / f"{app}.py").read_text()


def test_types_ranks_and_numbers_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halide, "WORKER_PROGRAM", OTHER_PROGRAMS)
    types = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
    shapes = [(20,), (4, 5), (2, 2, 5), (1, 5, 2, 2)]
    arrays = {t: np.arange(20).reshape(shapes[k % 4]).astype(t) for k, t in enumerate(types)}
    contender = halide.enter(Task("twice_each", "manual", 1, arrays, tuple(arrays.values()), 60))
    try:
        for got, given in zip(contender.outputs(), arrays.values(), strict=True):
            assert got.dtype == given.dtype
            np.testing.assert_array_equal(got, given + given)
        assert len(contender.time(3)) == 3
    finally:
        contender.close()


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halide, "WORKER_PROGRAM", OTHER_PROGRAMS)
    with pytest.raises(Unavailable, match=r"it took longer than 1\.5 s, the limit that --rival-limit sets"):
        halide.enter(Task("never", "manual", 1, {}, (np.zeros(1),), 1.5))


def test_a_program_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halide, "WORKER_PROGRAM", OTHER_PROGRAMS)
    with pytest.raises(Unavailable, match="ModuleNotFoundError"):
        halide.enter(Task("nowhere", "manual", 1, {}, (np.zeros(1),), 60))
