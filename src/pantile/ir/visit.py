"""Traversal and rewriting of statements. The counterpart for expressions is `expr.visit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

from ..dataclass import value
from ..errors import InternalError
from ..expr.nodes import Expr, Instruction, Load
from ..expr.visit import walk_loads
from .nodes import Alloc, Block, Evaluate, For, If, Launch, Let, Prefetch, Produce, Program, Realize, Stmt, Store


@value(eq=False)
class _Shape:
    """Functions that return the parts of a kind of statement, and rebuild it from new parts."""

    exprs: Callable[[Any], tuple[Expr, ...]]
    stmts: Callable[[Any], tuple[Stmt, ...]]
    make: Callable[[Any, tuple[Expr, ...], tuple[Stmt, ...]], Stmt]


def _present(part: Any) -> tuple[Any, ...]:
    return () if part is None else (part,)


def _make_for(s: For, e: tuple[Expr, ...], b: tuple[Stmt, ...]) -> Stmt:
    return For(
        s.var, e[0], e[1], s.kind, b[0], None if s.scratch is None else e[2], s.threads, s.cached, s.persistent, s.digit
    )


def _make_store(s: Store, e: tuple[Expr, ...], _: tuple[Stmt, ...]) -> Stmt:
    n = len(s.indices)
    return Store(s.buffer, e[:n], e[n], None if s.mask is None else e[n + 1], s.manner)


def _make_realize(s: Realize, e: tuple[Expr, ...], b: tuple[Stmt, ...]) -> Stmt:
    return Realize(s.buffer, s.dtype, tuple(zip(e[::2], e[1::2], strict=True)), s.memory, b[0], s.slots, s.layout)


def _make_alloc(s: Alloc, e: tuple[Expr, ...], b: tuple[Stmt, ...]) -> Stmt:
    return Alloc(s.buffer, s.dtype, e[0], s.memory, None if s.offset is None else e[1], b[0], s.slots, s.apart)


def _make_launch(s: Launch, e: tuple[Expr, ...], _: tuple[Stmt, ...]) -> Stmt:
    n = len(s.scalars)
    return Launch(s.kernel, e[:n], s.buffers, e[n], None if s.scratch is None else e[n + 1])


def _make_evaluate(s: Evaluate, e: tuple[Expr, ...], _: tuple[Stmt, ...]) -> Stmt:
    if not isinstance(e[0], Instruction):
        raise InternalError(f"{e[0]} is in the place of {s.value}, which is executed for its effect")
    return Evaluate(e[0])


_SHAPES: dict[type[Stmt], _Shape] = {
    For: _Shape(lambda s: (s.min, s.extent, *_present(s.scratch)), lambda s: (s.body,), _make_for),
    Let: _Shape(lambda s: (s.value,), lambda s: (s.body,), lambda s, e, b: Let(s.name, e[0], b[0])),
    Block: _Shape(lambda s: (), lambda s: s.stmts, lambda s, e, b: Block(b)),
    If: _Shape(lambda s: (s.condition,), lambda s: (s.then, *_present(s.otherwise)), lambda s, e, b: If(e[0], *b)),
    Store: _Shape(lambda s: (*s.indices, s.value, *_present(s.mask)), lambda s: (), _make_store),
    Produce: _Shape(lambda s: (), lambda s: (s.body,), lambda s, e, b: Produce(s.stage, b[0])),
    Realize: _Shape(lambda s: tuple([e for side in s.box for e in side]), lambda s: (s.body,), _make_realize),
    Alloc: _Shape(lambda s: (s.size, *_present(s.offset)), lambda s: (s.body,), _make_alloc),
    Prefetch: _Shape(lambda s: s.indices, lambda s: (), lambda s, e, b: Prefetch(s.buffer, e)),
    Evaluate: _Shape(lambda s: (s.value,), lambda s: (), _make_evaluate),
    Launch: _Shape(lambda s: (*s.scalars, s.extent, *_present(s.scratch)), lambda s: (), _make_launch),
}


def expressions(s: Stmt) -> tuple[Expr, ...]:
    """The expressions of the statement itself, not of the statements inside it."""
    return _SHAPES[type(s)].exprs(s)


def children(s: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement."""
    return _SHAPES[type(s)].stmts(s)


def rebuild(s: Stmt, exprs: tuple[Expr, ...], stmts: tuple[Stmt, ...]) -> Stmt:
    """The statement with new parts (as `expressions` and `children` list them); itself if they are identical."""
    shape = _SHAPES[type(s)]
    if _identical(exprs, shape.exprs(s)) and _identical(stmts, shape.stmts(s)):
        return s
    return shape.make(s, exprs, stmts)


def _identical(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return len(new) == len(old) and all(map(is_, new, old))


def map_children(s: Stmt, f: Callable[[Stmt], Stmt]) -> Stmt:
    """Apply `f` to the statements directly inside a statement."""
    return rebuild(s, expressions(s), tuple([f(c) for c in children(s)]))


def transform(s: Stmt, change: Callable[[Stmt], Stmt | None]) -> Stmt:
    """Rewrite a statement bottom-up: inner statements first, then apply `change` to the rebuilt one (None keeps it)."""
    shape = _SHAPES[type(s)]
    result, old = s, shape.stmts(s)
    if old:
        inside = tuple([transform(c, change) for c in old])
        if not all(map(is_, inside, old)):
            result = shape.make(s, shape.exprs(s), inside)
    changed = change(result)
    return result if changed is None else changed


def map_exprs(s: Stmt, f: Callable[[Expr], Expr]) -> Stmt:
    """Apply `f` to every expression of the statement and of all statements inside it."""
    inside = tuple([map_exprs(c, f) for c in children(s)])
    return rebuild(s, tuple([f(e) for e in expressions(s)]), inside)


def walk(s: Stmt) -> Iterator[Stmt]:
    """Every statement inside a statement and itself, outer ones first, in program order."""
    stack = [s]
    while stack:
        node = stack.pop()
        yield node
        stack += _SHAPES[type(node)].stmts(node)[::-1]


def walk_program(program: Program) -> Iterator[Stmt]:
    """Every statement of a program in order. Those of a kernel come where it is first launched."""
    kernels = {k.name: k.body for k in program.kernels}
    stack = [program.body]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Launch) and node.kernel in kernels:
            stack.append(kernels.pop(node.kernel))
        stack.extend(reversed(children(node)))


def bound_names(s: Stmt) -> set[str]:
    """The names that loops and lets inside the statement bind."""
    return {i.var if isinstance(i, For) else i.name for i in walk(s) if isinstance(i, (For, Let))}


def all_loads(s: Stmt) -> Iterator[Load]:
    """Every load inside the statement. A load that is shared within one simple statement is visited once."""
    for node in walk(s):
        yield from walk_loads(*expressions(node))


def block(*stmts: Stmt) -> Stmt:
    """Statements in sequence, without nested or one-element blocks."""
    flat: list[Stmt] = []
    for s in stmts:
        flat.extend(s.stmts if isinstance(s, Block) else (s,))
    return flat[0] if len(flat) == 1 else Block(tuple(flat))
