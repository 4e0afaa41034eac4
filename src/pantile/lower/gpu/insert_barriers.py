"""Insert barriers: the threads of a block wait for each other where one accesses what another has stored, and only
there.

before:  thread for p in 0..340: g[p] = ...        after:  thread for p in 0..340: g[p] = ...
         thread for q in 0..256: f[q] = g[q + 1]           barrier
                                                           thread for q in 0..256: f[q] = g[q + 1]

Each statement is compared with the accesses since the last barrier, and the beginning of a loop body also with those at
its end. In multi-buffered memory, the slots of different iterations do not alias (`software_pipeline` has inserted the
barrier that ensures this). Inside of a thread loop, `insert_warp_barriers` has already inserted barriers for the shared
memory of each warp. If a warp executes such a loop more than once, the pass makes the lanes of the warp wait for each
other in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from ...expr.linear import linear
from ...expr.nodes import Const, Expr, Op, Ramp, Var
from ...expr.visit import walk_loads
from ...ir.instructions import BARRIER, WARP_BARRIER, Effect, effect_of
from ...ir.nodes import Alloc, Block, For, If, Program, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind, Memory


class SharedBytes(NamedTuple):
    """Memory that the threads of a block share: either a range of bytes in the block's shared memory, or a buffer
    outside of the block."""

    buffer: str
    begin: int = 0
    end: int = 0
    apart: int = 0  # bytes per warp, if the range is divided among warps

    def overlaps(self, other: SharedBytes) -> bool:
        if self.end and other.end:
            return self.begin < other.end and other.begin < self.end
        return self.buffer == other.buffer


class _Slot(NamedTuple):
    """The slot of a multi-buffered allocation that an iteration of a loop uses, counted from the slot of the current
    iteration."""

    loop: str
    distance: int
    slots: int

    def is_apart(self, other: _Slot | None) -> bool:
        return other is not None and self[::2] == other[::2] and self.distance != other.distance


class _Access(NamedTuple):
    place: SharedBytes
    stores: bool
    alone: bool  # whether only the first thread makes the access
    slot: _Slot | None = None  # None if it may be any slot

    def needs_barrier(self, after: _Access) -> bool:
        if self.place == after.place and self.place.apart:
            return False
        if self.place == after.place and self.slot is not None and self.slot.is_apart(after.slot):
            return False
        return (self.stores or after.stores) and not (self.alone and after.alone) and self.place.overlaps(after.place)

    def before(self, loop: str) -> _Access:
        """This access as the next iteration of a loop sees it."""
        if self.slot is None or self.slot.loop != loop:
            return self
        return self._replace(slot=self.slot._replace(distance=(self.slot.distance - 1) % self.slot.slots))

    def outside(self, loop: str) -> _Access:
        """This access as seen after a loop."""
        return self if self.slot is None or self.slot.loop != loop else self._replace(slot=None)


Accesses = frozenset[_Access]
NOTHING: Accesses = frozenset()


def insert_barriers(program: Program) -> Program:
    """Insert the barriers that the kernels need."""
    kernels = [replace(k, body=_BlockBarriers(k.threads).visit(k.body, NOTHING)[0]) for k in program.kernels]
    return replace(program, kernels=tuple(kernels))


class Barriers:
    """Inserts barriers for threads that execute the iterations of loops of a kind concurrently."""

    barrier, kind = BARRIER, Kind.THREAD

    def __init__(self) -> None:
        self.places: dict[str, SharedBytes | None] = {}  # memory of the kernel's buffers; None if a thread's own
        self.slots: dict[str, tuple[int, int]] = {}  # multi-buffered ones: number of slots, and elements per slot

    def visit(self, s: Stmt, open_: Accesses) -> tuple[Stmt, Accesses]:
        """Return the statement with barriers, and the accesses since the last barrier. `open_` are the accesses since
        the last barrier before the statement."""
        if effect_of(s) is Effect.BARRIER:
            return s, NOTHING
        self.note(s)
        if self.is_unit(s):
            own = self.accesses(s)
            waits = _must_wait(own, open_)
            made = self.unit(s, NOTHING if waits else open_)
            return (block(self.barrier, made), own) if waits else (made, open_ | own)
        own = self.loaded(s)  # what all threads load for conditions and bounds
        waits = _must_wait(own, open_)
        made, after = self.inside(s, own if waits else open_ | own)
        return block(self.barrier, made) if waits else made, after

    def note(self, s: Stmt) -> None:
        """Note where the buffers that a statement allocates are in memory."""
        if isinstance(s, Alloc):
            self.places[s.buffer] = _place(s)
            if s.slots > 1 and isinstance(s.size, Const):
                self.slots[s.buffer] = s.slots, int(s.size.value) // s.slots

    def is_unit(self, s: Stmt) -> bool:
        """Whether a barrier inside of the statement is not needed or not possible."""
        return isinstance(s, For) and s.kind is self.kind or not children(s) and not isinstance(s, Block)

    def unit(self, s: Stmt, open_: Accesses) -> Stmt:
        """Process a unit; unchanged by default. `open_` are the accesses since the last barrier."""
        return s

    def inside(self, s: Stmt, open_: Accesses) -> tuple[Stmt, Accesses]:
        if isinstance(s, Block):
            stmts = list[Stmt]()
            for c in s.stmts:
                made, open_ = self.visit(c, open_)
                stmts.append(made)
            return block(*stmts), open_
        if isinstance(s, If):
            branches = [self.visit(c, open_) for c in children(s)]
            left = open_.union(*(after for _, after in branches)) if s.otherwise is None else _all(branches)
            return rebuild(s, expressions(s), tuple(b for b, _ in branches)), left
        (inner,) = children(s)
        if not isinstance(s, For):
            made, after = self.visit(inner, open_)
            return rebuild(s, expressions(s), (made,)), after
        before = open_
        while True:
            made, after = self.visit(inner, before)
            again = frozenset([a.before(s.var) for a in after])
            if again <= before:
                return rebuild(s, expressions(s), (made,)), frozenset([a.outside(s.var) for a in after]) | open_
            before |= again

    def accesses(self, s: Stmt) -> Accesses:
        """The accesses of threads in a statement to memory that other threads see."""
        alone = isinstance(s, For) and isinstance(s.extent, Const) and int(s.extent.value) == 1
        own = {i.buffer for i in walk(s) if isinstance(i, Alloc) and not i.apart}
        stored = {(i.buffer, self.slot(i.buffer, i.indices)) for i in walk(s) if isinstance(i, Store)}
        read = {(e.buffer, self.slot(e.buffer, e.indices)) for i in walk(s) for e in walk_loads(*expressions(i))}
        return frozenset([*self.of(stored, own, True, alone), *self.of(read, own, False, alone)])

    def loaded(self, s: Stmt) -> Accesses:
        loads = {(e.buffer, self.slot(e.buffer, e.indices)) for e in walk_loads(*expressions(s))}
        return frozenset(self.of(loads, (), False, False))

    def of(
        self, accesses: Iterable[tuple[str, _Slot | None]], own: Collection[str], stores: bool, alone: bool
    ) -> list[_Access]:
        places = [(self.place(b), slot) for b, slot in accesses if b not in own]
        return [_Access(p, stores, alone, slot) for p, slot in places if p is not None]

    def place(self, buffer: str) -> SharedBytes | None:
        """The memory of a buffer; None if other threads do not see it."""
        return self.places.get(buffer, SharedBytes(buffer))

    def slot(self, buffer: str, indices: tuple[Expr, ...]) -> _Slot | None:
        """The slot that is accessed, if it is known. Its index is (loop + distance) % slots * elements + ..."""
        if buffer not in self.slots:
            return None
        slots, elements = self.slots[buffer]
        (index,) = indices
        for atom, n in linear(index.base if isinstance(index, Ramp) else index).terms.values():
            if n == elements and isinstance(atom, Op) and atom.op == "mod" and _is(atom.args[1], slots):
                number = linear(atom.args[0])
                terms = list(number.terms.values())
                if len(terms) == 1 and isinstance(terms[0][0], Var) and terms[0][1] == 1:
                    return _Slot(terms[0][0].name, number.constant % slots, slots)
        return None


class _BlockBarriers(Barriers):
    """Inserts the barriers for the threads of a block."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads = threads

    def note(self, s: Stmt) -> None:
        super().note(s)
        for i in _of_warps(s) if isinstance(s, For) and s.kind is Kind.THREAD else ():
            self.places[i.buffer] = self.of_warps(s)

    def of_warps(self, s: Stmt) -> SharedBytes | None:
        """The shared memory that the warps have in a thread loop."""
        parts = _of_warps(s)
        begin = min([int_of(i.offset) for i in parts], default=0)
        apart = max([i.apart for i in parts], default=0)
        return SharedBytes("", begin, begin + apart * (self.threads // WARP_SIZE), apart) if parts else None

    def unit(self, s: Stmt, open_: Accesses) -> Stmt:
        """Process a thread loop. If a warp may have executed it before, its lanes first wait for each other."""
        mine = self.of_warps(s)
        if not isinstance(s, For) or mine is None:
            return s
        is_again = int_of(s.extent) > self.threads or any(a.place == mine for a in open_)
        return replace(s, body=block(WARP_BARRIER, s.body)) if is_again else s


def _of_warps(s: Stmt) -> list[Alloc]:
    return [i for i in walk(s) if isinstance(i, Alloc) and i.apart]


def _is(e: Expr, number: int) -> bool:
    return isinstance(e, Const) and int(e.value) == number


def int_of(e: Expr | None) -> int:
    """The value of an expression that lowering has made constant in kernels."""
    assert isinstance(e, Const)
    return int(e.value)


def _must_wait(own: Accesses, open_: Accesses) -> bool:
    return any(a.needs_barrier(b) for a in own for b in open_)


def _all(branches: Iterable[tuple[Stmt, Accesses]]) -> Accesses:
    return NOTHING.union(*(after for _, after in branches))


def _place(s: Alloc) -> SharedBytes | None:
    if s.memory is not Memory.SHARED:
        return None
    assert isinstance(s.offset, Const) and isinstance(s.size, Const)
    begin = int(s.offset.value)
    return SharedBytes("", begin, begin + int(s.size.value) * s.dtype.bytes)
