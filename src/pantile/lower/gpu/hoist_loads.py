"""Hoist loads: a load moves before stores that do not alias it, so that several loads are in flight at the same time.

before:  f[y*s + x] = a*f[(y - 1)*s + x] + b*f[y*s + x]        after:  let f.ahead.0 = f[(y + 1)*s + x]
         f[(y + 1)*s + x] = a*f[y*s + x] + b*f[(y + 1)*s + x]          f[y*s + x] = a*f[(y - 1)*s + x] + b*f[y*s + x]
                                                                       f[(y + 1)*s + x] = a*f[y*s + x] + b*f.ahead.0

This is for scans whose loops are unrolled. GPU code has no alias information, and a load takes as long as hundreds of
other instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from ...expr.linear import linear
from ...expr.nodes import Expr, Load, Op, Var
from ...expr.types import INDEX
from ...expr.visit import Key, key, loaded, transform, walk_loads
from ...ir.nodes import Alloc, Block, Let, Manner, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Memory
from ..names import of_buffer

_Form = dict[tuple[Key, str], int]  # (atom, stride) -> coefficient
_ONE: Key = key(Var(INDEX, 1, ""))  # stands for 1


def hoist_loads(body: Stmt) -> Stmt:
    """Move loads before a run of stores if none of the stores changes what they load."""
    private = {s.buffer for s in walk(body) if isinstance(s, Alloc) and s.memory is not Memory.HEAP}
    return _visit(body, count(), private)


def _visit(s: Stmt, numbers: Iterator[int], private: set[str]) -> Stmt:
    s = rebuild(s, expressions(s), tuple([_visit(c, numbers, private) for c in children(s)]))
    if not isinstance(s, Block):
        return s
    made, run = list[Stmt](), list[Store]()
    for c in (*s.stmts, None):
        if isinstance(c, Store) and c.mask is None and c.value.lanes == 1 and c.manner is not Manner.ATOMIC:
            run.append(c)
            continue
        made.append(_loaded_first(run, numbers, private))
        run = []
        if c is not None:
            made.append(c)
    return block(*made)


def _loaded_first(run: list[Store], numbers: Iterator[int], private: set[str]) -> Stmt:
    """Return the stores in order, inside of lets that hold the hoisted loads."""
    names: dict[Key, tuple[str, Load]] = {}
    stores = list[Store]()
    for k, s in enumerate(run):
        before = [r for r in run[:k] if r.buffer not in private]
        first = dict[Key, Expr]()  # loads in this store whose elements no earlier store of the run changes
        for e in walk_loads(s.value):
            theirs = [r for r in before if r.buffer == e.buffer]
            if theirs and e.mask is None and not loaded(e.indices[0]) and _is_apart(e, theirs):
                name, _ = names.setdefault(key(e), (of_buffer(e.buffer, "ahead", next(numbers)), e))
                first[key(e)] = Var(e.dtype, e.lanes, name)
        stores.append(Store(s.buffer, s.indices, _with(s.value, first), s.mask, s.manner))
    result = block(*stores)
    for name, e in reversed(names.values()):
        result = Let(name, e, result)
    return result


def _with(value: Expr, first: dict[Key, Expr]) -> Expr:
    return transform(value, lambda e: first.get(key(e)) if isinstance(e, Load) else None) if first else value


def _is_apart(e: Load, stores: Iterable[Store]) -> bool:
    """Whether a load certainly aliases none of the stores: it is a constant number of rows and elements away."""
    mine = _form(e.indices[0])
    return all(_differ(mine, _form(s.indices[0])) for s in stores)


def _differ(a: _Form, b: _Form) -> bool:
    """Whether two indices have different coordinates: they differ by constant numbers of rows and of elements. No two
    elements of a buffer have the same address."""
    gaps = {k: n for k in a.keys() | b.keys() if (n := a.get(k, 0) - b.get(k, 0))}
    return bool(gaps) and all(what == _ONE for what, _ in gaps)


def _form(index: Expr) -> _Form:
    """Return the index as a sum of products, with row numbers kept apart from their strides."""
    products: _Form = {}
    form = linear(index)
    products[_ONE, ""] = form.constant
    for atom, n in form.terms.values():
        stride = atom.args[1] if isinstance(atom, Op) and atom.op == "mul" else None
        if not isinstance(stride, Var):
            products[key(atom), ""] = products.get((key(atom), ""), 0) + n
            continue
        assert isinstance(atom, Op)
        rows = linear(atom.args[0])
        products[_ONE, stride.name] = products.get((_ONE, stride.name), 0) + n * rows.constant
        for row, times in rows.terms.values():
            products[key(row), stride.name] = products.get((key(row), stride.name), 0) + n * times
    return products
