"""Partition loops: a steady middle without clamps and conditions, and edges that keep them.

before:  for x in 0..w:                              after:  for x in steady..end:
             out[x] = f[max(min(x - 1, w - 1), 0)]               out[x] = f[x - 1]
                                                             for x in the other iterations:
                                                                 out[x] = f[max(min(x - 1, w - 1), 0)]

A clamp is dropped where its moving operand provably decides it, a comparison where it provably holds; both are solved
for the loop variable. If iterations are independent, all edges share one loop after the steady one. A loop stays as it
is if its edges would exceed the budget of its outermost loop or of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import reduce

from ..analysis.interval import Interval, Scope, interval
from ..dataclass import dataclass
from ..expr.build import expr, maximum, minimum, select
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Op, Var, const, var
from ..expr.types import BOOL, INDEX
from ..expr.visit import depends, key, loaded, names, operands_first, same, walk
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Let, Stmt, Store
from ..target.kinds import ITERATED, Kind
from .conditions import Decided, is_comparison, limit
from .footprint import step
from .last_block import last_block
from .names import of_loop
from .size import Room, copies, size
from .unswitch import branch

_MOST_OF_A_LOOP = 16_000  # most expressions that edges add to an outermost loop: edges of nested loops multiply
_WORTH_A_MIDDLE = 3  # least number of iterations; fewer suffice if lanes would otherwise be gathered in interior tiles
_MOST_GATHERED = 256  # most lanes that an edge gathers as vectors: about four lines of LLVM text each
_MOST_OF_ALL = 32_000  # most expressions added to a program, or its own size if larger


def partition(
    body: Stmt,
    facts: Facts,
    modes: Mapping[str, str],
    ordered: Collection[str],
    refused: Callable[[str], None] = lambda _: None,
) -> Stmt:
    """Partition the innermost serial loops, and loops whose clamps alone force gathers, within the budget.

    `modes` maps loop variables to auto, never or always. `ordered` has the loops whose iterations must keep their
    order. `refused` is called with the loops that exceed the budget.
    """
    room = Room(_MOST_OF_ALL, larger=lambda: size(body))
    return _Partitioner(facts, modes, ordered, room, refused).outermost(body)


class _Partitioner:
    def __init__(
        self,
        facts: Facts,
        modes: Mapping[str, str],
        ordered: Collection[str],
        room: Room,
        refused: Callable[[str], None],
    ) -> None:
        self.facts = facts
        self.modes = modes
        self.ordered = ordered
        self.room = room
        self.refused = refused

    def outermost(self, s: Stmt) -> Stmt:
        if isinstance(s, For):
            room = Room(_MOST_OF_A_LOOP, self.room)
            return _Partitioner(self.facts, self.modes, self.ordered, room, self.refused).visit(s, 1)
        return ir.map_children(s, self.outermost)

    def visit(self, s: Stmt, repeated: int) -> Stmt:
        """Visit a statement. `repeated` is the number of copies that the unrolled loops around it make."""
        inside = tuple([self.visit(c, repeated * copies(s)) for c in ir.children(s)])
        s = ir.rebuild(s, ir.expressions(s), inside)
        return self.loop(s, repeated) if isinstance(s, For) and self.wanted(s) else s

    def wanted(self, s: For) -> bool:
        mode = self.modes.get(s.var, "auto")
        if mode == "never" or s.kind is not Kind.SERIAL:
            return False
        if isinstance(s.extent, Const) and int(s.extent.value) < _WORTH_A_MIDDLE:
            return _clamps_lanes(s)
        innermost = not any(isinstance(i, For) and i.kind in ITERATED for i in ir.walk(s.body))
        return mode == "always" or innermost or _clamps_lanes(s)

    def loop(self, s: For, repeated: int) -> Stmt:
        middle = Steady(s.var, self.facts)
        middle.statement(s.body, {})
        if not middle.choices or middle.contradicted:
            return s
        end = simplify(s.min + s.extent, self.facts)
        block = None if middle.lower else last_block(s, middle.choices, self.facts)
        if block is not None:
            whole = reduce(minimum, middle.upper, end)
            return block.shared(simplify(maximum(whole, s.min), self.facts), self.facts)
        if not self.room.take(size(s) * repeated):
            self.refused(s.var)
            return s
        steady = Decided(middle.choices).statement(s.body)
        low, high = reduce(maximum, middle.lower, s.min), reduce(minimum, middle.upper, end)
        low = simplify(minimum(low, end), self.facts) if middle.lower else s.min
        name_low, name_high = (var(of_loop(s.var, word)) for word in ("steady", "steady_end"))
        high = simplify(maximum(high, name_low), self.facts) if middle.upper else end
        parts = self.parts(s, steady, name_low, name_high, end, bool(middle.lower), bool(middle.upper))
        return Let(name_low.name, low, Let(name_high.name, high, parts))

    def parts(self, s: For, steady: Stmt, low: Var, high: Var, end: Expr, before: bool, after: bool) -> Stmt:
        def piece(start: Expr, stop: Expr, body: Stmt) -> For:
            return For(s.var, start, simplify(stop - start, self.facts), s.kind, body)

        middle, rest = piece(low, high, steady), _edge(s.body, self.room)
        if not before:
            return Block((middle, piece(high, end, rest)))
        if not after:
            return Block((piece(s.min, low, rest), middle))
        if s.var in self.ordered:
            return Block((piece(s.min, low, rest), middle, piece(high, end, rest)))
        edge = var(of_loop(s.var, "edge"))
        count = simplify(low - s.min + (end - high), self.facts)
        where = select(edge < low - s.min, s.min + edge, high - low + s.min + edge)
        return Block((middle, For(edge.name, const(0, INDEX), count, s.kind, Let(s.var, where, rest))))


def _edge(body: Stmt, room: Room) -> Stmt:
    """The body at an edge, which is rarely executed and should be little code.

    Lanes that load under their own masks run serially, and loops around them are not unrolled. The same holds for lanes
    with many data-dependent loads, which are scalar loads in any case, so vectors gain little.
    """
    one_by_one: set[str] = set()

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        if s.kind is Kind.VECTOR and (
            any(e.mask is not None and depends(e.mask, [s.var]) for e in ir.all_loads(s.body))
            or _gathered(s) > _MOST_GATHERED
        ):
            one_by_one.add(s.var)
            branches = ir.transform(s.body, lambda i: branch(i, room) if isinstance(i, Store) else None)
            return For(s.var, s.min, s.extent, Kind.SERIAL, branches)
        if s.kind is Kind.UNROLL and any(isinstance(i, For) and i.var in one_by_one for i in ir.walk(s.body)):
            return For(s.var, s.min, s.extent, Kind.SERIAL, s.body)
        return None

    return ir.transform(body, change)


def _gathered(lanes: For) -> int:
    """The number of elements that are loaded at data-dependent indices."""
    count = int(lanes.extent.value) if isinstance(lanes.extent, Const) else 0
    return count * len({key(e) for e in ir.all_loads(lanes.body) if any(map(loaded, e.indices))})


def _clamps_lanes(loop: For) -> bool:
    """Whether this loop moves clamps of lanes that no inner loop moves, so that only partitioning removes them."""

    def visit(s: Stmt, moves: Mapping[str, frozenset[str]]) -> bool:
        def moved_by(e: Expr) -> frozenset[str]:
            return frozenset[str]().union(*(moves[n] for n in names(e) if n in moves))

        if any(
            isinstance(e, Op) and e.op in ("min", "max") and e.dtype == INDEX and moved_by(e) == {"loop", "lane"}
            for e in walk(*ir.expressions(s))
        ):
            return True
        if isinstance(s, Let):
            moves = {**moves, s.name: moved_by(s.value)}
        elif isinstance(s, For):
            kinds = {"lane"} if s.kind is Kind.VECTOR else {"inner"} if s.kind in ITERATED else set()
            moves = {**moves, s.var: moved_by(s.min) | kinds}
        return any(visit(c, moves) for c in ir.children(s))

    return visit(loop.body, {loop.var: frozenset({"loop"})})


@dataclass
class Steady:
    """Collects replacements that hold in the steady middle of the loop over `var`, and the bounds of this middle."""

    var: str
    facts: Facts
    choices: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # id(node) -> (node, replacement)
    lower: list[Expr] = field(default_factory=list)  # var >= each
    upper: list[Expr] = field(default_factory=list)  # var < each
    seen: set[tuple[object, ...]] = field(default_factory=set)
    met: dict[tuple[int, ...], object] = field(default_factory=dict)  # visited nodes, by id and ranges
    decisions: dict[tuple[object, ...], int | None] = field(default_factory=dict)  # by structure
    undecided: set[int] = field(default_factory=set)  # ids of nodes that stay; `met` keeps them alive
    contradicted: bool = False  # a node shared by inner loops can be replaced in one, but not in a later one

    def statement(self, s: Stmt, scope: Scope) -> None:
        if isinstance(s, If) and self.settle(s.condition, scope):
            self.statement(s.then, scope)
            return
        for e in ir.expressions(s):
            self.expression(e, scope)
        if isinstance(s, Let) and s.value.dtype == INDEX:
            self.statement(s.body, {**scope, s.name: interval(Decided(self.choices).expression(s.value), scope)})
            return
        for inner, inner_scope in step(s, scope):
            self.statement(inner, inner_scope)

    def expression(self, e: Expr, scope: Scope) -> None:
        for node in operands_first(e, lambda n: n.operands[::-1]):
            if isinstance(node, Op) and node.lanes == 1:
                if node.op in ("min", "max") and node.dtype == INDEX:
                    self.clamp(node, scope)
                elif is_comparison(node):
                    self.settle(node, scope)

    def is_known(self, node: Expr, scope: Scope) -> bool:
        """Whether the node was visited before with the same ranges. Inner loops that share it may have different
        ranges."""
        ranges = [scope[name] for name in names(node) if name in scope]
        known = (id(node), *map(id, ranges))
        if known in self.met:
            return True
        self.met[known] = (node, ranges)  # kept alive while their ids are keys
        return False

    def decided(self, node: Op, scope: Scope, decide: Callable[[Op, Scope], int | None]) -> int | None:
        """Decide about a node, or reuse the decision for an equal one, since many reads have the same clamp."""
        ranges = [id(scope[name]) for name in sorted(names(node)) if name in scope]
        known = (key(node), *ranges)
        if known not in self.decisions:
            self.decisions[known] = decide(node, scope)
        return self.decisions[known]

    def choose(self, node: Expr, instead: Expr | None) -> None:
        """Replace a node, or leave it unchanged. A node that is left in one inner loop is left in all that share it."""
        before = self.choices.get(id(node))
        if instead is None:
            self.undecided.add(id(node))
            self.contradicted |= before is not None
        elif id(node) in self.undecided:
            pass
        elif before is None:
            self.choices[id(node)] = (node, instead)
        else:
            self.contradicted |= not same(before[1], instead)

    def clamp(self, node: Op, scope: Scope) -> None:
        if not self.is_known(node, scope):
            which = self.decided(node, scope, self.clamped)
            self.choose(node, None if which is None else node.args[which])

    def clamped(self, node: Op, scope: Scope) -> int | None:
        """The operand that equals a minimum or maximum in the steady middle, or None."""
        chosen = Decided(self.choices)
        sides = [interval(chosen.expression(a), scope) for a in node.args]
        moving = [self.moves(a, side) for a, side in zip(node.args, sides, strict=True)]
        if moving[0] == moving[1] or not (sides[0].bounded and sides[1].bounded):
            return None
        k = 0 if moving[0] else 1
        mover, limit = sides[k], sides[1 - k]
        holds = limit.low - expr(mover.high, INDEX) if node.op == "min" else expr(mover.low, INDEX) - limit.high
        return k if self.require(holds) else None

    def moves(self, e: Expr, side: Interval) -> bool:
        """Whether an operand changes with the loop, directly or through inner loops and lets."""
        return any(isinstance(b, Expr) and depends(b, [self.var]) for b in (side.low, side.high))

    def settle(self, node: Expr, scope: Scope) -> bool:
        """Assume a condition. Return True if this only requires bounds on the loop variable."""
        if isinstance(node, Op) and node.op == "and":
            results = [self.settle(a, scope) for a in node.args]
            return all(results)
        if not (isinstance(node, Op) and is_comparison(node)):
            return False
        if not self.is_known(node, scope):
            self.choose(node, const(True, BOOL) if self.holds(node, scope) else None)
        return id(node) in self.choices

    def holds(self, node: Op, scope: Scope) -> bool:
        chosen = Decided(self.choices)
        a, b = (interval(chosen.expression(x), scope) for x in node.args)
        if not (a.bounded and b.bounded):
            return False
        strict = 1 if node.op in ("lt", "gt") else 0
        small, large = (a, b) if node.op in ("le", "lt") else (b, a)
        return self.require(large.low - expr(small.high, INDEX) - strict)

    def require(self, holds: Expr) -> bool:
        """Bound the loop variable so that holds >= 0. Return False if `holds` is not linear in it."""
        bounded = limit(holds, self.var, self.facts)
        if bounded is None:
            return False
        is_lower, bound = bounded
        if (k := (is_lower, key(bound))) not in self.seen:
            self.seen.add(k)
            (self.lower if is_lower else self.upper).append(bound)
        return True
