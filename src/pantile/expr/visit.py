"""Walking expressions: children, rebuilding, substitution, structural equality. Shared nodes are visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from . import build
from .nodes import Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Read, Reduce, Shuffle, Var, const, op
from .types import DType


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node."""
    if isinstance(e, Op):
        return e.args
    if isinstance(e, (Cast, Bits, Broadcast, Reduce)):
        return (e.value,)
    if isinstance(e, Read):
        return e.indices
    if isinstance(e, Load):
        return e.indices if e.mask is None else (*e.indices, e.mask)
    if isinstance(e, Ramp):
        return (e.base, e.stride)
    if isinstance(e, Shuffle):
        return e.vectors
    return ()


def rebuild(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """The node with other operands of the same types (their lanes may differ), folded where trivial."""
    if isinstance(e, Op):
        return rebuild_op(e.op, new)
    if isinstance(e, Cast):
        return build.cast(e.dtype, new[0])
    if isinstance(e, Bits):
        return Bits(e.dtype, new[0].lanes, new[0])
    if isinstance(e, Broadcast):
        return build.broadcast(new[0], e.lanes)
    if isinstance(e, Reduce):
        return Reduce(e.dtype, e.lanes, e.kind, new[0], e.domain, e.which)
    if isinstance(e, Read):
        return Read(e.dtype, max((i.lanes for i in new), default=1), e.source, new, e.which)
    if isinstance(e, Load):
        lanes = max((i.lanes for i in new), default=1)
        if e.mask is None:
            return Load(e.dtype, lanes, e.buffer, new)
        return masked_load(e.dtype, lanes, e.buffer, new[:-1], new[-1])
    if isinstance(e, Ramp):
        return build.ramp(new[0], new[1], e.lanes)
    if isinstance(e, Shuffle):
        return Shuffle(e.dtype, e.lanes, new, e.order)
    return e


def masked_load(dtype: DType, lanes: int, buffer: str, indices: tuple[Expr, ...], mask: Expr) -> Expr:
    """A load of the lanes where the mask holds; the others are zero."""
    if isinstance(mask, Const):
        return Load(dtype, lanes, buffer, indices) if mask.value else const(0, dtype, lanes)
    return Load(dtype, lanes, buffer, indices, build.broadcast(mask, lanes))


def rebuild_op(name: str, args: tuple[Expr, ...]) -> Expr:
    """An operation on arguments whose lanes may differ (scalars broadcast)."""
    if name == "select":
        return build.select(*args)
    if len(args) == 1:
        return build.unary(name, args[0])
    if len(args) == 2:
        return build.binary(name, args[0], args[1])
    lanes = max(a.lanes for a in args)
    return op(name, *(build.broadcast(a, lanes) for a in args))


def transform(e: Expr, change: Callable[[Expr], Expr | None], memo: dict[int, Expr] | None = None) -> Expr:
    """Rewrite bottom-up: operands first, then `change` on the rebuilt node (None keeps it).

    `memo` maps id -> result and must not outlive the expressions; share one among calls with the same `change`.
    """
    memo = {} if memo is None else memo
    keep: list[Expr] = []  # the originals stay alive while their ids are keys

    def visit(node: Expr) -> Expr:
        found = memo.get(id(node))
        if found is not None:
            return found
        old = children(node)
        if old:
            new = tuple([visit(c) for c in old])
            result = node if all(map(_is, new, old)) else rebuild(node, new)
        else:
            result = node
        changed = change(result)
        if changed is not None:
            result = changed
        memo[id(node)] = result
        keep.append(node)
        return result

    return visit(e)


def _is(a: object, b: object) -> bool:
    return a is b


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by name, all at once: what is put in is not looked at again."""
    memo = {id(n): values[n.name] for n in walk(e) if isinstance(n, Var) and n.name in values}
    return transform(e, lambda n: None, memo) if memo else e


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every node once, parents before children."""
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            stack.extend(reversed(children(e)))


def variables(*roots: Expr) -> dict[str, Var]:
    """The variables that occur, by name, in order of first occurrence."""
    return {e.name: e for e in walk(*roots) if isinstance(e, Var)}


def depends(e: Expr, names: Iterable[str]) -> bool:
    """Whether any of the named variables occurs."""
    wanted = set(names)
    return any(isinstance(n, Var) and n.name in wanted for n in walk(e))


def key(e: Expr, memo: dict[int, tuple[object, ...]] | None = None) -> tuple[object, ...]:
    """A hashable value, equal for structurally equal expressions."""
    memo = {} if memo is None else memo
    found = memo.get(id(e))
    if found is None:
        memo[id(e)] = found = (
            type(e).__name__, e.dtype, e.lanes, *_attributes(e), *(key(c, memo) for c in children(e))
        )  # fmt: skip
    return found


def _attributes(e: Expr) -> tuple[object, ...]:
    if isinstance(e, Const):
        return (repr(e.value),)
    if isinstance(e, Var):
        return (e.name,)
    if isinstance(e, Op):
        return (e.op,)
    if isinstance(e, Read):
        return (id(e.source), e.which)
    if isinstance(e, Reduce):
        return (e.kind, id(e.domain), e.which)
    if isinstance(e, Load):
        return (e.buffer, e.mask is not None)
    if isinstance(e, Shuffle):
        return (e.order,)
    return ()


def same(a: Expr, b: Expr) -> bool:
    """Structural equality."""
    return a is b or key(a) == key(b)
