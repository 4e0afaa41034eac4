"""Decide whether two versions of a block differ in more than where the block begins.

    let x.lo = 128*xb                       a block inside
    let x.lo = min(128*xb, w - 128)         the last one, moved inwards

If nothing else differs, a single version serves both cases, since a decision that is made once per block costs nothing.
The same holds for the start of a tile in shared memory, since indices into the tile are relative to it. There are two
exceptions: threads access several adjacent elements, whose indices are known multiples in interior blocks but not in
the last one; or they divide the start of a block, and the remainder is known in interior blocks only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import gcd
from typing import NamedTuple

from ...expr.congruence import Class, congruence
from ...expr.linear import simplify
from ...expr.nodes import Const, Expr, Op, var
from ...expr.types import INDEX
from ...expr.visit import Key, depends, key, names, substitute, transform, walk_loads
from ...expr.visit import walk as walk_expr
from ...ir.nodes import BufferArg, For, Let, Realize, Stmt, Store
from ...ir.visit import children, expressions, map_exprs, walk
from ...target.gpu import LONGEST_ACCESS
from ...target.kinds import Kind, Memory
from ..names import of_loop

_DIVIDE = ("floordiv", "mod")
_WRITTEN_OUT = (Kind.UNROLL, Kind.VECTOR)


class _StartDivision(NamedTuple):
    """The constant divisor by which an index is divided (0 if it is not constant), and the lets that the index depends
    on."""

    divisor: int
    starts: frozenset[str]


class _Use(NamedTuple):
    """An access of adjacent elements along a dim by one thread: the size of an element, and the lets that decide where
    the elements begin."""

    buffer: str
    dim: int
    is_last: bool
    bytes: int
    starts: frozenset[str]


class _Differences(NamedTuple):
    """How two versions of a block differ: lets by name, and the starts of tiles in shared memory along their dims, each
    with its value in any block and in a steady one.
    """

    lets: list[tuple[str, Expr, Expr]]
    tiles: list[tuple[_Use, Expr, Expr]]

    def takes_tile(self, a: Realize, b: Realize) -> bool:
        """Note a tile that has the same size in both versions, and return whether it does."""
        if a.memory is Memory.HEAP or any(x is not y for (_, x), (_, y) in zip(a.box, b.box, strict=True)):
            return False
        last = len(a.box) - 1
        self.tiles.extend(
            (_Use(a.buffer, k, k == last, a.dtype.bytes, frozenset()), low, steady)
            for k, ((low, _), (steady, _)) in enumerate(zip(a.box, b.box, strict=True))
            if low is not steady
        )
        return True


class Starts(NamedTuple):
    """Facts that decide whether accesses are as wide in one version as in the other.

    `slots` are the prefetched buffers.
    """

    buffers: Mapping[str, BufferArg]
    multiples: Mapping[str, int]  # stride -> a number that it is a multiple of
    slots: Collection[str]

    def one_version(self, s: Stmt, steady: Stmt, classes: Mapping[str, Class]) -> Stmt | None:
        """Merge both versions of a block if they differ only in where it begins.

        `classes` are the congruence classes of the names around the block.
        """
        differences = _Differences([], [])
        if not self.differ_in_starts(s, steady, differences):
            return None
        lets = differences.lets
        congruences = {name: (congruence(a, classes), congruence(b, classes)) for name, a, b in lets}
        relative = {i.buffer for i in walk(s) if isinstance(i, Realize) and self.is_relative(i)}
        of_lets = _StartUses()
        of_lets.visit(s, {name: frozenset((name,)) for name in congruences}, frozenset())
        uses = [(use, name) for use in of_lets.places if use.buffer not in relative for name in use.starts]
        beside = {use[:2] for use in of_lets.places}
        tiles = [(use, congruence(a, classes), congruence(b, classes)) for use, a, b in differences.tiles]
        is_wider = any(self.is_wider(use, *congruences[name]) for use, name in uses)
        is_wider |= any(self.is_wider(use, *ends) for use, *ends in tiles if use[:2] in beside)
        divisions = [(d.divisor, name) for d in of_lets.divisions for name in d.starts]
        is_simpler = any(_tells_more(divisor, *congruences[name]) for divisor, name in divisions)
        # Code generation derives facts about extents from the form of minima.
        asked = {name for _, name in [*uses, *divisions]}
        unsaid = [a for name, a, _ in lets if name in asked and congruence(a, classes) != congruence(a, {})]
        said = {key(a): modulus for a in unsaid for modulus, rest in [congruence(a, classes)] if not rest}
        can_say = all(isinstance(a, Op) and a.op == "min" and key(a) in said for a in unsaid)
        # The thread that holds an element in registers follows from the element's distance from their start, so both
        # must be written in the same form.
        values = {name: a for name, a, _ in lets}
        lows = [low for i in walk(s) if isinstance(i, Realize) and i.layout for low, _ in i.box]
        lows += [values[n] for low in lows for n in names(low) if n in values]
        minima = [e for low in lows for e in walk_expr(low) if isinstance(e, Op) and e.op == "min"]
        others = [e for e in minima if key(e) not in said and congruence(e, classes)[0] > 1]
        if is_wider or is_simpler or not can_say or (said and others):
            return None
        return _as_multiples(s, said)

    def is_relative(self, s: Realize) -> bool:
        """Whether the part of an index that all threads share cancels out of the buffer's indices."""
        return s.memory in (Memory.REGISTER, Memory.STACK) or s.buffer in self.slots

    def differ_in_starts(self, a: Stmt, b: Stmt, differences: _Differences, in_loop: bool = False) -> bool:
        """Whether two versions differ only in lets outside of loops and in indices relative to these; the lets are
        noted."""
        if a is b:
            return True
        inside = children(a), children(b)
        if type(a) is not type(b) or len(inside[0]) != len(inside[1]):
            return False
        differs = any(x is not y for x, y in zip(expressions(a), expressions(b), strict=True))
        if isinstance(a, Let) and isinstance(b, Let) and differs:
            if in_loop or a.value.dtype != INDEX:
                return False
            differences.lets.append((a.name, a.value, b.value))
        elif isinstance(a, Realize) and isinstance(b, Realize) and differs:
            if not self.is_relative(a) and not differences.takes_tile(a, b):
                return False
        elif differs:
            return False
        in_loop = in_loop or isinstance(a, For)
        return all(self.differ_in_starts(x, y, differences, in_loop) for x, y in zip(*inside, strict=True))

    def is_wider(self, use: _Use, any_block: Class, steady: Class) -> bool:
        """Whether an access may be wider in the steady version. This requires a dim of an array whose stride is not
        itself a multiple of the widest access.
        """
        array = self.buffers.get(use.buffer)
        if array is None and not use.is_last:
            return False
        stride = 1 if array is None else array.known_strides[use.dim] or self.multiples.get(array.stride(use.dim), 1)
        bytes_ = stride * use.bytes
        known = gcd(LONGEST_ACCESS, steady[0] * bytes_)
        return gcd(LONGEST_ACCESS, any_block[0] * bytes_) != known or (any_block[1] - steady[1]) * bytes_ % known != 0


