"""`pantile show APP`: what it computes, how it is scheduled and why, the loops that come of it."""

from __future__ import annotations

from pathlib import Path

import pantile as pt

from ..apps import APPS, SCHEDULES
from .names import WrongArgument, check


def listing() -> str:
    """All apps, in a line each."""
    width = max(map(len, APPS))
    return "\n".join(f"{name.ljust(width)}  {app.description}" for name, app in APPS.items())


def show(name: str, schedule: str, machine: str | None, asm: bool, html: Path | None) -> int:
    """Print an app, or write it as a page; it is scheduled for `machine` and pictures as large as in its paper."""
    check(name, APPS, "app")
    check(schedule, SCHEDULES, "schedule")
    if machine is not None:
        check(machine, pt.machine.NAMED, "machine")
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongArgument(f"--html {html} cannot be written: there is no such folder, or it is one")
    app = APPS[name]
    pipeline = app.build()
    pipeline = pipeline.with_schedule(
        app.schedule(schedule, pipeline.options.target),
        estimates=app.sizes["paper"],
        machine=None if machine is None else pt.machine.named(machine),
    )
    if html is not None:
        pipeline.explain(html=html)
        print(f"wrote {html.resolve()}")
        return 0
    parts = [f"# {app.description}\n{pipeline}", repr(pipeline.schedule)]
    parts += [pipeline.explain()] if app.called(schedule) not in ("expert", "plain") else []
    parts += [pipeline.loops(), *([pipeline.asm()] if asm else [])]
    print("\n\n".join(parts))
    return 0
