"""`import pantile as pt` offers what it lists, and everything it lists explains itself."""

from __future__ import annotations

import pytest

import pantile as pt


@pytest.mark.parametrize("name", pt.__all__)
def test_listed_names_exist_and_have_documentation(name: str) -> None:
    assert getattr(pt, name).__doc__


def test_names_are_listed_once() -> None:
    assert len(set(pt.__all__)) == len(pt.__all__)
