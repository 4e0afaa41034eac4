"""Coordinates enter the loop IR: int32 in values, 64-bit in indices.

`Lowered` rewrites a definition's expressions for given loop variables: a coordinate in a value becomes
int32(variable); inside an index or a condition, arithmetic on coordinates is done in 64 bits, so it cannot overflow.
Arithmetic on data keeps its own type everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.interval import interval
from ..expr.build import cast
from ..expr.nodes import COMPARISON, Cast, Const, Expr, Load, Op, Var, const, op, var
from ..expr.types import INT32, INT64
from ..expr.visit import children, is_index, names, rebuild, rebuild_op

_WIDENED = frozenset({"add", "sub", "mul", "neg", "min", "max", "floordiv", "mod", "select", "abs", "within"})


class Lowered:
    """Expressions of one definition with its coordinates replaced (`at`: dim name -> int64 expression)."""

    def __init__(self, at: Mapping[str, Expr]) -> None:
        self.at = at
        self.values: dict[int, Expr] = {}
        self.indices: dict[int, Expr] = {}
        self.keep: list[Expr] = []

    def value(self, e: Expr) -> Expr:
        """The expression where its result is a pixel value."""
        found = self.values.get(id(e))
        if found is None:
            found = self.values[id(e)] = self._value(e)
            self.keep.append(e)
        return found

    def _value(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return self._scalar(e)
        if isinstance(e, Load):
            return Load(e.dtype, 1, e.buffer, tuple(self.index(i) for i in e.indices))
        if isinstance(e, Op) and e.dtype.is_bool:
            return self.condition(e)
        old = children(e)
        return rebuild(e, tuple([self.value(c) for c in old])) if old else e

    def _scalar(self, e: Var) -> Expr:
        if e.name in self.at:
            return cast(e.dtype, self.at[e.name])
        if ".shape." in e.name:
            return cast(e.dtype, var(e.name))
        return var(e.name, e.dtype)

    def index(self, e: Expr) -> Expr:
        """The expression where its result is a coordinate: 64 bits."""
        found = self.indices.get(id(e))
        if found is None:
            found = self.indices[id(e)] = self._index(e)
            self.keep.append(e)
        return found

    def _index(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            return const(e.value, INT64)
        if isinstance(e, Var):
            return cast(INT64, self.at[e.name] if e.name in self.at else self._wide_scalar(e))
        if isinstance(e, Cast) and e.dtype in (INT32, INT64) and e.value.dtype in (INT32, INT64):
            return self.index(e.value)
        if is_index(e) and names(e).isdisjoint(self.at):
            return e
        if isinstance(e, Op) and e.op in _WIDENED and self.positional(e):
            return self._wide_op(e)
        if isinstance(e, Op) and _never_wraps(e):
            return rebuild_op(e.op, tuple(self.index(a) for a in e.args))
        return cast(INT64, self.value(e))

    def positional(self, e: Expr) -> bool:
        """Whether the expression is integer arithmetic on coordinates or extents."""
        if isinstance(e, Var):
            return e.name in self.at or ".shape." in e.name
        if isinstance(e, Cast):
            return e.value.dtype.is_int and e.dtype in (INT32, INT64) and self.positional(e.value)
        if isinstance(e, Op) and e.dtype in (INT32, INT64) and e.op in _WIDENED:
            return any(self.positional(a) for a in e.args[e.op == "select" :])
        return False

    def _wide_scalar(self, e: Var) -> Expr:
        return var(e.name) if ".shape." in e.name else var(e.name, e.dtype)

    def _wide_op(self, e: Op) -> Expr:
        if e.op == "select":
            return rebuild_op("select", (self.value(e.args[0]), self.index(e.args[1]), self.index(e.args[2])))
        args = tuple(self.index(a) for a in e.args)
        return op(e.op, *args) if e.op == "within" else rebuild_op(e.op, args)

    def condition(self, e: Op) -> Expr:
        """A comparison of coordinates, in 64 bits; anything else as a value."""
        if e.op in COMPARISON and e.args[0].dtype.is_int and any(self.positional(a) for a in e.args):
            return rebuild_op(e.op, tuple(self.index(a) for a in e.args))
        return rebuild_op(e.op, tuple(self.value(a) for a in e.args))


def _never_wraps(e: Op) -> bool:
    """Whether this is data plus a constant within its type: in 64 bits, neighbours are seen to be neighbours."""
    if e.op not in ("add", "sub") or not e.dtype.is_int or not isinstance(e.args[1], Const):
        return False
    data, shift = interval(e.args[0], {}), int(e.args[1].value) * (1 if e.op == "add" else -1)
    if not (isinstance(data.low, int) and isinstance(data.high, int)):
        return False
    return e.dtype.min <= data.low + shift and data.high + shift <= e.dtype.max
