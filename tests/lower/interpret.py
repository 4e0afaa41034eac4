"""Loops, run statement by statement: what they leave in memory, whatever a pass has made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pantile.expr.nodes import Broadcast, Cast, Const, Expr, Load, Op, Ramp, Shuffle, Var, const
from pantile.expr.types import INDEX, DType
from pantile.ir.nodes import Block, For, If, Let, Produce, Realize, Stmt, Store

from ..analysis.indices import RULES

Place = tuple[str, tuple[int, ...]]
Scope = Mapping[str, Any]  # numbers, or one per lane


def changed(s: Stmt, scalars: Mapping[str, int]) -> dict[Place, int]:
    """The elements that loops change, and what is there in the end. Before, each has a number of its own; those beyond
    the columns of an input, of which `scalars` has the extent, that of the last one inside."""
    machine = _Machine(scalars)
    machine.statement(s, scalars)
    kept = {place: number for place, number in machine.memory.items() if place[0] not in machine.realized}
    return {place: number for place, number in kept.items() if number != machine.initial(place)}


class _Machine:
    def __init__(self, scalars: Mapping[str, int]) -> None:
        self.scalars = scalars
        self.memory: dict[Place, int] = {}
        self.realized: set[str] = set()

    def statement(self, s: Stmt, at: Scope) -> None:
        if isinstance(s, For):
            low = self.scalar(s.min, at)
            for v in range(low, low + self.scalar(s.extent, at)):
                self.statement(s.body, {**at, s.var: v})
        elif isinstance(s, Let):
            self.statement(s.body, {**at, s.name: self.lanes(s.value, at)})
        elif isinstance(s, If):
            branch = s.then if self.scalar(s.condition, at) else s.otherwise
            if branch is not None:
                self.statement(branch, at)
        elif isinstance(s, Block):
            for c in s.stmts:
                self.statement(c, at)
        elif isinstance(s, (Produce, Realize)):
            if isinstance(s, Realize):
                self.realized.add(s.buffer)
            self.statement(s.body, at)
        else:
            assert isinstance(s, Store), s
            self.store(s, at)

    def store(self, s: Store, at: Scope) -> None:
        values = self.lanes(s.value, at)
        places = self.places(s.buffer, s.indices, len(values), at)
        mask = [True] * len(values) if s.mask is None else _spread(self.lanes(s.mask, at), len(values))
        self.memory.update({p: v for p, v, m in zip(places, values, mask, strict=True) if m})

    def places(self, buffer: str, indices: tuple[Expr, ...], lanes: int, at: Scope) -> list[Place]:
        per_dim = [_spread(self.lanes(i, at), lanes) for i in indices]
        return [(buffer, tuple(i[k] for i in per_dim)) for k in range(lanes)]

    def scalar(self, e: Expr, at: Scope) -> int:
        (value,) = self.lanes(e, at)
        return value

    def lanes(self, e: Expr, at: Scope) -> tuple[int, ...]:
        """The value of every lane."""
        if isinstance(e, Const):
            return (int(e.value),) * e.lanes
        if isinstance(e, Var):
            value = at[e.name]
            return value if isinstance(value, tuple) else (value,)
        if isinstance(e, Cast):
            return tuple(wrapped(v, e.dtype) for v in self.lanes(e.value, at))
        if isinstance(e, Broadcast):
            return self.lanes(e.value, at) * e.lanes
        if isinstance(e, Ramp):
            base, stride = self.scalar(e.base, at), self.scalar(e.stride, at)
            return tuple(base + k * stride for k in range(e.lanes))
        if isinstance(e, Shuffle):
            joined = [v for part in e.vectors for v in self.lanes(part, at)]
            return tuple(joined[k] for k in e.order)
        if isinstance(e, Load):
            mask = [True] * e.lanes if e.mask is None else _spread(self.lanes(e.mask, at), e.lanes)
            places = self.places(e.buffer, e.indices, e.lanes, at)
            return tuple(self.load(p) if m else 0 for p, m in zip(places, mask, strict=True))
        assert isinstance(e, Op), e
        return self.operation(e, at)

    def operation(self, e: Op, at: Scope) -> tuple[int, ...]:
        args = [_spread(self.lanes(a, at), e.lanes) for a in e.args]
        if e.op == "select":
            return tuple(a if c else b for c, a, b in zip(*args, strict=True))
        return tuple(wrapped(int(RULES[e.op](*lane)), e.dtype) for lane in zip(*args, strict=True))

    def load(self, place: Place) -> int:
        return self.memory[place] if place in self.memory else self.initial(place)

    def initial(self, place: Place) -> int:
        """What is in memory before anything is stored there."""
        buffer, (*rows, column) = place
        width = self.scalars.get(f"{buffer}.shape.1")
        number = sum(map(ord, buffer))
        for i in (*rows, column if width is None else max(min(column, width - 1), 0)):
            number = (number * 31 + i * 7919) % 65521
        return number


def _spread(lanes: tuple[int, ...], width: int) -> tuple[int, ...]:
    return lanes * width if len(lanes) == 1 else lanes


def wrapped(value: int, t: DType) -> int:
    """An integer as a type has it; an index has as many bits as it takes."""
    return value if t is INDEX or t.is_bool else int(const(value, t).value)
