"""A budget of time, for strategies that run for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ...progress import step

T = TypeVar("T")
WIDTH = 24


def within(budget: float, what: str, items: Iterable[T], total: int, told: Callable[[str], None] = step) -> Iterator[T]:
    """The items, as many as there is time for but at least one; a terminal shows how far it is."""
    start = time.monotonic()
    for k, item in enumerate(items):
        spent = time.monotonic() - start
        if k and spent > budget:
            break
        part = max(k / total, min(1.0, spent / budget) if budget > 0 else 1.0)
        bar = f"{'#' * int(WIDTH * part):<{WIDTH}}"
        told(f"{what} [{bar}] {k}/{total}, {spent:.0f} of {budget:.0f} s; Ctrl-C takes the best so far")
        yield item
