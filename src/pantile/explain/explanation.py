"""The data of an explanation, which becomes text or a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import backends
from ..algebra import RewrittenGraph
from ..autoschedule import Report
from ..calls import MeasuredTime
from ..cost_model import Cost, Limits
from ..dataclass import dataclass
from ..expr.nodes import Number
from ..scheduled_pipeline import ScheduledPipeline


@dataclass(frozen=True)
class Timing:
    """The time of one kind of call: predicted, and measured if such a call was made on the machine."""

    arguments: Mapping[str, Any]  # shapes of arrays, and numbers
    shapes: Mapping[str, tuple[int, ...]]  # of the outputs, by stage
    scalars: Mapping[str, Number]  # params by name, input extents as "img.shape.0"
    threads: int
    cost: Cost
    limits: Limits
    measured: MeasuredTime | None = None

    @property
    def seconds(self) -> float:
        """The measured seconds, or else the predicted ones."""
        return self.cost.seconds if self.measured is None else self.measured.seconds


@dataclass(frozen=True)
class Explanation:
    """`report` is None if nothing was searched; `timing` is None if no sizes are known, and on GPUs, which have
    `launched` and, for calls that waited for their results, `measured` instead."""

    name: str
    scheduled: ScheduledPipeline
    report: Report | None
    rewritten: RewrittenGraph
    timing: Timing | None
    launched: backends.LaunchReport | None = None
    measured: MeasuredTime | None = None
