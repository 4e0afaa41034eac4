"""Disjoint: whether a thread that goes through a statement once stores no element of a buffer twice.

    for o in 0..2: f[ramp(o*4, 1, 4)] = ...            it does not
    for o in 0..2: f[ramp(min(o*4, 2), 1, 4)] = ...    it does, if six elements are stored by vectors of four

Places are those of a pure definition, whose loops reach each point once, unless a split has moved its last block
inwards. That shows in a minimum, or, in iterations that were unrolled, in the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Collection

from ...expr.linear import linear
from ...expr.nodes import Broadcast, Const, Expr, Op, Ramp
from ...expr.visit import Key, depends, walk
from ...ir.nodes import For, If, Stmt, Store
from ...ir.visit import children
from ...target.kinds import Kind

_Terms = tuple[frozenset[tuple[Key, int]], ...]  # of the index along each dim
_Places = set[tuple[_Terms, tuple[int, ...]]]  # terms, and how far behind them


def stores_once(s: Stmt, buffer: str) -> bool:
    """Whether that is certain. Indices are written out: they have no names of lets."""
    return _stored(s, buffer, ()) is not None


def _stored(s: Stmt, buffer: str, turns: Collection[str]) -> _Places | None:
    """The places in one iteration of all loops; None if some of them may be stored to again. `turns`: the variables of
    loops that each thread goes through on its own."""
    if isinstance(s, Store):
        return _places(s.indices, turns) if s.buffer == buffer else set()
    inner = (*turns, s.var) if isinstance(s, For) and s.kind is not Kind.THREAD else turns
    stored = _Places()
    for c in children(s):
        places = _stored(c, buffer, inner)
        if places is None or not (isinstance(s, If) or _are_apart(stored, places)):
            return None
        stored |= places
    return stored


def _are_apart(some: _Places, others: _Places) -> bool:
    """Whether two sets of places are certainly disjoint: their non-constant parts must be equal."""
    return not some or not others or some.isdisjoint(others) and len({terms for terms, _ in some | others}) == 1


def _places(indices: tuple[Expr, ...], turns: Collection[str]) -> _Places | None:
    """The places of all lanes."""
    lanes = max((i.lanes for i in indices), default=1)
    each = [_along(i, lanes, turns) for i in indices]
    known = [side for side in each if side is not None]
    if len(known) < len(each):
        return None
    terms = tuple([t for t, _ in known])
    return {(terms, tuple([numbers[k] for _, numbers in known])) for k in range(lanes)}


def _along(index: Expr, lanes: int, turns: Collection[str]) -> tuple[frozenset[tuple[Key, int]], list[int]] | None:
    """The terms of an index, and the number behind them in each lane."""
    base, stride = index, 0
    if isinstance(index, Ramp) and isinstance(index.stride, Const):
        base, stride = index.base, int(index.stride.value)
    elif isinstance(index, Broadcast):
        base = index.value
    if base.lanes > 1 or any(_is_moved(e, turns) for e in walk(base)):
        return None
    form = linear(base)
    terms = frozenset((k, times) for k, (_, times) in form.terms.items())
    return terms, [form.constant + stride * lane for lane in range(lanes)]


def _is_moved(e: Expr, turns: Collection[str]) -> bool:
    return isinstance(e, Op) and e.op in ("min", "max", "select") and depends(e, turns)
