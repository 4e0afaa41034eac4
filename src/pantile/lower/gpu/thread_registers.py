"""Thread registers: values that a block keeps in registers belong to the threads that compute them.

before:  realize sums: [i.min..i.min + 64, j.min..j.min + 64] in register over (4 registers, 16 threads, 16 apart; ...)
         thread for ti in 0..16: thread for tj in 0..16:
             sums[i.min + 4*ti + 1, j.min + 4*tj + 3] = ...
after:   realize sums: [0..4, 0..4] in register
         thread for ti in 0..16: thread for tj in 0..16:
             sums[1, 3] = ...

All thread loops that access such a buffer must distribute it as its layout says. Loops at the same depth have the same
extents, contain the same number of threads, and move along a dim by the same steps: either each thread has adjacent
elements, or consecutive threads do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ...analysis.interval import Scope
from ...analysis.messages import readable
from ...errors import UserError
from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Const, Expr, Load, Op, Ramp, const
from ...expr.types import INDEX
from ...expr.visit import depends, substitute
from ...ir.nodes import Realize, Stmt, Store
from ...target.kinds import Memory
from ...target.layout import Digit, Layout
from ..extent_bounds import most
from .own_registers import ZERO, Access, Indices, OwnRegisters, Refuse, moved_to
from .thread_context import At

_MOST_CASES = 1024  # alternatives of an index made of nested minima and maxima


class _Step(NamedTuple):
    """The distance along a dim between the elements of consecutive threads of a loop."""

    distance: int
    threads: int
    weight: int


class ThreadRegisters(OwnRegisters):
    """A buffer of a block. A buffer that no thread loop accesses is left to the one thread that owns it."""

    def __init__(self, s: Realize, at: At, refuse: Refuse) -> None:
        super().__init__(s, at)
        self.refuse = refuse
        self.accesses: list[Access] = []
        self.memory = s.memory
        layout = s.layout or Layout(((),) * len(s.box))
        self.steps = [[_Step(n, d.size, d.weight) for n, d in layout.steps(k)] for k in range(len(s.box))]
        self.known: dict[tuple[int, int, int], Expr] = {}  # (dim, constant index, lanes) -> register
        self.others: set[Digit] | None = None  # loops whose threads hold the same elements; same at all accesses

    def note(self, access: Access) -> None:
        self.accesses.append(access)

    @property
    def is_distributed(self) -> bool:
        return self.memory is self.s.memory and any(a.at.loops for a in self.accesses)

    def decide(self, small: bool) -> None:
        """With `small`, move the buffer to shared memory if threads cannot keep it in registers."""
        if small and self.is_distributed:
            try:
                for a in self.accesses:
                    self.places(a.indices, a.at)
                self.realized(self.s.body)
            except UserError:
                self.memory = Memory.SHARED

    def load(self, e: Load, at: At, is_place: bool) -> Expr:
        return replace(e, indices=self.places(e.indices, at)) if self.is_distributed else e

    def store(self, s: Store, at: At) -> Stmt:
        return replace(s, indices=self.places(s.indices, at)) if self.is_distributed else s

    def realized(self, body: Stmt) -> Stmt:
        if not self.is_distributed:
            return replace(self.s, memory=self.memory, layout=None, body=body)
        box = tuple((ZERO, const(self.own(k), INDEX)) for k in range(len(self.s.box)))
        layout = Layout(((),) * len(box)) if any(self.steps) else None
        return replace(self.s, box=box, layout=layout, body=body)

    def own(self, dim: int) -> int:
        """The number of elements that a thread holds along a dim."""
        extent = self.s.box[dim][1]
        if not isinstance(extent, Const):
            raise self.refuse(self.s, "its size there is not constant")
        shared = math.prod(step.threads for step in self.steps[dim])
        if int(extent.value) % max(shared, 1):
            raise self.refuse(self.s, f"{shared} threads do not share {extent.value} values evenly")
        return int(extent.value) // shared

    def places(self, indices: Indices, at: At) -> Indices:
        """The indices relative to the elements that the thread holds."""
        if not at.loops:
            raise self.refuse(self.s, "it is used outside of threads")
        moves = [at.moved(i, low) for i, low in zip(indices, self.lows, strict=True)]
        idle = [x.digit for x in at.loops if not any(steps[x.var] for steps, _ in moves)]
        if None in idle:
            raise self.refuse(self.s, "the number of threads is not constant there")
        still = {d for d in idle if d is not None and d.size > 1}
        self.others = still if self.others is None else self.others
        places = [self.along(k, *moves[k], indices[k], at) for k in range(len(indices))]
        if still != self.others:
            raise self.of_others()
        return tuple(places)

    def of_others(self) -> UserError:
        return self.refuse(self.s, "threads of one loop would read what those of another have computed")

    def along(self, dim: int, steps: dict[str, int], rest: Linear, index: Expr, at: At) -> Expr:
        """The index within a thread's share along one dim."""
        others = [a for a, _ in rest.terms.values() if depends(a, at.variables)]
        if others:
            raise self.refuse(self.s, f"what a thread computes is not a box: {readable(others[0])}")
        digits = [(n, x.digit) for x in at.loops if (n := steps[x.var])]
        if any(d is None for _, d in digits):
            raise self.refuse(self.s, "the number of threads is not constant there")
        if {_Step(n, d.size, d.weight) for n, d in digits if d and d.size > 1} != {*self.steps[dim]}:
            raise self.of_others()
        beyond = any(step.distance % index.lanes for step in self.steps[dim])
        if isinstance(index, Ramp) and (not isinstance(index.stride, Const) or index.stride.value != 1 or beyond):
            raise self.refuse(self.s, "lanes of one vector would belong to several threads")
        return moved_to(index, self.place(rest, dim, at, index.lanes if isinstance(index, Ramp) else 1))

    def place(self, rest: Linear, dim: int, at: At, lanes: int) -> Expr:
        """The register of an element, which the thread itself must have computed."""
        if not rest.terms and (dim, rest.constant, lanes) in self.known:
            return self.known[dim, rest.constant, lanes]
        place: Expr = rest.expr()
        # The longest steps come first: threads with shorter steps share the values inside each of them.
        moves = sorted(self.steps[dim], key=lambda move: -move.distance)
        cases = _few_cases(rest)
        if cases is None:
            raise self.refuse(self.s, "clamps around clamps hide which thread has computed what is read")
        if not all(_is_own(case, moves, at.scope, lanes) for case in cases):
            raise self.refuse(self.s, "threads would read what others have computed")
        for move in moves:  # a thread has `each` adjacent values; its next ones follow those of all threads
            each = const(move.distance, INDEX)
            place = place // (each * move.threads) * each + place % each
        place = simplify(substitute(place, {name: turn.value for name, turn in at.turns.items()}))
        if not rest.terms:
            self.known[dim, rest.constant, lanes] = place
        return place


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
    """Whether the first thread computes the value at an index, and each other thread the value that lies its number of
    steps later."""
    for move in moves:
        whole = move.distance * move.threads  # number of adjacent elements that all threads together hold
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
