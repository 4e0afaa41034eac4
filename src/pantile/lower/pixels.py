"""Pixels: accumulators of all channels get the interleaved layout of memory in registers if this avoids shuffles.

before:  out.held[ramp(0, 1, 8)] = out.held[ramp(0, 1, 8)] + img[ramp(3*x, 3, 8)]
         out.held[ramp(8, 1, 8)] = out.held[ramp(8, 1, 8)] + img[ramp(3*x + 1, 3, 8)]
         out.held[ramp(16, 1, 8)] = out.held[ramp(16, 1, 8)] + img[ramp(3*x + 2, 3, 8)]
after:   out.held[ramp(0, 1, 8)] = out.held[ramp(0, 1, 8)] + img[ramp(3*x, 1, 8)]
         out.held[ramp(8, 1, 8)] = out.held[ramp(8, 1, 8)] + img[ramp(3*x + 8, 1, 8)]
         out.held[ramp(16, 1, 8)] = out.held[ramp(16, 1, 8)] + img[ramp(3*x + 16, 1, 8)]

This requires that they are loaded, updated and stored in groups of all channels, by the same operations in each channel
(`interleave`). Otherwise they stay planar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expr.build import ramp
from ..expr.nodes import Const, Expr, Load, Ramp
from ..ir import visit as ir
from ..ir.nodes import Alloc, Block, Stmt, Store
from ..target.kinds import Memory
from .interleave import Channels, groups, leaf, rows
from .lanes import constant_stride, first_lane

Places = tuple[int, ...]  # the first lane of each channel of some pixels


def pixels(body: Stmt) -> Stmt:
    """Lay out the accumulators of channels as pixels."""

    def change(s: Stmt) -> Stmt | None:
        return _PlanarAccumulators(s).as_pixels() if isinstance(s, Alloc) and s.memory is Memory.REGISTER else None

    return ir.transform(body, change)


class _PlanarAccumulators:
    """The accumulators in one buffer."""

    def __init__(self, alloc: Alloc) -> None:
        self.alloc = alloc
        self.buffer = alloc.buffer
        self.together: dict[int, Places] = {}  # first lane -> first lanes of all channels of the same pixels
        self.made: list[object] = []  # accesses in the new layout

    def as_pixels(self) -> Stmt | None:
        """The allocation with the interleaved layout, or None unless all accesses can have it."""
        for s in ir.walk(self.alloc.body):
            for stores in _stored_together(s):
                places = [self.place(t.value) for t in stores]
                known = tuple(p for p in places if p is not None)
                if len(known) == len(places):
                    self.together |= dict.fromkeys(known, known)
        if not self.together:
            return None
        body = ir.transform(self.alloc.body, lambda s: self.block(s) if isinstance(s, Block) else None)
        if not self.is_complete(body):
            return None
        return ir.rebuild(self.alloc, ir.expressions(self.alloc), (body,))

    def place(self, e: Expr) -> int | None:
        """The first lane that is loaded."""
        return _first(e.indices[0]) if isinstance(e, Load) and e.buffer == self.buffer and e.mask is None else None

    def is_complete(self, body: Stmt) -> bool:
        made = set(map(id, self.made))
        stores = (s for s in ir.walk(body) if isinstance(s, Store) and s.buffer == self.buffer)
        loads = (e for e in ir.all_loads(body) if e.buffer == self.buffer)
        return all(id(s) in made for s in stores) and all(id(e) in made for e in loads)

    # ---- rewriting

    def block(self, s: Block) -> Stmt | None:
        """The block with one interleaved store of all channels in place of one store per channel."""
        stmts: list[Stmt | None] = list(s.stmts)
        for group in (*groups(s.stmts), *self.changed_together(s.stmts)):
            members = [t for k in group if isinstance(t := s.stmts[k], Store)]
            instead = self.stored(members)
            if instead is not None:
                for k in group:
                    stmts[k] = None
                stmts[max(group)] = instead
        return ir.block(*[t for t in stmts if t is not None])

    def changed_together(self, stmts: Sequence[Stmt]) -> Iterator[list[int]]:
        """Yield the positions of stores to all channels of some pixels that have only such stores between them."""
        groups: dict[Places, dict[int, int]] = {}
        for k, s in enumerate(stmts):
            first = _first(s.indices[0]) if isinstance(s, Store) and s.buffer == self.buffer else None
            if first is None or first not in self.together:
                groups.clear()
                continue
            group = groups.setdefault(self.together[first], {})
            group[first] = k
            if len(group) == len(self.together[first]):
                yield [group[p] for p in self.together[first]]
                del groups[self.together[first]]

    def stored(self, stores: Sequence[Store]) -> Stmt | None:
        """The stores of all channels as stores of interleaved parts."""
        first = stores[0]
        lanes = first.value.lanes
        if any(s.mask is not None or s.value.lanes != lanes for s in stores):
            return None
        values = rows(tuple(s.value for s in stores), lambda nodes, part: self.part(nodes, part, first))
        if values is None:
            return None
        if first.buffer == self.buffer:
            starts = [s.indices[0] for s in stores]
        else:
            assert isinstance(first.indices[0], Ramp)
            starts = [ramp(first.indices[0].base + k * lanes, 1, lanes) for k in range(len(values))]
        parts = [Store(first.buffer, (i,), e, None, first.manner) for i, e in zip(starts, values, strict=True)]
        self.made += parts
        return ir.block(*parts)

    def part(self, nodes: Channels, part: int, store: Store) -> Expr | None:
        """A part of the interleaved accumulators of all channels, or of what they load from memory."""
        places = tuple(map(self.place, nodes))
        if None in places:
            return leaf(nodes, part, store)
        if self.together.get(places[0] or 0) != places:
            return None
        again = nodes[part]
        assert isinstance(again, Load)
        load = Load(again.dtype, again.lanes, again.buffer, again.indices)
        self.made.append(load)
        return load


def _stored_together(s: Stmt) -> Iterator[list[Store]]:
    """Yield the groups of stores of all channels in a block."""
    if isinstance(s, Block):
        for group in groups(s.stmts):
            yield [t for k in group if isinstance(t := s.stmts[k], Store)]


def _first(index: Expr) -> int | None:
    """The first lane of a dense index, if it is constant."""
    first = first_lane(index)
    return int(first.value) if constant_stride(index) == 1 and isinstance(first, Const) else None
