"""Cases of mistakes, and what is asked of each: a function that makes one, and the text that must say so.

The message must match the text, and begin with the file of the case and the line of the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pantile as pt

HERE = re.escape(str(Path(__file__).parent)) + r"/\w+\.py:\d+"  # a line of a case, or of what it is made with

Case = Callable[[], object]


class Cases:
    """The cases of one file."""

    def __init__(self) -> None:
        self._cases: list[tuple[Case, str]] = []

    def must_fail(self, text: str) -> Callable[[Case], Case]:
        """Register a case."""

        def register(case: Case) -> Case:
            self._cases.append((case, text))
            return case

        return register

    @property
    def each(self) -> pytest.MarkDecorator:
        """Runs a test for every case: give it `case` and `text`."""
        return pytest.mark.parametrize(("case", "text"), self._cases, ids=[case.__name__ for case, _ in self._cases])


def assert_refused(case: Case, text: str) -> None:
    """Make the mistake, and look at what is said."""
    with pytest.raises(pt.UserError) as caught:
        case()
    message, code = str(caught.value), case.__code__
    assert re.search(text, message), message
    assert re.match(re.escape(code.co_filename) + r":\d+: ", message), message
    assert code.co_firstlineno < caught.value.where.line < code.co_firstlineno + 20
