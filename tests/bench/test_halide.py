"""Halide's programs compute what ours do."""

from __future__ import annotations

import pytest

from pantile.apps import APPS
from pantile.bench import main
from pantile.bench.rivals import halide


@pytest.mark.parametrize("app", sorted(halide.apps() & APPS.keys()))
def test_agrees(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        halide.find_halide_python()
    except halide.HalideError as error:
        pytest.skip(str(error))
    assert main([app, "--check", "--schedule", "default", "--rivals", "halide:manual", "--size", "small"]) == 0
    assert f"note: {app}: halide manual" in capsys.readouterr().err
