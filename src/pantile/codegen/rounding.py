"""Rounding to 16-bit floats with integer and float32 instructions alone: no target needs a library call for it.

Where a target has instructions for bfloat16, values are handed to them and come back as float32s; LLVM leaves out what
goes there and back, so that operations in a row, and loads and stores, stay with bfloat16s.
"""

from __future__ import annotations

from ..expr.types import DType
from .function import Function
from .types import integer, integer_type, mangled

_SIGN_AND_EXPONENT_AND_7_BITS = -0x10000
_QUIET = 0x400000


def _float(lanes: int) -> str:
    return "float" if lanes == 1 else f"<{lanes} x float>"


def _double(lanes: int) -> str:
    return "double" if lanes == 1 else f"<{lanes} x double>"


def _bools(lanes: int) -> str:
    return integer_type(1, lanes)


def _bfloat(lanes: int) -> str:
    return "bfloat" if lanes == 1 else f"<{lanes} x bfloat>"


def to_bfloat(fn: Function, value: str, lanes: int) -> str:
    """A float32 as LLVM's bfloat, rounded."""
    return fn.value(f"fptrunc {_float(lanes)} {value} to {_bfloat(lanes)}")


def from_bfloat(fn: Function, value: str, lanes: int) -> str:
    """LLVM's bfloat as a float32."""
    return fn.value(f"fpext {_bfloat(lanes)} {value} to {_float(lanes)}")


def by_bfloats(fn: Function, name: str, args: list[str], lanes: int, flags: str = "") -> str:
    """Call an intrinsic on bfloat16s that are held in float32s."""
    t = _bfloat(lanes)
    operands = ", ".join([f"{t} {to_bfloat(fn, a, lanes)}" for a in args])
    return from_bfloat(fn, fn.value(f"call {flags}{t} @llvm.{name}.{mangled(t)}({operands})"), lanes)


def negated_bfloat(fn: Function, value: str, lanes: int) -> str:
    return from_bfloat(fn, fn.value(f"fneg {_bfloat(lanes)} {to_bfloat(fn, value, lanes)}"), lanes)


def round_bfloat(fn: Function, value: str, lanes: int) -> str:
    """Round a float32 to the nearest bfloat16, ties to even, still held in a float32."""
    if fn.has_bfloats:
        return from_bfloat(fn, to_bfloat(fn, value, lanes), lanes)
    f, i = _float(lanes), integer_type(32, lanes)
    bits = fn.value(f"bitcast {f} {value} to {i}")
    upper = fn.value(f"lshr {i} {bits}, {integer(16, 32, lanes)}")
    odd = fn.value(f"and {i} {upper}, {integer(1, 32, lanes)}")
    bias = fn.value(f"add {i} {odd}, {integer(0x7FFF, 32, lanes)}")
    near = fn.value(f"add {i} {bits}, {bias}")
    nan = fn.value(f"fcmp uno {f} {value}, {value}")
    quiet = fn.value(f"or {i} {bits}, {integer(_QUIET, 32, lanes)}")
    kept = fn.value(f"select {_bools(lanes)} {nan}, {i} {quiet}, {i} {near}")
    masked = fn.value(f"and {i} {kept}, {integer(_SIGN_AND_EXPONENT_AND_7_BITS, 32, lanes)}")
    return fn.value(f"bitcast {i} {masked} to {f}")


def bfloat_bits(fn: Function, value: str, lanes: int) -> str:
    """The 16 bits of a bfloat16 held in a float32."""
    if fn.has_bfloats:
        return fn.value(f"bitcast {_bfloat(lanes)} {to_bfloat(fn, value, lanes)} to {integer_type(16, lanes)}")
    i = integer_type(32, lanes)
    bits = fn.value(f"bitcast {_float(lanes)} {value} to {i}")
    upper = fn.value(f"lshr {i} {bits}, {integer(16, 32, lanes)}")
    return fn.value(f"trunc {i} {upper} to {integer_type(16, lanes)}")


def bfloat_from_bits(fn: Function, bits: str, lanes: int) -> str:
    """16 bits as a bfloat16 held in a float32."""
    if fn.has_bfloats:
        return from_bfloat(fn, fn.value(f"bitcast {integer_type(16, lanes)} {bits} to {_bfloat(lanes)}"), lanes)
    i = integer_type(32, lanes)
    wide = fn.value(f"zext {integer_type(16, lanes)} {bits} to {i}")
    upper = fn.value(f"shl {i} {wide}, {integer(16, 32, lanes)}")
    return fn.value(f"bitcast {i} {upper} to {_float(lanes)}")


def double_to_16bit(fn: Function, value: str, to: DType, lanes: int) -> str:
    """Convert a float64 to float16 or bfloat16, rounded once."""
    odd = _odd_float(fn, value, lanes)
    if to.kind == "bfloat":
        return round_bfloat(fn, odd, lanes)
    half = "half" if lanes == 1 else f"<{lanes} x half>"
    return fn.value(f"fptrunc {_float(lanes)} {odd} to {half}")


def _odd_float(fn: Function, value: str, lanes: int) -> str:
    """Round a float64 to odd: to the neighbouring float32 with an odd last bit where inexact, so that rounding it again
    is exact.
    """
    f, d, i = _float(lanes), _double(lanes), integer_type(32, lanes)
    near = fn.value(f"fptrunc {d} {value} to {f}")
    back = fn.value(f"fpext {f} {near} to {d}")
    size = fn.value(f"call {d} @llvm.fabs.{mangled(d)}({d} {value})")
    near_size = fn.value(f"call {d} @llvm.fabs.{mangled(d)}({d} {back})")
    beyond = fn.value(f"fcmp ogt {d} {near_size}, {size}")
    inexact = fn.value(f"fcmp one {d} {back}, {value}")
    bits = fn.value(f"bitcast {f} {near} to {i}")
    step = fn.value(f"sext {_bools(lanes)} {beyond} to {i}")
    towards_zero = fn.value(f"add {i} {bits}, {step}")
    last_bit = fn.value(f"zext {_bools(lanes)} {inexact} to {i}")
    odd = fn.value(f"or {i} {towards_zero}, {last_bit}")
    return fn.value(f"bitcast {i} {odd} to {f}")


def fma_16bit(fn: Function, t: DType, lanes: int, args: list[str]) -> str:
    """Compute a*b + c of 16-bit floats: exact product in float64, rounded once at the end."""
    source, d = "float" if t.kind == "bfloat" else "half", _double(lanes)
    held = source if lanes == 1 else f"<{lanes} x {source}>"
    wide = [fn.value(f"fpext {held} {a} to {d}") for a in args]
    operands = ", ".join([f"{d} {w}" for w in wide])
    return double_to_16bit(fn, fn.value(f"call {d} @llvm.fma.{mangled(d)}({operands})"), t, lanes)
