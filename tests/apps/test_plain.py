"""Plain formulas, whose schedules copy and pack, compute what the apps that have panels written into them do."""

from __future__ import annotations

import pytest

from pantile.apps import APPS

from .cases import CASES
from .plain import PLAIN, plain


@pytest.mark.parametrize("name", PLAIN)
def test_plain_formulas(name: str) -> None:
    p = plain(name)
    for shapes in (CASES[name].odd[0], CASES[name].odd[-1], CASES[name].large):
        inputs = APPS[name].random(shapes)
        CASES[name].assert_agrees(inputs, p(**inputs))
