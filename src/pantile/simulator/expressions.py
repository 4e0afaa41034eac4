"""Evaluation of kernel expressions for all active threads at once, with the semantics of the reference evaluator.

An expression is prepared once: its nodes are put in evaluation order, operands first. Indices are as wide as on the
device, so that the simulation exposes overflows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InternalError
from ..expr.nodes import (
    ARITHMETIC,
    BITWISE,
    COMPARISON,
    SELECT,
    Bits,
    Broadcast,
    Cast,
    Const,
    Expr,
    Instruction,
    Load,
    Number,
    Op,
    Ramp,
    Shuffle,
    Var,
)
from ..expr.types import INDEX, DType
from ..expr.visit import operands_first
from ..ir.instructions import spec_of
from ..reference.operations import convert, held, operation, reinterpret, rounded
from .accesses import Around, Buffer, ThreadAccess
from .active import Active, Array
from .instructions import execute

_ROUNDINGS = ("floor", "ceil", "round", "trunc", "fma")


class Scope(NamedTuple):
    """The names visible to expressions, and the active threads."""

    scalars: Mapping[str, Array]
    buffers: Mapping[str, Buffer]
    active: Active
    around: Around


_Rule = Callable[[Scope, list[Array]], Array]


class Prepared(NamedTuple):
    """The nodes of an expression in evaluation order, as functions of the values of earlier ones."""

    root: Expr  # kept alive, because its id is a key
    constants: tuple[Array | None, ...]  # the values of constant nodes
    steps: tuple[tuple[int, _Rule, tuple[int, ...]], ...]  # the evaluation of the other nodes
    operations: Counter[str]  # operations of one thread, by kind

    def value(self, scope: Scope) -> Array:
        values: list[Any] = [*self.constants]
        for k, rule, operands in self.steps:
            values[k] = rule(scope, [values[i] for i in operands])
        value: Array = values[-1]
        return value


class Expressions:
    """Prepares expressions on first use."""

    def __init__(self, index_bits: int) -> None:
        self._index = DType("int", index_bits)
        self._prepared: dict[int, Prepared] = {}

    def __call__(self, e: Expr) -> Prepared:
        prepared = self._prepared.get(id(e))
        if prepared is None:
            prepared = self._prepared[id(e)] = self._prepare(e)
        return prepared

    def _prepare(self, e: Expr) -> Prepared:
        nodes = operands_first(e, _operands)
        numbers = {id(node): k for k, node in enumerate(nodes)}
        constants = tuple([self._const(node) if isinstance(node, Const) else None for node in nodes])
        steps = tuple(
            (k, self._rule(node), tuple([numbers[id(c)] for c in _operands(node)]))
            for k, node in enumerate(nodes)
            if constants[k] is None
        )
        operations: Counter[str] = Counter()
        for node in nodes:
            kind = _kind(node)
            if kind:
                operations[kind] += node.lanes
        return Prepared(e, constants, steps, operations)

    def _type(self, t: DType) -> DType:
        return self._index if t is INDEX else t

    def _rule(self, e: Expr) -> _Rule:
        make = _RULES.get(type(e))
        if make is None:
            raise InternalError(f"no threads can evaluate the {type(e).__name__} {e}")
        return make(self, e)

    def number(self, value: Number | Array, dtype: DType) -> Array:
        """Convert a number for all threads, or an array with one number per block, to a value of the type."""
        t, number = self._type(dtype), np.asarray(value).reshape(-1, 1)
        return rounded(number.astype(np.float64), t) if t.is_float else number.astype(held(t))

    def _const(self, e: Const) -> Array:
        return self.number(e.value, e.dtype).reshape((1,) * (2 + (e.lanes > 1)))

    def _var(self, e: Var) -> _Rule:
        name = e.name
        return lambda scope, args: scope.scalars[name]

    def _op(self, e: Op) -> _Rule:
        name, t = e.op, self._type(e.args[-1].dtype)
        if name == "within":
            return lambda scope, args: args[0]
        of_type = operation(name, t)
        return lambda scope, args: of_type(*args)

    def _cast(self, e: Cast) -> _Rule:
        source, to = self._type(e.value.dtype), self._type(e.dtype)
        return lambda scope, args: convert(args[0], source, to).astype(held(to), copy=False)

    def _bits(self, e: Bits) -> _Rule:
        source, to = self._type(e.value.dtype), self._type(e.dtype)
        return lambda scope, args: reinterpret(args[0], source, to)

    def _load(self, e: Load) -> _Rule:
        buffer, lanes, alike = e.buffer, e.lanes, e.lanes > 1 and e.indices[0].lanes == 1

        def load(scope: Scope, args: list[Array]) -> Array:
            index = args[0][:, :, None] if alike else args[0]
            mask = args[1] if len(args) > 1 else None
            return scope.buffers[buffer].load(ThreadAccess(index, mask, lanes, scope.active))

        return load

    def _ramp(self, e: Ramp) -> _Rule:
        steps = np.arange(e.lanes).astype(held(self._type(e.dtype)))
        return lambda scope, args: args[0][:, :, None] + args[1][:, :, None] * steps

    def _broadcast(self, e: Broadcast) -> _Rule:
        return lambda scope, args: args[0][:, :, None]

    def _shuffle(self, e: Shuffle) -> _Rule:
        order, scalar, lanes = list(e.order), e.lanes == 1, [v.lanes for v in e.vectors]

        def shuffle(scope: Scope, args: list[Array]) -> Array:
            rows = np.broadcast_shapes(*(a.shape[:2] for a in args))
            whole = [
                np.broadcast_to(a if a.ndim == 3 else a[:, :, None], (*rows, n))
                for a, n in zip(args, lanes, strict=True)
            ]
            chosen: Array = np.concatenate(whole, axis=2)[:, :, order]
            return chosen[:, :, 0] if scalar else chosen

        return shuffle

    def _instruction(self, e: Instruction) -> _Rule:
        return lambda scope, args: execute(e, args, scope.buffers, scope.active, scope.around)


_RULES: dict[type[Expr], Callable[[Expressions, Any], _Rule]] = {
    Var: Expressions._var,
    Op: Expressions._op,
    Cast: Expressions._cast,
    Bits: Expressions._bits,
    Load: Expressions._load,
    Ramp: Expressions._ramp,
    Broadcast: Expressions._broadcast,
    Shuffle: Expressions._shuffle,
    Instruction: Expressions._instruction,
}


def _operands(e: Expr) -> tuple[Expr, ...]:
    """The expressions to evaluate before `e`. An instruction loads its matrix operands itself: for these, only the
    index of the first row is evaluated."""
    if not isinstance(e, Instruction):
        return e.operands
    operands = zip(spec_of(e.name).operands, e.args, strict=True)
    return tuple([a if of.matrix is None or not isinstance(a, Load) else a.indices[0] for of, a in operands])


def _kind(e: Expr) -> str | None:
    """The kind under which an operation of a thread is counted; None if it is not counted."""
    if isinstance(e, Cast):
        return "convert"
    if isinstance(e, Instruction):
        return e.name
    if not isinstance(e, Op) or e.op == "within":
        return None
    t = e.args[-1].dtype
    if e.op in COMPARISON or e.op in SELECT or t.is_bool:
        return "logic"
    if t is INDEX:
        return "index"
    simple = e.op in ARITHMETIC or e.op in BITWISE or e.op in _ROUNDINGS or not t.is_float
    return ("float" if t.is_float else "integer") if simple else "special"
