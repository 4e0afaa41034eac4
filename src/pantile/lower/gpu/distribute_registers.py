"""Distribute registers: values that a block keeps in registers belong to the threads that compute them.

before:  realize sums: [i.min..i.min + 64, j.min..j.min + 64] in register
         thread for ti in 0..16: thread for tj in 0..16:
             sums[i.min + 4*ti + 1, j.min + 4*tj + 3] = ...
after:   realize sums: [0..4, 0..4] in register
         thread for ti in 0..16: thread for tj in 0..16:
             sums[1, 3] = ...

All thread loops that access such a buffer distribute it in the same way: those at one depth have the same extents, as
many threads inside, and move along a dim by the same steps, either each thread over elements of its own side by side,
or all of them over neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

from ...analysis.interval import Interval, Scope
from ...analysis.messages import readable
from ...dataclass import dataclass
from ...errors import UserError
from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Broadcast, Const, Expr, Load, Op, Ramp, Var, const
from ...expr.types import INDEX
from ...expr.visit import depends, loaded, substitute, transform
from ...ir.nodes import For, Let, Realize, Stmt, Store
from ...ir.visit import children, expressions, rebuild, walk
from ...target.kinds import Kind, Memory
from ..extent_bounds import most
from ..footprint import step
from ..names import of_loop
from .lets import Lets

Refuse = Callable[[Realize, str], UserError]  # the buffer, and the reason


_OF_A_THREAD = (Memory.REGISTER, Memory.STACK)
_MOST_CASES = 1024  # alternatives of an index made of nested minima and maxima


def distribute_registers(body: Stmt, refuse: Refuse, small: bool = False) -> Stmt:
    """Turn registers allocated outside of thread loops into registers of each thread.

    With `small`, blocks were shrunk to fit small arrays; buffers that threads cannot keep then go to shared memory.
    """
    return _Visitor(refuse, small).visit(body, {})


@dataclass(frozen=True)
class _Visitor:
    refuse: Refuse
    small: bool

    def visit(self, s: Stmt, values: Mapping[str, Expr]) -> Stmt:
        """Visit a statement; `values` are those of the lets around it."""
        if isinstance(s, For) and s.kind is Kind.THREAD:
            return s
        if isinstance(s, Realize) and s.memory in _OF_A_THREAD and _is_used_by_threads(s):
            s = self.distributed(s, values)
        inner = values
        if isinstance(s, Let) and s.value.dtype == INDEX:
            inner = {**values, s.name: substitute(s.value, values)}
        return rebuild(s, expressions(s), tuple([self.visit(c, inner) for c in children(s)]))

    def distributed(self, s: Realize, values: Mapping[str, Expr]) -> Realize:
        try:
            return _Distributor(s, self.refuse, values).result()
        except UserError:
            if not self.small:
                raise
            return replace(s, memory=Memory.SHARED)


def _is_used_by_threads(s: Realize) -> bool:
    """Whether thread loops access the buffer. What is outside of all of them is done by one thread, which owns it."""
    loops = (i for i in walk(s.body) if isinstance(i, For) and i.kind is Kind.THREAD)
    return any(_touches(i, s.buffer) for loop in loops for i in walk(loop))


def _touches(s: Stmt, buffer: str) -> bool:
    return isinstance(s, Store) and s.buffer == buffer or any(buffer in loaded(e) for e in expressions(s))


class _Loop(NamedTuple):
    """A thread loop: its depth among thread loops, its number of threads, and the distance between their numbers."""

    depth: int
    threads: int
    apart: int


class _Step(NamedTuple):
    """How far the threads of a loop move along a dim."""

    loop: _Loop
    distance: int

    @property
    def threads(self) -> int:
        return self.loop.threads


@dataclass(frozen=True)
class _At:
    """The thread loops around a statement by their variables, and the lets around it."""

    threads: Mapping[str, _Loop]
    lets: Lets
    own: Mapping[str, Expr]  # iterations done so far, of loops that begin elsewhere in each thread
    scope: Scope  # of the variables of loops

    @property
    def values(self) -> Mapping[str, Expr]:
        return self.lets.values

    def inside(self, s: Stmt) -> _At:
        if isinstance(s, Let):
            return replace(self, lets=self.lets.inside(s))
        if not isinstance(s, For):
            return self
        number, begin, extent = Var(INDEX, 1, s.var), substitute(s.min, self.values), substitute(s.extent, self.values)
        if s.kind is Kind.THREAD:
            loop = _Loop(len(self.threads), _count(s, self.values), _threads_inside(s, self.values))
            # The variable counts from its first value on: that moves with the block, not with the thread.
            lets, scope = self.lets.having(s.var, begin + number), self.having(s.var, extent)
            return _At({**self.threads, s.var: loop}, lets, self.own, scope)
        if depends(begin, self.threads):
            turn = Var(INDEX, 1, of_loop(s.var, "turn"))
            own = {**self.own, turn.name: number - s.min}
            return _At(self.threads, self.lets.having(s.var, begin + turn), own, self.having(turn.name, extent))
        ((_, scope),) = step(replace(s, min=begin, extent=extent), self.scope)
        return replace(self, lets=Lets(self.values), scope=scope)

    def having(self, counter: str, extent: Expr) -> Scope:
        """The scope with another variable that counts so many iterations."""
        last = most(extent - 1, self.scope)
        return {**self.scope, counter: Interval(0, last)}


def _count(loop: For, values: Mapping[str, Expr]) -> int:
    """The number of threads of a loop; 0 if that is not constant."""
    extent = simplify(substitute(loop.extent, values))
    return int(extent.value) if isinstance(extent, Const) else 0


def _threads_inside(loop: For, values: Mapping[str, Expr]) -> int:
    """The number of threads in each iteration of a thread loop, by the loops inside it; 0 if that is not one number."""

    def of(s: Stmt) -> set[int]:
        if isinstance(s, For) and s.kind is Kind.THREAD:
            return {_count(s, values) * _threads_inside(s, values)}
        return set().union(*map(of, children(s)))

    counts = of(loop.body)
    return 1 if not counts else counts.pop() if len(counts) == 1 else 0


def _first_lane(index: Expr) -> Expr:
    if isinstance(index, Ramp):
        return index.base
    return index.value if isinstance(index, Broadcast) else index


class _Distributor:
    def __init__(self, s: Realize, refuse: Refuse, values: Mapping[str, Expr]) -> None:
        self.s, self.values = s, values
        self.refuse = refuse
        self.steps: dict[int, tuple[_Step, ...]] = {}  # per dim, the same for all accesses

    def result(self) -> Realize:
        body = self.statement(self.s.body, _At({}, Lets(self.values), {}, {}))
        box = tuple((const(0, INDEX), const(self.own(k), INDEX)) for k in range(len(self.s.box)))
        return Realize(self.s.buffer, self.s.dtype, box, self.s.memory, body)

    def own(self, dim: int) -> int:
        """The number of elements that a thread holds along a dim."""
        extent = self.s.box[dim][1]
        if not isinstance(extent, Const):
            raise self.refuse(self.s, "its size there is not constant")
        shared = math.prod(step.threads for step in self.steps.get(dim, ()))
        if int(extent.value) % max(shared, 1):
            raise self.refuse(self.s, f"{shared} threads do not share {extent.value} values evenly")
        return int(extent.value) // shared

    def statement(self, s: Stmt, at: _At) -> Stmt:
        inner = at.inside(s)
        exprs = tuple([self.expression(e, at) for e in expressions(s)])
        s = rebuild(s, exprs, tuple([self.statement(c, inner) for c in children(s)]))
        if isinstance(s, Store) and s.buffer == self.s.buffer:
            return Store(s.buffer, self.places(s.indices, at), s.value, s.mask, s.manner)
        return s

    def expression(self, e: Expr, at: _At) -> Expr:
        if self.s.buffer not in loaded(e):
            return e

        def change(n: Expr) -> Expr | None:
            if isinstance(n, Load) and n.buffer == self.s.buffer:
                return Load(n.dtype, n.lanes, n.buffer, self.places(n.indices, at), n.mask)
            return None

        return transform(e, change, concerns=lambda n: self.s.buffer in loaded(n))

    def places(self, indices: tuple[Expr, ...], at: _At) -> tuple[Expr, ...]:
        """The indices relative to the elements that the thread holds."""
        if not at.threads:
            raise self.refuse(self.s, "it is used outside of threads")
        return tuple([at.lets.once(k, i, partial(self.along, k, at)) for k, i in enumerate(indices)])

    def along(self, dim: int, at: _At, index: Expr) -> Expr:
        """The index within a thread's share along one dim."""
        low = self.s.box[dim][0]
        form = linear(simplify(substitute(_first_lane(index), at.values) - substitute(low, at.values)))
        steps = self.moves(form, at)
        if self.steps.setdefault(dim, steps) != steps:
            raise self.refuse(self.s, "threads of one loop would read what those of another have computed")
        return self.lanes(index, self.place(form, dim, at, index.lanes if isinstance(index, Ramp) else 1), dim)

    def lanes(self, index: Expr, first: Expr, dim: int) -> Expr:
        """The indices of all lanes, which must be adjacent elements of one thread."""
        if isinstance(index, Broadcast):
            return replace(index, value=first)
        if not isinstance(index, Ramp):
            return first
        beyond = any(step.distance % index.lanes for step in self.steps[dim])
        if not isinstance(index.stride, Const) or index.stride.value != 1 or beyond:
            raise self.refuse(self.s, "lanes of one vector would belong to several threads")
        return replace(index, base=first)

    def moves(self, form: Linear, at: _At) -> tuple[_Step, ...]:
        steps = [_Step(loop, form.coefficient(name)) for name, loop in at.threads.items() if form.coefficient(name)]
        others = [a for a, _ in form.terms.values() if not isinstance(a, Var) and depends(a, at.threads)]
        if others:
            raise self.refuse(self.s, f"what a thread computes is not a box: {readable(others[0])}")
        if any(not step.threads or not step.loop.apart for step in steps):
            raise self.refuse(self.s, "the number of threads is not constant there")
        return tuple(steps)

    def place(self, form: Linear, dim: int, at: _At, lanes: int) -> Expr:
        rest = Linear(
            form.constant,
            {k: t for k, t in form.terms.items() if not (isinstance(t[0], Var) and t[0].name in at.threads)},
        )
        place: Expr = rest.expr()
        # The longest steps come first: threads with shorter steps share the values inside each of them.
        moves = sorted((m for m in self.steps[dim] if m.threads > 1), key=lambda move: -move.distance)
        cases = _few_cases(rest)
        if cases is None:
            raise self.refuse(self.s, "clamps around clamps hide which thread has computed what is read")
        if depends(place, at.threads) or not all(_is_own(case, moves, at.scope, lanes) for case in cases):
            raise self.refuse(self.s, "threads would read what others have computed")
        for move in moves:  # each thread has so many adjacent values; its next ones follow those of all threads
            each = const(move.distance, INDEX)
            place = place // (each * move.threads) * each + place % each
        return simplify(substitute(place, at.own))


