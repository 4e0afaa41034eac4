"""Memoized queries: the buffers that statements and expressions load, and the stages that statements compute."""

from __future__ import annotations

from dataclasses import field

from ..dataclass import dataclass
from ..expr.nodes import Expr, Load, Op
from ..expr.visit import loaded, union, walk
from ..ir.nodes import Block, Let, Produce, Realize, Stmt
from ..ir.visit import children, expressions


class Contents:
    """The buffers that a statement loads from and the stages that it computes, memoized by statement. In a long
    pipeline, each stage queries all statements after it, most of which do not use it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Stmt, frozenset[str], frozenset[str]]] = {}
        self._reads: dict[int, _Reads] = {}
        self._led: tuple[Stmt, tuple[str, ...], tuple[list[Let], Stmt]] = (Block(()), (), ([], Block(())))

    def loaded(self, s: Stmt) -> frozenset[str]:
        return self._contents(s)[1]

    def stages(self, s: Stmt) -> frozenset[str]:
        return self._contents(s)[2]

    def _contents(self, s: Stmt) -> tuple[Stmt, frozenset[str], frozenset[str]]:
        contents = self._known.get(id(s))
        if contents is None:
            inside = [self._contents(c) for c in children(s)]
            buffers = union([*(c[1] for c in inside), *map(loaded, expressions(s))])
            produced = [frozenset((s.stage,))] if isinstance(s, Produce) else []
            contents = s, buffers, union([*(c[2] for c in inside), *produced])
            self._known[id(s)] = contents
        return contents

    def leading_to(self, s: Stmt, buffers: tuple[str, ...]) -> tuple[list[Let], Stmt]:
        """Descend to the first statement that does more than enclose the only reader of the buffers.

        The lets on the way are returned as well; a stage that precedes many others has many of them. The last answer is
        memoized, since the same query is often made several times in succession.
        """
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
        """The loads from the buffers in an expression, or the whole expression if it contains selects."""
        reads = self._loads_and_selects(e)
        return [load for b in buffers for load in (reads.loads.get(b, ()) if not reads.selects else (e,))]

    def selects(self, e: Expr) -> list[Op]:
        """The selects in an expression."""
        return self._loads_and_selects(e).selects

    def _loads_and_selects(self, e: Expr) -> _Reads:
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
    """The loads of an expression by buffer, and its selects."""

    of: Expr  # alive while its id is a key
    loads: dict[str, list[Load]] = field(default_factory=dict)
    selects: list[Op] = field(default_factory=list)
