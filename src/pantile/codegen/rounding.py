"""Rounds to 16-bit floats with only integer and float32 instructions, so that no target needs a library call for it.

If a target has instructions for bfloat16, values are converted for them and back to float32. LLVM removes pairs of
opposite conversions, so that consecutive operations, and loads and stores, stay in bfloat16.
"""

from __future__ import annotations

from ..expr.types import DType
from .function import Function
from .types import integer, integer_type, vector_type

_SIGN_AND_EXPONENT_AND_7_BITS = -0x10000
_QUIET = 0x400000


def to_bfloat(fn: Function, value: str, lanes: int) -> str:
    """Round a float32 to LLVM's bfloat."""
    return fn.value(f"fptrunc {vector_type('float', lanes)} {value} to {vector_type('bfloat', lanes)}")


def from_bfloat(fn: Function, value: str, lanes: int) -> str:
    """Convert LLVM's bfloat to float32."""
    return fn.value(f"fpext {vector_type('bfloat', lanes)} {value} to {vector_type('float', lanes)}")


def by_bfloats(fn: Function, name: str, args: list[str], lanes: int, flags: str = "") -> str:
    """Call an intrinsic on bfloat16s that are held in float32s."""
    values = [to_bfloat(fn, a, lanes) for a in args]
    return from_bfloat(fn, fn.intrinsic(name, vector_type("bfloat", lanes), *values, flags=flags), lanes)


def negated_bfloat(fn: Function, value: str, lanes: int) -> str:
    return from_bfloat(fn, fn.value(f"fneg {vector_type('bfloat', lanes)} {to_bfloat(fn, value, lanes)}"), lanes)


def round_bfloat(fn: Function, value: str, lanes: int) -> str:
    """Round a float32 to the nearest bfloat16, ties to even, still held in a float32."""
    if fn.has_bfloats:
        return from_bfloat(fn, to_bfloat(fn, value, lanes), lanes)
    f, i = vector_type("float", lanes), integer_type(32, lanes)
    bits = fn.value(f"bitcast {f} {value} to {i}")
    upper = fn.value(f"lshr {i} {bits}, {integer(16, 32, lanes)}")
    odd = fn.value(f"and {i} {upper}, {integer(1, 32, lanes)}")
    bias = fn.value(f"add {i} {odd}, {integer(0x7FFF, 32, lanes)}")
    near = fn.value(f"add {i} {bits}, {bias}")
    nan = fn.value(f"fcmp uno {f} {value}, {value}")
    quiet = fn.value(f"or {i} {bits}, {integer(_QUIET, 32, lanes)}")
    rounded = fn.value(f"select {integer_type(1, lanes)} {nan}, {i} {quiet}, {i} {near}")
    masked = fn.value(f"and {i} {rounded}, {integer(_SIGN_AND_EXPONENT_AND_7_BITS, 32, lanes)}")
    return fn.value(f"bitcast {i} {masked} to {f}")


def bfloat_bits(fn: Function, value: str, lanes: int) -> str:
    """The 16 bits of a bfloat16 held in a float32."""
    half, i = integer_type(16, lanes), integer_type(32, lanes)
    if fn.has_bfloats:
        return fn.value(f"bitcast {vector_type('bfloat', lanes)} {to_bfloat(fn, value, lanes)} to {half}")
    bits = fn.value(f"bitcast {vector_type('float', lanes)} {value} to {i}")
    return fn.value(f"trunc {i} {fn.value(f'lshr {i} {bits}, {integer(16, 32, lanes)}')} to {half}")


def bfloat_from_bits(fn: Function, bits: str, lanes: int) -> str:
    """16 bits as a bfloat16 held in a float32."""
    half, i = integer_type(16, lanes), integer_type(32, lanes)
    if fn.has_bfloats:
        return from_bfloat(fn, fn.value(f"bitcast {half} {bits} to {vector_type('bfloat', lanes)}"), lanes)
    wide = fn.value(f"zext {half} {bits} to {i}")
    upper = fn.value(f"shl {i} {wide}, {integer(16, 32, lanes)}")
    return fn.value(f"bitcast {i} {upper} to {vector_type('float', lanes)}")


def double_to_16bit(fn: Function, value: str, to: DType, lanes: int) -> str:
    """Convert a float64 to float16 or bfloat16, rounded once."""
    odd = _odd_float(fn, value, lanes)
    if to.kind == "bfloat":
        return round_bfloat(fn, odd, lanes)
    return fn.value(f"fptrunc {vector_type('float', lanes)} {odd} to {vector_type('half', lanes)}")


def _odd_float(fn: Function, value: str, lanes: int) -> str:
    """Round a float64 to odd: to a float32 whose last bit is odd if it is inexact. Rounding the result again is then as
    good as rounding once."""
    f, d, i = vector_type("float", lanes), vector_type("double", lanes), integer_type(32, lanes)
    near = fn.value(f"fptrunc {d} {value} to {f}")
    back = fn.value(f"fpext {f} {near} to {d}")
    size, near_size = fn.intrinsic("fabs", d, value), fn.intrinsic("fabs", d, back)
    is_larger = fn.value(f"fcmp ogt {d} {near_size}, {size}")
    inexact = fn.value(f"fcmp one {d} {back}, {value}")
    bits = fn.value(f"bitcast {f} {near} to {i}")
    step = fn.value(f"sext {integer_type(1, lanes)} {is_larger} to {i}")
    towards_zero = fn.value(f"add {i} {bits}, {step}")
    last_bit = fn.value(f"zext {integer_type(1, lanes)} {inexact} to {i}")
    odd = fn.value(f"or {i} {towards_zero}, {last_bit}")
    return fn.value(f"bitcast {i} {odd} to {f}")


def fma_16bit(fn: Function, t: DType, lanes: int, args: list[str]) -> str:
    """Compute a*b + c of 16-bit floats in float64, with an exact product and one rounding at the end."""
    held, d = vector_type("float" if t.kind == "bfloat" else "half", lanes), vector_type("double", lanes)
    wide = [fn.value(f"fpext {held} {a} to {d}") for a in args]
    return double_to_16bit(fn, fn.intrinsic("fma", d, *wide), t, lanes)
