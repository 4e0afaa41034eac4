"""Map warps: the iterations of a warp loop become warps of 32 threads (the lanes), and lane loops count from 0.

before:  warp for w in 0..4:                             after:  thread for w in 0..4: thread for w.lane in 0..32:
             lane for x in x.min..x.min + 30:                        lane for x.lane in 0..30:
                 f[x] = ...                                              let x = x.min + x.lane
                                                                         f[x] = ...

All lanes execute the whole body (one overlapped tile per warp, as described by Jangda and Guha: Model-Based Warp
Overlapped Tiling for Image Processing Programs on GPUs, PACT 2020). `distribute_registers` runs next, then `map_lanes`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...analysis.interval import Scope
from ...expr.build import minimum
from ...expr.linear import simplify
from ...expr.nodes import const, var
from ...expr.types import INDEX
from ...ir.nodes import For, Let, Realize, Stmt, Store
from ...ir.visit import children, expressions, rebuild
from ...ir.visit import walk as statements
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind
from ...target.layout import Digit, Unit
from ..footprint import step
from ..names import of_loop
from .insert_warp_barriers import shared_by_lanes
from .linearized_points import LinearizedPoints, trip_counts
from .map_lanes import Refuse

_ZERO = const(0, INDEX)
_LANES = Digit(WARP_SIZE, Unit.THREAD)


def map_warps(body: Stmt, refuse: Refuse) -> Stmt:
    """Replace warp loops by thread loops."""
    has_lanes = any(isinstance(s, For) and s.kind in (Kind.WARP, Kind.LANE) for s in statements(body))
    if any(isinstance(s, For) and s.kind is Kind.WARP and shared_by_lanes(s) for s in statements(body)):
        body = _taken_in_turn(body, {}, frozenset(), refuse)
    return _visit(body) if has_lanes else body


def _taken_in_turn(s: Stmt, scope: Scope, shared: frozenset[str], refuse: Refuse) -> Stmt:
    """Let lanes take the points of lane loops in turns if the loops store only `shared` buffers and are nested or have
    more iterations than a warp has lanes."""
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
    """Replace nested lane loops by turns, in each of which every lane takes one point."""
    turn, lane = var(of_loop(s.var, "turn")), var(of_loop(s.var, "own"))
    turns = -(-points // WARP_SIZE)
    whole = const(WARP_SIZE, INDEX)
    extent = whole if points % WARP_SIZE == 0 else minimum(whole, points - turn * WARP_SIZE)
    body = LinearizedPoints(turn * WARP_SIZE + lane, counts, Kind.LANE).of(s)
    lanes = For(lane.name, _ZERO, simplify(extent), Kind.LANE, body, digit=_LANES)
    return For(turn.name, _ZERO, const(turns, INDEX), Kind.SERIAL, lanes)


def _visit(s: Stmt) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.WARP:
        is_last = not any(isinstance(i, For) and i.kind is Kind.WARP for i in statements(s.body))
        lanes = For(of_loop(s.var, "lane"), _ZERO, const(WARP_SIZE, INDEX), Kind.THREAD, _counted(s.body), digit=_LANES)
        return replace(s, kind=Kind.THREAD, body=lanes if is_last else _visit(s.body))
    return rebuild(s, expressions(s), tuple([_visit(c) for c in children(s)]))


def _counted(s: Stmt) -> Stmt:
    """Make the lane loops in a statement of a warp count from 0."""
    s = rebuild(s, expressions(s), tuple([_counted(c) for c in children(s)]))
    if not isinstance(s, For) or s.kind is not Kind.LANE:
        return s
    number = var(of_loop(s.var, "lane"))
    return replace(s, var=number.name, min=_ZERO, body=Let(s.var, s.min + number, s.body))
