"""Walking expressions: children, rebuilding, substitution, structural equality.

Every walk goes through `each_once`, `once_per_node` or `walk`: a shared node is visited once, so that a walk takes as
long as there are nodes, however large they are when written out; and none recurses, so that expressions may be nested
as deep as memory allows, in threads with small stacks too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from hashlib import blake2b
from operator import attrgetter, is_
from typing import Any, TypeVar

from . import build
from .nodes import (
    Bits,
    Broadcast,
    Cast,
    Const,
    Expr,
    FromLane,
    Load,
    Op,
    Ramp,
    Read,
    Reduce,
    Shuffle,
    Var,
    const,
    op,
)
from .types import DType

Key = bytes  # of an expression, see `key`
T = TypeVar("T")
Operands = Callable[[Expr], Iterable[Expr]]


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node."""
    return e.operands


def each_once(
    e: Expr, memo: dict[int, T], visit: Callable[[Expr], T], operands: Operands = attrgetter("operands")
) -> T:
    """What `visit` makes of a node, after all below it: memo[id(node)] is there for each of a node's operands.

    `memo` must not outlive the expressions; no result is None. `operands`: those that `visit` asks for.
    """
    if id(e) in memo:
        return memo[id(e)]
    stack, opened = [e], set[int]()
    while stack:
        node = stack[-1]
        known = id(node)
        if known in memo:
            stack.pop()
            continue
        if known not in opened and (parts := operands(node)):
            below = [c for c in parts if id(c) not in memo]
            if below:
                opened.add(known)
                stack += below[::-1]
                continue
        stack.pop()
        memo[known] = visit(node)
    return memo[id(e)]


def operands_first(e: Expr, operands: Operands = children) -> list[Expr]:
    """Every node once, in the order of `each_once`."""
    found: list[Expr] = []

    def visit(node: Expr) -> bool:
        found.append(node)
        return True

    each_once(e, {}, visit, operands)
    return found


# Walks ask nodes for what they have noted hundreds of thousands of times: written out for a slot, it takes half as long
# as with a getter. Mostly, a node is met soon after it is made, of nodes that were met before.
_REMEMBERING = """
def remembered(e):
    found = e.{slot}
    if found is not None:
        return found
    for c in {operands}:
        if c.{slot} is None:
            return nested(e)
    found = e.{slot} = function(e)
    return found

def nested(e):
    stack = [e]
    while True:
        e = stack[-1]
        below = len(stack)
        for c in {operands}:
            if c.{slot} is None:
                if c.operands:
                    stack.append(c)
                else:
                    c.{slot} = function(c)
        if len(stack) == below:
            found = e.{slot} = function(e)
            stack.pop()
            if not stack:
                return found
"""


def once_per_node(slot: str, operands: Operands | None = None) -> Callable[[Callable[[Any], T]], Callable[[Expr], T]]:
    """Makes a function of a node remember its result, in the node. It may ask for the results of its operands, or of
    those that `operands` says."""
    text = _REMEMBERING.format(slot=slot, operands="e.operands" if operands is None else "operands(e)")

    def remembering(function: Callable[[Any], T]) -> Callable[[Expr], T]:
        known: dict[str, Any] = {"function": function, "operands": operands}
        exec(text, known)
        remembered: Callable[[Expr], T] = wraps(function)(known["remembered"])
        return remembered

    return remembering


# What `names`, `loaded`, `has_floats` and `key` have noted of operands: they are asked of these first.
_noted_names, _noted_loads, _noted_floats, _noted_key = map(attrgetter, ("_names", "_loaded", "_has_floats", "_key"))


def note(e: Expr, **found: object) -> None:
    """Have a node remember what is known of it without asking, as `once_per_node` does."""
    for slot, value in found.items():
        setattr(e, slot, value)


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
    if isinstance(e, FromLane):
        return FromLane(e.dtype, new[0].lanes, *new)
    return e


def masked_load(dtype: DType, lanes: int, buffer: str, indices: tuple[Expr, ...], mask: Expr) -> Expr:
    """A load of the lanes where the mask holds; the others are zero."""
    if isinstance(mask, Const):
        if not mask.value:
            return const(0, dtype, lanes)
        found = max((i.lanes for i in indices), default=1)  # one, if every lane is at one place
        return build.broadcast(Load(dtype, found, buffer, indices), lanes)
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


