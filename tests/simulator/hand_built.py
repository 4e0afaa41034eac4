"""Kernels written by hand in the form that lowering would produce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pantile.expr.nodes import Const, Expr, Load, Number, Var, const, var
from pantile.expr.types import FLOAT32, INDEX, DType
from pantile.ir.nodes import Alloc, Block, CapturedBuffer, For, Kernel, Stmt, Store
from pantile.simulator import Global, simulate
from pantile.target.kinds import Kind, Memory

Array = np.ndarray[Any, np.dtype[Any]]

ZERO = const(0, INDEX)
B, T, K = var("b"), var("t"), var("k")  # the block, the iteration of a thread loop, the iteration of a serial loop


def index(value: int) -> Const:
    return const(value, INDEX)


def number(value: float, t: DType = FLOAT32) -> Const:
    return const(value, t)


def load(buffer: str, at: Expr, t: DType = FLOAT32, mask: Expr | None = None) -> Load:
    return Load(t, at.lanes, buffer, (at,), mask)


def store(buffer: str, at: Expr, value: Expr, mask: Expr | None = None) -> Store:
    return Store(buffer, (at,), value, mask)


def threads(extent: int, *body: Stmt, name: str = "t") -> For:
    return For(name, ZERO, index(extent), Kind.THREAD, Block(body))


def serial(extent: Expr | int, *body: Stmt, name: str = "k", first: Expr = ZERO) -> For:
    return For(name, first, index(extent) if isinstance(extent, int) else extent, Kind.SERIAL, Block(body))


def shared(buffer: str, size: int, *body: Stmt, offset: int = 0, t: DType = FLOAT32) -> Alloc:
    return Alloc(buffer, t, index(size), Memory.SHARED, index(offset), Block(body))


def registers(buffer: str, size: int, *body: Stmt, t: DType = FLOAT32) -> Alloc:
    return Alloc(buffer, t, index(size), Memory.REGISTER, None, Block(body))


def kernel(
    *body: Stmt,
    buffers: Sequence[tuple[str, DType]] = (("out", FLOAT32), ("img", FLOAT32)),
    block: int = 64,
    bytes_shared: int = 0,
    scalars: Sequence[Var] = (),
) -> Kernel:
    captured = tuple(CapturedBuffer(name, t) for name, t in buffers)
    return Kernel("k", "b", ZERO, tuple(scalars), captured, Block(body), block, bytes_shared)


def run(
    k: Kernel, blocks: int, *arrays: Array, scalars: Sequence[Number] = (), written: Sequence[str] = ("out",)
) -> None:
    """Run a kernel in place on the arrays that it captures. Those in `written` count as uninitialized."""
    memories = [
        Global.of_array(b.name, b.dtype, a, writable=b.name in written) for b, a in zip(k.buffers, arrays, strict=True)
    ]
    simulate(k, scalars, memories, blocks)
