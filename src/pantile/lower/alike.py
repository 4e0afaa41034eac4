"""Find stages at root whose loops are equal except for names, so that their blocks need the same memory.

    produce g: block for g.y: realize f: ... shared        produce k: block for k.y: realize h: ... shared
               ... a[3, g.y] ...                                      ... b[4, k.y] ...

The sweeps of a smoother and the layers of a network are alike. In a description, stages are numbered in the order in
which they first occur. Constant indices into arrays outside of the block, such as the biases of a layer, are left out:
they do not affect the memory of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from ..expr.nodes import Const, Expr, Instruction, Load, Op, Shuffle, Var
from ..expr.visit import each_once
from ..graph.nodes import Graph
from ..ir.nodes import Block, Evaluate, For, If, Let, Prefetch, Produce, Realize, Stmt, Store
from ..ir.visit import expressions, walk
from ..schedule.plan import Plan, Site


class Descriptions:
    """Describes loops of one graph and plan."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self.known: dict[tuple[object, ...], int] = {}  # an expression, by the numbers of its operands -> its number

    def of(self, body: Stmt) -> Hashable:
        """A description of loops and of the plans of their stages, which is equal for loops that are alike."""
        return _Description(self).of(body)


class _Description:
    def __init__(self, among: Descriptions) -> None:
        self.among, self.graph, self.plan = among, among.graph, among.plan
        self.numbers: dict[str, int] = {}  # stage -> its number
        self.inside = set[str]()  # buffers of the block
        self.memo: dict[int, int] = {}  # expression -> its number

    def of(self, body: Stmt) -> Hashable:
        loops = (p for p in walk(body) if isinstance(p, Produce))
        self.inside = {s.buffer for p in loops for s in walk(p) if isinstance(s, Realize)}
        stored = {s.buffer.partition(".")[0] for s in walk(body) if isinstance(s, Store)}
        statements = tuple([self.statement(s) for s in walk(body)])
        return statements, tuple([self.stage(name, name in stored) for name in list(self.numbers)])

    def statement(self, s: Stmt) -> Hashable:
        own = _STATEMENTS[type(s)](self, s)
        return type(s), *own, *[each_once(e, self.memo, self.expression) for e in expressions(s)]

    def expression(self, e: Expr) -> int:
        """The number of an expression whose operands have been numbered."""
        below: Iterator[object] = (self.memo[id(c)] for c in e.operands)
        if isinstance(e, Load) and e.buffer not in self.inside:
            below = (None if isinstance(c, Const) else self.memo[id(c)] for c in e.operands)
        attributes = _EXPRESSIONS[type(e)](self, e) if type(e) in _EXPRESSIONS else None
        query: tuple[object, ...] = (type(e), e.dtype, e.lanes, attributes, *below)
        return self.among.known.setdefault(query, len(self.among.known))

    def name(self, name: str) -> Hashable:
        """A name that begins with a stage, such as `g.y`, as the number of the stage and the rest of the name."""
        stage, _, rest = name.partition(".")
        return (self.numbers.setdefault(stage, len(self.numbers)), rest) if stage in self.graph.stage else name

    def stage(self, name: str, is_stored: bool) -> Hashable:
        """The parts of a stage's plan that passes read. Of a stage that is not stored here, this is its layout."""
        stage, p = self.graph.stage[name], self.plan.stages[name]
        layout = (stage.dims, stage.dtypes, p.storage, tuple(p.pads.items()), p.storage_splits)
        if not is_stored:
            return layout
        hybrid = p.hybrid and (p.hybrid.dim, p.hybrid.first, *p.hybrid.lanes.items())
        cached = tuple((self.name(source), operator) for source, operator in p.cached.items())
        memory = (p.memory, hybrid, p.ahead, tuple(p.folds.items()), cached)
        return *layout, *memory, len(stage.updates), name in self.graph.output, self.site(p.compute), p.nests

    def site(self, site: Site | None) -> Hashable:
        return site and (self.name(site.stage), site.definition, site.loop)


_Attributes = Callable[[_Description, Any], tuple[Hashable, ...]]
_STATEMENTS: dict[type[Stmt], _Attributes] = {
    For: lambda d, s: (d.name(s.var), s.kind, s.threads, s.cached, s.persistent, s.digit),
    Let: lambda d, s: (d.name(s.name),),
    Block: lambda d, s: (len(s.stmts),),
    If: lambda d, s: (s.otherwise is None,),
    Store: lambda d, s: (d.name(s.buffer), len(s.indices), s.mask is None, s.manner),
    Produce: lambda d, s: (d.name(s.stage),),
    Realize: lambda d, s: (d.name(s.buffer), s.dtype, len(s.box), s.memory, s.slots, s.layout),
    Prefetch: lambda d, s: (d.name(s.buffer),),
    Evaluate: lambda d, s: (),
}
_EXPRESSIONS: dict[type[Expr], Callable[[_Description, Any], Hashable]] = {
    Var: lambda d, e: d.name(e.name),
    Const: lambda d, e: repr(e.value),
    Op: lambda d, e: e.op,
    Load: lambda d, e: (d.name(e.buffer), e.mask is None),
    Shuffle: lambda d, e: e.order,
    Instruction: lambda d, e: e.name,
}
