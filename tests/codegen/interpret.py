"""Expressions of basic operations, evaluated over NumPy arrays: what compiled code should compute."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pantile.expr.nodes import Bits, Broadcast, Cast, Const, Expr, Op, Var

Array = np.ndarray[Any, np.dtype[Any]]


def fma32(a: Array, b: Array, c: Array) -> Array:
    wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return np.asarray(wide, np.float32)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """Dekker's exact product and Knuth's exact sum, rounded once (nearly); plain where those overflow."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    product = a * b
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    back = total - product
    result = total + (((product - (total - back)) + (c - back)) + error)
    return np.where(np.isfinite(result), result, total)


def _halves(a: Array) -> tuple[Array, Array]:
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def fma(a: Array, b: Array, c: Array) -> Array:
    return fma32(a, b, c) if np.result_type(a) == np.float32 else fma64(a, b, c)


BASIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "min": np.minimum, "max": np.maximum, "abs": np.abs, "floor": np.floor, "sqrt": np.sqrt, "fma": fma,
    "select": np.where,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def evaluate(root: Expr, values: dict[str, Array], contract: bool = False) -> Array:
    """`root` over arrays; `contract` fuses every multiplication into an addition that uses it, as a backend may."""
    memo: dict[int, Any] = {}

    def value(e: Expr) -> Any:
        if id(e) not in memo:
            memo[id(e)] = compute(e)
        return memo[id(e)]

    def compute(e: Expr) -> Any:
        if isinstance(e, Const):
            return e.dtype.numpy.type(e.value)
        if isinstance(e, Var):
            return values[e.name]
        if isinstance(e, Cast):
            return value(e.value).astype(e.dtype.numpy)
        if isinstance(e, Bits):
            return value(e.value).view(e.dtype.numpy)
        if isinstance(e, Broadcast):
            return value(e.value)
        assert isinstance(e, Op)
        fused = fuse(e) if contract and e.dtype.is_float else None
        result = fused if fused is not None else BASIC[e.op](*(value(a) for a in e.args))
        assert result.dtype == e.dtype.numpy
        return result

    def fuse(e: Op) -> Any:
        if e.op not in ("add", "sub"):
            return None
        a, b = e.args
        if isinstance(a, Op) and a.op == "mul":
            return fma(value(a.args[0]), value(a.args[1]), value(b) if e.op == "add" else -value(b))
        if isinstance(b, Op) and b.op == "mul":
            return fma(value(b.args[0]) if e.op == "add" else -value(b.args[0]), value(b.args[1]), value(a))
        return None

    with np.errstate(all="ignore"):
        return np.broadcast_to(value(root), np.broadcast_shapes(*(v.shape for v in values.values())))
