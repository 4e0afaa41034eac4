"""Loops that start early for stages that slide along them, and statements that are predicated meanwhile.

for y in 0 - 2..h:                 starts two iterations early, so that f has the rows that iteration 0 needs
    produce f over y+1 .. y+1
    if y >= 0: out[y] = ...        does not run in the early iterations
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
    """A loop being built. Stages that slide along it make parts of it start a number of iterations early."""

    def __init__(self, name: str, low: Expr, extent: Expr, kind: Kind) -> None:
        self.var = var(name)
        self.parts: list[str] = []  # lets that recover the two coordinates of a fused loop
        self.low = low
        self.first = var(of_loop(name, "first"))
        self.last = low + extent - 1
        self.is_in_order = kind in IN_ORDER
        self.starts: dict[str, int] = {}  # stage computed inside -> number of iterations by which it starts early
        self.current = 0  # the same for the stage that is being built inside of this loop

    @property
    def warm_up(self) -> int:
        """The number of iterations before the regular first one."""
        return max(self.starts.values(), default=0)

    def start(self, s: Stmt) -> int:
        """The number of iterations by which a statement starts early: the maximum over the stages computed in it."""
        return max([self.current, *(self.starts[p.stage] for p in self._early_stages(s))])

    def start_of_readers(self, s: Stmt, buffers: tuple[str, ...]) -> int:
        """The number of iterations by which the readers of some buffers start early: the maximum over these readers."""
        return max([self.current, *(self.starts[p.stage] for p in self._early_stages(s) if _reads(p, buffers))])

    def _early_stages(self, s: Stmt) -> Iterator[Produce]:
        """The stages computed in a statement that start early. Usually there are none, and nothing is walked."""
        return (p for p in walk(s) if isinstance(p, Produce) and self.starts.get(p.stage)) if self.starts else iter(())

    def guarded(self, s: Stmt, start: int) -> Stmt:
        """Predicate the statement so that it runs from `start` iterations before the regular first one on."""
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
    """Return the loops of some stages, as `build` makes them, and the statements that follow them, both predicated to
    their first iterations.

    `own_start` is the loop along which the stages slide, and the number of iterations by which it starts early for
    them.
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
    """Return the parts in sequence. A part is predicated if a loop around starts early for another part."""
    for loop in open_loops:
        starts = [loop.start(p) for p in parts]
        parts = [loop.guarded(p, k) if k < max(starts) else p for p, k in zip(parts, starts, strict=True)]
    return parts[0] if len(parts) == 1 else Block(tuple(parts))
