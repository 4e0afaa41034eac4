"""Fingerprints of graphs, which are the same in all processes and equal for graphs that compile to the same code.

They include names, since code refers to them, but neither the user's lines nor the defaults of params.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from ..expr.nodes import Const, Expr, Load, Op, Var
from ..expr.visit import children, each_once
from ..graph.nodes import Definition, Graph, Stage

_known: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()  # the key of both the schedule cache and the code cache


def fingerprint(graph: Graph) -> str:
    """A digest of everything in the graph that code depends on."""
    digest = _known.get(graph)
    if digest is None:
        digest = _known[graph] = _GraphDigest().graph(graph)
    return digest


class _GraphDigest:
    """Writes a graph as lines of text. Equal expressions share one line, and others refer to it by its number."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.known: dict[int, int] = {}

    def graph(self, graph: Graph) -> str:
        inputs = [(i.name, i.dtype.name, i.ndim, i.known) for i in graph.inputs]
        params = [(p.name, p.dtype.name) for p in graph.params]
        outputs = [(o.stage, self.expressions(o.shape)) for o in graph.outputs]
        stages = [self.stage(s) for s in graph.stages]
        text = "\n".join([*self.lines, repr((graph.name, inputs, params, outputs, stages))])
        return hashlib.sha256(text.encode()).hexdigest()

    def stage(self, s: Stage) -> tuple[object, ...]:
        domain = [self.expressions(bound) for bound in s.domain or ()]
        types = [t.name for t in s.dtypes]
        return s.name, s.dims, types, domain, s.helper, [self.definition(d) for d in s.definitions]

    def definition(self, d: Definition) -> tuple[object, ...]:
        domain = [(r.name, self.expressions((r.min, r.extent))) for r in d.domain]
        condition = None if d.condition is None else self.expression(d.condition)
        return self.expressions(d.indices), self.expressions(d.values), domain, condition

    def expressions(self, several: Iterable[Expr]) -> list[int]:
        return [self.expression(e) for e in several]

    def expression(self, e: Expr) -> int:
        """The number of an expression's line."""
        return each_once(e, self.known, self.line)

    def line(self, e: Expr) -> int:
        operands = [self.known[id(c)] for c in children(e)]
        line = f"{type(e).__name__} {e.dtype} {_attribute(e)} {operands}"
        return self.lines.setdefault(line, len(self.lines))


def _attribute(e: Expr) -> str:
    """The attribute of a node in addition to its type and operands. Loads of a graph have no masks."""
    if isinstance(e, Const):
        return repr(e.value)
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Op):
        return e.op
    return e.buffer if isinstance(e, Load) else ""
