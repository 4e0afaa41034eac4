"""Graphs as bytes, to copy them and to send them to other processes.

A graph's expressions are written as one list of rows, operands first, and the stages refer to them by number. So shared
nodes stay shared, and nothing recurses: pickle itself would, once per nested operation.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from ..expr.nodes import Bits, Cast, Const, Expr, Load, Op, Var
from ..expr.types import DType
from ..expr.visit import children, each_once

# kind of node, type, attribute besides its operands, numbers of the operands
Row = tuple[type[Expr], DType, Any, tuple[int, ...]]

_ATTRIBUTE: dict[type[Expr], Callable[[Any], Any]] = {
    Const: lambda e: e.value,
    Var: lambda e: e.name,
    Op: lambda e: e.op,
    Cast: lambda e: None,
    Bits: lambda e: None,
    Load: lambda e: e.buffer,
}
_NODE: dict[type[Expr], Callable[[DType, Any, tuple[Expr, ...]], Expr]] = {
    Const: lambda t, value, _: Const(t, 1, value),
    Var: lambda t, name, _: Var(t, 1, name),
    Op: lambda t, name, args: Op(t, 1, name, args),
    Cast: lambda t, _, args: Cast(t, 1, args[0]),
    Bits: lambda t, _, args: Bits(t, 1, args[0]),
    Load: lambda t, buffer, args: Load(t, 1, buffer, args),
}


def pickled(parts: Any) -> tuple[list[Row], bytes]:
    """Parts of a graph as rows of its expressions and the bytes of all else."""
    to = io.BytesIO()
    pickler = _Pickler(to)
    pickler.dump(parts)
    return pickler.rows, to.getvalue()


def unpickled(rows: list[Row], data: bytes) -> Any:
    """The parts of a graph that `pickled` wrote."""
    nodes: list[Expr] = []
    for kind, t, attribute, operands in rows:
        nodes.append(_NODE[kind](t, attribute, tuple([nodes[k] for k in operands])))
    return _Unpickler(io.BytesIO(data), nodes).load()


class _Pickler(pickle.Pickler):
    def __init__(self, to: io.BytesIO) -> None:
        super().__init__(to)
        self.rows: list[Row] = []
        self._known: dict[int, int] = {}

    def persistent_id(self, thing: Any) -> int | None:
        return each_once(thing, self._known, self._row) if isinstance(thing, Expr) else None

    def _row(self, e: Expr) -> int:
        operands = tuple([self._known[id(c)] for c in children(e)])
        self.rows.append((type(e), e.dtype, _ATTRIBUTE[type(e)](e), operands))
        return len(self.rows) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, nodes: list[Expr]) -> None:
        super().__init__(source)
        self._nodes = nodes

    def persistent_load(self, number: int) -> Expr:
        return self._nodes[number]
