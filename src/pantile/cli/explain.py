"""`pantile explain`: the time of an app or a pipeline, measured and predicted, and the reasons for its schedule."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pantile as pt

from ..apps import App
from ..apps.named import apps_named
from ..apps.names import WrongArgument
from .show import PipelineCall

_CALLS = 5  # to be measured


def run(options: Namespace) -> int:
    """Run it on pictures or generated arrays, and print the causes of its time, or write them as a page."""
    call, html = PipelineCall.of(options), options.html
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongArgument(f"--html {html} cannot be written: its folder does not exist, or it is itself a folder")
    if options.threads is not None:
        pt.set_num_threads(options.threads)
    arrays = call.arrays()
    apps = apps_named(call.target, options.size, call.sizes(arrays), call.params)
    if len(apps) > 1:
        raise WrongArgument(f"{call.target} is a group of apps; name one, such as {apps[0].name}")
    (app,) = apps
    arguments = {**arrays, **app.params} if arrays else app.arguments(options.size)
    pipeline = _scheduled(app, call)
    text = _measure(pipeline, arguments, html) if call.machine is None else pipeline.explain(html, **arguments)
    print(text if html is None else f"wrote {html.resolve()}")
    return 0


def _scheduled(app: App, call: PipelineCall) -> pt.Pipeline:
    pipeline = call.on_machine(app.build())
    chosen = app.schedule(call.schedule, pipeline.options.target)
    return pipeline.with_schedule(chosen, machine=call.for_machine)


def _measure(pipeline: pt.Pipeline, arguments: dict[str, Any], html: Path | None) -> str:
    for _ in range(_CALLS):
        pipeline(**arguments)
    return pipeline.explain(html)
