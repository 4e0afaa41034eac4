"""Programs of Python libraries compute what ours do, or say what else they compute."""

from __future__ import annotations

import re

import pytest

from pantile.bench import main
from pantile.bench.contender import Unavailable
from pantile.bench.rivals.registry import RIVALS

PROGRAMS = [(system, app) for system in RIVALS if system != "halide" for app in sorted(RIVALS[system].apps)]


@pytest.mark.parametrize(("system", "app"), PROGRAMS, ids=map("-".join, PROGRAMS))
def test_agrees(system: str, app: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        RIVALS[system].require()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert main([app, "--check", "--schedule", "default", "--rivals", system, "--size", "small"]) == 0
    told = capsys.readouterr().err
    assert re.search(f"note: {app}: {system} .* (agrees with the reference|is not compared: )", told)
