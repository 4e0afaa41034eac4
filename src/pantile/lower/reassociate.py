"""Reassociate: sums in consecutive stores add their common terms first.

before:  out[0] = a[0] + a[1] + a[2] + a[3]          after:  out[0] = ((a[2] + a[3]) + a[1]) + a[0]
         out[1] = a[1] + a[2] + a[3] + a[4]                  out[1] = ((a[2] + a[3]) + a[1]) + a[4]
         out[2] = a[2] + a[3] + a[4] + a[5]                  out[2] = (a[2] + a[3]) + (a[4] + a[5])

Windows of unrolled rows or vectors overlap. The terms that all windows share are summed once, and the partial sums
before and after them are reused from one window to the next. LLVM's common subexpression elimination does the rest.
Each sum keeps its terms, in a different order; with `strict`, sums of floats are left alone. Minima and maxima are
treated in the same way.

On GPUs, sums of floats are also left alone in kernels whose last block is moved inwards, as min(8*block, n - 8) does.
There, two blocks compute the same element at different positions of a window. If these had different orders, the result
would depend on which block is the last to store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import combinations

from ..dataclass import dataclass
from ..expr.linear import Linear, linear
from ..expr.nodes import Broadcast, Const, Expr, Load, Op, Var, const, neutral, op
from ..expr.types import INDEX
from ..expr.visit import Key, children, depends, each_once, key, loaded, rebuild, walk, walk_values
from ..ir import visit as ir
from ..ir.nodes import Block, For, Let, Stmt, Store
from ..target.kinds import Kind
from .lanes import constant_stride, first_lane
from .names import of_buffer

_OPERATIONS = ("add", "min", "max")
_FEWEST = 7  # least number of terms of a sum: short sums share little
_MOST_MOVED = 48  # most consecutive stores: each is compared with all others
_MOST = 8  # most sums with common terms: their partial sums are held in registers
_NEVER = (1 << 30, -1)


def reassociate(body: Stmt, strict: bool) -> Stmt:
    """Reassociate sums that consecutive statements store, so that their common terms are added first."""

    is_fixed = strict or (_is_of_blocks(body) and _is_stored_twice(body, frozenset()))
    inside = tuple([reassociate(c, is_fixed) for c in ir.children(body)])
    if not all(a is b for a, b in zip(inside, ir.children(body), strict=True)):
        body = ir.rebuild(body, ir.expressions(body), inside)
    changed = _reassociated(body, is_fixed) if isinstance(body, Block) else None
    return body if changed is None else changed


def _is_of_blocks(s: Stmt) -> bool:
    return isinstance(s, For) and s.kind is Kind.BLOCK


def _is_stored_twice(s: Stmt, moved: frozenset[str]) -> bool:
    """Whether an element may be stored by two iterations, one of which is of a block that is moved inwards. `moved` are
    the names around the statement that depend on where such a block begins."""
    if isinstance(s, Store):
        return any(depends(i, moved) for i in s.indices)
    start = s.value if isinstance(s, Let) else s.min if isinstance(s, For) else None
    if start is not None and (depends(start, moved) or any(isinstance(e, Op) and e.op == "min" for e in walk(start))):
        assert isinstance(s, (Let, For))
        moved |= {s.name if isinstance(s, Let) else s.var}
    return any(_is_stored_twice(c, moved) for c in ir.children(s))


def _reassociated(s: Block, strict: bool) -> Stmt | None:
    stmts = list(s.stmts)
    for run in _runs(stmts):
        sums = [each for k in run for each in _sums(k, stmts[k], strict)]
        changed = [(family, values) for family in _families(sums) if (values := _reordered(family))]
        new = {id(root): value for _, values in changed for root, value in values}
        for k in {s.place for family, _ in changed for s in family}:
            stmts[k] = _rewritten(stmts[k], new)
        if changed and _may_move([stmts[k] for k in run]):
            order = {s.place: n for n, (family, _) in reversed([*enumerate(changed)]) for s in family}
            moved = sorted(run, key=lambda k: order.get(k, len(changed)))
            stmts[run[0] : run[-1] + 1] = [stmts[k] for k in moved]
    return None if all(a is b for a, b in zip(stmts, s.stmts, strict=True)) else Block(tuple(stmts))


def _runs(stmts: Sequence[Stmt]) -> Iterator[list[int]]:
    """Yield the positions of consecutive stores."""
    run: list[int] = []
    for k, s in enumerate(stmts):
        if isinstance(s, Store):
            run.append(k)
        elif run:
            yield run
            run = []
    if len(run) > 1:
        yield run


def _may_move(run: Sequence[Stmt]) -> bool:
    """Whether stores may be reordered: none reads what another stores, and no two store to the same element."""
    stores = [s for s in run if isinstance(s, Store)]
    written = {s.buffer for s in stores}
    read = frozenset[str]().union(*(loaded(e) for s in stores for e in ir.expressions(s)))
    if len(written) > 1 or not written.isdisjoint(read) or len(stores) > _MOST_MOVED:
        return False
    starts = [(_start(s.indices[0]), s.value.lanes) for s in stores]
    return all(_are_apart(a, b, stores[0].buffer) for a, b in combinations(starts, 2))


def _start(index: Expr) -> Expr | None:
    """The index of the first element of a dense vector or of a scalar, otherwise None."""
    return first_lane(index) if index.lanes == 1 or constant_stride(index) == 1 else None


def _are_apart(a: tuple[Expr | None, int], b: tuple[Expr | None, int], buffer: str) -> bool:
    """Whether two stores certainly do not overlap: they are far enough apart, or in different rows."""
    if a[0] is None or b[0] is None:
        return False
    rows, column = _taken_apart(a[0] - b[0], of_buffer(buffer, "stride") + ".")
    if any(not row.terms and row.constant for row in rows):
        return True
    return not column.terms and not any(row.terms for row in rows) and abs(column.constant) >= max(a[1], b[1])


def _taken_apart(distance: Expr, stride: str) -> tuple[list[Linear], Linear]:
    """An index as a number of rows for each stride and a number of elements."""
    form = linear(distance)
    rows: dict[str, Expr] = {}
    column: Expr = const(form.constant, INDEX)
    for atom, times in form.terms.values():
        factors = atom.args if isinstance(atom, Op) and atom.op == "mul" else (const(1, INDEX), atom)
        row, by = factors if isinstance(factors[1], Var) else (factors[1], factors[0])
        if isinstance(by, Var) and by.name.startswith(stride):
            rows[by.name] = rows.get(by.name, const(0, INDEX)) + row * times
        else:
            column = column + atom * times
    return [linear(r) for r in rows.values()], linear(column)


# ---- finding sums


@dataclass(frozen=True, eq=False)
class _Sum:
    """A sum in the value that a statement stores, with its terms by key."""

    place: int
    root: Op
    terms: dict[Key, Expr]


def _sums(place: int, s: Stmt, strict: bool) -> Iterator[_Sum]:
    """Yield the maximal sums in a value in which no term occurs twice."""
    assert isinstance(s, Store)
    nodes = list(walk_values(s.value))
    uses: dict[int, int] = {}
    inner: set[int] = set()
    for e in nodes:
        for c in _operands(e):
            uses[id(c)] = uses.get(id(c), 0) + 1
            if isinstance(c, Op) and isinstance(e, Op) and c.op == e.op:
                inner.add(id(c))
    for e in nodes:
        if not isinstance(e, Op) or e.op not in _OPERATIONS or e.dtype is INDEX:
            continue
        is_fixed = strict and e.dtype.is_float and e.op == "add"
        if not is_fixed and (id(e) not in inner or uses[id(e)] > 1):
            terms = [t for t in _terms(e, uses) if not _is_neutral(e.op, t)]
            by_key = {key(t): t for t in terms}
            if _FEWEST <= len(terms) == len(by_key):
                yield _Sum(place, e, by_key)


def _operands(e: Expr) -> tuple[Expr, ...]:
    """The operands of a node that are values rather than indices."""
    return () if isinstance(e, Load) else children(e)


def _terms(root: Op, uses: dict[int, int]) -> list[Expr]:
    """The terms of a nested sum. Partial sums with other uses stay whole."""
    terms: list[Expr] = []
    pending: list[Expr] = [root]
    while pending:
        e = pending.pop()
        if isinstance(e, Op) and e.op == root.op and (e is root or uses[id(e)] == 1):
            pending += reversed(e.args)
        else:
            terms.append(e)
    return terms


def _is_neutral(operation: str, e: Expr) -> bool:
    """Whether a term is the neutral element. Accumulators begin with it, so all sums would have it in common."""
    e = e.value if isinstance(e, Broadcast) else e
    return isinstance(e, Const) and e.value == neutral(operation, e.dtype).value


def _families(sums: Sequence[_Sum]) -> Iterator[list[_Sum]]:
    """Groups of consecutive sums of the same operation, each of which shares terms with all sums before it."""
    kinds: dict[tuple[object, ...], list[list[_Sum]]] = {}
    for s in sums:
        families = kinds.setdefault((s.root.op, s.root.dtype, s.root.lanes), [])
        home = next((f for f in families if len(f) < _MOST and _in_common([*f, s])), None)
        if home is None:
            families.append([s])
        else:
            home.append(s)
    return (f for families in kinds.values() for f in families if len(f) > 1)


def _in_common(family: Iterable[_Sum]) -> set[Key]:
    first, *others = (s.terms.keys() for s in family)
    return set(first).intersection(*others)


# ---- reordering


def _reordered(family: Sequence[_Sum]) -> list[tuple[Op, Expr]]:
    """New sums: the terms that all sums share come first, then those shared with all earlier or all later sums, then
    the rest.

    The result is empty if this saves little.
    """
    spans = _spans(family)
    last = len(family) - 1
    common = [k for k, (a, b) in spans.items() if (a, b) == (0, last)]
    earlier = sorted((k for k, (a, b) in spans.items() if a == 0 and b < last), key=lambda k: -spans[k][1])
    later = sorted((k for k, (a, b) in spans.items() if a > 0 and b == last), key=lambda k: spans[k][0])
    before = sum(len(s.terms) - 1 for s in family)
    shared = {*common, *earlier, *later}
    after = len(shared) + len(family) - 2 + sum(len(s.terms.keys() - shared) for s in family)
    if 4 * after > 3 * before:
        return []
    result: list[tuple[Op, Expr]] = []
    for k, s in enumerate(family):
        chain = [*common, *(t for t in earlier if spans[t][1] >= k)]
        behind = [t for t in later if spans[t][0] <= k]
        remaining = [t for t in s.terms if t not in {*chain, *behind}]
        parts = [_combined(s, keys) for keys in (chain, behind, remaining) if keys]
        result.append((s.root, reduce(partial(op, s.root.op), parts)))
    return result


def _spans(family: Sequence[_Sum]) -> dict[Key, tuple[int, int]]:
    """For each term, the first and the last sum that contain it, if all sums in between do as well."""
    places: dict[Key, list[int]] = {}
    for k, s in enumerate(family):
        for t in s.terms:
            places.setdefault(t, []).append(k)
    return {t: (at[0], at[-1]) if at[-1] - at[0] + 1 == len(at) else _NEVER for t, at in places.items()}


def _combined(s: _Sum, keys: Sequence[Key]) -> Expr:
    return reduce(partial(op, s.root.op), [s.terms[k] for k in keys])


def _rewritten(s: Stmt, new: dict[int, Expr]) -> Stmt:
    """The store with some expressions replaced."""
    assert isinstance(s, Store)
    memo: dict[int, Expr] = {}

    def operands(e: Expr) -> tuple[Expr, ...]:
        return () if id(e) in new else _operands(e)

    def visit(e: Expr) -> Expr:
        if id(e) in new or not operands(e):
            return new.get(id(e), e)
        return rebuild(e, tuple([memo[id(c)] for c in operands(e)]))

    return Store(s.buffer, s.indices, each_once(s.value, memo, visit, operands), s.mask, s.manner)
