"""Disjoint: check that a thread that executes a statement once stores to no element of a buffer twice.

    for o in 0..2: f[ramp(o*4, 1, 4)] = ...            each element once
    for o in 0..2: f[ramp(min(o*4, 2), 1, 4)] = ...    two elements twice: six are stored by vectors of four

The stores are those of a pure definition, whose loops reach each point once, unless a split has moved its last block
inwards. Such a split shows as a minimum in an index or in the start of an inner loop, or, in unrolled iterations, in
the constants themselves.
"""

from __future__ import annotations

from dataclasses import replace

from ...dataclass import dataclass
from ...expr.linear import linear
from ...expr.nodes import Broadcast, Const, Expr, Op, Ramp
from ...expr.visit import Key, depends, walk
from ...ir.nodes import For, If, Let, Stmt, Store
from ...ir.visit import children
from ...target.kinds import Kind

_Terms = tuple[frozenset[tuple[Key, int]], ...]  # terms of the index along each dim
_Places = set[tuple[_Terms, tuple[int, ...]]]  # the terms and the constant along each dim


def stores_once(s: Stmt, buffer: str) -> bool:
    """Whether the statement certainly stores to no element of the buffer twice. Indices must be written out, without
    names of lets."""
    return _stored(s, buffer, _Loops((), ())) is not None


@dataclass(frozen=True)
class _Loops:
    """The variables of loops that each thread executes on its own, and the variables whose values may be those of a
    moved block."""

    turns: tuple[str, ...]
    moved: tuple[str, ...]

    def inside(self, s: Stmt) -> _Loops:
        """The loops around the children of a statement."""
        if isinstance(s, Let):
            return replace(self, moved=(*self.moved, s.name)) if self.are_moved(s.value) else self
        if not isinstance(s, For):
            return self
        turns = self.turns if s.kind is Kind.THREAD else (*self.turns, s.var)
        return _Loops(turns, (*self.moved, s.var) if self.are_moved(s.min) else self.moved)

    def are_moved(self, place: Expr) -> bool:
        """Whether two iterations may have the same value of an index."""
        return depends(place, self.moved) or any(
            isinstance(e, Op) and e.op in ("min", "max", "select") and depends(e, self.turns) for e in walk(place)
        )


def _stored(s: Stmt, buffer: str, loops: _Loops) -> _Places | None:
    """The elements stored in one iteration of all loops, or None if an element may be stored again."""
    if isinstance(s, Store):
        return _places(s.indices, loops) if s.buffer == buffer else set()
    inner, stored = loops.inside(s), _Places()
    for c in children(s):
        places = _stored(c, buffer, inner)
        if places is None or not (isinstance(s, If) or _are_apart(stored, places)):
            return None
        stored |= places
    return stored


def _are_apart(some: _Places, others: _Places) -> bool:
    """Whether two sets of elements are certainly disjoint: their non-constant parts must be equal."""
    return not some or not others or some.isdisjoint(others) and len({terms for terms, _ in some | others}) == 1


def _places(indices: tuple[Expr, ...], loops: _Loops) -> _Places | None:
    """The elements stored by all vector lanes."""
    lanes = max((i.lanes for i in indices), default=1)
    each = [_along(i, lanes, loops) for i in indices]
    known = [side for side in each if side is not None]
    if len(known) < len(each):
        return None
    terms = tuple([t for t, _ in known])
    return {(terms, tuple([numbers[k] for _, numbers in known])) for k in range(lanes)}


def _along(index: Expr, lanes: int, loops: _Loops) -> tuple[frozenset[tuple[Key, int]], list[int]] | None:
    """The terms of an index, and its constant in each vector lane."""
    base, stride = index, 0
    if isinstance(index, Ramp) and isinstance(index.stride, Const):
        base, stride = index.base, int(index.stride.value)
    elif isinstance(index, Broadcast):
        base = index.value
    if base.lanes > 1 or loops.are_moved(base):
        return None
    form = linear(base)
    terms = frozenset((k, times) for k, (_, times) in form.terms.items())
    return terms, [form.constant + stride * lane for lane in range(lanes)]
