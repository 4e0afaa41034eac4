"""The subject of `pantile show` and `pantile explain`: an app or a pipeline, and a call with arrays of stated shapes or
with pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pantile as pt

from ..apps import SCHEDULES
from ..apps.names import WrongArgument, check
from .picture import Array
from .run import job_named, read_inputs


@dataclass(frozen=True)
class PipelineCall:
    """The arguments of both commands."""

    target: str  # an app or FILE.py:NAME
    inputs: Sequence[str]  # FILE or NAME=FILE
    shapes: Sequence[str]  # NAME=1080x1920
    params: Sequence[str]  # NAME=VALUE
    schedule: str
    machine: str | None

    def check(self) -> None:
        """Raise an error for unknown names of schedules and machines."""
        check(self.schedule, SCHEDULES, "schedule")
        if self.machine is not None:
            check(self.machine, pt.machine.NAMED, "machine")

    @property
    def for_machine(self) -> pt.machine.Cpu | None:
        """The named machine to schedule for, or None for this one."""
        return None if self.machine is None else pt.machine.named(self.machine)

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