def _tells_more(divisor: int, any_block: Class, steady: Class) -> bool:
    """Whether the steady version knows a remainder that an arbitrary block does not."""
    known = gcd(divisor, steady[0])
    return divisor == 0 or gcd(divisor, any_block[0]) != known or (any_block[1] - steady[1]) % known != 0


def _as_multiples(s: Stmt, moduli: Mapping[Key, int]) -> Stmt:
    """Write minima (given by their structure) explicitly as multiples of their known moduli."""

    def change(e: Expr) -> Expr | None:
        modulus = moduli.get(key(e)) if isinstance(e, Op) and e.op == "min" else None
        return None if modulus is None else e // modulus * modulus

    return map_exprs(s, lambda e: transform(e, change)) if moduli else s


class _StartUses:
    """Collects the uses of lets: indices by which threads access adjacent elements, and divisions."""

    def __init__(self) -> None:
        self.places: list[_Use] = []
        self.divisions: list[_StartDivision] = []
        self._loops: dict[str, Expr] = {}  # loop variable -> its first value plus an offset

    def visit(self, s: Stmt, from_: Mapping[str, frozenset[str]], own: frozenset[str]) -> None:
        """Visit a statement.

        `from_` maps names to the lets that they depend on. `own` has the names that count a thread's own elements.
        """

        def starts(*of: Expr) -> frozenset[str]:
            return frozenset[str]().union(*(from_[n] for e in of for n in names(e) if n in from_))

        exprs = expressions(s)
        accesses = [(e.buffer, e.dtype, e.indices) for e in walk_loads(*exprs)]
        if isinstance(s, Store):
            accesses.append((s.buffer, s.value.dtype, s.indices))
        for buffer, dtype, indices in accesses:
            for k, i in enumerate(indices):
                if depends(i, own) and (known := starts(i)):
                    self.places.append(_Use(buffer, k, k == len(indices) - 1, dtype.bytes, known))
        for e in walk_expr(*exprs):
            if not isinstance(e, Op) or e.op not in _DIVIDE or e.dtype != INDEX:
                continue
            if known := starts(simplify(substitute(e.args[0], self._loops))):
                self.divisions.append(
                    _StartDivision(int(e.args[1].value) if isinstance(e.args[1], Const) else 0, known)
                )
        if isinstance(s, (Let, For)):
            name, made = (s.name, [s.value]) if isinstance(s, Let) else (s.var, [s.min, s.extent])
            if known := starts(*made):
                from_ = {**from_, name: from_.get(name, frozenset()) | known}
            if isinstance(s, For):
                self._loops[s.var] = s.min + var(of_loop(s.var, "own"))
            if isinstance(s, For) and s.kind in _WRITTEN_OUT or any(depends(e, own) for e in made):
                own |= {name}
        for c in children(s):
            self.visit(c, from_, own)
