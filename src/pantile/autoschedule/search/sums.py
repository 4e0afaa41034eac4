"""Sums of products, such as those of matrices and of convolutions, in blocks that registers hold.

    C[i, j] += a[i, k] * b[k, j]

    pt.on("C")...update(0).split("j", "j_o", "j_i", 16).split("i", "i_o", "i_i", 5).split("k", "k_o", "k_i", 4)
        .reorder("j_o", "i_o", "k_o", "k_i", "i_i", "j_i").vectorize("j_i").unroll("i_i").unroll("k_i").parallel("j_o")
    pt.on("b").copy_in("C", "b_near", "k_n", "j_n")
    pt.on("b_near").compute_at("C", "j_o").vectorize("j_n", 16)

One factor is read in vectors, the same ones for all rows of a block (`wide`); of the other one, each row reads one
number at a time. The wide factor is packed for a column of blocks, or some, in the order of its use, so that the
hardware prefetches it while products are summed. A stage that is computed of the sums value by value may go around the
blocks."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.groups import groups
from ...schedule.schedule import Schedule
from ..nest.statement import Statement
from ..strategy import Problem
from .block import RegisterBlock, is_at
from .factors import factor_copies


def sums(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """The schedule with a sum in blocks, if the stage is one of products, by itself and around its only reader."""
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
    """The schedule with the other factor at root, where that is a stage which is computed for each of its reads, and
    the other way round: its rows may lie otherwise in what it is computed of, or not."""
    source = problem.graph.producer.get(block.narrow.array)
    if source is None or problem.graph.consumers[source.name] != (block.s.stage.name,):
        return
    if "compute_inline" in schedule.on(source.name).verbs:
        yield schedule.replace(problem.alone.at_root(source))
    elif "compute_root" in schedule.on(source.name).verbs and problem.facts.can_be_inlined(source.name):
        yield schedule.replace(on(source.name).compute_inline())


def _with_producers_at_root(problem: Problem, schedule: Schedule, stage: Stage) -> Schedule:
    """The schedule with the producers of a stage at root that are in loops which it leaves: its own, or those it is
    in."""
    needed = {stage.name}
    for s in reversed(problem.graph.stages):
        if not needed.isdisjoint(problem.graph.consumers[s.name]):
            needed.add(s.name)
    left = [g for g in groups(schedule) if g.root == stage.name or g.root not in needed]
    names = {name for g in left for name in g.members if name in needed and name in problem.graph.stage}
    return schedule.replace(*(problem.alone.at_root(problem.graph.stage[n]) for n in schedule if n in names))


def _start(problem: Problem, stage: Stage, schedule: Schedule) -> StageSchedule:
    """The schedule of the pure definition of a stage at root: as it is there now, if it is there."""
    chain = schedule.on(stage.name)
    if "compute_root" not in chain.verbs:
        return problem.alone.marked(stage, stage.pure, on(stage.name).compute_root())
    return chain.without_updates()


def _pointwise_reader(problem: Problem, stage: Stage) -> Stage | None:
    """The only reader of a stage, if each of its values is computed of one of the stage, at the same place."""
    readers = problem.graph.consumers[stage.name]
    reader = problem.graph.stage[readers[0]] if len(readers) == 1 else None
    if reader is None or reader.updates or reader.ndim != stage.ndim:
        return None
    loads = [e for e in reader.pure.loads if e.buffer in stage.buffers]
    return reader if all(is_at(e.indices, reader.dims) for e in loads) else None
