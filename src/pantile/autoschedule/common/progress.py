"""A progress bar for strategies that run for long, with a budget of time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")
WIDTH = 24


def within(budget: float, what: str, items: Iterable[T], total: int, stream: TextIO | None = None) -> Iterator[T]:
    """The items, as many as there is time for but at least one; a terminal shows how far it is."""
    shown = sys.stderr if stream is None else stream
    start = time.monotonic()
    try:
        for k, item in enumerate(items):
            spent = time.monotonic() - start
            if k and spent > budget:
                break
            part = max(k / total, min(1.0, spent / budget) if budget > 0 else 1.0)
            bar = f"{'#' * int(WIDTH * part):<{WIDTH}}"
            _write(shown, f"{what} [{bar}] {k}/{total}, {spent:.0f} of {budget:.0f} s; Ctrl-C takes the best so far")
            yield item
    finally:
        _write(shown, "")


def _write(shown: TextIO, line: str) -> None:
    """Instead of the line that is there, if somebody sees it."""
    if shown.isatty():
        shown.write(f"\r\x1b[K{line}")
        shown.flush()
