"""What a command is doing, on a terminal."""

from __future__ import annotations

import sys


def show_progress(what: str) -> None:
    """Say what is being done, in the place of what was said before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)
