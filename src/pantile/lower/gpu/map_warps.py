"""Map warps: the iterations of a warp loop are warps of 32 threads, those of the lane loops inside it their lanes.

before:  warp for w in 0..4:                             after:  thread for w in 0..4: thread for lane in 0..32:
             realize g: [x.min..x.min + 32]                          realize g: [0..1], g.from.2: [0..1]
             lane for q in x.min..x.min + 32:                        let q = x.min + lane
                 g[q] = a[q]                                         g[0] = a[q]
             lane for x in x.min..x.min + 30:                        g.from.2[0] = shfl(g[0], min(lane + 2, 31))
                 f[x] = g[x] + g[x + 2]                              let x = x.min + min(lane, 29)
                                                                     if lane < 30: f[x] = g[0] + g.from.2[0]

All lanes execute all of it, so that each can take part in warp shuffles (one overlapped tile per warp, as Jangda and
Guha describe it: Model-Based Warp Overlapped Tiling for Image Processing Programs on GPUs, PACT 2020). Lanes beyond the
trip count repeat the work of the last one and store nothing that others see. How a buffer is distributed over lanes,
and read from other lanes, is described in `warp_shuffles`.

Sums, minima and other associative reductions are butterfly reductions over distances 16, 8, 4, 2 and 1, after which all
lanes have the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ...analysis.interval import Scope
from ...expr.build import broadcast, minimum, select
from ...expr.linear import Linear, simplify
from ...expr.nodes import Const, Expr, Instruction, Load, Op, Var, const, neutral, op, var
from ...expr.types import INDEX
from ...expr.visit import each_once, loaded, same, transform, walk, walk_loads
from ...expr.visit import rebuild as rebuild_expr
from ...ir.instructions import shuffle
from ...ir.nodes import For, If, Let, Realize, Stmt, Store
from ...ir.visit import expressions, rebuild
from ...ir.visit import walk as statements
from ...schedule.updates import ASSOCIATIVE
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind, Memory
from ..extent_bounds import most
from ..footprint import step
from ..names import of_buffer, of_loop
from .let_sums import Named
from .warp_shuffles import At, DistributedBuffer, Refuse, WarpAccess, first_lane, without

_ZERO = const(0, INDEX)
_OF_BLOCKS = (Kind.BLOCK, Kind.WARP, Kind.THREAD, Kind.LANE)


def map_warps(body: Stmt, refuse: Refuse) -> Stmt:
    """Replace warp and lane loops by thread loops."""
    has_lanes = any(isinstance(s, For) and s.kind in (Kind.WARP, Kind.LANE) for s in statements(body))
    return _visit(body, refuse, Named(), {}) if has_lanes else body


def _visit(s: Stmt, refuse: Refuse, named: Named, scope: Scope) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.WARP:
        ((inner, scope),) = step(s, scope)
        is_last = not any(isinstance(i, For) and i.kind is Kind.WARP for i in statements(inner))
        lane = of_loop(s.var, "lane")
        made = _Warp(lane, refuse, inner).made(named, scope) if is_last else _visit(inner, refuse, named, scope)
        if is_last:
            made = For(lane, _ZERO, const(WARP_SIZE, INDEX), Kind.THREAD, made)
        return For(s.var, s.min, s.extent, Kind.THREAD, made)
    alone = _lanes_alone(s)
    if alone is not None:  # the tail of a warp loop, for one warp
        warp = For(of_loop(alone.var, "warp"), _ZERO, const(1, INDEX), Kind.WARP, s)
        return _visit(warp, refuse, named, scope)
    named = named.inside(s)
    return rebuild(s, expressions(s), tuple([_visit(c, refuse, named, inner) for c, inner in step(s, scope)]))


def _lanes_alone(s: Stmt) -> For | None:
    """The first lane loop of a statement that has lane loops but no block, warp or thread loops."""
    loops = [i for i in statements(s) if isinstance(i, For) and i.kind in _OF_BLOCKS]
    return loops[0] if loops and all(i.kind is Kind.LANE for i in loops) else None


class _Warp:
    """The work of one warp; `lane` is the name of a thread's number in it."""

    def __init__(self, lane: str, refuse: Refuse, body: Stmt) -> None:
        self.lane, self.refuse, self.body = var(lane), refuse, body
        self.own = {i.buffer for i in statements(body) if isinstance(i, Realize)}
        self.parts = set[str]()  # those of which each lane has its own values
        self.distributed: dict[int, DistributedBuffer] = {}  # by id of their Realize, which is in no lane loop
        self.others: dict[str, list[WarpAccess]] = {}  # accesses of buffers that are not the warp's own
        self.changed = set[str]()  # those that the warp both stores to and reads
        self.count = 0

    def made(self, named: Named, scope: Scope) -> Stmt:
        at = At(named, scope)
        self.note(self.body, at, {})
        self.check_others()
        for buffer in self.distributed.values():
            buffer.decide()
            if buffer.distribution is not None:
                self.own.update(buffer.buffers)
                self.parts.update(buffer.buffers)
        return self.lanes(self.rewritten(self.body, at, {}), at)

    def check_others(self) -> None:
        """Refuse stores to shared buffers that another lane of the warp reads, since lanes do not wait for each other's
        stores.
        """
        for buffer, accesses in self.others.items():
            if {a.is_store for a in accesses} == {True, False}:
                self.changed.add(buffer)
                if len({self.moved(a) for a in accesses}) > 1:
                    raise self.refuse(buffer, "one lane would read what another has stored in memory")

    def moved(self, a: WarpAccess) -> tuple[tuple[int, str], ...]:
        """The elements of each dim that a lane accesses, as far as they depend on its number: stride and start."""
        forms = [a.at.named.form(first_lane(i)) for i in a.indices]
        steps = [(f, f.coefficient(a.at.number)) for f in forms]
        return tuple((n, str(simplify(self.begin(f, n, a.at)))) if n else (0, "") for f, n in steps)

    def begin(self, form: Linear, step: int, at: At) -> Expr:
        """The start of a lane's elements without its number; loops that stay within its elements do not count."""
        turns = [(name, form.coefficient(name), turn.most) for name, turn in at.turns.items()]
        far = sum(n * (most - 1) if most is not None and n >= 0 else step for _, n, most in turns if n)
        return without(form, at.number, *(at.turns if far < step else ()))

    # Registers of lanes

    def note(self, s: Stmt, at: At, current: Mapping[str, DistributedBuffer]) -> None:
        """Collect accesses; `current` has the buffers that may be distributed over lanes, by name."""
        accesses = [(e.buffer, WarpAccess(e.indices, at, False)) for e in walk_loads(*expressions(s))]
        if isinstance(s, Store):
            accesses.append((s.buffer, WarpAccess(s.indices, at, True)))
        for buffer, access in accesses:
            if buffer in current:
                current[buffer].accesses.append(access)
            elif buffer not in self.own:
                self.others.setdefault(buffer, []).append(access)
        if isinstance(s, Realize) and at.loop is None and s.memory not in (Memory.SHARED, Memory.HEAP):
            self.distributed[id(s)] = DistributedBuffer(s, at, self.lane, self.refuse)
            current = {**current, s.buffer: self.distributed[id(s)]}
        for c, scope in step(s, at.scope):
            self.note(c, at.inside(s, scope), current)

    def rewritten(self, s: Stmt, at: At, current: Mapping[str, DistributedBuffer]) -> Stmt:
        """The statement with accesses of distributed buffers replaced by those of lanes."""
        mine = self.distributed.get(id(s))
        if mine is not None and mine.distribution is not None:
            current = {**current, mine.s.buffer: mine}
        inside = tuple([self.rewritten(c, at.inside(s, scope), current) for c, scope in step(s, at.scope)])
        touched = [n for n in current if any(n in loaded(e) for e in expressions(s))]
        new = expressions(s)
        if touched:
            places = [i for e in walk_loads(*expressions(s)) for i in e.indices]
            places += s.indices if isinstance(s, Store) else ()
            in_places = {n for n in touched if any(n in loaded(i) for i in places)}

            def load(e: Expr) -> Expr | None:
                if not isinstance(e, Load) or e.buffer not in current:
                    return None
                return current[e.buffer].load(e, at, e.buffer in in_places)

            new = tuple([transform(e, load, concerns=loaded) for e in new])
        s = rebuild(s, new, inside)
        if isinstance(s, Store) and s.buffer in current:
            return current[s.buffer].store(s, at)
        return (
            mine.realized(s.body)
            if mine is not None and mine.distribution is not None and isinstance(s, Realize)
            else s
        )

    # Loops of lanes

    def lanes(self, s: Stmt, at: At) -> Stmt:
        """The work of one lane."""
        if isinstance(s, Store):
            return self.store(s, at)
        if isinstance(s, Realize) and at.loop is not None:
            self.parts.add(s.buffer)
        inside = tuple([self.lanes(c, at.inside(s, scope)) for c, scope in step(s, at.scope)])
        if not at.decides_alike(s) and any(map(_has_shuffles, inside)):
            buffer = next(i.buffer for i in statements(s) if isinstance(i, Store))
            raise self.refuse(buffer, "a condition that is not the same for all lanes decides about what they exchange")
        if isinstance(s, For) and s.kind is Kind.LANE:
            return self.dissolved(s, at, inside[0])
        return self.with_reads(s, inside, at)

    def dissolved(self, s: For, at: At, body: Stmt) -> Stmt:
        extent = simplify(s.extent)
        largest = most(extent, at.scope)
        if largest is None or largest > WARP_SIZE:
            stored = next((i.buffer for i in statements(body) if isinstance(i, Store)), "")
            count = "an unknown number of" if largest is None else str(largest)
            raise self.refuse(stored, f"there are {count} iterations for {WARP_SIZE} lanes")
        number = self.lane if largest == WARP_SIZE and isinstance(extent, Const) else minimum(self.lane, extent - 1)
        made: Stmt = Let(of_loop(s.var, "lane"), number, Let(s.var, s.min + var(of_loop(s.var, "lane")), body))
        return made if isinstance(extent, Const) else If(extent >= 1, made)

    def store(self, s: Store, at: At) -> Stmt:
        if s.buffer not in self.parts and at.loop is not None and not any(at.differs(i) for i in s.indices):
            return self.combined(s, at)
        if s.buffer in self.own or at.loop is not None and at.all_lanes_work:
            return self.with_reads(s, (), at)
        return self.by(self.works(at), self.with_reads(s, (), at, guarded=True))

    def works(self, at: At) -> Expr:
        """Whether a lane is one of those that store to memory that others see."""
        return self.lane < 1 if at.loop is None else self.lane < at.loop.extent

    def with_reads(self, s: Stmt, inside: tuple[Stmt, ...], at: At, guarded: bool = False) -> Stmt:
        return rebuild(s, tuple([self.read(e, at, guarded) for e in expressions(s)]), inside)

    def read(self, e: Expr, at: At, guarded: bool = False) -> Expr:
        """Read what this warp stores by the lane that has stored it, from which other lanes get it by a shuffle.

        With `guarded`, only storing lanes execute this.
        """

        def load(n: Expr) -> Expr | None:
            if not isinstance(n, Load) or n.buffer not in self.changed:
                return None
            if any(at.differs(i) for i in n.indices):
                return n if guarded or at.all_lanes_work else self.masked(n, self.works(at))
            if guarded and at.loop is None:
                return n
            return shuffle(self.masked(n, self.lane < 1), _ZERO)

        return transform(e, load, concerns=lambda n: not self.changed.isdisjoint(loaded(n)))

    def masked(self, e: Load, condition: Expr) -> Load:
        mask = broadcast(condition, e.lanes)
        return replace(e, mask=mask if e.mask is None else mask & e.mask)

    def by(self, condition: Expr, s: Stmt) -> Stmt:
        """Predicate a store.

        All lanes take part in its shuffles and compute what depends on these, except for values that depend on the
        warp's own stores: those are read by the lane that has stored them.
        """
        assert isinstance(s, Store)
        buffer, memo, lets = s.buffer, dict[int, Expr](), list[tuple[str, Expr]]()

        def is_for_all(e: Expr) -> bool:
            return isinstance(e, Instruction) or self.changed.isdisjoint(loaded(e))

        def visit(e: Expr) -> Expr:
            if not _exchanges(e):
                return e
            if not is_for_all(e):
                return rebuild_expr(e, tuple([memo[id(c)] for c in e.operands]))
            lets.append((self.fresh(buffer), e))
            return Var(e.dtype, e.lanes, lets[-1][0])

        def inside(e: Expr) -> tuple[Expr, ...]:
            return e.operands if _exchanges(e) and not is_for_all(e) else ()

        some = rebuild(s, tuple([each_once(e, memo, visit, inside) for e in expressions(s)]), ())
        made: Stmt = If(condition, some)
        for name, e in reversed(lets):
            made = Let(name, e, made)
        return made

    def fresh(self, buffer: str) -> str:
        self.count += 1
        return of_buffer(buffer, "combined", self.count)

    def combined(self, s: Store, at: At) -> Stmt:
        """Reduce the values that lanes accumulate at one place by a butterfly of shuffles."""
        assert at.loop is not None
        accumulation = _accumulated(s)
        if accumulation is None:
            raise self.refuse(s.buffer, "lanes would store different values in one place")
        value, operation = self.read(accumulation.term, at), accumulation.operation
        if not at.all_lanes_work:
            value = select(self.lane < at.loop.extent, value, neutral(operation, value.dtype))
        lets = [(self.fresh(s.buffer), value)]
        distance = WARP_SIZE // 2
        while distance:
            mine = Var(value.dtype, 1, lets[-1][0])
            other = shuffle(mine, op("xor", self.lane, const(distance, INDEX)))
            lets.append((self.fresh(s.buffer), op(operation, mine, other)))
            distance //= 2
        total = Var(value.dtype, 1, lets[-1][0])
        made: Stmt = Store(s.buffer, s.indices, op(operation, accumulation.kept, total), s.mask, s.manner)
        made = made if s.buffer in self.own else If(self.lane < 1, made)
        for name, e in reversed(lets):
            made = Let(name, e, made)
        return made


class _Accumulated(NamedTuple):
    operation: str
    kept: Expr  # the load of the place itself
    term: Expr


def _accumulated(s: Store) -> _Accumulated | None:
    """The term that a store accumulates at its place, and the operation."""
    value = s.value
    if not isinstance(value, Op) or value.op not in ASSOCIATIVE or value.lanes > 1 or s.mask is not None:
        return None
    for kept, term in (value.args, value.args[::-1]):
        is_here = isinstance(kept, Load) and kept.buffer == s.buffer and all(map(same, kept.indices, s.indices))
        if is_here and s.buffer not in loaded(term):
            return _Accumulated(value.op, kept, term)
    return None


def _has_shuffles(s: Stmt) -> bool:
    return any(_exchanges(*expressions(i)) for i in statements(s))


def _exchanges(*expressions: Expr) -> bool:
    return any(isinstance(e, Instruction) for e in walk(*expressions))
