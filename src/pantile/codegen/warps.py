"""Warp shuffles: `llvm.nvvm.shfl.sync.idx`, which moves 32 bits.

Smaller values are widened, larger ones are moved in parts; a vector of two 16-bit values is one part. Lowering ensures
that all 32 threads take part. Shuffles are written as pure values, which LLVM does not know: equal ones are merged, and
unused ones are not written.
"""

from __future__ import annotations

from ..expr.nodes import FromLane
from ..expr.types import FLOAT32
from ..target.gpu import WARP_SIZE
from .context import Context
from .types import integer_type, scalar_type, value_type
from .vectors import gather, pick

_WORD = 32  # bits
_ALL = -1  # threads
_LAST = WARP_SIZE - 1


def write_from_lane(ctx: Context, e: FromLane, value: str, lane: str) -> str:
    """The value of another lane."""
    index = value_type(e.lane.dtype)
    number = lane if index == "i32" else ctx.fn.value(f"trunc {index} {lane} to i32")
    bits = FLOAT32.bits if e.dtype.kind == "bfloat" else 1 if e.dtype.is_bool else e.dtype.bits  # of a value
    if bits * e.lanes % _WORD and e.lanes > 1:
        element = scalar_type(e.dtype)
        parts = [pick(ctx.fn, value, element, e.lanes, k) for k in range(e.lanes)]
        return gather(ctx.fn, [_moved(ctx, part, element, bits, number) for part in parts], element)
    return _moved(ctx, value, value_type(e.dtype, e.lanes), bits * e.lanes, number)


def _moved(ctx: Context, value: str, type_: str, bits: int, lane: str) -> str:
    """A value of so many bits, which are whole words or less than one, moved from another lane."""
    fn, whole = ctx.fn, integer_type(bits)
    raw = _as(ctx, value, type_, whole)
    if bits < _WORD:
        word = _word(ctx, fn.value(f"zext {whole} {raw} to i32"), lane)
        return _as(ctx, fn.value(f"trunc i32 {word} to {whole}"), whole, type_)
    words = bits // _WORD
    if words == 1:
        return _as(ctx, _word(ctx, raw, lane), whole, type_)
    vector = integer_type(_WORD, words)
    parts = _as(ctx, raw, whole, vector)
    moved = [_word(ctx, pick(fn, parts, "i32", words, k), lane) for k in range(words)]
    return _as(ctx, gather(fn, moved, "i32"), vector, type_)


def _as(ctx: Context, value: str, before: str, after: str) -> str:
    return value if before == after else ctx.fn.value(f"bitcast {before} {value} to {after}")


def _word(ctx: Context, value: str, lane: str) -> str:
    given = f"i32 {_ALL}, i32 {value}, i32 {lane}, i32 {_LAST}"
    return ctx.fn.value(f"call i32 @llvm.nvvm.shfl.sync.idx.i32({given}) memory(none)")
