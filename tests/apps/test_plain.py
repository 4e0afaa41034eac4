"""Plain formulas, whose schedules copy and pack, compute what the apps that have panels written into them do."""

from __future__ import annotations

import pytest

from pantile.apps import APPS

from ..long import LONG
from .cases import CASES
from .plain import PLAIN, plain


@pytest.mark.parametrize("name", PLAIN)
def test_plain_formulas(name: str) -> None:
    p = plain(name)
    odd = CASES[name].odd
    for shapes in (*(odd if LONG else odd[-1:]), CASES[name].large):
        inputs = APPS[name].random(shapes)
        CASES[name].assert_agrees(inputs, p(**inputs))
