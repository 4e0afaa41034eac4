"""Conversions by value and by bits."""

from __future__ import annotations

from ..expr.nodes import Bits, Cast, Const, Expr, Op
from ..expr.types import FLOAT32, FLOAT64, INT32, UINT32, DType
from .context import Context
from .mantissa import is_slow_to_float, small_to_float, without_limits
from .rounding import bfloat_bits, bfloat_from_bits, double_to_16bit, round_bfloat
from .types import constant, integer_type, mangled, value_type
from .vectors import gather, pick


def write_cast(ctx: Context, e: Cast, value: str) -> str:
    """Convert by value. Integers wrap; floats are truncated to integers and saturate, and NaN becomes 0; as a
    condition, any nonzero value is true."""
    source, to, lanes = e.value.dtype, e.dtype, e.lanes
    if source == to:
        return value
    if to.is_bool:
        return _is_nonzero(ctx, source, lanes, value)
    if source.is_float:
        return _float_to_float(ctx, source, to, lanes, value) if to.is_float else _float_to_int(ctx, e, value)
    return _int_to_float(ctx, source, to, lanes, value) if to.is_float else _resize(ctx, source, to, lanes, value)


def _convert(ctx: Context, instruction: str, source: str, value: str, to: str) -> str:
    return value if source == to else ctx.fn.value(f"{instruction} {source} {value} to {to}")


def _is_nonzero(ctx: Context, t: DType, lanes: int, value: str) -> str:
    compare = "fcmp une" if t.is_float else "icmp ne"
    return ctx.fn.value(f"{compare} {value_type(t, lanes)} {value}, {constant(t, lanes, 0)}")


def _resize(ctx: Context, source: DType, to: DType, lanes: int, value: str) -> str:
    if to.bits < source.bits:
        return truncate(ctx, value, source.bits, to.bits, lanes)
    extend = "sext" if source.is_signed else "zext"
    return _convert(ctx, extend, value_type(source, lanes), value, value_type(to, lanes))


def truncate(ctx: Context, value: str, bits: int, to: int, lanes: int) -> str:
    """Drop the upper bits of integers.

    LLVM 22 aborts if it uses a saturating AVX-512 conversion for two lanes from 32 to 16 bits, so it must not see that
    these have been clamped.
    """
    narrow, wide = integer_type(to, lanes), integer_type(bits, lanes)
    if (lanes, bits, to) == (2, 32, 16) and ctx.module.target.vector_bits == 512:
        register = _convert(ctx, "bitcast", wide, value, "double")
        value = _convert(ctx, "bitcast", "double", ctx.fn.value(f'call double asm "", "=v,0"(double {register})'), wide)
    return _convert(ctx, "trunc", wide, value, narrow)


def _int_to_float(ctx: Context, source: DType, to: DType, lanes: int, value: str) -> str:
    if to == FLOAT32 and is_slow_to_float(ctx, source, lanes):
        return small_to_float(ctx, source, lanes, value)
    instruction = "sitofp" if source.is_signed else "uitofp"
    exact_in_float32 = source.bits < 32 or to.bits > 16
    middle = to if to.bits > 16 else FLOAT32 if exact_in_float32 else FLOAT64
    converted = _convert(ctx, instruction, value_type(source, lanes), value, value_type(middle, lanes))
    return converted if middle is to else _float_to_float(ctx, middle, to, lanes, converted)


def _float_to_float(ctx: Context, source: DType, to: DType, lanes: int, value: str) -> str:
    if to.bits == 16 and source.bits == 64:
        return double_to_16bit(ctx.fn, value, to, lanes)
    if to.kind == "bfloat":
        wide = _convert(ctx, "fpext", value_type(source, lanes), value, value_type(FLOAT32, lanes))
        return round_bfloat(ctx.fn, wide, lanes)
    held = FLOAT32 if source.kind == "bfloat" else source
    instruction = "fpext" if to.bits > held.bits else "fptrunc"
    return _convert(ctx, instruction, value_type(held, lanes), value, value_type(to, lanes))


def _float_to_int(ctx: Context, e: Cast, value: str) -> str:
    source, to, lanes = e.value.dtype, e.dtype, e.lanes
    if source.bits == 16:
        value = _float_to_float(ctx, source, FLOAT32, lanes, value)
        source = FLOAT32
    t = value_type(source, lanes)
    if ctx.threads and source == FLOAT32 and to.bits <= INT32.bits:
        return _by_instruction(ctx, to, lanes, value)
    if _converts_by_saturating(ctx):
        return _narrowed(ctx, t, to, lanes, value) if to.bits == 8 else _saturated(ctx, t, to, lanes, value)
    if to.bits <= 16 and _limit(e.value, "min", to) and _limit(e.value, "max", to):  # it is visibly clamped
        return _clamped_to_int(ctx, t, to, lanes, value)
    return _between_ends(ctx, source, to, lanes, value) if lanes > 1 else _saturated(ctx, t, to, lanes, value)


def _converts_by_saturating(ctx: Context) -> bool:
    """Whether the target's conversions to integers saturate. Those of x86 return 0x80000000 for any value that does not
    fit."""
    return ctx.module.target.architecture != "x86"


def cast_operand(ctx: Context, e: Cast) -> Expr:
    """The operand of a cast, without clamps that the saturation of the cast makes redundant."""
    value, to = e.value, e.dtype
    if not (value.dtype.is_float and to.is_int and _converts_by_saturating(ctx)):
        return value
    return without_limits(value, to)


