"""Software pipelining: while threads compute one iteration of a loop, the data of a later iteration is prefetched.

before:  for k in 0..n:                          after:  realize f: [0..2, 0..64] in shared
             realize f: [16*k..16*k + 64]                if 0 < n: thread for p: f[0, p] = img[p]
             thread for p: f[16*k + p] = img[...]        commit
             thread for q: sums[q] += f[16*k + q]        for k in 0..n:
                                                             wait
                                                             barrier
                                                             if k + 1 < n: thread for p: f[(k + 1)%2, p] = img[...]
                                                             commit
                                                             thread for q: sums[q] += f[k%2, q]

One barrier per iteration is enough: behind it, all threads see what was prefetched for this iteration, and all have
finished the previous iteration, whose slot is filled next. `async_copies` decides later which copies are asynchronous.
Products by warpgroups begin before the prefetch. If the prefetch distance is more than one iteration, they are in
flight until the end of the next iteration, which takes one more slot (`products_in_flight`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...analysis.interval import Scope
from ...dataclass import dataclass
from ...expr.linear import simplify
from ...expr.nodes import Expr, Load, Ramp, Var, const, var
from ...expr.types import INDEX
from ...expr.visit import loaded, substitute, transform
from ...graph.nodes import Graph
from ...ir import visit as ir
from ...ir.instructions import BARRIER, COMMIT_GROUP, wait_group
from ...ir.nodes import Block, For, If, Manner, Produce, Realize, Stmt, Store
from ...ir.visit import block, children, expressions, map_exprs, rebuild, walk
from ...schedule.plan import Plan
from ...target.kinds import Kind, Memory
from ..extent_bounds import most_kept
from ..footprint import step
from ..names import loop_name, of_loop
from ..refuse import no_constant_size
from ..vectorize import combined
from .disjoint import stores_once
from .lets import Lets
from .products_in_flight import products_in_flight

_NOTHING = Block(())


def software_pipeline(body: Stmt, graph: Graph, plan: Plan) -> Stmt:
    """Pipeline the loops at which stages are prefetched, with multi-buffering: a slot for each iteration in flight."""
    stages: dict[str, dict[str, int]] = {}
    for p in plan.stages.values():
        if p.ahead and p.compute is not None:
            site = p.compute
            loop = loop_name(graph.stage[site.stage], site.definition, site.loop)
            stages.setdefault(loop, {})[p.name] = p.ahead
    return _visit(body, graph, stages, {}, Lets({})) if stages else body


def _visit(s: Stmt, graph: Graph, stages: Mapping[str, Mapping[str, int]], scope: Scope, lets: Lets) -> Stmt:
    """Visit a statement. `lets` are those around it."""
    within = lets.inside(s)
    s = rebuild(s, expressions(s), tuple([_visit(c, graph, stages, inner, within) for c, inner in step(s, scope)]))
    if isinstance(s, For) and s.kind is Kind.SERIAL and s.var in stages:
        return _PipelinedLoop(s, graph, stages[s.var], scope, lets).loop()
    return s


@dataclass(frozen=True)
class _Parts:
    """The part of a statement that is prefetched, and the rest."""

    ahead: Stmt
    rest: Stmt


class _PipelinedLoop:
    """One loop, and the stages prefetched in it."""

    def __init__(self, s: For, graph: Graph, stages: Mapping[str, int], scope: Scope, lets: Lets) -> None:
        self.lets = lets
        self.s, self.graph, self.stages, self.scope = s, graph, stages, scope
        self.distance = max(stages.values())
        # With a distance of one, the assembler makes products wait for each other: the last iteration is the only one
        # that does not prefetch, and it would keep its sums in registers of its own.
        self.stay_in_flight = self.distance > 1 and products_in_flight(s.body, s.var) is not None
        self.slots = self.distance + 1 + int(self.stay_in_flight)
        self.slot = simplify(Var(INDEX, 1, s.var) - s.min) % self.slots  # the slot of the current iteration
        self.realized: dict[str, Realize] = {}  # the original allocations, by buffer
        self.multi_buffered: list[Realize] = []

    def loop(self) -> Stmt:
        ((body, scope),) = step(self.s, self.scope)
        parts = self.parts(body, scope)
        if not self.realized:
            return self.s
        ahead, rest = self.copied(self.in_slots(parts.ahead, self.lets)), self.in_slots(parts.rest, self.lets)
        v, end = var(self.s.var), self.s.min + self.s.extent
        later, ready = self.at(ahead, v + self.distance), (wait_group(self.distance - 1), BARRIER)
        products, prefetch = products_in_flight(rest, self.s.var), (If(v + self.distance < end, later), COMMIT_GROUP)
        if products is None:
            result = block(self.prologue(ahead, end), replace(self.s, body=block(*ready, *prefetch, rest)))
        elif self.stay_in_flight:
            body = block(*ready, products.begin, *prefetch, products.wait_for_others())
            result = block(self.prologue(ahead, end), replace(self.s, body=body), products.waits)
        else:
            body = block(*ready, products.begin, *prefetch, products.waits)
            result = block(self.prologue(ahead, end), replace(self.s, body=body))
        for r in reversed(self.multi_buffered):
            result = replace(r, body=result)
        return result

    def prologue(self, ahead: Stmt, end: Expr) -> Stmt:
        """Prefetch the data of the first iterations."""
        if self.distance == 1:
            return block(If(self.s.extent > 0, self.at(ahead, self.s.min)), COMMIT_GROUP)
        early = var(of_loop(self.s.var, "early"))
        each = block(If(early < end, self.at(ahead, early)), COMMIT_GROUP)
        return For(early.name, self.s.min, const(self.distance, INDEX), Kind.SERIAL, each)

    def at(self, s: Stmt, value: Expr) -> Stmt:
        """Return the statement as it is in another iteration of the loop."""
        return map_exprs(s, lambda e: substitute(e, {self.s.var: value}))

    # Separating the prefetched part

    def parts(self, s: Stmt, scope: Scope) -> _Parts:
        if isinstance(s, Produce) and s.stage in self.stages:
            return _Parts(s, _NOTHING)
        if isinstance(s, Realize) and self.is_ahead(s):
            self.realized[s.buffer] = s
            self.multi_buffered.append(self.with_slots(s, scope))
            return self.parts(s.body, scope)
        if isinstance(s, For) or not any(isinstance(i, Produce) and i.stage in self.stages for i in walk(s)):
            return _Parts(_NOTHING, s)
        inside = [self.parts(c, inner) for c, inner in step(s, scope)]
        if isinstance(s, Block):
            return _Parts(block(*(p.ahead for p in inside)), block(*(p.rest for p in inside)))
        if isinstance(s, Realize):  # only the rest uses a buffer that is not prefetched
            return _Parts(inside[0].ahead, replace(s, body=inside[0].rest))
        return _Parts(
            *(rebuild(s, expressions(s), of) for of in (tuple(p.ahead for p in inside), tuple(p.rest for p in inside)))
        )

    def is_ahead(self, s: Realize) -> bool:
        stage = self.graph.producer.get(s.buffer)
        return stage is not None and stage.name in self.stages

    def with_slots(self, s: Realize, scope: Scope) -> Realize:
        """Return the allocation with a slot for each iteration in flight. A slot is as large as an iteration needs at
        most."""
        zero, sides = const(0, INDEX), list[tuple[Expr, Expr]]()
        for _, extent in s.box:
            n = most_kept(extent, scope)
            if n is None:
                raise no_constant_size(self.graph.producer[s.buffer], s.memory)
            sides.append((zero, const(max(n, 1), INDEX)))
        return Realize(s.buffer, s.dtype, ((zero, const(self.slots, INDEX)), *sides), Memory.SHARED, s.body, self.slots)

    # Accesses

    def in_slots(self, s: Stmt, lets: Lets) -> Stmt:
        """Redirect accesses to the slot of the iteration, with indices relative to the start of its values.
        Substituting the values of `lets` makes the terms cancel that all threads share."""
        inner = lets.inside(s)
        s = rebuild(
            s,
            tuple([self.expression(e, lets) for e in expressions(s)]),
            tuple([self.in_slots(c, inner) for c in children(s)]),
        )
        if isinstance(s, Store) and s.buffer in self.realized:
            return replace(s, indices=self.places(s.buffer, s.indices, lets))
        return s

    def copied(self, ahead: Stmt) -> Stmt:
        """Mark asynchronous copies, but only in buffers where no two copies have the same destination. It is not known
        which of two copies arrives last, and the result is undefined if both are in one group."""
        apart = {buffer for buffer in self.realized if stores_once(ahead, buffer)}

        def change(s: Stmt) -> Stmt | None:
            if isinstance(s, Store) and s.buffer in apart and self.is_copied(s):
                return replace(s, manner=Manner.ASYNCHRONOUS)
            return None

        return ir.transform(ahead, change)

    def is_copied(self, s: Store) -> bool:
        """Whether a store is a copy that no other prefetched statement depends on. Updates depend on earlier stores."""
        is_plain = s.manner is Manner.PLAIN and s.mask is None
        return is_plain and isinstance(s.value, Load) and not self.graph.producer[s.buffer].updates

    def expression(self, e: Expr, lets: Lets) -> Expr:
        def load(n: Expr) -> Expr | None:
            if isinstance(n, Load) and n.buffer in self.realized:
                return Load(n.dtype, n.lanes, n.buffer, self.places(n.buffer, n.indices, lets), n.mask)
            return None

        return transform(e, load, concerns=lambda n: not self.realized.keys().isdisjoint(loaded(n)))

    def places(self, buffer: str, indices: tuple[Expr, ...], lets: Lets) -> tuple[Expr, ...]:
        lows = (low for low, _ in self.realized[buffer].box)
        return (self.slot, *(self.place(i, low, lets) for i, low in zip(indices, lows, strict=True)))

    def place(self, index: Expr, low: Expr, lets: Lets) -> Expr:
        return lets.once(id(low), index, lambda i: _from(i, low, lets.values))


def _from(index: Expr, low: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return the index relative to `low`, the first one."""
    if isinstance(index, Ramp):
        return replace(index, base=_from(index.base, low, values))
    if index.lanes > 1:
        return combined("sub", index, low)
    return simplify(substitute(index - low, values))
