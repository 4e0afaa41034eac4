"""Map lanes: the iterations of lane loops become the lanes of a warp, which exchange values by shuffles.

before:  thread for w in 0..4: thread for lane in 0..32:     after:  thread for w in 0..4: thread for lane in 0..32:
             lane for x.lane in 0..30:                                   let x.lane = min(lane, 29)
                 let x = x.min + x.lane                                  let x = x.min + x.lane
                 f[x] = ...                                              if lane < 30: f[x] = ...

All lanes execute the whole body, so that each can take part in warp shuffles. Lanes beyond the trip count repeat the
work of the last iteration and store nothing that others see. If lane loops are nested, each counts one digit of the
lane's number.

Sums, minima and other associative reductions are butterfly reductions over distances 16, 8, 4, 2 and 1, after which all
lanes have the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ...analysis.interval import Scope
from ...errors import UserError
from ...expr.build import broadcast, minimum, select
from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Const, Expr, Instruction, Load, Op, Var, const, neutral, op, var
from ...expr.types import INDEX
from ...expr.visit import each_once, loaded, same, transform, union, walk, walk_loads
from ...expr.visit import rebuild as rebuild_expr
from ...ir.instructions import shuffle
from ...ir.nodes import For, If, Let, Realize, Stmt, Store
from ...ir.visit import children, expressions, rebuild
from ...ir.visit import walk as statements
from ...schedule.updates import ASSOCIATIVE
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind
from ..extent_bounds import most
from ..footprint import step
from ..names import of_buffer
from .insert_warp_barriers import shared_by_lanes
from .let_sums import Named
from .own_registers import ZERO, Indices
from .thread_context import At, first_lane, without

Refuse = Callable[[str, str], UserError]  # a buffer, and the reason


def map_lanes(body: Stmt, refuse: Refuse) -> Stmt:
    """Replace lane loops by the lanes of the thread loops around them."""
    return _visit(body, refuse, Named(), {}, frozenset())


def _visit(s: Stmt, refuse: Refuse, named: Named, scope: Scope, held: frozenset[str]) -> Stmt:
    """Map the lane loops of a statement. `held` has the buffers of the block that are distributed to its lanes."""
    if isinstance(s, For) and s.kind is Kind.THREAD and s.digit is not None:
        ((inner, scope),) = step(s, scope)
        return replace(s, body=_Warp(s.var, refuse, inner, held).made(named, scope))
    if isinstance(s, Realize) and s.layout is not None:
        held |= {s.buffer}
    named = named.inside(s)
    return rebuild(s, expressions(s), tuple([_visit(c, refuse, named, inner, held) for c, inner in step(s, scope)]))


class _Warp:
    """The work of one warp. `lane` is the name of a thread's number within the warp."""

    def __init__(self, lane: str, refuse: Refuse, body: Stmt, held: frozenset[str]) -> None:
        self.lane, self.refuse, self.body = var(lane), refuse, body
        self.shared = shared_by_lanes(body)  # lanes wait for each other between accesses of these
        self.own = held.union(i.buffer for i in statements(body) if isinstance(i, Realize)) - self.shared
        self.parts = set(held)  # buffers of which each lane has its own values
        self.others: dict[str, list[_Access]] = {}  # accesses of buffers that are not the warp's own
        self.changed = _updated(body, self.shared)  # buffers that the warp both stores to and reads
        self.count = 0

    def made(self, named: Named, scope: Scope) -> Stmt:
        at = At(named, scope)
        self.note(self.body, at)
        self.check_others()
        return self.lanes(self.body, at)

    def check_others(self) -> None:
        """Refuse stores to memory that another lane of the warp reads, since lanes do not wait for each other's stores
        there.
        """
        for buffer, accesses in self.others.items():
            if {a.is_store for a in accesses} == {True, False}:
                self.changed.add(buffer)
                if not _are_apart({self.moved(a) for a in accesses}):
                    raise self.refuse(buffer, "one lane would read what another has stored in memory")

    def moved(self, a: _Access) -> tuple[_Moved, ...]:
        """Return which elements a lane accesses along each dim, as a function of the lane's number."""
        made = list[_Moved]()
        for i in a.indices:
            form = a.at.named.form(first_lane(i))
            steps = tuple((x.weight, n, x.lanes) for x in a.at.loops if (n := form.coefficient(x.var)))
            begin = linear(simplify(self.begin(form, steps[-1][1], a.at))) if steps else Linear(0)
            made.append(_Moved(steps, str(begin.plus(Linear(-begin.constant)).expr()), begin.constant))
        return tuple(made)

    def begin(self, form: Linear, step: int, at: At) -> Expr:
        """The first element that a lane accesses, without the terms of its number. Loops that stay within the lane's
        own elements are left out."""
        turns = [(name, form.coefficient(name), turn.most) for name, turn in at.turns.items()]
        far = sum(n * (most - 1) if most is not None and n >= 0 else step for _, n, most in turns if n)
        return without(form, *at.variables, *(at.turns if far < step else ())).expr()

    def note(self, s: Stmt, at: At) -> None:
        """Collect the accesses of buffers that are not the warp's own, and the buffers of which each lane has its own
        values."""
        accesses = [(e.buffer, e.indices, False) for e in walk_loads(*expressions(s))]
        accesses += [(s.buffer, s.indices, True)] if isinstance(s, Store) else []
        for buffer, indices, is_store in accesses:
            if buffer not in self.own and buffer not in self.shared:
                self.others.setdefault(buffer, []).append(_Access(indices, at, is_store))
        if isinstance(s, Realize) and s.buffer not in self.shared and (at.loops or s.layout is not None):
            self.parts.add(s.buffer)
        for c, scope in step(s, at.scope):
            self.note(c, at.inside(s, scope))

    # Loops of lanes

    def lanes(self, s: Stmt, at: At) -> Stmt:
        """Return the work of one lane."""
        if isinstance(s, Store):
            return self.store(s, at)
        inside = tuple([self.lanes(c, at.inside(s, scope)) for c, scope in step(s, at.scope)])
        if not at.decides_alike(s) and any(map(_has_shuffles, inside)):
            buffer = next(i.buffer for i in statements(s) if isinstance(i, Store))
            raise self.refuse(buffer, "a condition that is not the same for all lanes decides about what they exchange")
        if isinstance(s, For) and s.kind is Kind.LANE:
            return self.dissolved(s, at, inside[0])
        return self.with_reads(s, inside, at)

    def dissolved(self, s: For, at: At, body: Stmt) -> Stmt:
        """Return the iteration of one lane. `at` is the context around the loop."""
        (loop,) = at.inside(s, at.scope).loops[len(at.loops) :]
        extent, room = simplify(s.extent), WARP_SIZE // loop.weight
        largest, is_outermost = most(extent, at.scope), not at.loops
        if largest is None or largest > room:
            stored = next((i.buffer for i in statements(body) if isinstance(i, Store)), "")
            count = "an unknown number of" if largest is None else str(largest)
            raise self.refuse(stored, f"there are {count} iterations for {room} lanes")
        number = loop.number(self.lane, is_outermost)
        if not isinstance(extent, Const) or largest * loop.weight < (WARP_SIZE if is_outermost else loop.span):
            number = minimum(number, extent - 1)
        made: Stmt = Let(s.var, number, body)
        return made if isinstance(extent, Const) else If(extent >= 1, made)

    def store(self, s: Store, at: At) -> Stmt:
        if s.buffer not in self.parts:
            still = [x for x in at.loops if not any(replace(at, loops=(x,)).differs(i) for i in s.indices)]
            if still and len(still) == len(at.loops):
                return self.combined(s, at)
            if any(x.lanes > 1 for x in still):
                raise self.refuse(s.buffer, "lanes would store different values in one place")
        if s.buffer in self.own or at.all_lanes_work:
            return self.with_reads(s, (), at)
        return self.by(at.works(self.lane), self.with_reads(s, (), at, guarded=True))

    def with_reads(self, s: Stmt, inside: tuple[Stmt, ...], at: At, guarded: bool = False) -> Stmt:
        return rebuild(s, tuple([self.read(e, at, guarded) for e in expressions(s)]), inside)

    def read(self, e: Expr, at: At, guarded: bool = False) -> Expr:
        """Rewrite loads of what this warp stores: the lane that has stored a value loads it, and other lanes get it by
        a shuffle.

        With `guarded`, only the storing lanes execute the expression.
        """

        def load(n: Expr) -> Expr | None:
            if not isinstance(n, Load) or n.buffer not in self.changed:
                return None
            if any(at.differs(i) for i in n.indices):
                return n if guarded or at.all_lanes_work else self.masked(n, at.works(self.lane))
            if guarded and not at.loops:
                return n
            return n if n.buffer in self.shared else shuffle(self.masked(n, self.lane < 1), ZERO)

        return transform(e, load, concerns=lambda n: not self.changed.isdisjoint(loaded(n)))

    def masked(self, e: Load, condition: Expr) -> Load:
        mask = broadcast(condition, e.lanes)
        return replace(e, mask=mask if e.mask is None else mask & e.mask)

    def by(self, condition: Expr, s: Stmt) -> Stmt:
        """Predicate a store.

        All lanes take part in its shuffles and compute what depends on them. Values that depend on the warp's own
        stores are an exception: only the lane that has stored these may load them.
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
        """Reduce the values that lanes accumulate into one element by a butterfly of shuffles."""
        accumulation = _accumulated(s)
        if accumulation is None:
            raise self.refuse(s.buffer, "lanes would store different values in one place")
        value, operation = self.read(accumulation.term, at), accumulation.operation
        if not at.all_lanes_work:
            value = select(at.works(self.lane), value, neutral(operation, value.dtype))
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


class _Access(NamedTuple):
    """A load or store and its context."""

    indices: Indices
    at: At
    is_store: bool


class _Moved(NamedTuple):
    """The elements of a dim that lanes access. `steps` has, for each lane loop, the weight of its digit, the distance
    between the elements of consecutive lanes, and the number of lanes. `begin` and `constant` tell where the elements
    of the first lane begin."""

    steps: tuple[tuple[int, int, int], ...]
    begin: str
    constant: int

    def may_meet(self, other: _Moved) -> bool:
        """Whether two different lanes may access the same element of the dim, one by this access and the other by
        `other`."""
        far = abs(self.constant - other.constant)
        if len(self.steps) > 1 or far == 0:
            return far > 0
        ((_, distance, lanes),) = self.steps
        return far % distance == 0 and far < abs(distance) * lanes


def _are_apart(accesses: Collection[tuple[_Moved, ...]]) -> bool:
    """Whether no element is accessed by more than one lane."""
    if len({tuple([(m.steps, m.begin) for m in moved]) for moved in accesses}) > 1:
        return False
    return not any(
        any(m.may_meet(n) for m, n in zip(a, b, strict=True) if m.steps)
        and all(m.constant == n.constant or m.may_meet(n) for m, n in zip(a, b, strict=True) if m.steps)
        for a, b in combinations(accesses, 2)
    )


def _updated(s: Stmt, shared: set[str]) -> set[str]:
    """The buffers in `shared` that a single lane loop both stores to and reads: lanes do not wait for each other within
    a lane loop."""
    if not isinstance(s, For) or s.kind is not Kind.LANE:
        return set[str]().union(*(_updated(c, shared) for c in children(s)))
    stored = {i.buffer for i in statements(s) if isinstance(i, Store)}
    return shared.intersection(stored, union([loaded(e) for i in statements(s) for e in expressions(i)]))


class _Accumulated(NamedTuple):
    operation: str
    kept: Expr  # the load of the stored element itself
    term: Expr


def _accumulated(s: Store) -> _Accumulated | None:
    """The operation and the term by which a store accumulates into its element, or None."""
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
