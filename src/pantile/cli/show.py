"""`pantile show`: the definition of an app or a pipeline, its schedule and the reasons for it, and the resulting
loops."""

from __future__ import annotations

from dataclasses import dataclass

import pantile as pt

from ..apps import APPS
from ..apps.named import app_in_file, apps_named, in_file, is_in_file
from ..apps.names import check
from .call import PipelineCall


def listing() -> str:
    """A list of all apps, one per line."""
    width = max(map(len, APPS))
    return "\n".join(f"{name.ljust(width)}  {app.description}" for name, app in APPS.items())


@dataclass(frozen=True)
class ShowRequest:
    """The command's arguments."""

    call: PipelineCall
    asm: bool


def show(request: ShowRequest) -> int:
    """Print the pipeline, scheduled for a machine and arrays of these shapes, by default those of an app's paper."""
    call = request.call
    call.check()
    heading, pipeline = (_in_file if is_in_file(call.target) else _of_app)(call)
    parts = [f"# {heading}\n{pipeline}", repr(pipeline.schedule)]
    parts += [pipeline.explain()] if pipeline.strategy is not None else []
    parts += [pipeline.loops(), *([pipeline.asm()] if request.asm else [])]
    print("\n\n".join(parts))
    return 0


def _of_app(call: PipelineCall) -> tuple[str, pt.Pipeline]:
    name = call.target
    check(name, APPS, "app", f"a pipeline of yours is FILE.py:NAME, and the apps are: {', '.join(APPS)}")
    (app,) = apps_named(name, "paper", call.sizes(call.arrays()), call.params)
    pipeline = app.build()
    return app.description, pipeline.with_schedule(
        app.schedule(call.schedule, pipeline.options.target),
        estimates={**app.sizes["paper"], **app.params},
        machine=call.for_machine,
    )


def _in_file(call: PipelineCall) -> tuple[str, pt.Pipeline]:
    """The pipeline in the file; a strategy needs sizes for its schedule."""
    pipeline, schedule, arrays = in_file(call.target), call.schedule, call.arrays()
    if schedule == "plain":
        return repr(pipeline), pipeline.with_schedule(schedule)
    if schedule == "expert" and pipeline.strategy is None:
        return repr(pipeline), pipeline
    app = app_in_file(call.target, call.sizes(arrays), call.params, usual=True)
    return repr(pipeline), pipeline.with_schedule(
        (pipeline.strategy or pipeline.schedule) if schedule == "expert" else schedule,
        estimates={**app.sizes["paper"], **app.params},
        machine=call.for_machine,
    )
