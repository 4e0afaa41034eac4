"""Walking expressions: children, rebuilding, substitution, structural equality. Shared nodes are visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from operator import attrgetter, is_
from typing import Any

from . import build
from .nodes import (
    Bits,
    Broadcast,
    Cast,
    Const,
    Expr,
    Load,
    Op,
    Ramp,
    Read,
    Reduce,
    Shuffle,
    Var,
    const,
    once_per_node,
    op,
)
from .types import DType

Key = bytes  # of an expression, see `key`

# By kind of node; constants and variables (and the language's own kinds of variables) have none.
_OPERANDS: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Op: attrgetter("args"),
    Cast: lambda e: (e.value,),
    Bits: lambda e: (e.value,),
    Broadcast: lambda e: (e.value,),
    Reduce: lambda e: (e.value,),
    Read: attrgetter("indices"),
    Load: lambda e: e.indices if e.mask is None else (*e.indices, e.mask),
    Ramp: lambda e: (e.base, e.stride),
    Shuffle: attrgetter("vectors"),
}


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node."""
    operands = _OPERANDS.get(type(e))
    return () if operands is None else operands(e)


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
    if all(i.lanes < lanes for i in indices):  # every lane at one place, but not every lane
        indices = tuple([build.broadcast(i, lanes) for i in indices])
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
            result = node if all(map(is_, new, old)) else rebuild(node, new)
        else:
            result = node
        changed = change(result)
        if changed is not None:
            result = changed
        memo[id(node)] = result
        keep.append(node)
        return result

    return visit(e)


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by name, all at once: what is put in is not looked at again."""
    replaced = values.keys()
    memo: dict[int, Expr] = {}

    def visit(node: Expr) -> Expr:
        if replaced.isdisjoint(names(node)):
            return node
        if isinstance(node, Var):
            return values[node.name]
        found = memo.get(id(node))
        if found is None:
            found = memo[id(node)] = rebuild(node, tuple([visit(c) for c in children(node)]))
        return found

    return visit(e)


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


@once_per_node("_names")
def names(e: Expr) -> frozenset[str]:
    """The names of the variables that occur."""
    if isinstance(e, Var):
        return frozenset((e.name,))
    return frozenset().union(*map(names, children(e)))


@once_per_node("_loaded")
def loaded(e: Expr) -> frozenset[str]:
    """The buffers that are loaded from."""
    own = (e.buffer,) if isinstance(e, Load) else ()
    return frozenset(own).union(*map(loaded, children(e)))


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that a condition consists of: all of them must hold."""
    if isinstance(condition, Op) and condition.op == "and" and condition.dtype.is_bool:
        return [c for a in condition.args for c in conjuncts(a)]
    return [condition]


def depends(e: Expr, wanted: Iterable[str]) -> bool:
    """Whether any of the named variables occurs."""
    return not names(e).isdisjoint(wanted)


@once_per_node("_key")
def key(e: Expr) -> Key:
    """Equal for structurally equal expressions: a digest, so that it takes no longer to compare and to hash than that
    of a leaf, however much an expression shares (nested tuples would be walked again at each use, as trees)."""
    own = f"{type(e).__name__} {e.dtype.name} {e.lanes} {_attributes(e)}\0".encode()
    operands = children(e)
    return blake2b(own + b"".join(map(key, operands)), digest_size=16).digest() if operands else own


def _attributes(e: Expr) -> object:
    if isinstance(e, Op):
        return e.op
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Const):
        return repr(e.value)
    if isinstance(e, Read):
        return id(e.source), e.which
    if isinstance(e, Reduce):
        return e.kind, id(e.domain), e.which
    if isinstance(e, Load):
        return e.buffer, len(e.indices), e.mask is not None
    if isinstance(e, Shuffle):
        return e.order
    return ""


def same(a: Expr, b: Expr) -> bool:
    """Structural equality."""
    return a is b or key(a) == key(b)
