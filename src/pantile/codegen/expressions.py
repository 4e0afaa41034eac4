"""Writes expressions as instructions. A shared node is written once per statement, and equal instructions share one
name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InternalError
from ..expr.build import cast
from ..expr.nodes import Bits, Broadcast, Cast, Const, Expr, Instruction, Load, Op, Ramp, Shuffle, Var
from ..expr.types import FLOAT32
from . import math
from .arithmetic import WRITERS, write
from .casts import cast_operand, write_bits, write_cast
from .context import Context
from .instructions import write_instruction
from .lanes import apart, is_multiplied_by
from .mantissa import round_to_small, rounded_operand
from .memory import load_lane, write_load
from .opaque_rows import hidden
from .types import constant, scalar_type, value_type
from .vectors import shuffle, spread, widened


def write_expression(ctx: Context, e: Expr) -> str:
    """Write `e`, and return the operand that holds it."""
    operand = ctx.memo.get(id(e))
    if operand is None:
        writer = _WRITERS.get(type(e))
        if writer is None:
            raise InternalError(f"no code for {type(e).__name__} {e}")
        operand = ctx.memo[id(e)] = writer(ctx, e)
    return operand


def _op(ctx: Context, e: Op) -> str:
    if e.op == "within":
        return write_expression(ctx, e.args[0])
    if e.op not in WRITERS:
        return write_expression(ctx, ctx.keep(math.expand(e)))
    args = [write_expression(ctx, a) for a in e.args]
    result = write(ctx, e, args)
    other = ctx.exchanges.other(e)
    if other is not None and id(other) not in ctx.memo:
        ctx.memo[id(other)] = write(ctx, other, args)
    return result


def _cast(ctx: Context, e: Cast) -> str:
    inner = e.value
    if isinstance(inner, Ramp) and e.dtype.is_int and e.dtype.bits < inner.dtype.bits:
        narrow = Ramp(e.dtype, e.lanes, cast(e.dtype, inner.base), cast(e.dtype, inner.stride))
        return write_expression(ctx, ctx.keep(narrow))
    rounded = rounded_operand(ctx, e)
    if rounded is not None:
        return round_to_small(ctx, e.dtype, e.lanes, write_expression(ctx, rounded))
    return write_cast(ctx, e, write_expression(ctx, cast_operand(ctx, e)))


def _broadcast(ctx: Context, e: Broadcast) -> str:
    value, element = e.value, scalar_type(e.dtype)
    if isinstance(value, Load) and ctx.module.target.multiplies_by_lane and is_multiplied_by(value.dtype):
        run = ctx.neighbours.run(value)
        if run is not None:
            return load_lane(ctx, value, run, e.lanes)
        return spread(ctx.fn, apart(ctx.fn, write_expression(ctx, value), element), element, e.lanes)
    return spread(ctx.fn, write_expression(ctx, value), element, e.lanes)


def _ramp(ctx: Context, e: Ramp) -> str:
    element, t = scalar_type(e.dtype), value_type(e.dtype, e.lanes)
    base = spread(ctx.fn, write_expression(ctx, e.base), element, e.lanes)
    multiply, add = ("fmul", "fadd") if e.dtype.is_float else ("mul", "add")
    steps = ", ".join(f"{element} {constant(e.dtype, 1, lane)}" for lane in range(e.lanes))
    distance = f"<{steps}>"
    if not (isinstance(e.stride, Const) and e.stride.value == 1):
        stride = spread(ctx.fn, write_expression(ctx, e.stride), element, e.lanes)
        distance = ctx.fn.value(f"{multiply} {t} {stride}, {distance}")
    return ctx.fn.value(f"{add} {t} {base}, {distance}")


def _instruction(ctx: Context, e: Instruction) -> str:
    return write_instruction(ctx, e, write_expression)


def _shuffle(ctx: Context, e: Shuffle) -> str:
    """Write a shuffle. Vectors are first padded to equal lengths, and scalars become two-lane vectors."""
    element = scalar_type(e.dtype)
    lanes = max(2, *(v.lanes for v in e.vectors))
    places = [k * lanes + i for k, v in enumerate(e.vectors) for i in range(v.lanes)]
    vectors = [widened(ctx.fn, write_expression(ctx, v), element, v.lanes, lanes) for v in e.vectors]
    for k, vector in enumerate(vectors):
        if vector in vectors[:k]:
            bits = FLOAT32.bits if e.dtype.kind == "bfloat" else e.dtype.bits  # of a value
            vectors[k] = _copied(ctx, vector, f"<{lanes} x {element}>", lanes * bits)
    return shuffle(ctx.fn, vectors, element, lanes, [places[i] for i in e.order])


def _copied(ctx: Context, vector: str, type_: str, bits: int) -> str:
    """A copy of a vector that LLVM (22) does not recognize as the same vector.

    With AVX-512, LLVM hangs on pixels that repeat a channel: lanes 0 1 2 2 3 4 5 5 and so on.
    """
    target = ctx.module.target
    if target.architecture != "x86" or bits not in (128, 256, 512) or bits > target.vector_bits:
        return vector
    return hidden(ctx.fn, vector, type_, "v")


_WRITERS: dict[type[Expr], Callable[[Context, Any], str]] = {
    Const: lambda ctx, e: constant(e.dtype, e.lanes, e.value),
    Var: lambda ctx, e: ctx.fn.resolve(e.name, value_type(e.dtype, e.lanes)),
    Op: _op,
    Cast: _cast,
    Bits: lambda ctx, e: write_bits(ctx, e, write_expression(ctx, e.value)),
    Load: write_load,
    Broadcast: _broadcast,
    Ramp: _ramp,
    Shuffle: _shuffle,
    Instruction: _instruction,
}
