"""Map warps: the iterations of a warp loop are warps of 32 threads, the lanes; loops of lanes count from 0.

before:  warp for w in 0..4:                             after:  thread for w in 0..4: thread for w.lane in 0..32:
             lane for x in x.min..x.min + 30:                        lane for x.lane in 0..30:
                 f[x] = ...                                              let x = x.min + x.lane
                                                                         f[x] = ...

All lanes execute all of it (one overlapped tile per warp, as Jangda and Guha describe it: Model-Based Warp Overlapped
Tiling for Image Processing Programs on GPUs, PACT 2020). `distribute_registers` is next, then `map_lanes`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeGuard

from ...analysis.interval import Scope
from ...expr.build import minimum
from ...expr.linear import simplify
from ...expr.nodes import const, var
from ...expr.types import INDEX
from ...ir.nodes import Block, For, Let, Realize, Stmt, Store
from ...ir.visit import all_loads, children, expressions, rebuild
from ...ir.visit import walk as statements
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind, Memory
from ...target.layout import Digit, Unit
from ..footprint import step
from ..names import of_loop
from .insert_warp_barriers import shared_by_lanes
from .linearized_points import LinearizedPoints, trip_counts
from .map_lanes import Refuse

_ZERO = const(0, INDEX)
_LANES = Digit(WARP_SIZE, Unit.THREAD)
_OF_BLOCKS = (Kind.BLOCK, Kind.WARP, Kind.THREAD, Kind.LANE)


def map_warps(body: Stmt, refuse: Refuse) -> Stmt:
    """Replace warp loops by thread loops."""
    has_lanes = any(isinstance(s, For) and s.kind in (Kind.WARP, Kind.LANE) for s in statements(body))
    if any(isinstance(s, For) and s.kind is Kind.WARP and shared_by_lanes(s) for s in statements(body)):
        body = _taken_in_turn(body, {}, frozenset(), refuse)
    return _visit(body, frozenset()) if has_lanes else body


def _taken_in_turn(s: Stmt, scope: Scope, shared: frozenset[str], refuse: Refuse) -> Stmt:
    """A statement whose lanes take the points of `shared` buffers in turn, where these are not one for each of them."""
    if isinstance(s, For) and s.kind is Kind.WARP:
        shared = frozenset(shared_by_lanes(s))
    if not isinstance(s, For) or s.kind is not Kind.LANE:
        inside = [_taken_in_turn(c, inner, shared, refuse) for c, inner in step(s, scope)]
        return rebuild(s, expressions(s), tuple(inside))
    own = {i.buffer for i in statements(s) if isinstance(i, Realize)}
    stored = [i.buffer for i in statements(s) if isinstance(i, Store) and i.buffer not in own]
    counts = trip_counts(s, scope)
    known = tuple(n for n in counts if n is not None)
    points = math.prod(known)
    if len(known) == len(counts) and shared.issuperset(stored):
        return s if points <= WARP_SIZE and len(known) == 1 else _turns(s, known, points)
    if len(counts) > 1 and s.digit is None:
        raise refuse(stored[0], f"there are an unknown number of iterations for {WARP_SIZE} lanes")
    return s


def _turns(s: For, counts: tuple[int, ...], points: int) -> Stmt:
    """The lanes take one point of nested lane loops after the other."""
    turn, lane = var(of_loop(s.var, "turn")), var(of_loop(s.var, "own"))
    turns = -(-points // WARP_SIZE)
    whole = const(WARP_SIZE, INDEX)
    extent = whole if points % WARP_SIZE == 0 else minimum(whole, points - turn * WARP_SIZE)
    body = LinearizedPoints(turn * WARP_SIZE + lane, counts, Kind.LANE).of(s)
    lanes = For(lane.name, _ZERO, simplify(extent), Kind.LANE, body, digit=_LANES)
    return For(turn.name, _ZERO, const(turns, INDEX), Kind.SERIAL, lanes)


def _visit(s: Stmt, shared: frozenset[str]) -> Stmt:
    """The statement; `shared` has the buffers around it that are memory of all threads."""
    if isinstance(s, For) and s.kind is Kind.WARP:
        is_last = not any(isinstance(i, For) and i.kind is Kind.WARP for i in statements(s.body))
        lanes = For(of_loop(s.var, "lane"), _ZERO, const(WARP_SIZE, INDEX), Kind.THREAD, _counted(s.body), digit=_LANES)
        return replace(s, kind=Kind.THREAD, body=lanes if is_last else _visit(s.body, shared))
    alone = _lanes_alone(s, shared)
    if alone is not None:  # the tail of a warp loop, for one warp
        return _visit(For(of_loop(alone.var, "warp"), _ZERO, const(1, INDEX), Kind.WARP, s), shared)
    if _is_shared(s):
        shared |= {s.buffer}
    return rebuild(s, expressions(s), tuple([_visit(c, shared) for c in children(s)]))


def _lanes_alone(s: Stmt, shared: frozenset[str]) -> For | None:
    """The first lane loop of a statement that has lane loops but no block, warp or thread loops, and is no more than
    one warp can do: threads wait for each other where one reads what another has stored in shared memory.
    """
    inside = list(statements(s))
    loops = [i for i in inside if isinstance(i, For) and i.kind in _OF_BLOCKS]
    if any(i.kind is not Kind.LANE for i in loops) or any(_is_shared(i) or _waits(i, shared) for i in inside):
        return None
    return loops[0] if loops else None


def _is_shared(s: Stmt) -> TypeGuard[Realize]:
    return isinstance(s, Realize) and s.memory in (Memory.SHARED, Memory.HEAP)


def _waits(s: Stmt, shared: frozenset[str]) -> bool:
    """Whether some of several statements store shared memory that others of them read."""
    if not isinstance(s, Block) or not shared:
        return False
    stored = [{i.buffer for i in statements(c) if isinstance(i, Store)} & shared for c in s.stmts]
    read = [{e.buffer for e in all_loads(c)} & shared for c in s.stmts]
    return any(not a.isdisjoint(b) for k, a in enumerate(stored) for n, b in enumerate(read) if k != n)


def _counted(s: Stmt) -> Stmt:
    """A statement of a warp whose lane loops count from 0."""
    s = rebuild(s, expressions(s), tuple([_counted(c) for c in children(s)]))
    if not isinstance(s, For) or s.kind is not Kind.LANE:
        return s
    number = var(of_loop(s.var, "lane"))
    return replace(s, var=number.name, min=_ZERO, body=Let(s.var, s.min + number, s.body))
