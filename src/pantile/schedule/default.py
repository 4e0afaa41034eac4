"""Defaults for stages that a schedule does not name: pipeline + schedule -> schedule that names every stage.

Cheap and pointwise stages are inlined. Every other stage is computed at root, by itself (`stage_default`); a reduction
to one value is computed in parts (`parallel_reduction`). Defaults are ordinary directives, so they can be printed and
edited.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ..analysis.channels import LAST, PLANE, channels, planes
from ..analysis.conversions import terms, worth_storing
from ..analysis.interval import interval
from ..dataclass import dataclass
from ..expr.nodes import Cast, Expr, Load, Op, Var
from ..expr.visit import key, loaded, names, walk
from ..graph.nodes import Definition, Graph, Stage
from ..target.description import GENERIC, Target
from .directives import StageSchedule, on
from .gpu_default import GpuDefaults
from .parallel_reduction import in_parts
from .schedule import Schedule
from .stage_default import StageDefaults
from .sums import size
from .updates import constant, is_small_reduction

# A stage with at most this work is cheaper to repeat than to store and load.
CHEAP_OPERATIONS, CHEAP_LOADS = 2, 1
# The number of instructions in all repetitions that take as long as storing and loading a vector.
MOST_REPEATED = 24
# From the first cost on, a function such as exp is expensive. All of its copies take at most the second number of
# instructions, also because more code takes long to compile.
EXPENSIVE, MOST_WRITTEN_OUT = 16, 256
# The most elements of a table, which is a stage that is read at indices that depend on data.
LARGEST_TABLE = 1 << 16
_COSTS = {
    "div": 8,
    "sqrt": 8,
    "exp": 16,
    "log": 16,
    "sin": 16,
    "cos": 16,
    "tan": 24,
    "tanh": 24,
    "asin": 24,
    "acos": 24,
    "erf": 24,
    "cbrt": 24,
    "pow": 32,
    "atan2": 32,
}
_STREAM, _LOOKUP = 4, 16
_AGAIN = 4  # estimated number of reads of an element along a coordinate that its indices do not depend on
_MANY = 1 << 20  # stands for the number of terms of a large reduction


def complete(
    graph: Graph, schedule: Schedule, target: Target = GENERIC, *, strict: bool = False, like: Schedule | None = None
) -> Schedule:
    """The schedule with the default directives for every stage that it does not name, in the graph's order.

    `like` is a schedule that was completed for the same pipeline when less was known about it. If the schedule names
    stages, the same other stages are inlined, and loops at which stages are computed are kept, because named stages
    rely on them.
    """
    if list(schedule) == [s.name for s in graph.stages]:
        return schedule
    if all(s.name in schedule for s in graph.stages):
        return Schedule(*(schedule[s.name] for s in graph.stages))
    named = _inlined_by(schedule)
    inlined = _inlined_by(like) - named if like is not None and schedule else _stages_to_inline(graph, schedule, named)
    alone = StageDefaults(graph, target, named | inlined, strict)
    of_blocks = GpuDefaults(graph, strict, schedule, _named_as_places(schedule) | _named_as_readers(schedule))
    places = places_like(schedule, like)
    stages = []
    for s in graph.stages:
        if s.name in schedule or s.name in places:
            stages.append(schedule.get(s.name) or places[s.name])
        elif s.name in inlined:
            stages.append(on(s.name).compute_inline())
        elif target.has_blocks:
            stages += of_blocks.at_root(s)
        else:
            stages += in_parts(graph, s, target, strict, schedule) or [alone.at_root(s)]
    return Schedule(*stages)


# ---- inlining


def _inlined_by(schedule: Schedule) -> set[str]:
    return {n for n, s in schedule.items() if "compute_inline" in s.verbs}


def _stages_to_inline(graph: Graph, schedule: Schedule, named: Collection[str]) -> set[str]:
    """The stages to inline. Consumers are decided first, since reads multiply through inlined consumers."""
    stored = {*graph.output, *schedule, *_named_as_places(schedule), *worth_storing(graph)}
    few = dict.fromkeys(channels(graph), LAST)
    few |= dict.fromkeys(planes(graph, few), PLANE)
    inlined = set(named)
    chosen: set[str] = set()
    reads: dict[str, ReadCounts] = {}
    for s in reversed(graph.stages):
        consumer_reads = []
        for c in graph.consumers[s.name]:
            behind = reads[c] if c in inlined else ReadCounts(1, False, frozenset({c}))
            consumer_reads.append(_reads(graph.stage[c], s, few).times(behind))
        reads[s.name] = ReadCounts(
            max((r.count for r in consumer_reads), default=0),
            any(r.summed for r in consumer_reads),
            frozenset().union(*(r.by for r in consumer_reads)),
        )
        if s.name not in stored and _worth_inlining(graph, s, reads[s.name]):
            inlined.add(s.name)
            chosen.add(s.name)
    return chosen


def places_like(schedule: Schedule, like: Schedule | None) -> dict[str, StageSchedule]:
    """The schedules that `like` has for the stages at whose loops a schedule computes others, and for the stages of
    their partial results."""
    places: dict[str, StageSchedule] = {}
    pending = _named_as_places(schedule) if like is not None else set()
    while pending:
        name = pending.pop()
        if like is not None and name in like and name not in places:
            places[name] = like[name]
            pending |= partial_results(like[name])
    return places


def partial_results(schedule: StageSchedule) -> set[str]:
    """The stages of partial results into which the rfactor directives of a stage divide its reductions."""
    factored = [d.args[len(d.args) // 2 :] for d in schedule.directives if d.verb == "rfactor"]
    return {"_".join([schedule.name, *map(str, new)]) for new in factored}


def _named_as_places(schedule: Schedule) -> set[str]:
    places = ("compute_at", "store_at", "compute_with")
    return {str(d.args[0]) for s in schedule.values() for d in s.directives if d.verb in places}


def _named_as_readers(schedule: Schedule) -> set[str]:
    """The stages that read copies of others."""
    return {str(d.args[0]) for s in schedule.values() for d in s.directives if d.verb in ("clone_in", "copy_in")}


@dataclass(frozen=True)
class ReadCounts:
    """The number of reads of an element for one value of a consumer, whether these are for the terms of a sum, and the
    stages that are not inlined which read it."""

    count: int
    summed: bool
    by: frozenset[str] = frozenset()

    def times(self, behind: ReadCounts) -> ReadCounts:
        return ReadCounts(self.count * behind.count, self.summed or behind.summed, behind.by)


def _reads(consumer: Stage, stage: Stage, few: Mapping[str, int]) -> ReadCounts:
    count = 0
    summed = False
    for d in consumer.definitions:
        places = {tuple(map(key, e.indices)): e for e in d.loads if e.buffer in stage.buffers}
        count += sum(_times(consumer, d, e, few) for e in places.values())
        summed = summed or bool(places and d.domain)
    return ReadCounts(count, summed)


def _times(consumer: Stage, d: Definition, read: Load, few: Mapping[str, int]) -> int:
    """The number of times that a definition reads an element. A loop that is an index by itself, such as one over
    frames, visits each element once; other loops of a sum visit the same elements repeatedly. A few channels or planes
    are unrolled, and their common part is computed once; `few` has their axes."""
    if not d.domain:
        return 1
    if not is_small_reduction(consumer):
        return _MANY
    alone = {i.name for i in read.indices if isinstance(i, Var)}
    used = frozenset[str]().union(*map(names, read.indices))
    aside = consumer.dims[few[consumer.name]] if consumer.name in few else None
    again = _AGAIN if any(dim not in used for dim in consumer.dims if dim != aside) else 1
    return again * math.prod(constant(r.extent) or 1 for r in d.domain if r.name not in alone)


def _worth_inlining(graph: Graph, stage: Stage, reads: ReadCounts) -> bool:
    """Whether to inline a stage. A reduction is not repeated, and much work is not repeated for each term of a sum."""
    once = reads.count <= 1 and (len(reads.by) == 1 or not reads.summed)
    if stage.updates:
        again = len(reads.by) - 1
        repeated = again * sum(terms(u) * size(u) for u in stage.updates)
        return once and (stage.helper or reads.summed) and is_small_reduction(stage) and repeated <= MOST_REPEATED
    if stage.helper or once:
        return True
    simple = _is_pointwise(stage) or _is_cheap(stage.pure)
    if not simple:
        return False
    work = _work(stage.pure)
    if reads.summed:
        return reads.count * work <= MOST_REPEATED
    return not _is_expensive(stage) or reads.count * work <= MOST_WRITTEN_OUT or not _fits_memory(graph, stage)


def _is_expensive(stage: Stage) -> bool:
    return any(isinstance(e, Op) and _COSTS.get(e.op, 1) >= EXPENSIVE for e in _values(stage.pure))


def _fits_memory(graph: Graph, stage: Stage) -> bool:
    """Whether either no index at which a stage is read depends on data, or all of them do and the stage is a small
    table."""
    reads = [
        e
        for c in graph.consumers[stage.name]
        for d in graph.stage[c].definitions
        for e in d.loads
        if e.buffer in stage.buffers
    ]
    decided = {k for e in reads for k, i in enumerate(e.indices) if loaded(i)}
    extents = [_values_of([e.indices[k] for e in reads]) for k in sorted(decided)]
    return not decided or (len(decided) == len(stage.dims) and math.prod(extents) <= LARGEST_TABLE)


def _values_of(indices: Sequence[Expr]) -> float:
    """The number of values that data-dependent indices may have, infinite if it is not known."""
    ranges = [interval(i, {}) for i in indices]
    lows, highs = [r.low for r in ranges], [r.high for r in ranges]
    if not all(isinstance(n, int) for n in (*lows, *highs)):
        return math.inf
    return max(int(n) for n in highs) - min(int(n) for n in lows) + 1


def _is_pointwise(stage: Stage) -> bool:
    """Whether a stage reads others only at its own coordinates and at constants, such as the number of a channel."""
    return all(_is_plain(i, stage.dims) for e in stage.pure.loads for i in e.indices)


def _is_plain(index: Expr, dims: tuple[str, ...]) -> bool:
    return constant(index) is not None or (isinstance(index, Var) and index.name in dims)


def _is_cheap(definition: Definition) -> bool:
    operations = sum(isinstance(e, Op) for e in _values(definition))
    return operations <= CHEAP_OPERATIONS and len(definition.loads) <= CHEAP_LOADS


def _work(definition: Definition) -> int:
    """An estimate of the instructions per vector, and of the cost of memory streams besides the stream that loading the
    stored stage would take."""
    values = _values(definition)
    places = {key(e) for e in values if isinstance(e, Load)}
    operations = sum(_COSTS.get(e.op, 1) if isinstance(e, Op) else _conversion(e) for e in values)
    lookups = sum(any(loaded(i) for i in e.indices) for e in values if isinstance(e, Load))
    return operations + _STREAM * max(0, len(places) - 1) + _LOOKUP * lookups


def _conversion(e: Expr) -> int:
    if not isinstance(e, Cast):
        return 0
    return 2 if e.dtype.is_float and e.value.dtype.is_int else 1


def _values(definition: Definition) -> list[Expr]:
    """The nodes of the values of a definition, without those in indices of loads."""
    in_indices = {id(e) for load in definition.loads for i in load.indices for e in walk(i)}
    return [e for e in walk(*definition.values) if id(e) not in in_indices]
