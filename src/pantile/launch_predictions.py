"""Predicts the costs of a pipeline's schedules on a GPU, for strategies that compare many. Kernels that an earlier
schedule also has are neither lowered nor analyzed again.

    blur_x, blur_y at root               two kernels are lowered
    blur_x inlined, blur_y at root       one
    blur_x as before, blur_y in blocks   the kernel of blur_y alone
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from .backends import LaunchReport
from .calls import Calls
from .compile import Options
from .cost_model import Cost
from .dataclass import dataclass
from .graph.nodes import Graph
from .schedule.schedule import Schedule

if TYPE_CHECKING:
    from .machine import Gpu


@dataclass
class LaunchPredictions:
    """The predictions for a call with these arguments, for a graph that is already rewritten."""

    graph: Graph
    options: Options
    gpu: Gpu
    arguments: Mapping[str, Any]
    known: dict[Hashable, LaunchReport] = field(default_factory=dict)  # launches of a stage at root, by kernel key

    def cost(self, schedule: Schedule) -> Cost:
        """The predicted cost of a schedule. Raises an error if the schedule is illegal."""
        call = Calls(self.graph, schedule, replace(self.options, algebra=False)).launched(self.arguments)
        keys = call.scheduled.kernel_keys
        new = {name for name, key in keys.items() if key not in self.known}
        if new:
            report = call.report(self.gpu, new)
            self.known |= {keys[name]: report.of_stage(name) for name in new}
        return LaunchReport.joined([self.known[key] for key in keys.values()], self.gpu).cost