def transform(
    e: Expr,
    change: Callable[[Expr], Expr | None],
    memo: dict[int, Expr] | None = None,
    concerns: Callable[[Expr], object] | None = None,
) -> Expr:
    """Rewrite bottom-up: operands first, then `change` on the rebuilt node (None keeps it). Where that is one of its
    operands, as a select between equal ones is, it has been changed already.

    `memo` maps id -> result and must not outlive the expressions; share one among calls with the same `change`.
    `concerns`: whether a node is one that `change` may not keep, or has such below it; others are not looked into.
    """
    memo = {} if memo is None else memo
    stack = [e]
    while stack:
        node = stack[-1]
        known = id(node)
        if known in memo:
            stack.pop()
            continue
        if concerns is not None and not concerns(node):
            memo[known] = stack.pop()
            continue
        old = node.operands
        result = node
        if old:
            waiting = [c for c in old if id(c) not in memo]
            if waiting:
                stack += waiting[::-1]
                continue
            new = tuple([memo[id(c)] for c in old])
            if not all(map(is_, new, old)):
                result = rebuild(node, new)
                if any(result is c for c in new):
                    memo[known] = result
                    stack.pop()
                    continue
        stack.pop()
        changed = change(result)
        memo[known] = result if changed is None else changed
    return memo[id(e)]


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by name, all at once: what is put in is not looked at again."""
    replaced = values.keys()
    memo: dict[int, Expr] = {}

    def affected(node: Expr) -> tuple[Expr, ...]:
        return () if replaced.isdisjoint(names(node)) else children(node)

    def visit(node: Expr) -> Expr:
        if replaced.isdisjoint(names(node)):
            return node
        if isinstance(node, Var):
            return values[node.name]
        return rebuild(node, tuple([memo[id(c)] for c in children(node)]))

    return each_once(e, memo, visit, affected)


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every node once, parents before children."""
    return _walk(roots, into_places=True)


def walk_values(*roots: Expr) -> Iterator[Expr]:
    """Every node that values are made of, once, parents before children; not what places in memory are made of."""
    return _walk(roots, into_places=False)


def _walk(roots: tuple[Expr, ...], into_places: bool) -> Iterator[Expr]:
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        e = stack.pop()
        known = id(e)
        if known not in seen:
            seen.add(known)
            yield e
            below = e.operands
            if below and (into_places or not isinstance(e, Load)):
                stack += below[::-1]


def walk_loads(*roots: Expr) -> Iterator[Load]:
    """Every load once, parents before children. What has no loads below it is not looked into."""
    seen: set[int] = set()
    stack = [e for e in reversed(roots) if loaded(e)]
    while stack:
        e = stack.pop()
        known = id(e)
        if known not in seen:
            seen.add(known)
            if isinstance(e, Load):
                yield e
            stack += [c for c in reversed(e.operands) if c._loaded]


def variables(*roots: Expr) -> dict[str, Var]:
    """The variables that occur, by name, in order of first occurrence."""
    return {e.name: e for e in walk(*roots) if isinstance(e, Var)}


@once_per_node("_names")
def names(e: Expr) -> frozenset[str]:
    """The names of the variables that occur."""
    if isinstance(e, Var):
        return frozenset((e.name,))
    return union(map(_noted_names, e.operands))


_NONE: frozenset[str] = frozenset()


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """All names; one of the sets itself where it holds the others, so that what is nested deep does not hold copies."""
    whole = _NONE
    for s in sets:
        if s is not whole and not s <= whole:
            whole = s if whole <= s else whole | s
    return whole


@once_per_node("_has_floats")
def has_floats(e: Expr) -> bool:
    """Whether floats take part anywhere in it."""
    return e.dtype.is_float or any(map(_noted_floats, e.operands))


@once_per_node("_loaded")
def loaded(e: Expr) -> frozenset[str]:
    """The buffers that are loaded from."""
    inside = union(map(_noted_loads, e.operands))
    return inside | {e.buffer} if isinstance(e, Load) and e.buffer not in inside else inside


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that a condition consists of: all of them must hold."""
    found: list[Expr] = []
    seen: set[int] = set()
    stack = [condition]
    while stack:
        c = stack.pop()
        if id(c) in seen:
            continue
        seen.add(id(c))
        if isinstance(c, Op) and c.op == "and" and c.dtype.is_bool:
            stack += reversed(c.args)
        else:
            found.append(c)
    return found


def depends(e: Expr, wanted: Iterable[str]) -> bool:
    """Whether any of the named variables occurs."""
    return not names(e).isdisjoint(wanted)


@once_per_node("_key")
def key(e: Expr) -> Key:
    """Equal for structurally equal expressions: a digest, so that it takes no longer to compare and to hash than that
    of a leaf, however much an expression shares (nested tuples would be walked again at each use, as trees)."""
    kind = type(e)
    own = _described(kind.__name__, e.dtype.name, e.lanes, _ATTRIBUTES[kind](e) if kind in _ATTRIBUTES else "")
    operands = e.operands
    return blake2b(own + b"".join(map(_noted_key, operands)), digest_size=16).digest() if operands else own


@lru_cache(maxsize=1 << 14)
def _described(*parts: object) -> bytes:
    """As bytes; nodes of a kind are many."""
    return " ".join(map(str, parts)).encode() + b"\0"


# What a node is besides its type and operands.
_ATTRIBUTES: dict[type[Expr], Callable[[Any], object]] = {
    Op: attrgetter("op"),
    Var: attrgetter("name"),
    Const: lambda e: repr(e.value),
    Read: lambda e: (id(e.source), e.which),
    Reduce: lambda e: (e.kind, id(e.domain), e.which),
    Load: lambda e: (e.buffer, len(e.indices), e.mask is not None),
    Shuffle: attrgetter("order"),
}


def same(a: Expr, b: Expr) -> bool:
    """Structural equality."""
    return a is b or key(a) == key(b)
