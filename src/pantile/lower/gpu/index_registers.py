"""Index registers: indices into a thread's registers are constants, relative to the start of a region.

before:  let f.y.min = yo*64 + ty*8 - 1                         after:  realize f: [0..10] in register
         realize f: [f.y.min..f.y.min + 10] in register                 f[0] = ...
         let row = yo*64 + ty*8                                         out[row] = f[0] + f[1] + f[2]
         f[row - 1] = ...
         out[row] = f[row - 1] + f[row] + f[row + 1]

What is indexed dynamically lives in local memory, even if it is called a register. LLVM would resolve most such
indices, but not all: it does not know that nothing overflows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...expr.linear import Linear
from ...expr.nodes import Expr, Load, Ramp, const
from ...expr.types import INDEX
from ...expr.visit import loaded, transform, walk_loads
from ...ir.nodes import For, Realize, Stmt, Store
from ...ir.visit import children, expressions, rebuild, walk
from ...target.kinds import Kind, Memory
from .let_sums import Named

_NOT_OF_A_THREAD = (Memory.SHARED, Memory.HEAP)
_Places = tuple[Expr | None, ...]  # per dim: the first lane's index, None where it is not constant


def index_registers(body: Stmt) -> Stmt:
    """Index the registers of threads by constants along all dims where these are known."""
    numbers = _ConstantIndices()
    numbers.note(body, Named(), in_thread=False)
    return numbers.rewritten(body, Named()) if numbers.known else body


class _Open(NamedTuple):
    """A realized buffer: the dims along which all its indices are constant, and where it begins."""

    known: set[int]
    lows: tuple[Linear, ...]


class _ConstantIndices:
    """Constant indices into the buffers of a thread. A stage may be realized several times, not always in registers."""

    def __init__(self) -> None:
        self.known: dict[int, set[int]] = {}  # id of a Realize -> dims along which all indices are constant
        self.open: dict[str, _Open] = {}  # buffers of a thread realized around the current statement

    def note(self, s: Stmt, named: Named, in_thread: bool) -> None:
        """Find out along which dims indices are constant."""
        is_thread = isinstance(s, For) and s.kind is Kind.THREAD
        if is_thread and not in_thread and not any(isinstance(i, Realize) for i in walk(s)):
            return
        if isinstance(s, Realize) and in_thread and s.memory not in _NOT_OF_A_THREAD:
            self.known.setdefault(id(s), set(range(len(s.box))))
        with self.inside(s, named):
            for buffer, indices in self.accesses(s):
                places = self.places(buffer, indices, named)
                self.open[buffer].known.difference_update(k for k, place in enumerate(places) if place is None)
            for c in children(s):
                self.note(c, named.inside(s), in_thread or is_thread)

    @contextmanager
    def inside(self, s: Stmt, named: Named) -> Iterator[None]:
        """Let a buffer's name refer to a Realize inside its body."""
        if not isinstance(s, Realize):
            yield
            return
        around = self.open
        self.open = {buffer: opened for buffer, opened in around.items() if buffer != s.buffer}
        if id(s) in self.known:
            self.open[s.buffer] = _Open(self.known[id(s)], tuple([named.form(low) for low, _ in s.box]))
        yield
        self.open = around

    def accesses(self, s: Stmt) -> list[tuple[str, tuple[Expr, ...]]]:
        concerned = [e for e in expressions(s) if self.concerns(e)]
        loads = [(e.buffer, e.indices) for e in walk_loads(*concerned) if e.buffer in self.open]
        return [*loads, (s.buffer, s.indices)] if isinstance(s, Store) and s.buffer in self.open else loads

    def places(self, buffer: str, indices: tuple[Expr, ...], named: Named) -> _Places:
        opened = self.open[buffer]
        offsets = [
            named.form(i.base if isinstance(i, Ramp) else i).plus(low, -1) if k in opened.known else None
            for k, (i, low) in enumerate(zip(indices, opened.lows, strict=True))
        ]
        return tuple([None if f is None or f.terms else const(f.constant, INDEX) for f in offsets])

    def rewritten(self, s: Stmt, named: Named) -> Stmt:
        """The statement with constant indices."""
        with self.inside(s, named):
            memo: dict[int, Expr] = {}
            new = tuple([transform(e, lambda n: self.load(n, named), memo, self.concerns) for e in expressions(s)])
            inside = tuple([self.rewritten(c, named.inside(s)) for c in children(s)])
        known = self.known.get(id(s))
        s = rebuild(s, new, inside)
        if isinstance(s, Store) and s.buffer in self.open:
            return Store(s.buffer, self.indices(s.buffer, s.indices, named), s.value, s.mask, s.manner)
        if isinstance(s, Realize) and known is not None:
            box = tuple((const(0, INDEX), n) if k in known else (low, n) for k, (low, n) in enumerate(s.box))
            return Realize(s.buffer, s.dtype, box, s.memory, s.body)
        return s

    def concerns(self, e: Expr) -> bool:
        return not loaded(e).isdisjoint(self.open)

    def load(self, e: Expr, named: Named) -> Expr | None:
        if not isinstance(e, Load) or e.buffer not in self.open:
            return None
        return Load(e.dtype, e.lanes, e.buffer, self.indices(e.buffer, e.indices, named), e.mask)

    def indices(self, buffer: str, indices: tuple[Expr, ...], named: Named) -> tuple[Expr, ...]:
        pairs = zip(indices, self.places(buffer, indices, named), strict=True)
        return tuple([i if place is None else _at(i, place) for i, place in pairs])


def _at(index: Expr, place: Expr) -> Expr:
    return Ramp(INDEX, index.lanes, place, index.stride) if isinstance(index, Ramp) else place
