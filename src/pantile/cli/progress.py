"""The progress of a command on a terminal."""

from __future__ import annotations

import sys


def show_progress(what: str) -> None:
    """Replace the progress line by a new one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)
