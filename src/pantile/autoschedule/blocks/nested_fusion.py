"""Listing 6.2 of sioutas-thesis (lines 4776-4804): stages of a group move from the block into the threads of what reads
them, as far as nothing is computed twice there.

    K[c, y, x] -> W[y, x] = K[0, y, x] + K[1, y, x] -> Z[y, x] = W[y - 2, x] + ... + W[y + 2, x]

    W overlaps along y: it stays at the block, in shared memory    pt.on("W").compute_at("Z", "x_o").thread("y", "x")
    K overlaps along no loop of W                                  pt.on("K").compute_at("W", "x").unroll("c")

A stage goes one level above the outermost loop of its last consumer along which iterations share its values. Threads
share nothing without memory of the block, so above a thread loop is the block. Unlike the listing, a stage that several
members read stays at the block: in the last one of them, the others would not see it. A stage that reads itself stays
there in the listing, too (lines 20, 25).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...dataclass import dataclass
from ...schedule.directives import StageSchedule, on
from ..common.footprint import boxes
from ..common.marking import Part
from ..common.tiles import TiledGroup
from ..sliding.overlap import motions, overlaps
from ..strategy import Problem

MOST_REGISTERS = 32  # values of a stage that one thread keeps


@dataclass(frozen=True)
class Nested:
    """The directives of a group, and which of its stages are computed in threads, at which stage."""

    part: Part
    stages: Mapping[str, str]


@dataclass(frozen=True)
class _Thread:
    """A thread of a stage that is computed at the block, or of the group's output: the innermost of its loops, the dims
    that threads share, and what is computed in it."""

    stage: str
    loop: str
    dims: tuple[str, ...]
    inside: tuple[str, ...] = ()


def nested(problem: Problem, group: TiledGroup, part: Part) -> Nested:
    """Move stages of a group into the threads of their only reader (`optimize_granularity` of Listing 6.2)."""
    chains = {chain.name: chain for chain in part}
    threads: dict[str, _Thread] = {}  # of the stages that are in one
    for name in reversed(group.members):
        readers = [c for c in problem.facts.consumers[name] if c in group.stages]
        if problem.graph.stage[name].updates or len(readers) != 1:
            continue
        at = threads.get(readers[0]) or _thread(problem, group, chains[readers[0]])
        extents = None if at is None else _extents(problem, at, name, readers[0])
        if at is not None and extents is not None:
            chains[name] = _in_thread(name, at, extents)
            threads[name] = _Thread(at.stage, at.loop, at.dims, (*at.inside, name))
    return Nested(tuple(chains.values()), {name: at.stage for name, at in threads.items()})


def _in_thread(name: str, at: _Thread, extents: Mapping[str, int]) -> StageSchedule:
    chain = on(name).compute_at(at.stage, at.loop).store_in("register")
    for dim, extent in extents.items():
        chain = chain.unroll(dim) if extent > 1 else chain
    return chain


def _thread(problem: Problem, group: TiledGroup, chain: StageSchedule) -> _Thread | None:
    """A thread of a stage under such directives; none if it shares a row that has no tiles among threads."""
    loops = next((d.args for d in chain.directives if d.verb == "thread"), None)
    stage = problem.graph.stage[chain.name]
    if loops is None or stage.updates:
        return None
    tiled = [d for d in stage.dims if d in group.tiles[-1]] if chain.name == group.output else [*stage.dims]
    return _Thread(chain.name, str(loops[-1]), tuple(tiled)) if len(loops) == len(tiled) else None


def _extents(problem: Problem, at: _Thread, name: str, consumer: str) -> Mapping[str, int] | None:
    """What one thread needs of a stage; None if the next thread needs some of it, too, or it is much."""
    graph, members = problem.graph, (*at.inside, at.stage)
    moving = motions(graph, members, at.stage)[consumer]
    shared = overlaps(graph.stage[name], graph.stage[consumer])
    if any(moving[d].dim in at.dims for d in shared if d in moving):
        return None
    box = boxes(problem.facts, members, at.stage, dict.fromkeys(at.dims, 1)).get(name, ())
    extents = {d: int(r.high - r.low + 1) for d, r in zip(graph.stage[name].dims, box, strict=True)}
    return extents if prod(extents.values()) <= MOST_REGISTERS else None
