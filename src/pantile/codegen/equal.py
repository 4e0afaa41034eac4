"""Functions that are equal but for names are written once, since compiling them is most of the time it takes.

The sweeps of an iterated stencil, and the levels of many a pyramid, become parallel bodies of the same instructions:
they find buffers and extents in their closures, so that one function serves them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .function import Function

# Names end in a number that tells them apart within a function; what comes before helps readers only.
_NAME = re.compile(r"%[\w.]*\.(\d+(?:\.slot)?)\b")
_NOTE = re.compile(r", !alias\.scope !\d+, !noalias !\d+")


class Bodies:
    """The bodies written so far, each under what it is equal by."""

    def __init__(self, apart: Mapping[str, frozenset[str]]) -> None:
        """`apart`: for the alias metadata of each buffer, that of all buffers that cannot overlap it."""
        self.texts: list[str] = []
        self._apart = apart
        self._names: dict[tuple[object, ...], str] = {}

    def new_number(self) -> int:
        """A number for the name of one more function."""
        self.texts.append("")
        return len(self.texts) - 1

    def add(self, body: Function) -> str:
        """Write the function unless there is an equal one; the name to call it by."""
        name = body.head.split("@")[1].split("(")[0]
        found = self._names.setdefault(self._shape(body.text()), name)
        if found == name:
            self.texts.append(body.text())
        return found

    def _shape(self, text: str) -> tuple[object, ...]:
        """The instructions without names; buffers by number, and which of them cannot overlap."""
        _, instructions = text.split("\n", 1)
        buffers: dict[str, int] = {}

        def number(note: re.Match[str]) -> str:
            return f", !{buffers.setdefault(note[0], len(buffers))}"

        plain = _NOTE.sub(number, _NAME.sub(r"%\1", instructions))
        return plain, tuple(b in self._apart[a] for a in buffers for b in buffers)
