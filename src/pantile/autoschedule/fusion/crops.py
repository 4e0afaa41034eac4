"""Stages that only shift or crop another one: both are one stage to a scheduler.

out[y, x] = ...;  inner[y, x] = out[y + 2, x + 2]        out is inlined into inner
"""

from __future__ import annotations

from ...analysis.access import accesses
from ...expr.nodes import Load
from ...graph.nodes import Stage
from ..strategy import Problem


def cropped(problem: Problem) -> tuple[str, ...]:
    """The stages that nothing but a crop of them reads."""
    return tuple(s.name for s in problem.graph.stages if _is_only_cropped(problem, s))


def _is_only_cropped(problem: Problem, stage: Stage) -> bool:
    consumers = problem.graph.consumers[stage.name]
    if stage.updates or stage.name in problem.graph.output or len(consumers) != 1 or len(stage.buffers) != 1:
        return False
    crop = problem.graph.stage[consumers[0]]
    return not crop.updates and isinstance(crop.pure.values[0], Load) and _shifts(crop)


def _shifts(crop: Stage) -> bool:
    """Whether it reads one value, at its own coordinates and a constant distance."""
    if len(crop.buffers) != 1 or crop.domain is not None:
        return False
    indices = [i for access in accesses(crop, crop.pure) for i in access.indices]
    dims = [i.dim for i in indices if i is not None and i.scale == 1 and i.low == i.high]
    return len(dims) == len(indices) and tuple(dims) == crop.dims
