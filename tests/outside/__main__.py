"""`python -m tests.outside [NAME ...]`: times of `auto`, and of strategies that it asks, on the six; needs minutes."""

from __future__ import annotations

import sys

import pantile as pt
from pantile.bench.console import Console
from pantile.bench.rounds import Limit
from pantile.bench.session import Session, Settings
from pantile.bench.table import brief, render

from .pipelines import OUTSIDE

SCHEDULES = ("auto", "greedy", "dp", "reuse", "naive")


def main(names: list[str]) -> int:
    """The table, after all that were named, or all."""
    known = {app.name: app for app in OUTSIDE}
    unknown = [n for n in names if n not in known]
    if unknown:
        print(f"there is no {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    console, results = Console(), []
    settings = Settings(SCHEDULES, (), (pt.get_num_threads(),), "paper", Limit(None))
    for app in [known[n] for n in names] or OUTSIDE:
        measured = Session(app, settings, console).measure()
        if measured:
            console.done(brief(measured))
        results += measured
    console.clear()
    if results:
        print(render(results))
    return 1 if console.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
