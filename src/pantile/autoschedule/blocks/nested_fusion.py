"""Listing 6.2 of sioutas-thesis (lines 4776-4804): stages of a group move from the block into the threads of their
consumer, as far as that computes nothing twice.

    K[c, y, x] -> W[y, x] = K[0, y, x] + K[1, y, x] -> Z[y, x] = W[y - 2, x] + ... + W[y + 2, x]

    W overlaps along y: it stays at the block, in shared memory    pt.on("W").compute_at("Z", "x_o").thread("y", "x")
    K overlaps along no loop of W                                  pt.on("K").compute_at("W", "x").unroll("c")

A stage is computed one level above the outermost loop of its last consumer along which iterations share its values.
Threads share values only in memory of the block, so the level above a thread loop is the block. Unlike in the listing,
a stage that several members read stays at the block: if it were computed in the last of them, the others could not read
it. A stage that reads itself stays at the block in the listing, too (lines 20, 25).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...dataclass import dataclass
from ...graph.nodes import Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.updates import loop_names, pure_dims
from ..common.footprint import boxes
from ..common.marking import Part, reordered
from ..common.tiles import TiledGroup
from ..sliding.overlap import motions, overlaps
from ..strategy import Problem

MOST_REGISTERS = 32  # values of a stage that one thread keeps


@dataclass(frozen=True)
class Nested:
    """The directives of a group, and the stages that are computed in threads, each with the stage whose threads these
    are."""

    part: Part
    stages: Mapping[str, str]


@dataclass(frozen=True)
class _Thread:
    """A thread of the group's output, or of a stage that is computed at the block: its innermost loop, the dims that
    are shared among threads, and the stages that are computed in it."""

    stage: str
    loop: str
    dims: tuple[str, ...]
    inside: tuple[str, ...] = ()


def nested(problem: Problem, group: TiledGroup, part: Part, *, with_updates: bool = False) -> Nested:
    """Move stages of a group into the threads of their only reader (`optimize_granularity` of Listing 6.2). Stages with
    updates move only if `with_updates`."""
    chains = {chain.name: chain for chain in part}
    threads: dict[str, _Thread] = {}  # of the stages that are in one
    for name in reversed(group.members):
        readers = [c for c in problem.facts.consumers[name] if c in group.stages]
        is_able = with_updates or not problem.graph.stage[name].updates
        if not is_able or len(readers) != 1:
            continue
        at = threads.get(readers[0]) or _thread(problem, chains[readers[0]])
        extents = None if at is None else _extents(problem, at, name, readers[0])
        if at is not None and extents is not None:
            chains[name] = _in_thread(problem.graph.stage[name], at, extents)
            threads[name] = _Thread(at.stage, at.loop, at.dims, (*at.inside, name))
    return Nested(tuple(chains.values()), {name: at.stage for name, at in threads.items()})


def _in_thread(stage: Stage, at: _Thread, extents: Mapping[str, int]) -> StageSchedule:
    """Compute a stage in a thread, with its loops unrolled so that all values the thread needs are in registers."""
    chain = on(stage.name).compute_at(at.stage, at.loop).store_in("register")
    for k, definition in enumerate(stage.definitions):
        loops = loop_names(stage, definition)
        wide = [d for d in pure_dims(stage, definition) if extents[d] > 1]
        order = [*(n for n in loops if n not in wide), *wide] if definition.domain else loops
        start = chain if k == 0 else chain.update(k - 1)
        marked = reordered(start, loops, order)
        for dim in wide:
            marked = marked.unroll(dim)
        chain = chain if marked == start else marked
    return chain


def _thread(problem: Problem, chain: StageSchedule) -> _Thread | None:
    """The thread of a stage with these directives, in the innermost loop over its points if it has several; None if the
    stage has no thread loops."""
    said = {d.verb: [str(a) for a in d.args] for d in chain.directives if d.verb in ("thread", "reorder")}
    stage = problem.graph.stage[chain.name]
    if "thread" not in said or stage.updates:
        return None
    loops, order = said["thread"], said.get("reorder", said["thread"])
    dim_of = {d: d for d in stage.dims}
    for loop, outer, inner, _ in (map(str, d.args) for d in chain.directives if d.verb == "split"):
        dim_of |= dict.fromkeys((outer, inner), dim_of[loop])
    shared = tuple(d for d in stage.dims if any(dim_of[n] == d for n in loops))
    own = [n for n in order[order.index(loops[-1]) :] if dim_of[n] in shared]
    return _Thread(chain.name, own[-1], shared)


def _extents(problem: Problem, at: _Thread, name: str, consumer: str) -> Mapping[str, int] | None:
    """The extents of a stage that one thread needs; None if other threads need some of it too, or if it is too
    large."""
    graph, members = problem.graph, (*at.inside, at.stage)
    moving = motions(graph, members, at.stage)[consumer]
    shared = overlaps(graph.stage[name], graph.stage[consumer])
    if any(moving[d].dim in at.dims for d in shared if d in moving):
        return None
    box = boxes(problem.facts, members, at.stage, dict.fromkeys(at.dims, 1)).get(name, ())
    extents = {d: int(r.high - r.low + 1) for d, r in zip(graph.stage[name].dims, box, strict=True)}
    return extents if prod(extents.values()) <= MOST_REGISTERS else None
