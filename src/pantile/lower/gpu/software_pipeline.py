"""Computed ahead: while threads use what one iteration of a loop needs, what a later one needs is on its way.

before:  for k in 0..n:                          after:  realize f: [0..2, 0..64] in shared
             realize f: [16*k..16*k + 64]                if 0 < n: thread for p: f[0, p] = img[p]
             thread for p: f[16*k + p] = img[...]        commit
             thread for q: sums[q] += f[16*k + q]        for k in 0..n:
                                                             wait
                                                             barrier
                                                             if k + 1 < n: thread for p: f[(k + 1)%2, p] = img[...]
                                                             commit
                                                             thread for q: sums[q] += f[k%2, q]

One barrier is enough: behind it, all threads see what was computed ahead for this iteration, and all are done with the
one before, whose slot is the next to be filled. Which copies are asynchronous is decided later (`asynchronous`).
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
from ...ir.nodes import Barrier, Block, Commit, For, If, Manner, Produce, Realize, Stmt, Store, Wait
from ...ir.visit import block, children, expressions, map_exprs, rebuild, walk
from ...schedule.plan import Plan
from ...target.kinds import Kind, Memory
from ..extent_bounds import most
from ..footprint import step
from ..names import loop_name, of_loop
from ..refuse import no_constant_size
from ..vectorize import combined
from .disjoint import stores_once
from .lets import Lets

_NOTHING = Block(())


def software_pipeline(body: Stmt, graph: Graph, plan: Plan) -> Stmt:
    """Loops at which stages are computed ahead, with a slot for each iteration whose values there are at one time."""
    stages: dict[str, dict[str, int]] = {}
    for p in plan.stages.values():
        if p.ahead and p.compute is not None:
            site = p.compute
            loop = loop_name(graph.stage[site.stage], site.definition, site.loop)
            stages.setdefault(loop, {})[p.name] = p.ahead
    return _visit(body, graph, stages, {}, Lets({})) if stages else body


def _visit(s: Stmt, graph: Graph, stages: Mapping[str, Mapping[str, int]], scope: Scope, lets: Lets) -> Stmt:
    """`lets`: those around."""
    within = lets.inside(s)
    s = rebuild(s, expressions(s), tuple([_visit(c, graph, stages, inner, within) for c, inner in step(s, scope)]))
    if isinstance(s, For) and s.kind is Kind.SERIAL and s.var in stages:
        return _Ahead(s, graph, stages[s.var], scope, lets).loop()
    return s


@dataclass(frozen=True)
class _Parts:
    """What a statement does ahead, and what it does in time."""

    ahead: Stmt
    rest: Stmt


class _Ahead:
    """One loop, and the stages computed ahead in it."""

    def __init__(self, s: For, graph: Graph, stages: Mapping[str, int], scope: Scope, lets: Lets) -> None:
        self.lets = lets
        self.s, self.graph, self.stages, self.scope = s, graph, stages, scope
        self.distance = max(stages.values())
        self.slots = self.distance + 1
        self.slot = simplify(Var(INDEX, 1, s.var) - s.min) % self.slots  # of an iteration
        self.realized: dict[str, Realize] = {}  # by buffer, as the loop has it
        self.made: list[Realize] = []

    def loop(self) -> Stmt:
        ((body, scope),) = step(self.s, self.scope)
        parts = self.parts(body, scope)
        if not self.realized:
            return self.s
        ahead, rest = self.copied(self.in_slots(parts.ahead, self.lets)), self.in_slots(parts.rest, self.lets)
        v, end = var(self.s.var), self.s.min + self.s.extent
        later = self.at(ahead, v + self.distance)
        result = block(
            self.first(ahead, end),
            replace(
                self.s,
                body=block(Wait(self.distance - 1), Barrier(), If(v + self.distance < end, later), Commit(), rest),
            ),
        )
        for r in reversed(self.made):
            result = replace(r, body=result)
        return result

    def first(self, ahead: Stmt, end: Expr) -> Stmt:
        """What the first iterations need."""
        if self.distance == 1:
            return block(If(self.s.extent > 0, self.at(ahead, self.s.min)), Commit())
        early = var(of_loop(self.s.var, "early"))
        each = block(If(early < end, self.at(ahead, early)), Commit())
        return For(early.name, self.s.min, const(self.distance, INDEX), Kind.SERIAL, each)

    def at(self, s: Stmt, value: Expr) -> Stmt:
        """A statement as it runs in another iteration of the loop."""
        return map_exprs(s, lambda e: substitute(e, {self.s.var: value}))

    # Taking apart

    def parts(self, s: Stmt, scope: Scope) -> _Parts:
        if isinstance(s, Produce) and s.stage in self.stages:
            return _Parts(s, _NOTHING)
        if isinstance(s, Realize) and self.is_ahead(s):
            self.realized[s.buffer] = s
            self.made.append(self.with_slots(s, scope))
            return self.parts(s.body, scope)
        if isinstance(s, For) or not any(isinstance(i, Produce) and i.stage in self.stages for i in walk(s)):
            return _Parts(_NOTHING, s)
        inside = [self.parts(c, inner) for c, inner in step(s, scope)]
        if isinstance(s, Block):
            return _Parts(block(*(p.ahead for p in inside)), block(*(p.rest for p in inside)))
        if isinstance(s, Realize):  # of something else, which only the rest can use
            return _Parts(inside[0].ahead, replace(s, body=inside[0].rest))
        return _Parts(
            *(rebuild(s, expressions(s), of) for of in (tuple(p.ahead for p in inside), tuple(p.rest for p in inside)))
        )

    def is_ahead(self, s: Realize) -> bool:
        stage = self.graph.producer.get(s.buffer)
        return stage is not None and stage.name in self.stages

    def with_slots(self, s: Realize, scope: Scope) -> Realize:
        """As much memory as an iteration needs at most, for each slot."""
        zero, sides = const(0, INDEX), list[tuple[Expr, Expr]]()
        for _, extent in s.box:
            n = most(extent, scope)
            if n is None:
                raise no_constant_size(self.graph.producer[s.buffer], s.memory)
            sides.append((zero, const(max(n, 1), INDEX)))
        return Realize(s.buffer, s.dtype, ((zero, const(self.slots, INDEX)), *sides), Memory.SHARED, s.body, self.slots)

    # Accesses

    def in_slots(self, s: Stmt, lets: Lets) -> Stmt:
        """Accesses in the slot of the iteration, counted from where its values begin. `lets`: those around, in whose
        values what threads have in common cancels out."""
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
        """With copies that no thread waits for one by one, of buffers in which they are all at different places: nobody
        knows which one of two arrives last, and what is there if they are of one group is undefined."""
        apart = {buffer for buffer in self.realized if stores_once(ahead, buffer)}

        def change(s: Stmt) -> Stmt | None:
            if isinstance(s, Store) and s.buffer in apart and self.is_copied(s):
                return replace(s, manner=Manner.ASYNCHRONOUS)
            return None

        return ir.transform(ahead, change)

    def is_copied(self, s: Store) -> bool:
        """Whether a store is a copy that nothing computed ahead depends on: updates follow what they change."""
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
    """How far an index is from the first one."""
    if isinstance(index, Ramp):
        return replace(index, base=_from(index.base, low, values))
    if index.lanes > 1:
        return combined("sub", index, low)
    return simplify(substitute(index - low, values))