def _few_cases(form: Linear) -> list[Linear] | None:
    """The alternatives of an index; None if there are too many to examine."""
    cases = list(islice(_cases(form), _MOST_CASES + 1))
    return cases if len(cases) <= _MOST_CASES else None


def _cases(form: Linear) -> Iterator[Linear]:
    """The alternatives of an index that is a minimum or maximum of several values."""
    for k, (atom, times) in form.terms.items():
        if isinstance(atom, Op) and atom.op in ("min", "max"):
            for case in atom.args:
                yield from _cases(form.without(k).plus(linear(case), times))
            return
    yield form


def _is_own(place: Linear, moves: Iterable[_Step], scope: Scope, lanes: int) -> bool:
    """Whether the first thread computes the value at an index, and each other thread the one as many steps later."""
    for move in moves:
        whole = move.distance * move.threads  # adjacent elements of all threads together
        turns = {k: (atom, times // move.threads) for k, (atom, times) in place.terms.items() if not times % whole}
        inside = Linear(place.constant, {k: t for k, t in place.terms.items() if k not in turns})
        before, last = most(-inside.expr(), scope), most(inside.expr() + lanes - 1, scope)
        if before is None or last is None:
            return False
        turn = -before // whole
        if last >= turn * whole + move.distance:
            return False
        place = inside.plus(Linear(turn * move.distance - turn * whole, turns))
    return True
