"""Own registers: a buffer private to each thread gets constant indices along the dims where all indices are known.

before:  let f.y.min = yo*64 + ty*8 - 1                         after:  realize f: [0..10] in register
         realize f: [f.y.min..f.y.min + 10] in register                 f[0] = ...
         let row = yo*64 + ty*8                                         out[row] = f[0] + f[1] + f[2]
         f[row - 1] = ...
         out[row] = f[row - 1] + f[row] + f[row + 1]

A dynamically indexed array lives in local memory, even if it is called a register. LLVM would resolve most such
indices, but not all, since it does not know that these indices do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from ...errors import UserError
from ...expr.linear import Linear
from ...expr.nodes import Broadcast, Const, Expr, Load, Ramp, const
from ...expr.types import INDEX
from ...ir.nodes import Realize, Stmt, Store
from .thread_context import At, first_lane

Refuse = Callable[[Realize, str], UserError]  # the buffer, and the reason
ZERO = const(0, INDEX)
Indices = tuple[Expr, ...]


class Access(NamedTuple):
    """A load or store of a buffer and its context."""

    indices: Indices
    at: At
    is_store: bool


class OwnRegisters:
    """A buffer that is private to a thread."""

    def __init__(self, s: Realize, at: At) -> None:
        self.s = s
        self.lows = [at.named.form(low) for low, _ in s.box]
        self.constant = set(range(len(s.box)))  # dims along which all indices are at constant distances from the start

    def note(self, access: Access) -> None:
        """Note an access of the buffer. All accesses are noted before anything is rewritten."""
        self.constant -= self.unknown(access.indices, access.at, self.constant)

    def unknown(self, indices: Indices, at: At, dims: Collection[int]) -> set[int]:
        """The dims among `dims` along which an index is not at a constant distance from the start of the buffer."""
        return {k for k in dims if self.form(k, indices[k], at).terms}

    def decide(self, small: bool) -> None:
        """Decide how accesses are rewritten, once all of them are known."""

    def form(self, k: int, index: Expr, at: At) -> Linear:
        """An index relative to the start of the buffer."""
        return at.named.form(first_lane(index)).plus(self.lows[k], -1)

    def numbered(self, indices: Indices, at: At, dims: Iterable[int]) -> Indices:
        """The indices, replaced by constants along the given dims."""
        places = {k: const(self.form(k, indices[k], at).constant, INDEX) for k in dims}
        return tuple([moved_to(i, places[k]) if k in places else i for k, i in enumerate(indices)])

    def load(self, e: Load, at: At, is_place: bool) -> Expr:
        """Rewrite a load. `is_place` tells whether it is part of an index of another load or store."""
        return Load(e.dtype, e.lanes, e.buffer, self.numbered(e.indices, at, self.constant), e.mask)

    def store(self, s: Store, at: At) -> Stmt:
        """Rewrite a store."""
        return Store(s.buffer, self.numbered(s.indices, at, self.constant), s.value, s.mask, s.manner)

    def realized(self, body: Stmt) -> Stmt:
        """Allocate the memory of one thread around the rewritten body."""
        box = tuple((ZERO, n) if k in self.constant else (low, n) for k, (low, n) in enumerate(self.s.box))
        return replace(self.s, box=box, body=body)


def moved_to(index: Expr, first: Expr) -> Expr:
    """Return the index with another first lane."""
    if isinstance(index, Ramp):
        return replace(index, base=first)
    return replace(index, value=first) if isinstance(index, Broadcast) else first


def is_alike(e: Expr) -> bool:
    """Whether all lanes of a vector hold the same value."""
    return e.lanes == 1 or isinstance(e, Broadcast)


def number(e: Expr) -> int | None:
    """The value of a constant index, or None."""
    return int(e.value) if isinstance(e, Const) else None
