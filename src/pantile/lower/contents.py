"""What statements and expressions load, and which stages statements compute, each found once."""

from __future__ import annotations

from dataclasses import field

from ..dataclass import dataclass
from ..expr.nodes import Expr, Load, Op
from ..expr.visit import loaded, union, walk
from ..ir.nodes import Block, Let, Produce, Realize, Stmt
from ..ir.visit import children, expressions


class Contents:
    """Which buffers a statement loads from and which stages it computes, found once per statement: in long pipelines
    each stage asks all statements after it, most of which have nothing to do with it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Stmt, frozenset[str], frozenset[str]]] = {}
        self._reads: dict[int, _Reads] = {}
        self._led: tuple[Stmt, tuple[str, ...], tuple[list[Let], Stmt]] = (Block(()), (), ([], Block(())))

    def loaded(self, s: Stmt) -> frozenset[str]:
        return self._of(s)[1]

    def stages(self, s: Stmt) -> frozenset[str]:
        return self._of(s)[2]

    def _of(self, s: Stmt) -> tuple[Stmt, frozenset[str], frozenset[str]]:
        contents = self._known.get(id(s))
        if contents is None:
            inside = [self._of(c) for c in children(s)]
            buffers = union([*(c[1] for c in inside), *map(loaded, expressions(s))])
            own = [frozenset((s.stage,))] if isinstance(s, Produce) else []
            contents = s, buffers, union([*(c[2] for c in inside), *own])
            self._known[id(s)] = contents
        return contents

    def leading_to(self, s: Stmt, buffers: tuple[str, ...]) -> tuple[list[Let], Stmt]:
        """The first statement inside that does more than being around the only one that reads the buffers.

        Also the lets on the way to it: of a stage that many others are computed before, these are many. It is asked
        several times in a row."""
        if self._led[0] is not s or self._led[1] != buffers:
            self._led = (s, buffers, self._lead(s, buffers))
        return self._led[2]

    def _lead(self, s: Stmt, buffers: tuple[str, ...]) -> tuple[list[Let], Stmt]:
        lets: list[Let] = []
        while True:
            if isinstance(s, Let) and loaded(s.value).isdisjoint(buffers):
                lets.append(s)
                s = s.body
                continue
            inside = s.stmts if isinstance(s, Block) else (s.body,) if isinstance(s, Realize) else ()
            reading = [c for c in inside if not self.loaded(c).isdisjoint(buffers)]
            if len(reading) != 1 or any(not loaded(e).isdisjoint(buffers) for e in expressions(s)):
                return lets, s
            s = reading[0]

    def loads(self, e: Expr, buffers: tuple[str, ...]) -> list[Expr]:
        """Parts of an expression in which it loads from the buffers: the loads, or all of it if it chooses what to."""
        reads = self._in(e)
        return [load for b in buffers for load in (reads.loads.get(b, ()) if not reads.selects else (e,))]

    def selects(self, e: Expr) -> list[Op]:
        """Its choices."""
        return self._in(e).selects

    def _in(self, e: Expr) -> _Reads:
        reads = self._reads.get(id(e))
        if reads is None:
            reads = self._reads[id(e)] = _Reads(e)
            for node in walk(e):
                if isinstance(node, Load):
                    reads.loads.setdefault(node.buffer, []).append(node)
                elif isinstance(node, Op) and node.op == "select":
                    reads.selects.append(node)
        return reads


@dataclass(frozen=True)
class _Reads:
    """What an expression loads, by buffer, and its choices."""

    of: Expr
    loads: dict[str, list[Load]] = field(default_factory=dict)
    selects: list[Op] = field(default_factory=list)
