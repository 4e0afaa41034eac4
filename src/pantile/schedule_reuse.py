"""Reuse of the schedule of larger calls for a smaller call. That saves the search and, if the code accepts such small
arrays, the compilation.

A schedule is reused if it is predicted to take little longer than the schedule that a search is expected to find. The
expected cost is the lower of two predicted costs: that of the plain schedule at these sizes, and that of the larger
call, scaled down in proportion to the number of elements except for overhead, which does not depend on it.
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
from .expr.depth import on_deep_stack, rare_collections
from .graph.nodes import Graph, InputInfo
from .machine import Cpu
from .runtime import cache
from .schedule.schedule import Schedule
from .scheduled_pipeline import ScheduledPipeline

Costs = tuple[float, float]  # seconds of a smaller call: with the existing schedule, and with one that a search finds


def reuse_schedule(larger: Found, scheduled: ScheduledPipeline, problem: Problem, within: float) -> Found | None:
    """The schedule of larger calls, if its predicted time is at most `within` times the time expected from a search."""
    costs = None if larger.sizes is None else _known_costs(larger.sizes, scheduled, problem)
    if larger.sizes is None or costs is None or costs[0] > within * costs[1]:
        return None
    seconds, expected = costs
    was = larger.sizes.scalars
    inputs = ", ".join(f"{i.name} {' x '.join(str(was[e]) for e in _extents(i))}" for i in problem.graph.arguments)
    remark = (
        f"found for {inputs}, and reused for smaller calls: the predicted time is {time(seconds)}, and a search was "
        f"expected to find {time(expected)} at best"
    )
    before = larger.report
    report = replace(
        before,
        counts={**before.counts, "predicted seconds": seconds},
        remarks=(*before.remarks, remark),
        alternatives=(),  # at other sizes, the runners-up may differ
    )
    return Found(larger.schedule, report)


def _known_costs(larger: Sizes, scheduled: ScheduledPipeline, problem: Problem) -> Costs | None:
    """The predicted costs, which are cached like schedules; None if they cannot be predicted."""
    sizes = [(sorted(s.shapes.items()), sorted(s.scalars.items())) for s in (larger, problem.sizes)]
    key_parts = (fingerprint(problem.graph), scheduled.schedule, sizes, problem.cpu, problem.strict)
    name = cache.key("reused", *map(repr, key_parts))
    costs = _from_bytes(cache.read(name))
    if costs is None:
        costs = on_deep_stack(rare_collections()(_predicted_costs))(larger, scheduled, problem)
        if costs is not None:
            cache.write(name, json.dumps(costs).encode())
    return costs


def _from_bytes(data: bytes | None) -> Costs | None:
    """The costs of an entry; None if there is none, or if it is invalid."""
    try:
        costs = untrusted_json.loads(data or b"null")
    except ValueError:
        return None
    return (costs[0], costs[1]) if untrusted_json.fits(costs, [untrusted_json.NUMBER]) and len(costs) == 2 else None


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
    """The seconds for starting a call and its loops. Loops are started on all threads in parallel."""
    call = machine.costs.call_s
    return call + (cost.causes.overhead - call) / machine.threads


def _elements(graph: Graph, sizes: Sizes) -> tuple[int, int]:
    """The number of elements of all inputs, and of all outputs."""
    inputs = ([int(sizes.scalars[e]) for e in _extents(i)] for i in graph.arguments)
    return max(1, sum(map(prod, inputs))), max(1, sum(map(prod, sizes.shapes.values())))


def _extents(i: InputInfo) -> list[str]:
    return [i.extent(k) for k in range(i.ndim)]
