"""What happens to stages that a schedule does not name: pipeline + schedule -> schedule that names every stage.

Cheap and pointwise stages are inlined. Every other stage is computed at root, with its outermost loop parallel and its
innermost one, the contiguous dim, vectorized; a reduction to one value in parts (`partial`). Vectors go along rows of
pixels, with their few channels written out: a loop over three channels is never a vector. A stage whose channels others
mix is stored as planes. Defaults are ordinary directives, so they print and can be edited.
"""

from __future__ import annotations

from ..analysis.channels import channels
from ..expr.nodes import Expr, Load, Op, Var
from ..expr.visit import key, names, walk
from ..graph.nodes import Definition, Graph, Stage
from .directives import SUFFIX, StageSchedule, on
from .partial import in_parts
from .schedule import Schedule
from .updates import constant, is_independent, is_small_reduction, pure_dims

# A stage with so little work is cheaper to repeat than to store and load.
CHEAP_OPERATIONS, CHEAP_LOADS = 2, 1
FEWEST_LANES = 4
# Elements per parallel task where the contiguous dim is the only one to share: of plain loops, of reductions.
BLOCK, REDUCTION_BLOCK = 4096, 256
# Reads per value of a stage inside a reduction: more than once, however small the domain is.
_MANY = 1 << 20


def complete(graph: Graph, schedule: Schedule, vector_bits: int = 128, *, strict: bool = False) -> Schedule:
    """The schedule with the default directives for every stage that it does not name, in the graph's order."""
    inlined = _inlined(graph, schedule)
    pixels = channels(graph)
    stages = []
    for s in graph.stages:
        if s.name in schedule:
            stages.append(schedule[s.name])
        elif s.name in inlined:
            stages.append(on(s.name).compute_inline())
        else:
            parts = in_parts(graph, s, vector_bits, strict, schedule)
            stages += parts or [at_root(graph, s, vector_bits, pixels.get(s.name))]
    return Schedule(*stages)


# ---- what is inlined


def _inlined(graph: Graph, schedule: Schedule) -> set[str]:
    """The stages to inline, decided consumers first: reads multiply through inlined consumers."""
    kept = {*graph.output, *schedule, *_named_as_places(schedule)}
    inlined: set[str] = {n for n, s in schedule.items() if any(d.verb == "compute_inline" for d in s.directives)}
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


# ---- loops of what is not


def at_root(graph: Graph, stage: Stage, vector_bits: int, channels: int | None) -> StageSchedule:
    """The directives of a stage on its own; `channels`: of its pixels, if they have a few."""
    schedule = on(stage.name).compute_root()
    if channels is not None and channels > 1 and stage.name not in graph.output and _is_mixed(graph, stage):
        schedule = schedule.reorder_storage(*stage.dims[:-2], stage.dims[-1], stage.dims[-2])
    schedule = _marked(graph, stage, stage.pure, schedule, vector_bits, channels)
    for k, update in enumerate(stage.updates):
        start = schedule.update(k)
        marked = _marked(graph, stage, update, start, vector_bits, channels)
        schedule = schedule if marked == start else marked
    return schedule


def _is_mixed(graph: Graph, stage: Stage) -> bool:
    """Whether something reads other channels of it than the one that is computed."""
    readers = (graph.stage[name] for name in graph.consumers[stage.name])
    return any(
        not c.dims or c.dims[-1] not in names(e.indices[-1])
        for c in readers for d in c.definitions for e in d.loads if e.buffer in stage.buffers
    )  # fmt: skip


def _marked(
    graph: Graph, stage: Stage, definition: Definition, schedule: StageSchedule, vector_bits: int, channels: int | None
) -> StageSchedule:
    if channels is None:
        return mark_loops(graph, stage, definition, schedule, vector_bits)
    return mark_pixels(graph, stage, definition, schedule, vector_bits, channels)


def mark_pixels(
    graph: Graph, stage: Stage, definition: Definition, schedule: StageSchedule, vector_bits: int, channels: int
) -> StageSchedule:
    """Outer pure dims (the first parallel), reduction loops, then vectors of pixels, and in them their channels."""
    free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
    *_, across, channel = stage.dims
    width = lanes(stage, definition, vector_bits)
    is_vector = across in free and _may_hold(graph, stage, width, -2)
    order = [r.name for r in definition.domain]
    if is_vector:
        schedule = schedule.vectorize(across, width)
        order += [across, across + SUFFIX["vectorize"]]
    if is_vector and channel in free:
        schedule = schedule.unroll(channel, channels)
        order = [channel, *order, channel + SUFFIX["unroll"]]
    if is_vector and (definition.domain or channel in free):
        schedule = schedule.reorder(*order)
    return schedule.parallel(free[0]) if free and free[0] not in (across, channel) else schedule


def mark_loops(
    graph: Graph, stage: Stage, definition: Definition, schedule: StageSchedule, vector_bits: int
) -> StageSchedule:
    """Outer pure dims (the first parallel), reduction loops, then the vectorized contiguous dim."""
    free = [d for d in pure_dims(stage, definition) if is_independent(stage, definition, d)]
    if not free:
        return schedule
    width = lanes(stage, definition, vector_bits)
    last = free[-1] if free[-1] == stage.dims[-1] and _may_hold(graph, stage, width) else None
    block = REDUCTION_BLOCK if definition.domain else BLOCK
    if free[0] != stage.dims[-1]:
        schedule = schedule.parallel(free[0])
    elif _may_hold(graph, stage, block + 1):
        schedule = schedule.parallel(free[0], block)
        last = free[0] + "_p"
    if last is None:
        return schedule
    if definition.domain:
        schedule = schedule.reorder(*(r.name for r in definition.domain), last)
    return schedule.vectorize(last, width)


def lanes(stage: Stage, definition: Definition, vector_bits: int) -> int:
    """Lanes of the natural vector of the widest type that the definition stores or loads, or a few such vectors."""
    return max(FEWEST_LANES, register_lanes(stage, definition, vector_bits))


def register_lanes(stage: Stage, definition: Definition, vector_bits: int) -> int:
    """How many values of the widest type that the definition stores or loads fit a vector register."""
    types = [*stage.dtypes, *(e.dtype for e in definition.loads)]
    return max(1, vector_bits // (8 * max(t.bytes for t in types)))


def _may_hold(graph: Graph, stage: Stage, count: int, dim: int = -1) -> bool:
    """Whether a dim, the last one or another, may have at least so many points: those of outputs may be constant."""
    extent = constant(graph.output[stage.name].shape[dim]) if stage.name in graph.output and stage.dims else None
    return extent is None or extent >= count
