"""`pantile show APP`: what it computes, how it is scheduled, the loops that come of it."""

from __future__ import annotations

import sys
from difflib import get_close_matches

from ..apps import APPS


def listing() -> str:
    """All apps, in a line each."""
    width = max(map(len, APPS))
    return "\n".join(f"{name.ljust(width)}  {app.description}" for name, app in APPS.items())


def show(name: str, naive: bool, asm: bool) -> int:
    """Print an app."""
    if name not in APPS:
        close = get_close_matches(name, APPS, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        print(f"pantile show: there is no app {name!r}{meant}; there are: {', '.join(APPS)}", file=sys.stderr)
        return 2
    app = APPS[name]
    pipeline = app.build()
    if not naive:
        pipeline = pipeline.with_schedule(app.expert(pipeline.options.target.vector_bits))
    parts = [f"# {app.description}\n{pipeline}", repr(pipeline.schedule), pipeline.loops()]
    print("\n\n".join([*parts, pipeline.asm()] if asm else parts))
    return 0
