"""Distribute registers: a buffer in registers becomes registers of each thread, as its layout says, with constant
indices.

before:  realize sums: [i.min..i.min + 64] in register over (4 registers, 16 threads)
         thread for t in 0..16:
             sums[i.min + 4*t + 1] = ...
after:   realize sums: [0..4] in register
         thread for t in 0..16:
             sums[1] = ...

A thread accesses an element that it holds itself as one of its registers. It reads an element of another lane of its
warp by a shuffle (`lane_registers`). Reading an element of another thread of the block is refused (`thread_registers`).
Buffers that are private to each thread get constant indices where these are known (`own_registers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ...dataclass import value
from ...expr.nodes import Expr, Load, var
from ...expr.visit import loaded, transform, walk_loads
from ...ir.nodes import For, If, Let, Realize, Stmt, Store
from ...ir.visit import expressions, rebuild
from ...target.kinds import Kind, Memory
from ..footprint import step
from .lane_registers import LaneRegisters
from .let_sums import Named
from .own_registers import Access, OwnRegisters, Refuse
from .thread_context import At
from .thread_registers import ThreadRegisters

_NOT_OF_A_THREAD = (Memory.SHARED, Memory.HEAP)
_OF_A_THREAD = (Memory.REGISTER, Memory.STACK)
_Current = Mapping[str, OwnRegisters]  # the buffers in registers around a statement, by name


def distribute_registers(body: Stmt, of_threads: Refuse, of_lanes: Refuse, small: bool = False) -> Stmt:
    """Turn buffers that threads hold together into registers of each thread. `of_threads` and `of_lanes` make the error
    for a refused buffer.

    With `small`, blocks were shrunk to fit small arrays; buffers that threads cannot keep are then in shared memory.
    """
    around = _Around(At(Named(), {}, (Kind.THREAD, Kind.LANE)))
    distribution = _Distribution(of_threads, of_lanes)
    distribution.note(body, around, {})
    for registers in distribution.found:
        registers.decide(small)
    distribution.found.reverse()
    return distribution.rewritten(body, around, {}) if distribution.found else body


@value()
class _Around:
    """The context of a statement, with respect to the threads of its block and to the lanes of its warp."""

    block: At
    is_thread: bool = False  # whether the statement is in a thread loop
    warp: At | None = None  # None outside of the loop over a warp's threads
    lane: Expr | None = None  # the number of a thread in its warp
    known: dict[int, list[tuple[Stmt, _Around]]] = field(default_factory=dict)  # memo of `inside`

    def inside(self, s: Stmt) -> list[tuple[Stmt, _Around]]:
        """The statements directly inside of another, each with its context. The results are the same objects on every
        visit."""
        if id(s) not in self.known:
            self.known[id(s)] = list(self._inside(s))
        return self.known[id(s)]

    def _inside(self, s: Stmt) -> Iterator[tuple[Stmt, _Around]]:
        for c, scope in step(s, self.block.scope):
            if not isinstance(s, (For, If, Let)):
                yield c, self
                continue
            block, warp, lane = self.block.inside(s, scope), self.warp and self.warp.inside(s, scope), self.lane
            is_thread = isinstance(s, For) and s.kind is Kind.THREAD
            if isinstance(s, For) and is_thread and s.digit is not None:
                warp, lane = At(self.block.named, scope), var(s.var)
            yield c, _Around(block, self.is_thread or is_thread, warp, lane)

    def of(self, registers: OwnRegisters) -> At:
        """The context in which accesses of a buffer are analyzed."""
        return self.warp if isinstance(registers, LaneRegisters) and self.warp is not None else self.block


class _Distribution:
    """Finds the buffers in registers with all of their accesses, and rewrites these."""

    def __init__(self, of_threads: Refuse, of_lanes: Refuse) -> None:
        self.of_threads, self.of_lanes = of_threads, of_lanes
        self.found: list[OwnRegisters] = []  # in the order of the program

    def note(self, s: Stmt, around: _Around, current: _Current) -> None:
        """Collect the accesses in a statement."""
        for buffer, access in _accesses(s, around, current):
            current[buffer].note(access)
        if isinstance(s, Realize) and _is_held(s, around):
            self.found.append(self.registers(s, around))
            current = {**current, s.buffer: self.found[-1]}
        elif isinstance(s, Realize) and s.buffer in current:
            current = {name: r for name, r in current.items() if name != s.buffer}
        for c, inside in around.inside(s):
            self.note(c, inside, current)

    def registers(self, s: Realize, around: _Around) -> OwnRegisters:
        """The registers that hold a buffer."""
        if not around.is_thread:
            return ThreadRegisters(s, around.block, self.of_threads)
        if around.warp is None or around.lane is None or around.warp.loops:
            return OwnRegisters(s, around.block)
        return LaneRegisters(s, around.warp, around.lane, self.of_lanes)

    def rewritten(self, s: Stmt, around: _Around, current: _Current) -> Stmt:
        """Return the statement with its accesses rewritten to registers of a thread."""
        mine = self.found.pop() if isinstance(s, Realize) and _is_held(s, around) else None
        inner = current
        if isinstance(s, Realize):
            inner = {name: r for name, r in current.items() if name != s.buffer}
            inner |= {s.buffer: mine} if mine is not None else {}
        inside = tuple([self.rewritten(c, here, inner) for c, here in around.inside(s)])
        s = rebuild(s, self.loads(s, around, current), inside)
        if isinstance(s, Store) and s.buffer in current:
            return current[s.buffer].store(s, around.of(current[s.buffer]))
        return mine.realized(s.body) if mine is not None and isinstance(s, Realize) else s

    def loads(self, s: Stmt, around: _Around, current: _Current) -> tuple[Expr, ...]:
        """Return the expressions of a statement with their loads replaced."""
        used = [name for name in current if any(name in loaded(e) for e in expressions(s))]
        if not used:
            return expressions(s)
        places = [i for e in walk_loads(*expressions(s)) for i in e.indices]
        places += s.indices if isinstance(s, Store) else ()
        in_places = {name for name in used if any(name in loaded(i) for i in places)}

        def load(e: Expr) -> Expr | None:
            if not isinstance(e, Load) or e.buffer not in current:
                return None
            return current[e.buffer].load(e, around.of(current[e.buffer]), e.buffer in in_places)

        memo: dict[int, Expr] = {}
        return tuple([transform(e, load, memo, lambda n: not loaded(n).isdisjoint(used)) for e in expressions(s)])


def _is_held(s: Realize, around: _Around) -> bool:
    """Whether threads hold a buffer in registers."""
    return s.memory in _OF_A_THREAD or around.is_thread and s.memory not in _NOT_OF_A_THREAD


def _accesses(s: Stmt, around: _Around, current: _Current) -> Iterator[tuple[str, Access]]:
    """Yield the accesses of buffers in registers."""
    for e in walk_loads(*[e for e in expressions(s) if not loaded(e).isdisjoint(current)]) if current else ():
        if e.buffer in current:
            yield e.buffer, Access(e.indices, around.of(current[e.buffer]), False)
    if isinstance(s, Store) and s.buffer in current:
        yield s.buffer, Access(s.indices, around.of(current[s.buffer]), True)
