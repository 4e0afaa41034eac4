"""Hides from LLVM how the beginnings of rows, and bounds that are nested minima and maxima, are computed.

An address in an innermost loop is the address of a buffer, plus terms of the enclosing loops (the row, the corner of a
tile, the halos of the stages in between), plus terms of the loop itself. LLVM's strength reduction sees all these terms
of all addresses and tries many ways to add them up, which took half of the compile time of tiled pyramids. Therefore,
the loop-invariant part is computed before the loop, and passed through empty inline assembly, which is opaque to LLVM.

The bounds of stages under conditions are deeply nested minima and maxima of their consumers' bounds. LLVM's scalar
evolution writes the end of a loop, or an address in it, as one formula of the initial values: a tree that repeats
everything that is shared. It tries to rewrite that tree and expands it into instructions, which takes minutes for
values that are already computed. Therefore, a value whose tree would be large is also passed through empty inline
assembly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from ..dataclass import dataclass
from ..expr.linear import Linear, linear
from ..expr.nodes import Const, Expr, Op, Var
from ..expr.types import INDEX
from ..expr.visit import Key, children, depends, each_once, key, loaded, names, once_per_node, substitute, walk_loads
from ..expr.visit import walk as walk_expr
from ..ir.nodes import Alloc, For, Let, Prefetch, Stmt, Store
from ..ir.visit import expressions, walk
from .function import Function
from .strided_loads import affine, split_offset

_MOST = 24  # minima and maxima in a tree, which is enough for a few clamped indices, tails and edges of tiles


@dataclass(frozen=True)
class Row:
    """A pointer, and the index to add to it inside the loop."""

    pointer: str
    rest: Expr


@dataclass(frozen=True)
class LoopRows:
    """The rows of a loop, by buffer and by index without its constant."""

    rows: dict[tuple[str, Key], Row] = field(default_factory=dict)

    def row(self, buffer: str, rest: Expr) -> Row | None:
        return self.rows.get((buffer, key(rest))) if self.rows else None


@dataclass(frozen=True)
class RowStart:
    """An index, split into the loop-invariant beginning of a row and the terms that vary in the loop."""

    buffer: str
    index: Expr
    begin: Expr
    rest: Expr


def row_starts(loop: For) -> list[RowStart]:
    """The indices in an innermost loop that have both parts, each once.

    Indices with the same beginning in several buffers are left out: one number is added to several addresses, and if
    LLVM sees that, one register serves them all.
    """
    lets = _sums(loop)
    moving = {loop.var, *(s.name for s in walk(loop.body) if isinstance(s, Let))}
    inside = {s.buffer for s in walk(loop.body) if isinstance(s, Alloc)}
    rows: dict[tuple[str, Key], RowStart | None] = {}
    for buffer, index in _accesses(loop.body):
        if (buffer, key(index)) not in rows and buffer not in inside:
            parts = _parts(substitute(index, lets), moving)
            rows[buffer, key(index)] = None if parts is None else RowStart(buffer, index, *parts)
    several = [b for b in rows.values() if b is not None]
    buffers: dict[Key, set[str]] = {}
    for b in several:
        buffers.setdefault(key(b.begin), set()).add(b.buffer)
    return [b for b in several if len(buffers[key(b.begin)]) == 1]


def _sums(loop: For) -> dict[str, Expr]:
    """The values of lets in a loop that are sums. A let whose name is bound several times is left out: copies of an
    unrolled loop bind the same names to different values.
    """
    lets = [s for s in walk(loop.body) if isinstance(s, Let)]
    often = Counter(s.name for s in lets)
    sums: dict[str, Expr] = {}
    for s in lets:
        if often[s.name] == 1 and s.value.dtype is INDEX and s.value.lanes == 1:
            form = linear(substitute(s.value, sums))
            if all(isinstance(atom, Var) for atom, _ in form.terms.values()):
                sums[s.name] = form.expr()
    return sums


def _parts(index: Expr, moving: set[str]) -> tuple[Expr, Expr] | None:
    form = linear(index)
    varying = {k: t for k, t in form.terms.items() if depends(t[0], moving)}
    uniform = {k: t for k, t in form.terms.items() if k not in varying}
    if not varying or not uniform or any(_is_uncertain(atom) for atom, _ in uniform.values()):
        return None
    return Linear(0, uniform).expr(), Linear(form.constant, varying).expr()


def _is_uncertain(e: Expr) -> bool:
    """Whether an expression must not be hoisted speculatively, because it accesses memory or divides by a value that
    may be 0."""
    return bool(loaded(e)) or any(
        isinstance(i, Op) and i.op in ("floordiv", "mod") and not isinstance(i.args[1], Const) for i in walk_expr(e)
    )


def _accesses(s: Stmt) -> Iterator[tuple[str, Expr]]:
    """The buffers and indices, without constants, of all loads and stores except gathers and scatters."""
    for inner in walk(s):
        places = [(e.buffer, e.indices[0]) for e in walk_loads(*expressions(inner))]
        if isinstance(inner, (Store, Prefetch)):
            places.append((inner.buffer, inner.indices[0]))
        for buffer, index in places:
            if index.lanes == 1:
                rest, _ = split_offset(index)
            else:
                ramp = affine(index)
                rest = None if ramp is None else ramp.rest
            if rest is not None:
                yield buffer, rest


@once_per_node("_nesting")
def _nesting(e: Expr) -> int:
    """The number of minima and maxima of indices that LLVM sees in an expression written out as a tree."""
    inside = sum(map(_nesting, children(e)))
    if not _is_limit(e):
        return min(inside, _MOST)
    return 0 if inside + 1 >= _MOST else inside + 1


def cut_inside(fn: Function, e: Op, operand: str) -> str:
    """The operand that holds a minimum or maximum, hidden from LLVM if its tree becomes too large."""
    return hidden(fn, operand) if _is_limit(e) and _nesting(e) == 0 else operand


def bind_cut(fn: Function, name: str, value: Expr, operand: str) -> None:
    """Bind a name to an expression, whose operand is hidden from LLVM if its tree, including names, is too large."""
    if value.dtype is INDEX and value.lanes == 1:
        limits = _limits(fn, value)
        if limits >= _MOST:
            operand, limits = hidden(fn, operand), 0
        fn.nesting[name] = limits
    fn.bind(name, operand)


def _limits(fn: Function, value: Expr) -> int:
    """The count of `_nesting`, plus the minima and maxima behind names."""
    if not any(fn.nesting.get(n) for n in names(value)):
        return _nesting(value)
    memo: dict[int, int] = {}

    def limits(e: Expr) -> int:
        behind = fn.nesting.get(e.name, 0) if isinstance(e, Var) else sum(memo[id(c)] for c in children(e))
        return 0 if _is_limit(e) and _nesting(e) == 0 else min(behind + _is_limit(e), _MOST)

    return each_once(value, memo, limits)


def _is_limit(e: Expr) -> bool:
    return isinstance(e, Op) and e.op in ("min", "max") and e.dtype is INDEX and e.lanes == 1


def hidden(fn: Function, operand: str, type_: str = "i64", register: str = "r") -> str:
    """Hide from LLVM how a number, a pointer or a vector (register "v", on x86) was computed."""
    return fn.value(f'call {type_} asm "", "={register},0"({type_} {operand})')