def _saturated(ctx: Context, t: str, to: DType, lanes: int, value: str) -> str:
    i = value_type(to, lanes)
    name = f"llvm.fpto{'s' if to.is_signed else 'u'}i.sat.{mangled(i)}.{mangled(t)}"
    return ctx.fn.value(f"call {i} @{name}({t} {value})")


def _narrowed(ctx: Context, t: str, to: DType, lanes: int, value: str) -> str:
    """Narrow to 8 bits by way of 16, since vector instructions narrow by half and saturate at once."""
    half = DType(to.kind, 16)
    return _limited(ctx, to, half, lanes, _saturated(ctx, t, half, lanes, value))


def _limited(ctx: Context, to: DType, source: DType, lanes: int, result: str) -> str:
    """Narrow an integer to a type of fewer bits, clamped to its range."""
    wide, sign = value_type(source, lanes), "s" if to.is_signed else "u"
    for limit, bound in (("min", to.max), ("max", to.min))[: 2 if to.is_signed else 1]:
        result = ctx.fn.intrinsic(f"{sign}{limit}", wide, result, constant(source, lanes, bound))
    return ctx.fn.value(f"trunc {wide} {result} to {value_type(to, lanes)}")


def _by_instruction(ctx: Context, to: DType, lanes: int, value: str) -> str:
    """Convert on GPUs: from float32 to a 32-bit integer, which saturates and turns NaN into 0, then to fewer bits.

    LLVM (22) does not know that the instruction saturates, and would also clamp the float.
    """
    name, wide = ("f2i", INT32) if to.is_signed else ("f2ui", UINT32)
    fn, element = ctx.fn, value_type(wide)
    parts = [pick(fn, value, value_type(FLOAT32), lanes, lane) for lane in range(lanes)]
    whole = [fn.value(f"call {element} @llvm.nvvm.{name}.rz(float {part})") for part in parts]
    result = whole[0] if lanes == 1 else gather(fn, whole, element)
    return result if to.bits == wide.bits else _limited(ctx, to, wide, lanes, result)


def _clamped_to_int(ctx: Context, t: str, to: DType, lanes: int, value: str) -> str:
    """Convert a value within the range of an 8- or 16-bit type by way of int32. NaN becomes 0x80000000, and so 0."""
    wide = integer_type(32, lanes)
    converted = ctx.fn.value(f"fptosi {t} {value} to {wide}")
    return ctx.fn.value(f"trunc {wide} {converted} to {value_type(to, lanes)}")


def _between_ends(ctx: Context, source: DType, to: DType, lanes: int, value: str) -> str:
    """Convert a vector by clamping it to the range of the type, which LLVM (22) would do element by element. NaN
    becomes the lower limit."""
    fn, t, i = ctx.fn, value_type(source, lanes), value_type(to, lanes)

    def select(condition: str, of: str, a: str, b: str) -> str:
        return fn.value(f"select <{lanes} x i1> {fn.value(condition)}, {of} {a}, {of} {b}")

    def clamp(by: str, value: str, end: int) -> str:
        limit = constant(source, lanes, float(end))
        return select(f"fcmp {by} {t} {value}, {limit}", t, value, limit)

    above = clamp("ogt", value, to.min)
    if to.bits <= source.bits // 2:  # both ends are floats
        wide, sign = max(32, to.bits), "s" if to.is_signed or to.bits < 32 else "u"
        whole = fn.value(f"fpto{sign}i {t} {clamp('olt', above, to.max)} to {integer_type(wide, lanes)}")
        result = _convert(ctx, "trunc", integer_type(wide, lanes), whole, i)
    else:
        whole = fn.value(f"fpto{'s' if to.is_signed else 'u'}i {t} {above} to {i}")
        too_large = f"fcmp oge {t} {above}, {constant(source, lanes, float(to.max + 1))}"
        result = select(too_large, i, constant(to, lanes, to.max), fn.value(f"freeze {i} {whole}"))
    is_number = f"fcmp ord {t} {value}, {value}"
    return select(is_number, i, result, constant(to, lanes, 0)) if to.is_signed else result


def _limit(e: Expr, name: str, to: DType) -> bool:
    """Whether `e` is bounded on one side by a min (or max, as `name` says) with a constant in the range of `to`."""
    if isinstance(e, Const):
        return to.min <= e.value <= to.max
    if not isinstance(e, Op):
        return False
    if e.op in ("floor", "ceil", "round", "trunc"):  # these stay within a range with integral ends
        return _limit(e.args[0], name, to)
    if e.op == name:
        return any(_limit(a, name, to) for a in e.args)
    if e.op in ("min", "max"):  # it bounds the other side, so both arguments must be bounded on this side
        return all(_limit(a, name, to) for a in e.args)
    return False


def write_bits(ctx: Context, e: Bits, value: str) -> str:
    """Reinterpret the bits of a value as another type of the same size."""
    source, to, lanes = e.value.dtype, e.dtype, e.lanes
    if source.kind == "bfloat":
        value = bfloat_bits(ctx.fn, value, lanes)
    from_type = integer_type(16, lanes) if source.kind == "bfloat" else value_type(source, lanes)
    to_type = integer_type(16, lanes) if to.kind == "bfloat" else value_type(to, lanes)
    value = _convert(ctx, "bitcast", from_type, value, to_type)
    return bfloat_from_bits(ctx.fn, value, lanes) if to.kind == "bfloat" else value
