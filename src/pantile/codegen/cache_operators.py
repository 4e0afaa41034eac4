"""Loads with a cache operator of PTX, from memory that does not change while the kernel runs.

    ld.global.cg    cached only in L2, so that lines which are read once do not displace others from L1
    ld.global.cs    evicted first, since the line is probably not read again

LLVM (22) supports only loads that are cached in both L1 and L2, so these are inline assembly, as wide as the alignment
allows. They are opaque to LLVM, which therefore does not combine such loads of adjacent elements.
"""

from __future__ import annotations

from math import gcd

from ..target.gpu import LONGEST_ACCESS
from ..target.kinds import CacheOperator
from .function import Function
from .types import integer_type

_UNITS = {8: ("b64", "l", 8), 4: ("b32", "r", 4), 2: ("b16", "h", 2), 1: ("u8", "h", 2)}  # type, register, its bytes
_READS = "nounwind willreturn memory(argmem: read)"


def load_by(fn: Function, operator: CacheOperator, type_: str, size: int, pointer: str, align: int) -> str:
    """Load a value of an LLVM type with `size` bytes from global memory. Its instructions must not be shared with other
    branches, so all of them are written anew."""
    piece = gcd(LONGEST_ACCESS, size, align)
    unit = min(piece, max(_UNITS))
    units = [part for at in range(0, size, piece) for part in _piece(fn, operator, _moved(fn, pointer, at), piece)]
    bits = integer_type(8 * unit)
    whole, value = bits, units[0]
    if len(units) > 1:
        whole, value = integer_type(8 * unit, len(units)), "poison"
        for k, part in enumerate(units):
            value = fn.effect_value(f"insertelement {whole} {value}, {bits} {part}, i64 {k}")
    return value if whole == type_ else fn.effect_value(f"bitcast {whole} {value} to {type_}")


def _moved(fn: Function, pointer: str, bytes_: int) -> str:
    there = fn.effect_value(f"getelementptr i8, ptr {pointer}, i64 {bytes_}") if bytes_ else pointer
    return fn.effect_value(f"addrspacecast ptr {there} to ptr addrspace(1)")


def _piece(fn: Function, operator: CacheOperator, pointer: str, size: int) -> list[str]:
    """Write one access. Return what it loads, as integers of at most 64 bits."""
    unit = min(size, max(_UNITS))
    name, register, held = _UNITS[unit]
    result, given = integer_type(8 * held), f"(ptr addrspace(1) {pointer}) {_READS}"
    if size > unit:
        code = f'asm "ld.global.{operator.value}.v2.{name} {{$0, $1}}, [$2];", "={register},={register},l"'
        pair = f"{{{result}, {result}}}"
        both = fn.effect_value(f"call {pair} {code}{given}")
        return [fn.effect_value(f"extractvalue {pair} {both}, {k}") for k in range(2)]
    value = fn.effect_value(f'call {result} asm "ld.global.{operator.value}.{name} $0, [$1];", "={register},l"{given}')
    return [value if held == unit else fn.effect_value(f"trunc {result} {value} to {integer_type(8 * unit)}")]
