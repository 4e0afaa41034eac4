"""Decide layouts: which thread holds which element of a buffer in registers that several threads hold together.

before:  realize sums: [i.min..i.min + 64, j.min..j.min + 64] in register
         thread for ti in 0..16:
             for i in i.min + 4*ti..i.min + 4*ti + 4:
                 thread for tj in 0..16: ...
after:   realize sums: [...] in register over (4 registers, 16 threads, 16 apart; 4 registers, 16 threads)

The layout follows from how far the indices move from one thread to the next in the loops that store the buffer first,
which are those of its stage's pure definition. `distribute_registers` requires all other accesses to agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...expr.linear import Linear
from ...expr.nodes import Expr
from ...ir.nodes import For, Realize, Stmt, Store
from ...ir.visit import children, expressions, rebuild, walk
from ...target.kinds import Kind, Memory
from ...target.layout import Digit, Layout, Unit
from ..footprint import step
from .let_sums import Named
from .thread_context import At

_THREADS = (Kind.WARP, Kind.THREAD, Kind.LANE)
_OF_A_THREAD = (Memory.REGISTER, Memory.STACK)


def decide_layouts(body: Stmt) -> Stmt:
    """Set the layouts of buffers in the registers of blocks and warps."""
    return _visit(body, Named())


def _visit(s: Stmt, named: Named) -> Stmt:
    s = rebuild(s, expressions(s), tuple([_visit(c, named.inside(s)) for c in children(s)]))
    is_held = isinstance(s, Realize) and (s.memory in _OF_A_THREAD or s.memory is Memory.AUTO and _is_of_a_warp(s))
    return replace(s, layout=_layout(s, At(named, {}, _THREADS))) if isinstance(s, Realize) and is_held else s


def _is_of_a_warp(s: Realize) -> bool:
    """Whether lanes share the loops of a buffer, and no warps or threads of a block do."""
    kinds = {i.kind for i in walk(s.body) if isinstance(i, For)}
    return Kind.LANE in kinds and kinds.isdisjoint((Kind.WARP, Kind.THREAD))


def _layout(s: Realize, at: At) -> Layout | None:
    """The layout that the loops which store a buffer first give it, or None if these do not distribute it to
    threads."""
    lows = [at.named.form(low) for low, _ in s.box]
    store = next(_stores(s.body, s.buffer, at), None)
    if store is None:
        return None
    indices, at = store
    dims = [_digits(at, *at.moved(index, low)) for index, low in zip(indices, lows, strict=True)]
    return Layout(tuple(dims)) if any(dims) else None


def _stores(s: Stmt, buffer: str, at: At) -> Iterator[tuple[tuple[Expr, ...], At]]:
    """Yield the indices of the stores to a buffer, in order, each with its context."""
    if isinstance(s, Store) and s.buffer == buffer:
        yield s.indices, at
    for c, scope in step(s, at.scope):
        yield from _stores(c, buffer, at.inside(s, scope))


def _digits(at: At, steps: Mapping[str, int], rest: Linear) -> tuple[Digit, ...]:
    """The digits of an index that moves by these steps, or none if the steps are not nested."""
    digits, size = list[Digit](), 1
    for loop in sorted(at.loops, key=lambda loop: steps[loop.var]):
        far = steps[loop.var]
        if far and loop.digit is not None and loop.digit.size > 1:
            if far % size:
                return ()
            digits += [*([Digit(far // size, Unit.REGISTER)] if far > size else []), loop.digit]
            size = far * loop.digit.size
    return tuple(digits)
