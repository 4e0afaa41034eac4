"""Share memory: a buffer whose live range begins after that of another buffer ends reuses its memory.

before:  realize a: [0..n]            after:  realize a: [0..n]
         produce a                            produce a
         realize b: [0..n]                    realize b: [0..n]
         produce b, reading a                 produce b, reading a
         realize c: [0..n]                    produce a, reading b
         produce c, reading b

This is for buffers outside of loops. A long pipeline keeps one alive for each stage, although a chain of sweeps needs
only two. The other buffer must have the same type, and contain the whole box with at most a few more points along each
dim.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dataclass import dataclass
from ..expr.linear import Facts, Linear, linear, simplify
from ..expr.nodes import Const, Expr, Load, const
from ..expr.types import INDEX
from ..expr.visit import loaded, transform
from ..ir import visit as ir
from ..ir.nodes import Block, Let, Prefetch, Realize, Stmt, Store

_MOST_SPARE = 64  # most unused points along a dim


def share_memory(body: Stmt, facts: Facts) -> Stmt:
    """Rename buffers so that fewer are needed."""
    uses = _live_ranges(body)
    sharing = _Sharing(uses, facts)
    sharing.visit(body, ())
    homes = sharing.homes
    return _Renaming(homes).statement(body) if homes else body


def _live_ranges(body: Stmt) -> dict[str, tuple[int, int]]:
    """The live range of each buffer: the first and the last of the consecutive statements that use it."""
    uses: dict[str, tuple[int, int]] = {}
    for place, s in enumerate(_in_a_row(body)):
        accesses = (i.buffer for i in ir.walk(s) if isinstance(i, (Store, Prefetch)))
        loads = (loaded(e) for i in ir.walk(s) for e in ir.expressions(i))
        for buffer in set(accesses).union(*loads):
            uses[buffer] = (uses.get(buffer, (place, place))[0], place)
    return uses


def _in_a_row(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements that run once, in order."""
    stack = [s]
    while stack:
        part = stack.pop()
        if isinstance(part, (Block, Let, Realize)):
            stack += reversed(ir.children(part))
        else:
            yield part


@dataclass
class _SharedBuffer:
    """A buffer that keeps its memory, and the position of the last statement that uses this memory under any name."""

    realize: Realize
    last: int


class _Sharing:
    def __init__(self, uses: dict[str, tuple[int, int]], facts: Facts) -> None:
        self.uses = uses
        self.facts = facts
        self.homes: dict[str, str] = {}  # buffer -> the buffer whose memory it reuses

    def visit(self, s: Stmt, around: tuple[_SharedBuffer, ...]) -> None:
        """Assign memory to the buffers inside of a statement. `around` has the buffers in scope that keep their own
        memory."""
        if isinstance(s, Realize) and s.buffer in self.uses:
            first, last = self.uses[s.buffer]
            home = next((h for h in around if h.last < first and self.fits(s, h.realize)), None)
            if home is None:
                around = (*around, _SharedBuffer(s, last))
            else:
                home.last = last
                self.homes[s.buffer] = home.realize.buffer
        if isinstance(s, (Block, Let, Realize)):
            for c in ir.children(s):
                self.visit(c, around)

    def fits(self, s: Realize, home: Realize) -> bool:
        if (s.dtype, s.memory, len(s.box)) != (home.dtype, home.memory, len(home.box)):
            return False
        sides = zip(s.box, home.box, strict=True)
        return all(self.inside(linear(low), linear(n), linear(first), linear(m)) for (low, n), (first, m) in sides)

    def inside(self, low: Linear, n: Linear, first: Linear, m: Linear) -> bool:
        """Whether the range of n elements from `low` on is certainly contained in the m elements from `first` on,
        without much to spare."""
        before = low.plus(first, -1)
        return self.is_spare(before) and self.is_spare(m.plus(n, -1).plus(before, -1))

    def is_spare(self, places: Linear) -> bool:
        number = simplify(places.expr(), self.facts) if places.terms else const(places.constant, INDEX)
        return isinstance(number, Const) and 0 <= int(number.value) <= _MOST_SPARE


class _Renaming:
    def __init__(self, homes: dict[str, str]) -> None:
        self.homes = homes
        self.memo: dict[int, Expr] = {}

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Realize) and s.buffer in self.homes:
            return self.statement(s.body)
        expressions = tuple([self.expression(e) for e in ir.expressions(s)])
        s = ir.rebuild(s, expressions, tuple([self.statement(c) for c in ir.children(s)]))
        if isinstance(s, Store) and s.buffer in self.homes:
            return Store(self.homes[s.buffer], s.indices, s.value, s.mask, s.manner)
        return Prefetch(self.homes[s.buffer], s.indices) if isinstance(s, Prefetch) and s.buffer in self.homes else s

    def expression(self, e: Expr) -> Expr:
        return transform(e, self.load, self.memo, self.has_moved)

    def load(self, e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer in self.homes:
            return Load(e.dtype, e.lanes, self.homes[e.buffer], e.indices, e.mask)
        return None

    def has_moved(self, e: Expr) -> bool:
        return not self.homes.keys().isdisjoint(loaded(e))
