"""What happens to stages that a schedule does not name: pipeline + schedule -> schedule that names every stage.

Cheap and pointwise stages are inlined. Every other stage is computed at root, on its own (`alone`); a reduction to one
value in parts (`partial`). Defaults are ordinary directives, so they print and can be edited.
"""

from __future__ import annotations

from collections.abc import Collection

from ..expr.nodes import Expr, Load, Op, Var
from ..expr.visit import key, walk
from ..graph.nodes import Definition, Graph, Stage
from .alone import Alone
from .directives import on
from .partial import in_parts
from .schedule import Schedule
from .updates import constant, is_small_reduction

# A stage with so little work is cheaper to repeat than to store and load.
CHEAP_OPERATIONS, CHEAP_LOADS = 2, 1
# Reads per value of a stage inside a reduction: more than once, however small the domain is.
_MANY = 1 << 20


def complete(
    graph: Graph, schedule: Schedule, vector_bits: int = 128, *, strict: bool = False, like: Schedule | None = None
) -> Schedule:
    """The schedule with the default directives for every stage that it does not name, in the graph's order.

    `like`: one that was completed for the same pipeline, of which less was known. The same stages are inlined, and
    loops that others are computed at are the same: what is named relies on it.
    """
    named = _inlined_by(schedule)
    inlined = _chosen(graph, schedule, named) if like is None else _inlined_by(like) - named
    alone = Alone(graph, vector_bits, named | inlined)
    places = {} if like is None else {n: like[n] for n in _named_as_places(schedule) if n in like}
    stages = []
    for s in graph.stages:
        if s.name in schedule or s.name in places:
            stages.append(schedule.get(s.name) or places[s.name])
        elif s.name in inlined:
            stages.append(on(s.name).compute_inline())
        else:
            stages += in_parts(graph, s, vector_bits, strict, schedule) or [alone.at_root(s)]
    return Schedule(*stages)


# ---- what is inlined


def _inlined_by(schedule: Schedule) -> set[str]:
    return {n for n, s in schedule.items() if any(d.verb == "compute_inline" for d in s.directives)}


def _chosen(graph: Graph, schedule: Schedule, named: Collection[str]) -> set[str]:
    """The stages to inline, decided consumers first: reads multiply through inlined consumers."""
    kept = {*graph.output, *schedule, *_named_as_places(schedule)}
    inlined = set(named)
    chosen: set[str] = set()
    reads: dict[str, int] = {}
    for s in reversed(graph.stages):
        reads[s.name] = max((_reads(graph.stage[c], s, reads, inlined) for c in graph.consumers[s.name]), default=0)
        if s.name not in kept and _worth_inlining(s, reads[s.name]):
            inlined.add(s.name)
            chosen.add(s.name)
    return chosen


def _named_as_places(schedule: Schedule) -> set[str]:
    places = ("compute_at", "store_at", "compute_with")
    return {str(d.args[0]) for s in schedule.values() for d in s.directives if d.verb in places}


def _reads(consumer: Stage, stage: Stage, reads: dict[str, int], inlined: set[str]) -> int:
    """At how many places the stage is read for one value of what computes the consumer."""
    count = 0
    for d in consumer.definitions:
        own = len({tuple(map(key, e.indices)) for e in d.loads if e.buffer in stage.buffers})
        count += own * _MANY if d.domain else own
    return count * reads[consumer.name] if consumer.name in inlined else count


def _worth_inlining(stage: Stage, reads: int) -> bool:
    """A reduction is not repeated, nor is much work repeated for each element of a reduction."""
    if stage.updates:
        return stage.helper and reads <= 1 and is_small_reduction(stage)
    return stage.helper or reads <= 1 or (reads < _MANY and _is_pointwise(stage)) or _is_cheap(stage.pure)


def _is_pointwise(stage: Stage) -> bool:
    """Reads others only at its own coordinates (and at constants, such as a channel)."""
    return all(_is_plain(i, stage.dims) for e in stage.pure.loads for i in e.indices)


def _is_plain(index: Expr, dims: tuple[str, ...]) -> bool:
    return constant(index) is not None or (isinstance(index, Var) and index.name in dims)


def _is_cheap(definition: Definition) -> bool:
    values = list(walk(*definition.values))
    in_indices = {id(e) for load in definition.loads for i in load.indices for e in walk(i)}
    operations = sum(1 for e in values if isinstance(e, Op) and id(e) not in in_indices)
    return operations <= CHEAP_OPERATIONS and sum(1 for e in values if isinstance(e, Load)) <= CHEAP_LOADS
