"""Interleave: stores of all channels of the same pixels become one store.

before:  out[ramp(3*x, 3, 16)] = r            after:  out[ramp(3*x, 1, 48)] = shuffle(r, g, b, [0, 16, 32, 1, ...])
         out[ramp(3*x + 1, 3, 16)] = g
         out[ramp(3*x + 2, 3, 16)] = b

If all channels are computed by the same operations from interleaved memory, no shuffles are needed: pixels are treated
as rows of numbers.

before:  out[ramp(3*x, 3, 16)] = 255 - img[ramp(3*x, 3, 16)]
         out[ramp(3*x + 1, 3, 16)] = 255 - img[ramp(3*x + 1, 3, 16)]
         out[ramp(3*x + 2, 3, 16)] = 255 - img[ramp(3*x + 2, 3, 16)]
after:   out[ramp(3*x, 1, 16)] = 255 - img[ramp(3*x, 1, 16)]
         out[ramp(3*x + 16, 1, 16)] = 255 - img[ramp(3*x + 16, 1, 16)]
         out[ramp(3*x + 32, 1, 16)] = 255 - img[ramp(3*x + 32, 1, 16)]

Separate strided stores would store their lanes as scalars, whereas targets have instructions for interleaved stores, or
shuffles. The stores are close together, since they come from unrolled loops over channels. Other stores between them,
by stages of several values, stay in place, and the joined store takes the place of the last one of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..expr.build import ramp
from ..expr.linear import linear
from ..expr.nodes import Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Shuffle
from ..expr.visit import children, loaded, rebuild, same, walk_loads
from ..ir import visit as ir
from ..ir.nodes import Block, Stmt, Store
from .lanes import constant_stride

CHANNELS = range(2, 5)
_FARTHEST = 64  # most statements searched for other channels: unrolled loops may leave many
Channels = tuple[Expr, ...]  # the same vector of each channel
Leaf = Callable[[Channels, int], Expr | None]  # returns a part of the interleaved values of a leaf


def interleave(body: Stmt) -> Stmt:
    """Join the strided stores of all channels."""
    return ir.transform(body, lambda s: _joined(s) if isinstance(s, Block) else None)


def _joined(s: Block) -> Stmt | None:
    stmts: list[Stmt | None] = list(s.stmts)
    for group in groups(s.stmts):
        stores = [s.stmts[k] for k in group]
        for k in group:
            stmts[k] = None
        stmts[max(group)] = _joined_store([t for t in stores if isinstance(t, Store)])
    left = [t for t in stmts if t is not None]
    return ir.block(*left) if len(left) < len(stmts) else None


def groups(stmts: Sequence[Stmt]) -> Iterator[list[int]]:
    """Positions of stores that together fill a range without gaps, in the order of their channels."""
    taken: set[int] = set()
    for k, s in enumerate(stmts):
        channels = _channels(s)
        if channels is None or k in taken:
            continue
        group = _group(stmts, k, channels)
        if group is not None and taken.isdisjoint(group):
            taken.update(group)
            yield group


def _channels(s: Stmt) -> int | None:
    """The number of channels of the pixels if the statement stores one channel of several, otherwise None."""
    if not isinstance(s, Store) or s.mask is not None or s.value.lanes == 1:
        return None
    stride = constant_stride(s.indices[0])
    return stride if stride in CHANNELS else None


def _group(stmts: Sequence[Stmt], start: int, channels: int) -> list[int] | None:
    """The stores from `start` on that store the other channels, or None unless all of them can be delayed to the last
    one."""
    by_offset: dict[int, int] = {}
    first = stmts[start]
    assert isinstance(first, Store)
    for k in range(start, min(len(stmts), start + _FARTHEST)):
        s = stmts[k]
        if not isinstance(s, Store):
            return None
        offset = _offset(s, first, channels)
        if offset is not None:
            if offset in by_offset:
                return None
            by_offset[offset] = k
        if len(by_offset) == channels:
            low = min(by_offset)
            ordered = [by_offset[low + c] for c in range(channels)] if max(by_offset) - low == channels - 1 else None
            between = stmts[start : k + 1]
            return ordered if ordered is not None and _may_wait(between, first, ordered, start) else None
    return None


def _offset(s: Store, first: Store, channels: int) -> int | None:
    """The offset in elements from the first store, if the store has the same number of pixels of the same buffer."""
    if s.buffer != first.buffer or s.value.lanes != first.value.lanes or _channels(s) != channels:
        return None
    return None if s.manner != first.manner else _apart(s.indices[0], first.indices[0])


def _apart(a: Expr, b: Expr) -> int | None:
    """The distance of two ramps of equal strides, if it is constant."""
    if not (isinstance(a, Ramp) and isinstance(b, Ramp)):
        return None
    difference = linear(a.base).plus(linear(b.base), -1)
    return None if difference.terms else difference.constant


def _may_wait(stmts: Sequence[Stmt], first: Store, group: list[int], start: int) -> bool:
    """Whether no statement in between reads what the group stores, or stores what the group reads."""
    members = [stmts[k - start] for k in group]
    others = [s for s in stmts if not any(s is m for m in members)]
    stored = {s.buffer for s in others if isinstance(s, Store)}
    if first.buffer in stored or any(first.buffer in loaded(e) for s in others for e in ir.expressions(s)):
        return False
    for channel, s in enumerate(members):
        for e in ir.expressions(s):
            if not stored.isdisjoint(loaded(e)):
                return False
            if first.buffer in loaded(e) and not _reads_own_channel(e, first.buffer, members[0], channel, len(members)):
                return False
    return True


def _reads_own_channel(e: Expr, buffer: str, zero: Stmt, channel: int, channels: int) -> bool:
    """Whether all reads of the buffer are of the stored channel, to which the other stores do not write."""
    assert isinstance(zero, Store)
    for load in walk_loads(e):
        if load.buffer == buffer:
            apart = _apart(load.indices[0], zero.indices[0]) if constant_stride(load.indices[0]) == channels else None
            if apart is None or apart % channels != channel:
                return False
    return True


def _joined_store(stores: Sequence[Store]) -> Stmt:
    """Make one store of all channels of some pixels."""
    first = stores[0]
    index = first.indices[0]
    assert isinstance(index, Ramp)
    values = tuple(s.value for s in stores)
    parts = rows(values, lambda nodes, part: leaf(nodes, part, first)) or [_interleaved(values)]
    starts = [index.base + k * first.value.lanes for k in range(len(parts))]
    return ir.block(
        *[
            Store(first.buffer, (ramp(start, 1, value.lanes),), value, None, first.manner)
            for start, value in zip(starts, parts, strict=True)
        ]
    )


def _interleaved(values: Channels) -> Expr:
    order = _order(len(values), values[0].lanes)
    return Shuffle(values[0].dtype, len(order), values, order)


def _order(channels: int, pixels: int) -> tuple[int, ...]:
    """The lane order that interleaves one vector per channel."""
    return tuple((i % channels) * pixels + i // channels for i in range(channels * pixels))


# ---- channels computed by the same operations


def rows(values: Channels, leaf: Leaf) -> list[Expr] | None:
    """The interleaved values of all channels, in as many parts as there are channels, or None unless all are computed
    from interleaved memory by the same operations.

    Parts have as many lanes as a channel, since vectors whose length is not a power of two would be padded.
    """
    parts = [_interleaved_part(values, k, leaf) for k in range(len(values))]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def _interleaved_part(values: Channels, part: int, leaf: Leaf) -> Expr | None:
    """One part of the interleaved values, or None if the channels are computed by different operations."""
    memo: dict[tuple[int, ...], Expr] = {}
    stack = [values]
    while stack:
        nodes = stack[-1]
        if _ids(nodes) in memo:
            stack.pop()
            continue
        joined = leaf(nodes, part)
        if joined is not None:
            memo[_ids(nodes)] = joined
            continue
        if not _same_operation(nodes):
            return None
        operands = list(zip(*map(children, nodes), strict=True))
        waiting = [o for o in operands if _ids(o) not in memo]
        if waiting:
            stack += waiting
        else:
            memo[_ids(nodes)] = rebuild(nodes[0], tuple(memo[_ids(o)] for o in operands))
    return memo[_ids(values)]


def _ids(nodes: Channels) -> tuple[int, ...]:
    return tuple(map(id, nodes))


def leaf(nodes: Channels, part: int, store: Store) -> Expr | None:
    """A part of the interleaved values of a leaf: a load of all channels of the same pixels, or constants."""
    first, lanes = nodes[0], nodes[0].lanes
    if isinstance(first, (Const, Broadcast)) and all(same(e, first) for e in nodes):
        return first
    if all(isinstance(e, Const) for e in nodes):
        return Shuffle(first.dtype, lanes, nodes, _order(len(nodes), lanes)[part * lanes : (part + 1) * lanes])
    loads = [e for e in nodes if isinstance(e, Load) and e.mask is None and constant_stride(e.indices[0]) == len(nodes)]
    if len(loads) < len(nodes) or len({e.buffer for e in loads}) > 1:
        return None
    start = loads[0].indices[0]
    if not isinstance(start, Ramp) or any(_apart(e.indices[0], start) != k for k, e in enumerate(loads)):
        return None
    if loads[0].buffer == store.buffer and _apart(start, store.indices[0]) != 0:
        return None  # parts are stored one by one, which would change what later parts load
    return Load(first.dtype, lanes, loads[0].buffer, (ramp(start.base + part * lanes, 1, lanes),))


def _same_operation(nodes: Channels) -> bool:
    """Whether the nodes apply the same lane-wise operation."""
    first = nodes[0]
    if isinstance(first, Load) and isinstance(first.indices[0], Ramp):
        return False  # these are not the channels of the same pixels
    return isinstance(first, (Op, Cast, Bits, Load)) and all(_kind(e) == _kind(first) for e in nodes)


def _kind(e: Expr) -> tuple[object, ...]:
    detail = e.op if isinstance(e, Op) else (e.buffer, e.mask is None) if isinstance(e, Load) else None
    return type(e), e.dtype, e.lanes, detail
