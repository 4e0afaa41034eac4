"""What the user sees while waiting: one line that is rewritten on a terminal, and notes that stay."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from ..apps import App


class Console:
    """Progress, notes and errors, away from the results on standard output."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._rewrites = self._stream.isatty()
        self.errors = 0
        self.heading = ""  # of all that is being done, such as how far it is in a longer list

    def each(self, apps: Sequence[App]) -> Iterator[App]:
        """The apps in turn, counted by the heading if there are several."""
        for number, app in enumerate(apps, 1):
            self.heading = f"[{number}/{len(apps)}] " if len(apps) > 1 else ""
            yield app

    def begin(self, text: str) -> None:
        """What is being done from now on."""
        text = self.heading + text
        self._show(text) if self._rewrites else print(text, file=self._stream, flush=True)

    def done(self, text: str) -> None:
        """What came of it."""
        self.clear()
        print(self.heading + text, file=self._stream, flush=True)

    def progress(self, text: str) -> None:
        """How far it is; only a terminal shows it."""
        if self._rewrites:
            self._show(self.heading + text)

    def note(self, text: str) -> None:
        """Something worth keeping in sight."""
        self.clear()
        print(f"note: {text}", file=self._stream, flush=True)

    def error(self, text: str) -> None:
        """Something that makes the whole run fail in the end."""
        self.errors += 1
        self.clear()
        print(f"error: {text}", file=self._stream, flush=True)

    def clear(self) -> None:
        """Make room for other output."""
        if self._rewrites:
            self._show("")

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns
        self._stream.write(f"\r\x1b[K{text[: width - 1]}")
        self._stream.flush()
