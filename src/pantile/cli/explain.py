"""`pantile explain`: how long an app or a pipeline takes, measured and predicted, and why it is scheduled so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pantile as pt

from ..apps import App
from ..apps.named import apps_named
from ..apps.names import WrongArgument
from .show import check_names, machine_named

_CALLS = 5  # to be measured


@dataclass(frozen=True)
class Request:
    """The command's arguments."""

    target: str
    shapes: Sequence[str]  # NAME=1080x1920
    params: Sequence[str]  # NAME=VALUE
    size: str
    schedule: str
    machine: str | None
    html: Path | None
    threads: int | None


def explain(request: Request) -> int:
    """Run it on arrays that are made up, and print why it takes as long as it does, or write that as a page."""
    check_names(request.schedule, request.machine)
    html = request.html
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongArgument(f"--html {html} cannot be written: there is no such folder, or it is one")
    if request.threads is not None:
        pt.set_num_threads(request.threads)
    apps = apps_named(request.target, request.size, request.shapes, request.params)
    if len(apps) > 1:
        raise WrongArgument(f"{request.target} is a group of apps; name one, such as {apps[0].name}")
    (app,) = apps
    pipeline, arguments = _scheduled(app, request), app.arguments(request.size)
    text = _measured(pipeline, arguments, html) if request.machine is None else pipeline.explain(html, **arguments)
    print(text if html is None else f"wrote {html.resolve()}")
    return 0


def _scheduled(app: App, request: Request) -> pt.Pipeline:
    pipeline = app.build()
    chosen = app.schedule(request.schedule, pipeline.options.target)
    return pipeline.with_schedule(chosen, machine=machine_named(request.machine))


def _measured(pipeline: pt.Pipeline, arguments: dict[str, Any], html: Path | None) -> str:
    for _ in range(_CALLS):
        pipeline(**arguments)
    return pipeline.explain(html)
