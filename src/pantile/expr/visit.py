"""Traversal of expressions: children, rebuilding, substitution, structural equality.

Every traversal uses `each_once`, `once_per_node` or `walk`. These visit a shared node once, so the time is linear in
the number of nodes, however large an expression is when written out. They do not recurse, so expressions may be nested
as deeply as memory allows, even in threads with small stacks.
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
    Instruction,
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

Key = bytes  # the key of an expression, see `key`
T = TypeVar("T")
Operands = Callable[[Expr], Iterable[Expr]]


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node."""
    return e.operands


def each_once(
    e: Expr, memo: dict[int, T], visit: Callable[[Expr], T], operands: Operands = attrgetter("operands")
) -> T:
    """Apply `visit` to all nodes below a node, then to the node itself, and return its result. When `visit` is called,
    memo[id(c)] has the result of each operand c. `memo` must not outlive the expressions, and no result may be None.
    `operands` returns the operands whose results `visit` uses."""
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
    nodes: list[Expr] = []

    def visit(node: Expr) -> bool:
        nodes.append(node)
        return True

    each_once(e, {}, visit, operands)
    return nodes


# Traversals look up cached results of nodes hundreds of thousands of times, and code that is generated for a slot takes
# half as long as a getter. Usually, a node is visited soon after it is created, when its operands have been visited.
_REMEMBERING = """
def remembered(e):
    result = e.{slot}
    if result is not None:
        return result
    for c in {operands}:
        if c.{slot} is None:
            return nested(e)
    result = e.{slot} = function(e)
    return result

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
            result = e.{slot} = function(e)
            stack.pop()
            if not stack:
                return result
"""


def once_per_node(slot: str, operands: Operands | None = None) -> Callable[[Callable[[Any], T]], Callable[[Expr], T]]:
    """Decorate a function of a node so that its result is cached in the node. The function may use the results of the
    node's operands, or of those that `operands` returns."""
    text = _REMEMBERING.format(slot=slot, operands="e.operands" if operands is None else "operands(e)")

    def remembering(function: Callable[[Any], T]) -> Callable[[Expr], T]:
        known: dict[str, Any] = {"function": function, "operands": operands}
        exec(text, known)
        remembered: Callable[[Expr], T] = wraps(function)(known["remembered"])
        return remembered

    return remembering


# The cached results of `names`, `loaded`, `has_floats` and `key`. Operands have them before the node itself.
_noted_names, _noted_loads, _noted_floats, _noted_key = map(attrgetter, ("_names", "_loaded", "_has_floats", "_key"))


def note(e: Expr, **results: object) -> None:
    """Cache results in a node that are known without computing them, as `once_per_node` would cache them."""
    for slot, value in results.items():
        setattr(e, slot, value)


def rebuild(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """The node with other operands of the same types (their lanes may differ), folded if that is trivial."""
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
    if isinstance(e, Instruction):
        return Instruction(e.dtype, e.lanes, e.name, new)
    return e


def masked_load(dtype: DType, lanes: int, buffer: str, indices: tuple[Expr, ...], mask: Expr) -> Expr:
    """A load of the lanes in which the mask is set; the others are zero."""
    if isinstance(mask, Const):
        if not mask.value:
            return const(0, dtype, lanes)
        distinct = max((i.lanes for i in indices), default=1)  # one if all lanes load the same element
        return build.broadcast(Load(dtype, distinct, buffer, indices), lanes)
    if all(i.lanes < lanes for i in indices):  # all lanes load the same element, but some are masked out
        indices = tuple([build.broadcast(i, lanes) for i in indices])
    return Load(dtype, lanes, buffer, indices, build.broadcast(mask, lanes))


def rebuild_op(name: str, args: tuple[Expr, ...]) -> Expr:
    """An operation on arguments whose lanes may differ (scalars are broadcast)."""
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
    """Rewrite an expression bottom-up: operands first, then apply `change` to the rebuilt node (None keeps it). If the
    rebuilt node folds to one of its operands, as a select between equal values does, it has already been changed.

    `memo` maps id -> result and must not outlive the expressions; calls with the same `change` may share it.
    `concerns` says whether `change` may rewrite a node or some node below it; other nodes are skipped.
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
    """Replace variables by name, all at once: the replacements themselves are not rewritten."""
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
    """Every node once, parents before children, except nodes inside the indices of loads."""
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
    """Every load once, parents before children. Subexpressions without loads are skipped."""
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
    """The variables that occur in the expressions, by name, in order of first occurrence."""
    return {e.name: e for e in walk(*roots) if isinstance(e, Var)}


@once_per_node("_names")
def names(e: Expr) -> frozenset[str]:
    """The names of the variables that occur in an expression."""
    if isinstance(e, Var):
        return frozenset((e.name,))
    return union(map(_noted_names, e.operands))


_NONE: frozenset[Any] = frozenset()


def union(sets: Iterable[frozenset[T]]) -> frozenset[T]:
    """The union of sets. If one of them contains the others, it is returned itself, so that deep expressions hold no
    copies."""
    whole: frozenset[T] = _NONE
    for s in sets:
        if s is not whole and not s <= whole:
            whole = s if whole <= s else whole | s
    return whole


@once_per_node("_has_floats")
def has_floats(e: Expr) -> bool:
    """Whether some node of an expression is a float."""
    return e.dtype.is_float or any(map(_noted_floats, e.operands))


@once_per_node("_loaded")
def loaded(e: Expr) -> frozenset[str]:
    """The names of the buffers that an expression loads from."""
    inside = union(map(_noted_loads, e.operands))
    return inside | {e.buffer} if isinstance(e, Load) and e.buffer not in inside else inside


def conjuncts(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition, all of which must hold."""
    parts: list[Expr] = []
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
            parts.append(c)
    return parts


def depends(e: Expr, wanted: Iterable[str]) -> bool:
    """Whether any of these variables occurs in an expression."""
    return not names(e).isdisjoint(wanted)


@once_per_node("_key")
def key(e: Expr) -> Key:
    """A digest that is equal for structurally equal expressions. It is compared and hashed in constant time, however
    much expressions share (nested tuples would be walked as trees, again at each use)."""
    kind = type(e)
    own = _described(kind.__name__, e.dtype.name, e.lanes, _ATTRIBUTES[kind](e) if kind in _ATTRIBUTES else "")
    operands = e.operands
    return blake2b(own + b"".join(map(_noted_key, operands)), digest_size=16).digest() if operands else own


@lru_cache(maxsize=1 << 14)
def _described(*parts: object) -> bytes:
    """The attributes of a node as bytes, cached because many nodes have the same ones."""
    return " ".join(map(str, parts)).encode() + b"\0"


# The attributes of a node in addition to its type and operands.
_ATTRIBUTES: dict[type[Expr], Callable[[Any], object]] = {
    Op: attrgetter("op"),
    Var: attrgetter("name"),
    Const: lambda e: repr(e.value),
    Read: lambda e: (id(e.source), e.which),
    Reduce: lambda e: (e.kind, id(e.domain), e.which),
    Load: lambda e: (e.buffer, len(e.indices), e.mask is not None),
    Shuffle: attrgetter("order"),
    Instruction: attrgetter("name"),
}


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are structurally equal."""
    return a is b or key(a) == key(b)
