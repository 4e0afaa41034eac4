"""Programs of Python libraries compute what ours do, or say what else they compute."""

from __future__ import annotations

import re

import pytest

from pantile.apps import APPS, GROUPS
from pantile.bench import main
from pantile.bench.contender import Unavailable
from pantile.bench.rivals.registry import RIVALS

from ..long import LONG

PROGRAMS = [(system, app) for system in RIVALS if system != "halide" for app in sorted(RIVALS[system].apps)]
# Evaluating the reference of filters that OpenCV is compared on, too, takes longer than it tells.
if not LONG:
    PROGRAMS = [(system, app) for system, app in PROGRAMS if system != "scipy" or app == "sobel"]


@pytest.mark.parametrize(("system", "app"), PROGRAMS, ids=map("-".join, PROGRAMS))
def test_agrees(system: str, app: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        RIVALS[system].require()
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert main([app, "--check", "--schedule", "plain", "--rivals", system, "--size", "small"]) == 0
    told = capsys.readouterr().err
    assert re.search(f"note: {app}: {system} .* (agrees with the reference|is not compared: )", told)


@pytest.mark.parametrize("app", GROUPS["everyday"])
def test_every_everyday_filter_has_a_rival_and_something_to_compare(app: str) -> None:
    assert any(app in RIVALS[system].apps for system in ("opencv", "numba"))
    pictures = [shape for size in APPS[app].sizes.values() for shape in size.values() if min(shape[:2]) > 31]
    assert all(min(shape[:2]) > 2 * APPS[app].margin + 32 for shape in pictures)
