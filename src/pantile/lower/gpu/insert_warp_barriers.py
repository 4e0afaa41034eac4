"""Insert warp barriers: the lanes of a warp wait for each other where one accesses what another has stored in the
warp's shared memory, and only there.

before:  warp for w in 0..4:                         after:  warp for w in 0..4:
             realize g: [...] in shared                          realize g: [...] in shared
             lane for q in 0..40: g[q] = ...                     lane for q in 0..40: g[q] = ...
             lane for x in 0..32: f[x] = g[x + 1]                warp_barrier()
                                                                 lane for x in 0..32: f[x] = g[x + 1]

Lanes do not exchange anything inside of a lane loop, so a lane loop is treated as a unit. Control flow around it is
uniform within a warp, so all lanes of the warp reach the barrier; other warps need not. If a warp takes several
iterations of a warp loop in turn, `insert_barriers`, which knows the number of warps, compares the beginning of the
loop body with its end.
"""

from __future__ import annotations

from dataclasses import replace

from ...expr.nodes import Const
from ...expr.visit import loaded, union
from ...graph.nodes import Graph
from ...ir.instructions import WARP_BARRIER
from ...ir.nodes import For, Realize, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Kind, Memory
from ..names import made_for
from .insert_barriers import NOTHING, Accesses, Barriers, SharedBytes


def insert_warp_barriers(body: Stmt, graph: Graph) -> Stmt:
    """Insert the barriers that the lanes of warps need."""
    if isinstance(body, For) and body.kind is Kind.WARP:
        is_once = all(isinstance(i.extent, Const) for i in walk(body) if isinstance(i, For) and i.kind is Kind.WARP)
        return _WarpBarriers(graph, is_once).visit(body, NOTHING)[0] if shared_by_lanes(body) else body
    return rebuild(body, expressions(body), tuple([insert_warp_barriers(c, graph) for c in children(body)]))


def shared_by_lanes(s: Stmt) -> set[str]:
    """The buffers inside of a warp that are in shared memory."""
    return {i.buffer for i in walk(s) if isinstance(i, Realize) and i.memory is Memory.SHARED}


class _WarpBarriers(Barriers):
    """Inserts the barriers for the lanes of a warp. `is_once` tells whether each warp takes one iteration of the warp
    loops."""

    barrier, kind = WARP_BARRIER, Kind.LANE

    def __init__(self, graph: Graph, is_once: bool) -> None:
        super().__init__()
        self.graph, self.is_once = graph, is_once
        self.live = set[str]()  # the warp's buffers around a statement; later ones may reuse the bytes of others

    def place(self, buffer: str) -> SharedBytes | None:
        return self.places.get(buffer)

    def note(self, s: Stmt) -> None:
        if isinstance(s, Realize) and s.memory is Memory.SHARED:
            self.places[s.buffer] = SharedBytes(s.buffer)

    def visit(self, s: Stmt, open_: Accesses) -> tuple[Stmt, Accesses]:
        if isinstance(s, For) and s.kind is Kind.WARP and self.is_once:
            return replace(s, body=self.visit(s.body, NOTHING)[0]), NOTHING
        if not isinstance(s, Realize) or s.memory is not Memory.SHARED:
            return super().visit(s, open_)
        waits = any(a.place.buffer not in self.live for a in open_)
        self.live.add(s.buffer)
        made, after = super().visit(s, NOTHING if waits else open_)
        self.live.discard(s.buffer)
        return block(WARP_BARRIER, made) if waits else made, after

    def is_unit(self, s: Stmt) -> bool:
        return super().is_unit(s) or isinstance(s, For) and s.kind is Kind.SERIAL and self.is_of_one_value_each(s)

    def is_of_one_value_each(self, s: For) -> bool:
        """Whether no later iteration of a loop stores to the elements that an iteration stores, and the loop does not
        read them."""
        stored = {i.buffer for i in walk(s) if isinstance(i, Store)} & self.places.keys()
        read = union([loaded(e) for i in walk(s) for e in expressions(i)])
        pure = all(not self.graph.producer[made_for(b)].updates for b in stored)
        return pure and stored.isdisjoint(read) and not shared_by_lanes(s)
