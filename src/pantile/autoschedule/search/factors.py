"""Copies of the factors of sums of products, in the order in which blocks of these use them.

    pt.on("b").copy_in("C", "b_near", "k_n", "j_n")                     for C[i, j] += a[k, i] * b[k, j]
    pt.on("b_near").compute_at("C", "j_o").vectorize("j_n", 16)
    pt.on("a").copy_in("C", "a_turned", "k_t", "i_t")
    pt.on("a_turned").compute_root().reorder_storage("i_t", "k_t").unroll("i_t", 4).vectorize("k_t", 16)...

The wide factor is packed for a column of blocks, or some. The other one is read where it is, a row at a time, unless
it is contiguous across rows: then all of it is transposed once, in squares that registers hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.nodes import Stage
from ...schedule.clones import place_of
from ...schedule.directives import StageSchedule, on
from ...schedule.schedule import Schedule
from ..common.marking import unrolled, vector
from ..nest.references import Reference, reference
from ..nest.tiled_loops import fresh_name
from .block import TERMS, RegisterBlock


def factor_copies(block: RegisterBlock, schedule: Schedule, host: str) -> Iterator[StageSchedule]:
    """The copies for blocks in the loops of `host`, and what they are copies of."""
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
    """Which reads are of a factor, as `copy_in` counts them, if others are of the same array, as those of a matrix by
    its own transpose are."""
    loads = (e for d in block.s.stage.definitions for e in d.loads if e.buffer == r.array)
    is_of = {place_of(e): reference(e, block.s.extents) == r for e in loads}
    return [] if all(is_of.values()) else [k for k, wanted in enumerate(is_of.values()) if wanted]


def _is_near(block: RegisterBlock, source: Stage) -> bool:
    """Whether the wide factor is computed for the sums alone, so that it is where a copy of it would be."""
    alone = not _reads(block, block.wide) and block.s.problem.graph.consumers[source.name] == (block.s.stage.name,)
    return alone and not source.updates and block.s.problem.facts.can_be_inlined(source.name)


def _storage_order(block: RegisterBlock, r: Reference, dims: list[str]) -> list[str]:
    """The dims in the order in which the sums go along them."""
    inside = [d.name for d in block.s.definition.domain if d.name != block.term]
    order = [*(d for d in block.s.stage.dims if d != block.s.vector), *inside, block.term, block.s.vector]
    at = {d: max((order.index(n) for n, _ in steps), default=0) for d, steps in zip(dims, r.indices, strict=True)}
    return sorted(dims, key=lambda d: at[d])


def _packed_copy(block: RegisterBlock, chain: StageSchedule, dims: list[str], host: str) -> StageSchedule:
    """The schedule of the packed copy of the wide factor."""
    stored = _storage_order(block, block.wide, dims)
    last = dims[-1]
    chain = chain.compute_at(host, block.home)
    if block.columns > 1 and block.column not in block.wide.loops:  # each by itself
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
    """The schedule of the transposed copy of the other factor, along its own rows."""
    stored = _storage_order(block, block.narrow, dims)
    chain = chain.compute_root().reorder_storage(*stored)
    return _in_squares(block, chain, dims, dims[-1], stored[-1], shared=dims[:1])


def _in_squares(
    block: RegisterBlock, chain: StageSchedule, order: list[str], last: str, row: str, shared: Sequence[str] = ()
) -> StageSchedule:
    """Transpose squares in registers: contiguous numbers become rows."""
    square = (unrolled(last, TERMS), vector(row, block.lanes))
    return block.marks.nest(chain, square, [*order, *(s.part for s in square)], shared)
