"""`import pantile as pt` offers what it lists, and everything it lists explains itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pantile as pt


@pytest.mark.parametrize("name", pt.__all__)
def test_listed_names_exist_and_have_documentation(name: str) -> None:
    assert getattr(pt, name).__doc__


def test_names_are_listed_once() -> None:
    assert len(set(pt.__all__)) == len(pt.__all__)


def test_the_version_is_what_the_package_is_built_with() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.\w+)?", pt.__version__)
    built = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in built and 'path = "src/pantile/__init__.py"' in built
