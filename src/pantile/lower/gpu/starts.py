"""Whether versions of a block differ in more than where it begins.

    let x.lo = 128*xb                       a block inside
    let x.lo = min(128*xb, w - 128)         the last one, moved inwards

All else being equal, one version computes both: what is decided once per block costs nothing. Unless threads access
several elements side by side, whose places are multiples of something in blocks inside and need not be in the last one;
or divide where a block begins, which is simpler there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import gcd
from typing import NamedTuple

from ...expr.congruence import Class, congruence
from ...expr.nodes import Expr, Op
from ...expr.types import INDEX
from ...expr.visit import Key, depends, key, names, transform, walk_loads
from ...expr.visit import walk as walk_expr
from ...ir.nodes import BufferArg, For, Let, Realize, Stmt, Store
from ...ir.visit import children, expressions, map_exprs, walk
from ...target.kinds import Kind, Memory

_LONGEST = 16  # bytes that a thread accesses at once
_DIVIDE = ("floordiv", "mod")
_WRITTEN_OUT = (Kind.UNROLL, Kind.VECTOR)
_Lets = list[tuple[str, Expr, Expr]]


class _Use(NamedTuple):
    """Elements side by side that a thread accesses along a dim, of so many bytes, and lets that decide where."""

    buffer: str
    dim: int
    is_last: bool
    bytes: int
    starts: frozenset[str]


class Starts(NamedTuple):
    """What decides whether accesses are as wide in one version as in the other. `slots`: buffers computed ahead."""

    buffers: Mapping[str, BufferArg]
    multiples: Mapping[str, int]
    slots: Collection[str]

    def one_version(self, s: Stmt, steady: Stmt) -> Stmt | None:
        """Both versions of a block as one, if they differ in nothing else that matters."""
        lets: _Lets = []
        if not self.differ_in_lets(s, steady, lets):
            return None
        classes: dict[str, Class] = {name: (n, 0) for name, n in self.multiples.items()}
        found = {name: (congruence(a, classes), congruence(b, classes)) for name, a, b in lets}
        relative = {i.buffer for i in walk(s) if isinstance(i, Realize) and self.is_relative(i)}
        of_lets = _Uses()
        of_lets.visit(s, {name: frozenset((name,)) for name in found}, frozenset())
        uses = [(use, name) for use in of_lets.places if use.buffer not in relative for name in use.starts]
        is_wider = any(self.is_wider(use, *found[name]) for use, name in uses)
        # What is known of extents, code is told by the way in which minima are written.
        asked = {name for _, name in uses}
        unsaid = [a for name, a, _ in lets if name in asked and congruence(a, classes) != congruence(a, {})]
        said = {key(a): modulus for a in unsaid for modulus, rest in [congruence(a, classes)] if not rest}
        can_say = all(isinstance(a, Op) and a.op == "min" and key(a) in said for a in unsaid)
        if of_lets.divided or is_wider or not can_say:
            return None
        return _as_multiples(s, said)

    def is_relative(self, s: Realize) -> bool:
        """Whether what threads have in common cancels out of its places."""
        return s.memory in (Memory.REGISTER, Memory.STACK) or s.buffer in self.slots

    def differ_in_lets(self, a: Stmt, b: Stmt, lets: _Lets, in_loop: bool = False) -> bool:
        """Whether only values of lets differ that are in no loop, and places that are counted from them: these."""
        if a is b:
            return True
        inside = children(a), children(b)
        if type(a) is not type(b) or len(inside[0]) != len(inside[1]):
            return False
        differs = any(x is not y for x, y in zip(expressions(a), expressions(b), strict=True))
        if isinstance(a, Let) and isinstance(b, Let) and differs:
            if in_loop or a.value.dtype != INDEX:
                return False
            lets.append((a.name, a.value, b.value))
        elif differs and not (isinstance(a, Realize) and self.is_relative(a)):
            return False
        in_loop = in_loop or isinstance(a, For)
        return all(self.differ_in_lets(x, y, lets, in_loop) for x, y in zip(*inside, strict=True))

    def is_wider(self, use: _Use, any_block: Class, steady: Class) -> bool:
        """Whether places that begin there may be accessed at once with more of those beside them in the steady
        version: along a dim of an array whose stride is not a multiple of the longest access itself."""
        array = self.buffers.get(use.buffer)
        if array is None and not use.is_last:
            return False
        stride = 1 if array is None else array.known_strides[use.dim] or self.multiples.get(array.stride(use.dim), 1)
        bytes_ = stride * use.bytes
        known = gcd(_LONGEST, steady[0] * bytes_)
        return gcd(_LONGEST, any_block[0] * bytes_) != known or (any_block[1] - steady[1]) * bytes_ % known != 0


def _as_multiples(s: Stmt, moduli: Mapping[Key, int]) -> Stmt:
    """Minima, by their structure, said to be multiples of what they are."""

    def change(e: Expr) -> Expr | None:
        modulus = moduli.get(key(e)) if isinstance(e, Op) and e.op == "min" else None
        return None if modulus is None else e // modulus * modulus

    return map_exprs(s, lambda e: transform(e, change)) if moduli else s


class _Uses:
    """Finds what becomes of lets: places that threads access side by side, and whether they are divided."""

    def __init__(self) -> None:
        self.places: list[_Use] = []
        self.divided = False

    def visit(self, s: Stmt, from_: Mapping[str, frozenset[str]], own: frozenset[str]) -> None:
        """`from_`: by names, the lets that they depend on. `own`: names that count a thread's own elements."""

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
        self.divided |= any(isinstance(e, Op) and e.op in _DIVIDE and starts(e.args[0]) for e in walk_expr(*exprs))
        if isinstance(s, (Let, For)):
            name, made = (s.name, [s.value]) if isinstance(s, Let) else (s.var, [s.min, s.extent])
            if known := starts(*made):
                from_ = {**from_, name: from_.get(name, frozenset()) | known}
            if isinstance(s, For) and s.kind in _WRITTEN_OUT or any(depends(e, own) for e in made):
                own |= {name}
        for c in children(s):
            self.visit(c, from_, own)
