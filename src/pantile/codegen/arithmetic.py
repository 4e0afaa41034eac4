"""Operations on integers, floats and conditions. `WRITERS` has one writer for each name of an operation, and `write`
calls it.

A writer takes the operation and its operands, and returns the operand that holds the result.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import COMPARISON, Const, Op
from ..expr.types import INDEX, DType
from .context import Context
from .division import write_floordiv, write_mod
from .fixed_point import FIXED_POINT_WRITERS
from .opaque_rows import cut_inside
from .rounding import by_bfloats, fma_16bit, negated_bfloat, round_bfloat
from .types import constant, integer, integer_type, mangled, value_type
from .vectors import gather, pick

Writer = Callable[[Context, Op, list[str]], str]


def write(ctx: Context, e: Op, args: list[str]) -> str:
    """Write one operation. A bfloat16 result is rounded, since it is computed in float32 with more precision."""
    result = WRITERS[e.op](ctx, e, args)
    if e.dtype.kind == "bfloat" and e.op in _INEXACT:
        return round_bfloat(ctx.fn, result, e.lanes)
    return result


def _type(e: Op) -> str:
    return value_type(e.dtype, e.lanes)


def _arithmetic(on_ints: str, on_floats: str) -> Writer:
    def writer(ctx: Context, e: Op, args: list[str]) -> str:
        if e.dtype.is_float:
            return ctx.fn.value(f"{on_floats} {ctx.flags}{_type(e)} {args[0]}, {args[1]}")
        flag = "nsw " if e.dtype.kind == INDEX.kind and e.lanes == 1 else ""  # indices never overflow; data wraps
        return ctx.fn.value(f"{on_ints} {flag}{_type(e)} {args[0]}, {args[1]}")

    return writer


def _div(ctx: Context, e: Op, args: list[str]) -> str:
    by_constant = isinstance(e.args[1], Const) and not ctx.module.strict
    return ctx.fn.value(f"fdiv {ctx.flags}{'arcp ' if by_constant else ''}{_type(e)} {args[0]}, {args[1]}")


def _extreme(name: str, on_conditions: str) -> Writer:
    def writer(ctx: Context, e: Op, args: list[str]) -> str:
        if e.dtype.is_bool:
            return ctx.fn.value(f"{on_conditions} {_type(e)} {args[0]}, {args[1]}")
        if e.dtype.is_float:
            flags = "" if ctx.module.strict else "nsz "
            if e.dtype.kind == "bfloat" and ctx.fn.has_bfloats:
                return by_bfloats(ctx.fn, f"{name}imum", args, e.lanes, flags)
            return ctx.fn.intrinsic(f"{name}imum", _type(e), *args, flags=flags)
        return cut_inside(ctx.fn, e, ctx.fn.intrinsic(f"{'s' if e.dtype.is_signed else 'u'}{name}", _type(e), *args))

    return writer


def _abs_16bit(ctx: Context, value: str) -> str:
    """Write abs of a 16-bit integer on GPUs, hidden from LLVM: it would use abs.s16, which turns -32768 into 32768 when
    widened."""
    text = "{ .reg .b16 negative; neg.s16 negative, $1; max.s16 $0, $1, negative; }"
    return ctx.fn.value(f'call i16 asm "{text}", "=h,h"(i16 {value})')


def _neg(ctx: Context, e: Op, args: list[str]) -> str:
    if e.dtype.kind == "bfloat" and ctx.fn.has_bfloats:
        return negated_bfloat(ctx.fn, args[0], e.lanes)
    if e.dtype.is_float:
        return ctx.fn.value(f"fneg {_type(e)} {args[0]}")
    return ctx.fn.value(f"sub {_type(e)} {integer(0, e.dtype.bits, e.lanes)}, {args[0]}")


def _abs(ctx: Context, e: Op, args: list[str]) -> str:
    if e.dtype.is_float:
        return ctx.fn.intrinsic("fabs", _type(e), args[0])
    if not e.dtype.is_signed:
        return args[0]
    if ctx.threads and e.dtype.bits == 16:
        lanes = [_abs_16bit(ctx, pick(ctx.fn, args[0], "i16", e.lanes, k)) for k in range(e.lanes)]
        return lanes[0] if e.lanes == 1 else gather(ctx.fn, lanes, "i16")
    return ctx.fn.value(f"call {_type(e)} @llvm.abs.{mangled(_type(e))}({_type(e)} {args[0]}, i1 false)")


def _intrinsic(name: str) -> Writer:
    return lambda ctx, e, args: ctx.fn.intrinsic(name, _type(e), *args)


def _rsqrt(ctx: Context, e: Op, args: list[str]) -> str:
    root = ctx.fn.intrinsic("sqrt", _type(e), args[0])
    if e.dtype.kind == "bfloat":
        root = round_bfloat(ctx.fn, root, e.lanes)
    return ctx.fn.value(f"fdiv {_type(e)} {constant(e.dtype, e.lanes, 1.0)}, {root}")


def _fma(ctx: Context, e: Op, args: list[str]) -> str:
    if e.dtype.kind == "bfloat" and ctx.fn.has_bfloats:
        return by_bfloats(ctx.fn, "fma", args, e.lanes)
    if e.dtype.bits == 16 and (e.dtype.kind == "bfloat" or not ctx.module.target.native_half):
        return fma_16bit(ctx.fn, e.dtype, e.lanes, args)
    return ctx.fn.intrinsic("fma", _type(e), *args)


def _bitwise(name: str) -> Writer:
    return lambda ctx, e, args: ctx.fn.value(f"{name} {_type(e)} {args[0]}, {args[1]}")


def _not(ctx: Context, e: Op, args: list[str]) -> str:
    ones = constant(e.dtype, e.lanes, True) if e.dtype.is_bool else integer(-1, e.dtype.bits, e.lanes)
    return ctx.fn.value(f"xor {_type(e)} {args[0]}, {ones}")


def _shl(ctx: Context, e: Op, args: list[str]) -> str:
    zero = integer(0, e.dtype.bits, e.lanes)
    amount = _constant_shift(e)
    if amount is not None and not 0 <= amount < e.dtype.bits:
        return zero
    shifted = ctx.fn.value(f"shl {_type(e)} {args[0]}, {_valid_amount(ctx, e, args[1])}")
    return shifted if amount is not None else _where_in_range(ctx, e, args[1], shifted, zero)


def _shr(ctx: Context, e: Op, args: list[str]) -> str:
    t, bits = _type(e), e.dtype.bits
    amount = _constant_shift(e)
    if e.dtype.is_signed:
        last = integer(bits - 1, bits, e.lanes)
        if amount is None:  # an amount out of range, even a negative one, fills with the sign
            return ctx.fn.value(f"ashr {t} {args[0]}, {ctx.fn.intrinsic('umin', t, args[1], last)}")
        return ctx.fn.value(f"ashr {t} {args[0]}, {args[1] if 0 <= amount < bits else last}")
    zero = integer(0, bits, e.lanes)
    if amount is not None and amount >= bits:
        return zero
    shifted = ctx.fn.value(f"lshr {t} {args[0]}, {_valid_amount(ctx, e, args[1])}")
    return shifted if amount is not None else _where_in_range(ctx, e, args[1], shifted, zero)


def _valid_amount(ctx: Context, e: Op, amount: str) -> str:
    """A shift amount for LLVM, limited where LLVM would get it wrong.

    On GPUs, amounts have 32 bits, and LLVM truncates 64-bit amounts before it checks their range.
    """
    if not ctx.threads or e.dtype.bits < 64 or _constant_shift(e) is not None:
        return amount
    return ctx.fn.intrinsic("umin", _type(e), amount, integer(63, 64, e.lanes))


def _constant_shift(e: Op) -> int | None:
    amount = e.args[1]
    return int(amount.value) if isinstance(amount, Const) else None


def _where_in_range(ctx: Context, e: Op, amount: str, shifted: str, otherwise: str) -> str:
    t, bits = _type(e), e.dtype.bits
    valid = ctx.fn.value(f"icmp ult {t} {amount}, {integer(bits, bits, e.lanes)}")
    return select(ctx, t, e.lanes, valid, shifted, otherwise)


def select(ctx: Context, type_: str, lanes: int, condition: str, then: str, otherwise: str) -> str:
    """`then` in the lanes where `condition` holds, and `otherwise` in the others."""
    return ctx.fn.value(f"select {integer_type(1, lanes)} {condition}, {type_} {then}, {type_} {otherwise}")


def _select(ctx: Context, e: Op, args: list[str]) -> str:
    return select(ctx, _type(e), e.lanes, *args)


_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _predicate(op: str, t: DType) -> str:
    if t.is_float:
        return f"fcmp {_FLOAT_PREDICATES[op]}"
    if op in ("eq", "ne"):
        return f"icmp {op}"
    return f"icmp {'s' if t.is_signed else 'u'}{op}"


def _compare(ctx: Context, e: Op, args: list[str]) -> str:
    t = e.args[0].dtype
    return ctx.fn.value(f"{_predicate(e.op, t)} {value_type(t, e.lanes)} {args[0]}, {args[1]}")


WRITERS: dict[str, Writer] = {
    "add": _arithmetic("add", "fadd"),
    "sub": _arithmetic("sub", "fsub"),
    "mul": _arithmetic("mul", "fmul"),
    "div": _div,
    "floordiv": write_floordiv,
    "mod": write_mod,
    "min": _extreme("min", "and"),
    "max": _extreme("max", "or"),
    "neg": _neg,
    "abs": _abs,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _rsqrt,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _intrinsic("roundeven"),
    "trunc": _intrinsic("trunc"),
    "fma": _fma,
    "and": _bitwise("and"),
    "or": _bitwise("or"),
    "xor": _bitwise("xor"),
    "not": _not,
    "shl": _shl,
    "shr": _shr,
    "popcount": _intrinsic("ctpop"),
    "select": _select,
    **dict.fromkeys(COMPARISON, _compare),
    **FIXED_POINT_WRITERS,
}
_INEXACT = frozenset({"add", "sub", "mul", "div", "sqrt", "rsqrt", "mod", "absd"})
