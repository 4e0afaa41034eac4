"""Expressions are walked recursively; here Python is told to follow as deep as people write them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_DEEPEST = 20_000  # nested operands: a sum of n terms written out nests n deep
_lock = threading.Lock()
_inside = 0
_usual = 0


@contextmanager
def deep_expressions() -> Iterator[None]:
    """Raise Python's recursion limit meanwhile, or while a decorated function runs; the last to leave restores it."""
    global _inside, _usual
    with _lock:
        if _inside == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, _DEEPEST))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_usual)
