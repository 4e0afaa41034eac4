"""Whether a schedule that was found for larger calls serves a smaller one: then nothing is searched for, and where the
code that there is takes arrays that small, nothing is compiled.

It does if it is predicted to take little longer than what a search is expected to find. That is the lower of two
predicted costs: of the plain schedule at these sizes, and of the larger call, in proportion to its elements but
for what starting loops takes, which is the same for few elements.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod

from . import untrusted_json
from .analysis.fingerprint import fingerprint
from .autoschedule import Found, Problem
from .cost_model import Cost, Sizes
from .cost_model.result import time
from .errors import PantileError
from .expr.depth import on_deep_stack
from .expr.garbage import rare_collections
from .graph.nodes import Graph, InputInfo
from .machine import Cpu
from .runtime import cache
from .schedule.schedule import Schedule
from .scheduled_pipeline import ScheduledPipeline

Costs = tuple[float, float]  # seconds of a smaller call: by the existing schedule, and by what a search would find


def reuse_schedule(larger: Found, scheduled: ScheduledPipeline, problem: Problem, within: float) -> Found | None:
    """The schedule of larger calls, if it is predicted to take at most `within` times as long as what a search is
    expected to find."""
    costs = None if larger.sizes is None else _known_costs(larger.sizes, scheduled, problem)
    if larger.sizes is None or costs is None or costs[0] > within * costs[1]:
        return None
    seconds, expected = costs
    was = larger.sizes.scalars
    inputs = ", ".join(f"{i.name} {' x '.join(str(was[e]) for e in _extents(i))}" for i in problem.graph.arguments)
    remark = (
        f"found for {inputs}, and reused for smaller calls: one is predicted to take {time(seconds)} by it, and a "
        f"search was not expected to find less than {time(expected)}"
    )
    before = larger.report
    report = replace(
        before,
        counts={**before.counts, "predicted seconds": seconds},
        remarks=(*before.remarks, remark),
        alternatives=(),  # what lost at other sizes may not have lost at these
    )
    return Found(larger.schedule, report)


def _known_costs(larger: Sizes, scheduled: ScheduledPipeline, problem: Problem) -> Costs | None:
    """The predicted costs, cached like schedules; None if they cannot be predicted."""
    sizes = [(sorted(s.shapes.items()), sorted(s.scalars.items())) for s in (larger, problem.sizes)]
    question = (fingerprint(problem.graph), scheduled.schedule, sizes, problem.cpu, problem.strict)
    name = cache.key("reused", *map(repr, question))
    costs = _from_bytes(cache.read(name))
    if costs is None:
        costs = on_deep_stack(rare_collections()(_predicted_costs))(larger, scheduled, problem)
        if costs is not None:
            cache.write(name, json.dumps(costs).encode())
    return costs


def _from_bytes(data: bytes | None) -> Costs | None:
    """The costs of an entry; None if there is none, or not what was written."""
    try:
        answer = untrusted_json.loads(data or b"null")
    except ValueError:
        return None
    return (answer[0], answer[1]) if untrusted_json.fits(answer, [untrusted_json.NUMBER]) and len(answer) == 2 else None


def _predicted_costs(larger: Sizes, scheduled: ScheduledPipeline, problem: Problem) -> Costs | None:
    try:
        plain = ScheduledPipeline(problem.graph, Schedule(), scheduled.options, {})
        calls = ((scheduled, larger), (scheduled, problem.sizes), (plain, problem.sizes))
        at_larger, here, plainly = (of.predict_cost(sizes, problem.cpu) for of, sizes in calls)
    except PantileError:
        return None
    now, before = _elements(problem.graph, problem.sizes), _elements(problem.graph, larger)
    part = min(n / m for n, m in zip(now, before, strict=True))
    overhead_larger, *overheads = (_overhead(p, problem.cpu) for p in (at_larger, here, plainly))
    return here.seconds, min(plainly.seconds, (at_larger.seconds - overhead_larger) * part + min(overheads))


def _overhead(cost: Cost, machine: Cpu) -> float:
    """Seconds that the call and its loops take to start, the latter on all threads at once."""
    call = machine.costs.call_s
    return call + (cost.causes.overhead - call) / machine.threads


def _elements(graph: Graph, sizes: Sizes) -> tuple[int, int]:
    """The number of elements of all inputs, and of all outputs."""
    inputs = ([int(sizes.scalars[e]) for e in _extents(i)] for i in graph.arguments)
    return max(1, sum(map(prod, inputs))), max(1, sum(map(prod, sizes.shapes.values())))


def _extents(i: InputInfo) -> list[str]:
    return [i.extent(k) for k in range(i.ndim)]
