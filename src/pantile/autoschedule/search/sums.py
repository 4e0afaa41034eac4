"""Sums of products, such as those of matrices and of convolutions, in register blocks.

    C[i, j] += a[i, k] * b[k, j]

    pt.on("C")...update(0).split("j", "j_o", "j_i", 16).split("i", "i_o", "i_i", 5).split("k", "k_o", "k_i", 4)
        .reorder("j_o", "i_o", "k_o", "k_i", "i_i", "j_i").vectorize("j_i").unroll("i_i").unroll("k_i").parallel("j_o")
    pt.on("b").copy_in("C", "b_near", "k_n", "j_n")
    pt.on("b_near").compute_at("C", "j_o").vectorize("j_n", 16)

One factor is read in vectors, which all rows of a block share (`wide`); of the other factor, each row reads one number
at a time. The wide factor is packed for one or several columns of blocks, in the order of its use, so that the hardware
prefetches it while products are summed. A stage that is computed from the sums value by value may be the loops around
the blocks.

The other factor is read where it is, a row at a time. If it is contiguous across rows instead, all of it is transposed
once, in squares that registers hold.

    pt.on("a").copy_in("C", "a_turned", "k_t", "i_t")                   for C[i, j] += a[k, i] * b[k, j]
    pt.on("a_turned").compute_root().reorder_storage("i_t", "k_t").unroll("i_t", 4).vectorize("k_t", 16)...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.nodes import Stage
from ...schedule.clones import place_of
from ...schedule.directives import StageSchedule, on
from ...schedule.schedule import Schedule, groups
from ..common.marking import unrolled, vector
from ..nest.statement import Reference, Statement, reference
from ..nest.tiled_loops import fresh_name
from ..strategy import Problem
from .block import TERMS, RegisterBlock, is_at


def sums(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with a sum of products in blocks, by itself and in the loops of its only reader."""
    stage = problem.graph.stage[name]
    block = RegisterBlock.of(Statement.of(problem, stage, 1)) if len(stage.updates) == 1 else None
    if block is not None:
        reader = _pointwise_reader(problem, stage)
        for start in (schedule, *_other_placements(problem, schedule, block)):
            free = _with_producers_at_root(problem, start, stage)
            for b in (b for shape in block.shapes() for b in (shape, *shape.side_by_side())):
                yield free.replace(b.alone(_start(problem, stage, schedule)), *factor_copies(b, free, stage.name))
            if reader is not None and not block.s.has_masked_lanes:
                free = _with_producers_at_root(problem, start, reader)
                for b in block.shapes():
                    yield free.replace(*b.inside(reader), *factor_copies(b, free, reader.name))


def _other_placements(problem: Problem, schedule: Schedule, block: RegisterBlock) -> Iterator[Schedule]:
    """Yield the schedule with the producer of the other factor at root if it was inlined, or inlined if it was at root.
    Its rows may be contiguous in only one of the two cases."""
    source = problem.graph.producer.get(block.narrow.array)
    if source is None or problem.graph.consumers[source.name] != (block.s.stage.name,):
        return
    if "compute_inline" in schedule.on(source.name).verbs:
        yield schedule.replace(problem.alone.at_root(source))
    elif "compute_root" in schedule.on(source.name).verbs and problem.facts.can_be_inlined(source.name):
        yield schedule.replace(on(source.name).compute_inline())


def _with_producers_at_root(problem: Problem, schedule: Schedule, stage: Stage) -> Schedule:
    """Return the schedule with those producers of a stage at root that are in loops which this stage leaves: its own
    loops, or those it is computed in."""
    needed = {stage.name}
    for s in reversed(problem.graph.stages):
        if not needed.isdisjoint(problem.graph.consumers[s.name]):
            needed.add(s.name)
    left = [g for g in groups(schedule) if g.root == stage.name or g.root not in needed]
    names = {name for g in left for name in g.members if name in needed and name in problem.graph.stage}
    return schedule.replace(*(problem.alone.at_root(problem.graph.stage[n]) for n in schedule if n in names))


def _start(problem: Problem, stage: Stage, schedule: Schedule) -> StageSchedule:
    """The schedule of the pure definition of a stage at root, as it is in `schedule` if it is at root there."""
    chain = schedule.on(stage.name)
    if "compute_root" not in chain.verbs:
        return problem.alone.marked(stage, stage.pure, on(stage.name).compute_root())
    return chain.without_updates()


def _pointwise_reader(problem: Problem, stage: Stage) -> Stage | None:
    """The only reader of a stage, if it computes each value from the one value of the stage at the same point."""
    readers = problem.graph.consumers[stage.name]
    reader = problem.graph.stage[readers[0]] if len(readers) == 1 else None
    if reader is None or reader.updates or reader.ndim != stage.ndim:
        return None
    loads = [e for e in reader.pure.loads if e.buffer in stage.buffers]
    return reader if all(is_at(e.indices, reader.dims) for e in loads) else None


