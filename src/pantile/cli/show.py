"""`pantile show`: the definition of an app or a pipeline, its schedule and the reasons for it, and the resulting
loops."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pantile as pt

from ..apps import APPS, SCHEDULES
from ..apps.named import app_in_file, apps_named, in_file, is_in_file
from ..apps.names import WrongArgument, check
from .picture import Array
from .run import job_named, read_inputs


@dataclass(frozen=True)
class PipelineCall:
    """An app or a pipeline, and a call with arrays of stated shapes or with pictures, as `explain` takes it, too."""

    target: str  # an app or FILE.py:NAME
    inputs: Sequence[str]  # FILE or NAME=FILE
    shapes: Sequence[str]  # NAME=1080x1920
    params: Sequence[str]  # NAME=VALUE
    schedule: str
    machine: str | None

    @staticmethod
    def of(o: Namespace) -> PipelineCall:
        """The call that options state; unknown names of schedules and machines are refused."""
        check(o.schedule, SCHEDULES, "schedule")
        if o.machine is not None:
            check(o.machine, {**pt.machine.NAMED, **pt.machine.GPUS}, "machine")
        return PipelineCall(o.app, o.input, o.shape, o.param, o.schedule, o.machine)

    @property
    def for_machine(self) -> pt.machine.Machine | None:
        """The named machine to schedule for, or None for this one."""
        return None if self.machine is None else pt.machine.named(self.machine)

    def on_machine(self, pipeline: pt.Pipeline) -> pt.Pipeline:
        """The pipeline, for the simulator if the machine is a GPU."""
        return pipeline.with_options(target="cuda-sim") if self.machine in pt.machine.GPUS else pipeline

    def arrays(self) -> dict[str, Array]:
        """The arrays of the given pictures by input."""
        if not self.inputs:
            return {}
        if self.shapes:
            raise WrongArgument("pictures determine the shapes of the arrays; omit --shape or --input")
        job = job_named(self.target, self.schedule)
        return job.arguments(read_inputs(job, self.inputs))[0]

    def sizes(self, arrays: Mapping[str, Array]) -> Sequence[str]:
        """The stated shapes, or those of the arrays."""
        return [f"{name}={'x'.join(map(str, a.shape))}" for name, a in arrays.items()] or self.shapes


def listing() -> str:
    """A list of all apps, one per line."""
    width = max(map(len, APPS))
    return "\n".join(f"{name.ljust(width)}  {app.description}" for name, app in APPS.items())


def run(options: Namespace) -> int:
    """Print the pipeline, scheduled for a machine and arrays of these shapes, by default those of an app's paper."""
    if options.app is None:
        print(listing())
        return 0
    call = PipelineCall.of(options)
    heading, pipeline = (_in_file if is_in_file(call.target) else _of_app)(call)
    parts = [f"# {heading}\n{pipeline}", repr(pipeline.schedule)]
    parts += [pipeline.explain()] if pipeline.strategy is not None else []
    parts += [pipeline.loops(), *([pipeline.asm()] if options.asm else [])]
    print("\n\n".join(parts))
    return 0


def _of_app(call: PipelineCall) -> tuple[str, pt.Pipeline]:
    name = call.target
    check(name, APPS, "app", f"a pipeline of yours is FILE.py:NAME, and the apps are: {', '.join(APPS)}")
    (app,) = apps_named(name, "paper", call.sizes(call.arrays()), call.params)
    pipeline = call.on_machine(app.build())
    return app.description, pipeline.with_schedule(
        app.schedule(call.schedule, pipeline.options.target),
        estimates={**app.sizes["paper"], **app.params},
        machine=call.for_machine,
    )


def _in_file(call: PipelineCall) -> tuple[str, pt.Pipeline]:
    """The pipeline in the file; a strategy needs sizes for its schedule."""
    pipeline, schedule, arrays = call.on_machine(in_file(call.target)), call.schedule, call.arrays()
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
