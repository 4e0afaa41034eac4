"""Loops that start early for stages that slide along them, and statements that are predicated meanwhile.

for y in 0 - 2..h:                 starts two iterations early, so that f has the rows that the first one needs
    produce f over y+1 .. y+1
    if y >= 0: out[y] = ...        waits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...expr.nodes import Expr, var
from ...expr.visit import loaded
from ...graph.nodes import Stage
from ...ir.nodes import Block, If, Produce, Stmt
from ...ir.visit import expressions, walk
from ...target.kinds import Kind
from ..names import of_loop
from .loops import IN_ORDER


class OpenLoop:
    """A loop being built, and by how many iterations the stages that slide along it make parts of it start early."""

    def __init__(self, name: str, low: Expr, extent: Expr, kind: Kind) -> None:
        self.var = var(name)
        self.parts: list[str] = []  # lets that recover the two coordinates of a fused loop
        self.low = low
        self.first = var(of_loop(name, "first"))
        self.last = low + extent - 1
        self.is_in_order = kind in IN_ORDER
        self.starts: dict[str, int] = {}  # stage computed inside -> iterations by which it starts early
        self.current = 0  # iterations by which the stage being built inside this loop starts early

    @property
    def warm_up(self) -> int:
        """The number of iterations before the first."""
        return max(self.starts.values(), default=0)

    def start(self, s: Stmt) -> int:
        """By how many iterations a statement starts early: as early as the first stage computed in it."""
        return max([self.current, *(self.starts[p.stage] for p in self._early_stages(s))])

    def start_of_readers(self, s: Stmt, buffers: tuple[str, ...]) -> int:
        """By how many iterations the readers of some buffers start early: as early as the first of them."""
        return max([self.current, *(self.starts[p.stage] for p in self._early_stages(s) if _reads(p, buffers))])

    def _early_stages(self, s: Stmt) -> Iterator[Produce]:
        """The stages computed in a statement that start early; mostly none do, and nothing is walked."""
        return (p for p in walk(s) if isinstance(p, Produce) and self.starts.get(p.stage)) if self.starts else iter(())

    def guarded(self, s: Stmt, start: int) -> Stmt:
        """The statement, predicated to run from `start` iterations before the first on."""
        return If(self.var >= self.first - start, s)


def _reads(s: Stmt, buffers: tuple[str, ...]) -> bool:
    return any(not loaded(e).isdisjoint(buffers) for i in walk(s) for e in expressions(i))


def start_stages(
    open_loops: Sequence[OpenLoop],
    members: Sequence[Stage],
    own_start: tuple[OpenLoop, int] | None,
    rest: Stmt,
    build: Callable[[], Stmt],
) -> tuple[Stmt, Stmt]:
    """The loops of some stages, as `build` makes them, and what follows them, each predicated to its first iteration.

    `own_start` is the loop along which the stages slide, and by how many iterations that starts early.
    """
    buffers = tuple(b for m in members for b in m.buffers)
    starts = {loop: loop.start_of_readers(rest, buffers) for loop in open_loops}
    starts |= {} if own_start is None else dict([own_start])
    outer = {loop: loop.current for loop in open_loops}
    for loop in open_loops:
        loop.current = starts[loop]
    produce = build()
    inner = {loop: loop.start(produce) for loop in open_loops}
    for loop in open_loops:
        loop.current = outer[loop]
        rest_start = loop.start(rest)
        if inner[loop] > rest_start:
            rest = loop.guarded(rest, rest_start)
        elif starts[loop] < rest_start and inner[loop] == starts[loop]:
            produce = loop.guarded(produce, starts[loop])
        if inner[loop]:
            loop.starts.update({m.name: max(inner[loop], loop.starts.get(m.name, 0)) for m in members})
    return produce, rest


def one_after_another(open_loops: Iterable[OpenLoop], parts: list[Stmt]) -> Stmt:
    """The parts in sequence, each predicated where a loop around starts early for another."""
    for loop in open_loops:
        starts = [loop.start(p) for p in parts]
        parts = [loop.guarded(p, k) if k < max(starts) else p for p, k in zip(parts, starts, strict=True)]
    return parts[0] if len(parts) == 1 else Block(tuple(parts))
