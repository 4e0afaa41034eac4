"""`pantile show`: what an app or a pipeline computes, how it is scheduled and why, the loops that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pantile as pt

from ..apps import APPS, SCHEDULES
from ..apps.named import app_in_file, apps_named, in_file, is_in_file
from ..apps.names import check


def listing() -> str:
    """All apps, in a line each."""
    width = max(map(len, APPS))
    return "\n".join(f"{name.ljust(width)}  {app.description}" for name, app in APPS.items())


@dataclass(frozen=True)
class Request:
    """The command's arguments."""

    target: str
    shapes: Sequence[str]  # NAME=1080x1920
    params: Sequence[str]  # NAME=VALUE
    schedule: str
    machine: str | None
    asm: bool


def show(request: Request) -> int:
    """Print it, scheduled for a machine and for arrays of such shapes; those of an app are as large as in its paper."""
    check_names(request.schedule, request.machine)
    heading, pipeline = (_in_file if is_in_file(request.target) else _of_app)(request)
    parts = [f"# {heading}\n{pipeline}", repr(pipeline.schedule)]
    parts += [pipeline.explain()] if pipeline.strategy is not None else []
    parts += [pipeline.loops(), *([pipeline.asm()] if request.asm else [])]
    print("\n\n".join(parts))
    return 0


def check_names(schedule: str, machine: str | None) -> None:
    """Refuse names of schedules and machines that there are none of."""
    check(schedule, SCHEDULES, "schedule")
    if machine is not None:
        check(machine, pt.machine.NAMED, "machine")


def _of_app(request: Request) -> tuple[str, pt.Pipeline]:
    name = request.target
    check(name, APPS, "app", f"a pipeline of yours is FILE.py:NAME, and the apps are: {', '.join(APPS)}")
    (app,) = apps_named(name, "paper", request.shapes, request.params)
    pipeline = app.build()
    return app.description, pipeline.with_schedule(
        app.schedule(request.schedule, pipeline.options.target),
        estimates={**app.sizes["paper"], **app.params},
        machine=machine_named(request.machine),
    )


def _in_file(request: Request) -> tuple[str, pt.Pipeline]:
    """As the file has it; a strategy's schedule is for arrays of some size."""
    pipeline, schedule = in_file(request.target), request.schedule
    if schedule == "plain":
        return repr(pipeline), pipeline.with_schedule(schedule)
    if schedule == "expert" and pipeline.strategy is None:
        return repr(pipeline), pipeline
    app = app_in_file(request.target, request.shapes, request.params, usual=True)
    return repr(pipeline), pipeline.with_schedule(
        (pipeline.strategy or pipeline.schedule) if schedule == "expert" else schedule,
        estimates={**app.sizes["paper"], **app.params},
        machine=machine_named(request.machine),
    )


def machine_named(name: str | None) -> pt.machine.Machine | None:
    """One of those that are described, or None for this one."""
    return None if name is None else pt.machine.named(name)
