"""Fold storage: a buffer whose stage slides keeps only the live rows, in a circular buffer.

before:  realize f: [y.min - 1 .. y.max + 1]          after:  realize f: [0 .. 3]
         f[y + 1, x] = ...                                    f[(y + 1) % 3, x] = ...

Groups of unrolled rows are counted from the buffer's first row: (4*g + k) % 8 then equals 4*(g % 2) + k, so the rows of
a group are at constant distances and share an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

from ..expr.linear import linear, simplify
from ..expr.nodes import Const, Expr, Load, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import substitute, transform, walk_loads
from ..ir import visit as ir
from ..ir.nodes import For, Let, Realize, Stmt, Store
from ..target.kinds import Kind

Folds = Mapping[str, Mapping[int, int]]
_Lets = Mapping[str, Expr]
_Place = tuple[str, int]  # a buffer and one of its dims


def fold_storage(body: Stmt, folds: Folds) -> Stmt:
    """Make the given dims of the given buffers circular, with the given numbers of rows."""
    wanted = {(b, k): n for b, dims in folds.items() for k, n in dims.items()}
    for s in ir.walk(body):
        if isinstance(s, Realize):  # no gain if the whole extent is as small
            for k, (_, extent) in enumerate(s.box):
                if isinstance(extent, Const) and int(extent.value) <= wanted.get((s.buffer, k), 0):
                    wanted.pop((s.buffer, k), None)
    return _Folder(wanted, _grouped(body, wanted)).statement(body, {}) if wanted else body


class _Folder:
    """Rewrites accesses. `firsts` has the first row of the dims whose rows are counted from it."""

    def __init__(self, wanted: Mapping[_Place, int], firsts: Mapping[_Place, Expr]) -> None:
        self.wanted = wanted
        self.firsts = firsts

    def statement(self, s: Stmt, lets: _Lets) -> Stmt:
        new = tuple(transform(e, lambda n: self.load(n, lets)) for e in ir.expressions(s))
        s = ir.rebuild(s, new, tuple([self.statement(c, _inside(s, lets)) for c in ir.children(s)]))
        if isinstance(s, Store):
            return Store(s.buffer, self.circular(s.buffer, s.indices, lets), s.value, s.mask, s.manner)
        if isinstance(s, Realize):
            box = tuple(
                (const(0, INDEX), const(self.wanted[s.buffer, k], INDEX)) if (s.buffer, k) in self.wanted else side
                for k, side in enumerate(s.box)
            )
            return Realize(s.buffer, s.dtype, box, s.memory, s.body)
        return s

    def load(self, e: Expr, lets: _Lets) -> Expr | None:
        if not isinstance(e, Load):
            return None
        return Load(e.dtype, e.lanes, e.buffer, self.circular(e.buffer, e.indices, lets), e.mask)

    def circular(self, buffer: str, indices: tuple[Expr, ...], lets: _Lets) -> tuple[Expr, ...]:
        return tuple([self.row(i, (buffer, k), lets) for k, i in enumerate(indices)])

    def row(self, index: Expr, place: _Place, lets: _Lets) -> Expr:
        if place not in self.wanted:
            return index
        if place in self.firsts:
            index = simplify(substitute(index, lets) - self.firsts[place])
        return index % self.wanted[place]


def _inside(s: Stmt, lets: _Lets) -> _Lets:
    """The lets and unrolled variables inside of `s`, in terms of other names. For unrolled variables, v - min stays
    symbolic."""
    if isinstance(s, Let) and s.value.dtype == INDEX:
        return {**lets, s.name: substitute(s.value, lets)}
    if isinstance(s, For) and s.kind is Kind.UNROLL:
        return {**lets, s.var: substitute(s.min, lets) + (var(s.var) - s.min)}
    return lets


def _grouped(body: Stmt, wanted: Mapping[_Place, int]) -> dict[_Place, Expr]:
    """The first rows of the buffers that are accessed only by unrolled rows in groups that tile the buffer."""
    firsts: dict[_Place, Expr] = {}
    for place, index, lets in _accesses(body, wanted, {}, firsts):
        if place in firsts and not _is_grouped(index, firsts[place], wanted[place], lets):
            del firsts[place]
    return firsts


def _accesses(
    s: Stmt, wanted: Mapping[_Place, int], lets: _Lets, firsts: dict[_Place, Expr]
) -> Iterator[tuple[_Place, Expr, _Lets]]:
    """Yield every index into a folded dim, after noting the first row of its buffer."""
    if isinstance(s, Realize):
        for k, (low, _) in enumerate(s.box):
            if (s.buffer, k) in wanted:
                firsts[s.buffer, k] = substitute(low, lets)
    for e in walk_loads(*ir.expressions(s)):
        yield from (((e.buffer, k), i, lets) for k, i in enumerate(e.indices))
    if isinstance(s, Store):
        yield from (((s.buffer, k), i, lets) for k, i in enumerate(s.indices))
    for c in ir.children(s):
        yield from _accesses(c, wanted, _steps(s, lets), firsts)


def _steps(s: Stmt, lets: _Lets) -> _Lets:
    """The names inside of a statement as in `_inside`, but without the steps of unrolled loops, which will be
    constants."""
    if isinstance(s, For) and s.kind is Kind.UNROLL:
        return {**lets, s.var: substitute(s.min, lets)}
    return _inside(s, lets)


def _is_grouped(index: Expr, first: Expr, rows: int, lets: _Lets) -> bool:
    """Whether the row, counted from the first one, is a constant plus a multiple of some divisor of `rows` greater than
    1."""
    terms = linear(simplify(substitute(index, lets) - first)).terms.values()
    return all(isinstance(atom, Var) for atom, _ in terms) and gcd(rows, *(c for _, c in terms)) > 1