def factor_copies(block: RegisterBlock, schedule: Schedule, host: str) -> Iterator[StageSchedule]:
    """Yield the schedules of the copies for blocks in the loops of `host`, and of the stages that they copy."""
    graph, wide, narrow = block.s.problem.graph, block.wide, block.narrow
    taken = {*graph.stage, *graph.input, *schedule, *block.s.extents}
    sources: dict[str, StageSchedule] = {}

    def copy(r: Reference, suffix: str) -> tuple[StageSchedule, list[str]]:
        name, dims = fresh_name(r.array, f"_{suffix}", taken), _dims(r, f"_{suffix[0]}", taken)
        before = sources.get(r.array, schedule.on(r.array))
        sources[r.array] = before.copy_in(block.s.stage.name, name, *dims, *_reads(block, r))
        return on(name), dims

    source = graph.producer.get(wide.array)
    if source is not None and _is_near(block, source):
        yield _packed_copy(block, on(source.name), list(source.dims), host)
    else:
        yield _packed_copy(block, *copy(wide, "near"), host)
    if block.is_transposed:
        yield _transposed_copy(block, *copy(narrow, "turned"))
    yield from sources.values()


def _dims(r: Reference, suffix: str, taken: set[str]) -> list[str]:
    """The dims of a copy, each named after a loop that moves along it."""
    return [fresh_name(min((n for n, _ in steps), default="d"), suffix, taken) for steps in r.indices]


def _reads(block: RegisterBlock, r: Reference) -> list[int]:
    """The numbers of the reads that are of a factor, as `copy_in` counts them, if the same array is also read
    otherwise, as in a product of a matrix and its own transpose."""
    loads = (e for d in block.s.stage.definitions for e in d.loads if e.buffer == r.array)
    is_of = {place_of(e): reference(e, block.s.extents) == r for e in loads}
    return [] if all(is_of.values()) else [k for k, wanted in enumerate(is_of.values()) if wanted]


def _is_near(block: RegisterBlock, source: Stage) -> bool:
    """Whether the wide factor is computed for the sums alone, so that it can be computed where its copy would be."""
    alone = not _reads(block, block.wide) and block.s.problem.graph.consumers[source.name] == (block.s.stage.name,)
    return alone and not source.updates and block.s.problem.facts.can_be_inlined(source.name)


def _storage_order(block: RegisterBlock, r: Reference, dims: list[str]) -> list[str]:
    """The dims in the order in which the sums move along them."""
    inside = [d.name for d in block.s.definition.domain if d.name != block.term]
    order = [*(d for d in block.s.stage.dims if d != block.s.vector), *inside, block.term, block.s.vector]
    at = {d: max((order.index(n) for n, _ in steps), default=0) for d, steps in zip(dims, r.indices, strict=True)}
    return sorted(dims, key=lambda d: at[d])


def _packed_copy(block: RegisterBlock, chain: StageSchedule, dims: list[str], host: str) -> StageSchedule:
    """The schedule of the packed copy of the wide factor."""
    stored = _storage_order(block, block.wide, dims)
    last = dims[-1]
    chain = chain.compute_at(host, block.home)
    if block.columns > 1 and block.column not in block.wide.loops:  # each column of blocks by itself
        taken = set(dims)
        outer, lane = fresh_name(stored[-1], "_b", taken), fresh_name(stored[-1], "_l", taken)
        chain = chain.split_storage(stored[-1], outer, lane, block.lanes).reorder_storage(outer, *stored[:-1], lane)
    elif stored != dims:
        chain = chain.reorder_storage(*stored)
    if stored[-1] == last:
        row = vector(stored[-1], block.lanes)
        return block.marks.nest(chain, [row], [*stored, row.part] if stored != dims else ())
    return _in_squares(block, chain, stored, last, stored[-1])


def _transposed_copy(block: RegisterBlock, chain: StageSchedule, dims: list[str]) -> StageSchedule:
    """The schedule of the transposed copy of the other factor, computed along its own rows."""
    stored = _storage_order(block, block.narrow, dims)
    chain = chain.compute_root().reorder_storage(*stored)
    return _in_squares(block, chain, dims, dims[-1], stored[-1], shared=dims[:1])


def _in_squares(
    block: RegisterBlock, chain: StageSchedule, order: list[str], last: str, row: str, shared: Sequence[str] = ()
) -> StageSchedule:
    """Transpose squares in registers, which turns contiguous elements into rows."""
    square = (unrolled(last, TERMS), vector(row, block.lanes))
    return block.marks.nest(chain, square, [*order, *(s.part for s in square)], shared)
