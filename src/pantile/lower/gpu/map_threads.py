"""Map threads: the points of thread loops are distributed cyclically to the threads of a block.

before:  thread for y in lo..lo + 10:          after:  thread for y.thread in 0..340:
             thread for x in 0..n:                         let y = lo + y.thread // 34
                 g[y, x] = ...                             let x = y.thread % 34
         s[] = ...                                         if x < n: g[y, x] = ...      (n is at most 34)
                                                       thread for s.thread in 0..1: s[] = ...

Stages of different extents can thus share one block. The definition whose block loops form the block decides the number
of threads, by `threads` or by its thread loops. If the extents of nested thread loops have no constant bound, each
thread runs the outer loops itself and takes the iterations of the innermost loop with a stride of the number of
threads. Statements outside of all thread loops are executed by one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...analysis.interval import Scope
from ...dataclass import dataclass
from ...expr.nodes import const, var
from ...expr.types import INDEX
from ...graph.nodes import Graph
from ...ir.nodes import Alloc, For, If, Let, Produce, Realize, Stmt, Store
from ...ir.visit import all_loads, children, expressions, rebuild, walk
from ...schedule.plan import Plan
from ...target.gpu import MOST_THREADS, whole_warps
from ...target.kinds import CacheOperator, Kind, Memory
from ..footprint import step
from ..names import loop_name, of_buffer, of_loop
from .linearized_points import LinearizedPoints, TripCounts, deepest, trip_counts
from .own_registers import Refuse

_DEFAULT_THREADS = 256  # threads of a block if no loop has a constant extent
_ZERO, _ONE = const(0, INDEX), const(1, INDEX)
_OF_A_THREAD = (Memory.STACK, Memory.REGISTER)
_SHARED_OUT = (Kind.THREAD, Kind.WARP)


def map_threads(body: Stmt, graph: Graph, plan: Plan, refuse: Refuse) -> Stmt:
    """Normalize thread loops to count from 0 to constants, and set the number of threads of each block.

    `refuse` makes the error for buffers in registers that more threads hold than a block has.
    """
    ahead = frozenset(p.name for p in plan.stages.values() if p.ahead)
    return _on_host(body, _ThreadPlan(_block_threads(graph, plan), ahead, refuse), {})


class _BlockThreads(NamedTuple):
    """The threads of the blocks that a loop launches: the thread or warp loops of its definition, the number of threads
    if the schedule states it, the cache operators of loads, and whether blocks are persistent."""

    own: frozenset[str] = frozenset()
    number: int | None = None
    cached: tuple[tuple[str, CacheOperator], ...] = ()  # the cache operators of the kernel's loads, by buffer
    persistent: bool = False


@dataclass(frozen=True)
class _ThreadPlan:
    """The part of a schedule that concerns threads."""

    blocks: Mapping[str, _BlockThreads]  # by block loop
    ahead: frozenset[str]  # prefetched stages
    refuse: Refuse


def _block_threads(graph: Graph, plan: Plan) -> dict[str, _BlockThreads]:
    """Map each block loop to the threads of its definition."""
    blocks = {}
    for stage in graph.stages:
        planned = plan.stages.get(stage.name)
        operators = {} if planned is None else planned.cached
        cached = tuple((b, operator) for name, operator in operators.items() for b in _buffers(graph, name))
        for k, nest in enumerate(planned.nests if planned is not None else ()):
            own = frozenset(loop_name(stage, k, x.name) for x in nest.loops if x.kind in _SHARED_OUT)
            of = _BlockThreads(own, nest.threads, cached, nest.persistent)
            blocks.update({loop_name(stage, k, x.name): of for x in nest.loops if x.kind is Kind.BLOCK})
    return blocks


def _buffers(graph: Graph, name: str) -> tuple[str, ...]:
    """The buffers of a stage or an input."""
    return graph.stage[name].buffers if name in graph.stage else (name,)


def _on_host(s: Stmt, plan: _ThreadPlan, scope: Scope) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.BLOCK:
        return _in_block(s, plan, scope)
    return rebuild(s, expressions(s), tuple([_on_host(c, plan, inner) for c, inner in step(s, scope)]))


def _in_block(s: For, plan: _ThreadPlan, scope: Scope) -> Stmt:
    """Map the threads of the outermost block loop of directly nested ones."""
    loops = list(_outermost(s, scope))
    of = plan.blocks.get(s.var, _BlockThreads())
    count = of.number or _count(loops, of.own)
    ((body, inner),) = step(s, scope)
    mapper = _ThreadMapper(count, (depths for _, depths in loops), plan)
    return replace(s, body=mapper.visit(body, inner), threads=count, cached=of.cached, persistent=of.persistent)


def _count(loops: Iterable[tuple[str, TripCounts]], own: frozenset[str]) -> int:
    """The number of threads of a block, in whole warps. Only the loops of the block's own stage count if it has any,
    otherwise all loops.
    """
    counts = [(name in own, math.prod(n or _DEFAULT_THREADS for n in depths)) for name, depths in loops]
    is_own = any(mine for mine, _ in counts)
    points = max((points for mine, points in counts if mine or not is_own), default=1)
    return min(MOST_THREADS, whole_warps(points))


def _outermost(s: Stmt, scope: Scope) -> Iterator[tuple[str, TripCounts]]:
    """Yield the outermost thread loops in program order, with bounds of the trip counts at each depth."""
    if isinstance(s, For) and s.kind is Kind.THREAD:
        yield s.var, trip_counts(s, scope)
        return
    for c, inner in step(s, scope):
        yield from _outermost(c, inner)


class _ThreadMapper:
    """Distributes the work of a block to threads.

    `depths` yields the trip counts of its thread loops in program order.
    """

    def __init__(self, count: int, depths: Iterator[TripCounts], plan: _ThreadPlan) -> None:
        self.count, self.depths, self.plan = count, depths, plan
        self.held: dict[str, Realize] = {}  # buffers whose elements are distributed to threads

    def visit(self, s: Stmt, scope: Scope) -> Stmt:
        if isinstance(s, Realize) and s.layout is not None:
            self.held[s.buffer] = s
        if isinstance(s, For) and s.kind is Kind.THREAD:
            return self.mapped(s, next(self.depths))
        if self.is_for_one_thread(s):
            stored = [i.buffer for i in walk(s) if isinstance(i, Store)]
            return For(of_buffer(stored[0], "thread"), _ZERO, _ONE, Kind.THREAD, s) if stored else s
        return rebuild(s, expressions(s), tuple([self.visit(c, inner) for c, inner in step(s, scope)]))

    def is_for_one_thread(self, s: Stmt) -> bool:
        """Whether one thread executes the whole statement. Statements that prefetch stages do not count: parts of them
        are separated later."""
        if any(isinstance(i, For) and i.kind in (Kind.THREAD, Kind.BLOCK) for i in walk(s)):
            return False
        return _is_one_piece(s) and not any(isinstance(i, Produce) and i.stage in self.plan.ahead for i in walk(s))

    def mapped(self, s: For, depths: TripCounts) -> Stmt:
        known = tuple(n for n in depths if n is not None)
        if len(known) < len(depths):
            return self.strided(s, len(depths) - 1)
        points = math.prod(known)
        accessed = [buffer for buffer in self.held if points > self.count and _touches(s, buffer)]
        if accessed:
            why = f"{points} threads would, and a block has {self.count}"
            raise self.plan.refuse(self.held[accessed[0]], why)
        name = of_loop(s.var, "thread")
        made = LinearizedPoints(var(name), known, Kind.THREAD).of(s)
        return For(name, _ZERO, const(points, INDEX), Kind.THREAD, made)

    def strided(self, s: For, last: int) -> Stmt:
        """Let every thread run the outer loops and take the innermost iterations with a stride of the number of
        threads.

        Statements outside of the innermost loops, such as the tails of splits, are executed by one thread.
        """
        name = of_loop(s.var, "thread")

        def visit(s: Stmt, depth: int) -> Stmt:
            if depth <= last and deepest(s) <= last - depth and _is_one_piece(s):
                alone = _one_after_another(s)
                return If(var(name) < 1, alone) if any(isinstance(i, Store) for i in walk(s)) else alone
            if isinstance(s, For) and s.kind is Kind.THREAD:
                body = visit(s.body, depth + 1)
                if depth < last:
                    return For(s.var, s.min, s.extent, Kind.SERIAL, body)
                turn, thread = var(of_loop(s.var, "turn")), var(name)
                turns = (s.extent - thread + (self.count - 1)) // self.count
                at = s.min + (thread + turn * self.count)
                return For(turn.name, _ZERO, turns, Kind.SERIAL, Let(s.var, at, body))
            return rebuild(s, expressions(s), tuple([visit(c, depth) for c in children(s)]))

        return For(name, _ZERO, const(self.count, INDEX), Kind.THREAD, visit(s, 0))


def _touches(s: Stmt, buffer: str) -> bool:
    """Whether a statement accesses a buffer."""
    stores = any(isinstance(i, Store) and i.buffer == buffer for i in walk(s))
    return stores or any(e.buffer == buffer for e in all_loads(s))


def _one_after_another(s: Stmt) -> Stmt:
    """Turn the thread loops into serial loops of one thread."""
    s = rebuild(s, expressions(s), tuple([_one_after_another(c) for c in children(s)]))
    return replace(s, kind=Kind.SERIAL) if isinstance(s, For) and s.kind is Kind.THREAD else s


def _is_one_piece(s: Stmt) -> bool:
    """Whether one thread may execute the whole statement: it must not allocate memory of the block."""
    return not any(isinstance(i, (Realize, Alloc)) and i.memory not in _OF_A_THREAD for i in walk(s))
