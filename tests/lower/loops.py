"""Random loops: bounds, clamps, conditions, masks and updates as lowering makes them, and as it might."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import TypeVar

from pantile.expr.build import binary, cast, maximum, minimum, select
from pantile.expr.nodes import Expr, Load, Var, const, var
from pantile.expr.types import INDEX, INT32
from pantile.expr.visit import names
from pantile.ir.nodes import Block, For, If, Let, Stmt, Store
from pantile.target.kinds import Kind

T = TypeVar("T")
SIZES = [var("n"), var("m")]
_COMPARED = ["le", "lt", "ge", "gt"]
_ZERO = const(0, INDEX)


class RandomLoops:
    """Random statements. Expressions are shared, as nodes of a graph are.

    Every iteration stores to an element of its own; if they are `ordered`, most of them update elements that others
    update and read, too.
    """

    def __init__(self, rng: Random, vectors: bool, ordered: bool) -> None:
        self.rng = rng
        self.vectors = vectors
        self.ordered = ordered
        self.lanes: set[str] = set()  # variables of vector loops
        self.pool: list[Expr] = []
        self.numbers = count()

    def pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def number(self, low: int, high: int) -> Expr:
        return const(self.rng.randint(low, high), INDEX)

    # Expressions of the names around

    def index(self, around: list[Var], depth: int = 2) -> Expr:
        known = {v.name for v in (*around, *SIZES)}
        shared = [e for e in self.pool if names(e) <= known]
        if shared and self.chance(40):
            return self.pick(shared)
        e = self.new_index(around, depth)
        self.pool.append(e)
        return e

    def new_index(self, around: list[Var], depth: int) -> Expr:
        kind = self.pick(["near", "affine", "clamp", "clamp", "min", "max", "half", "select"])
        if around and (depth == 0 or kind == "near"):
            return self.pick(around[-2:]) + self.number(-2, 2)
        if depth == 0 or kind in ("near", "affine"):
            return self.affine(around)
        if kind == "clamp":
            high = self.pick(SIZES) + self.number(-3, 2)
            return maximum(minimum(self.index(around, depth - 1), high), self.number(-2, 2))
        if kind in ("min", "max"):
            return binary(kind, self.index(around, depth - 1), self.index(around, depth - 1))
        if kind == "half":
            return binary(self.pick(["floordiv", "mod"]), self.index(around, depth - 1), self.number(2, 4))
        return select(self.comparison(around), self.index(around, depth - 1), self.index(around, depth - 1))

    def affine(self, around: list[Var]) -> Expr:
        e = self.number(-4, 4)
        for _ in range(self.rng.randint(0, 2)):
            e = e + self.pick([*around, *SIZES]) * self.pick([1, 1, 1, -1, 2, 4])
        return e

    def comparison(self, around: list[Var]) -> Expr:
        return binary(self.pick(_COMPARED), self.index(around, 1), self.index(around, 1))

    def condition(self, around: list[Var]) -> Expr:
        """A comparison or two of them; in ordered loops also of what these store."""
        if self.ordered and not self.has_lanes(around) and self.chance(25):
            some = binary("mod", Load(INT32, 1, "acc1", (self.index(around, 0),)), const(8, INT32))
            return binary("lt", self.index(around, 0), cast(INDEX, some))
        if self.chance(30):
            return binary(self.pick(["and", "and", "or"]), self.comparison(around), self.comparison(around))
        return self.comparison(around)

    def has_lanes(self, around: list[Var]) -> bool:
        return any(v.name in self.lanes for v in around)

    def value(self, around: list[Var]) -> Expr:
        total = self.window(around) if self.has_lanes(around) and self.chance(70) else self.load(around)
        for _ in range(self.rng.randint(0, 3)):
            kind = self.pick(["load", "masked", "index"])
            if kind == "index":
                total = total + cast(INT32, self.index(around))
            elif kind == "load":
                total = total + self.load(around) * 3
            else:
                mask = self.condition(around)
                load = Load(INT32, 1, "a", (self.index(around), self.index(around)), mask)
                total = total + select(mask, load, const(5, INT32))
        return total

    def window(self, around: list[Var]) -> Expr:
        """A sum of neighbours in a row, at clamped or repeated places, in lanes."""
        row, size, at = self.index(around[:-1]), self.pick(SIZES), self.pick([around[-1]] * 3 + [self.index(around, 1)])
        kind, buffer, step = self.pick(["clamp", "clamp", "wrap", "low", "high"]), self.pick("ab"), self.pick([1, 1, 2])
        total: Expr = const(0, INT32)
        for k in range(self.rng.randint(3, 6)):
            place = at + k * step - self.rng.randint(0, 2)
            place = place if kind in ("wrap", "low") else minimum(place, size - 1)
            place = place % maximum(size, 1) if kind == "wrap" else place if kind == "high" else maximum(place, 0)
            total = total + Load(INT32, 1, buffer, (row, place)) * (k + 1)
        return total

    def load(self, around: list[Var]) -> Expr:
        return Load(INT32, 1, self.pick("ab"), (self.index(around), self.index(around)))

    # Statements

    def statement(self, around: list[Var], loops: list[Var], depth: int) -> Stmt:
        kind = self.pick(["loop", "loop", "let", "if", "block", "twice", "store"]) if depth else "store"
        if kind == "loop" or not loops:
            return self.loop(around, loops, depth)
        if kind == "let":
            name = var(f"l{next(self.numbers)}")
            return Let(name.name, self.index(around), self.statement([*around, name], loops, depth - 1))
        if kind == "if":
            otherwise = self.statement(around, loops, depth - 1) if self.chance(30) else None
            return If(self.condition(around), self.statement(around, loops, depth - 1), otherwise)
        if kind == "block":
            return Block(tuple(self.statement(around, loops, depth - 1) for _ in range(2)))
        if kind == "twice":
            return self.twice(around, loops, depth)
        return self.store(around, loops)

    def twice(self, around: list[Var], loops: list[Var], depth: int) -> Stmt:
        """A loop, and one with other bounds around the very same body, such as the edges of one."""
        one = self.loop(around, loops, depth)
        return Block((one, For(one.var, *self.bounds(around), one.kind, one.body) if one.kind is Kind.SERIAL else one))

    def loop(self, around: list[Var], loops: list[Var], depth: int) -> For:
        v, kind = var(f"v{next(self.numbers)}"), Kind.SERIAL
        if self.vectors and depth <= 3 and self.chance(50):
            kind = self.pick([Kind.VECTOR, Kind.VECTOR, Kind.UNROLL])
        inner = [*around, v], [*loops, v]
        if kind is Kind.SERIAL:
            return For(v.name, *self.bounds(around), kind, self.statement(*inner, max(depth - 1, 0)))
        low, extent = self.index(around, 1), const(self.pick([2, 4, 8, 16]), INDEX)
        if kind is Kind.UNROLL:
            return For(v.name, low, extent, kind, self.statement(*inner, max(depth - 1, 0)))
        self.lanes.add(v.name)
        return For(v.name, low, extent, kind, self.store(*inner))

    def bounds(self, around: list[Var]) -> tuple[Expr, Expr]:
        low = self.pick([_ZERO, _ZERO, _ZERO, self.number(-2, 2), self.index(around, 1)])
        size = self.pick(SIZES)
        some = minimum(maximum(self.index(around, 1), _ZERO), size + 2)
        return low, self.pick([size, size, self.number(1, 6), maximum(size - low, _ZERO), some])

    def store(self, around: list[Var], loops: list[Var]) -> Stmt:
        mask = self.condition(around) if self.chance(30) else None
        if self.ordered and self.chance(80):
            return self.update(around, loops, mask)
        return Store(f"out{next(self.numbers)}", tuple(loops), self.value(around), mask)

    def update(self, around: list[Var], loops: list[Var], mask: Expr | None) -> Stmt:
        """Adds to an element that other iterations add to; where there are no lanes, which run at once, also reads
        another one."""
        kept = [v for v in loops if v.name in self.lanes or self.chance(50)]
        in_order = not self.has_lanes(loops)
        places = (self.index(around),) if in_order and self.chance(30) else tuple(kept) or (const(1, INDEX),)
        buffer = f"acc{len(places)}"
        total = Load(INT32, 1, buffer, places) * self.pick([1, 1, 3]) + self.value(around)
        if in_order and self.chance(30):
            total = total + Load(INT32, 1, "acc1", (self.index(around),))
        return Store(buffer, places, total, mask)


def random_loops(seed: int, vectors: bool = False, ordered: bool = False) -> Stmt:
    """Loops over loops, lets and branches, the same for the same seed."""
    return RandomLoops(Random(seed), vectors, ordered).statement([], [], 4)
