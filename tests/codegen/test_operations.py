"""Every operation, on every type it takes, scalar and vector, against the reference's meaning of it."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.expr.build import ramp
from pantile.expr.nodes import ARITHMETIC, BITWISE, COMPARISON, FIXED_POINT, Expr, Op, const, op, var
from pantile.expr.types import ALL, BFLOAT16, BOOL, DType
from pantile.ir.nodes import Block, Program, Store
from pantile.reference.operations import apply, from_bfloat_bits, to_bfloat_bits

from .kernels import Array, Kernel, argument, dense, i64, loop

N = 96
EXACT_FLOAT = ("div", "sqrt", "rsqrt", "floor", "ceil", "round", "trunc", "fma")
SHIFTS = (0, 1, 7, 8)


def operations(t: DType) -> list[str]:
    if t.is_bool:
        return ["and", "or", "xor", "not", "min", "max", *COMPARISON]
    if t.is_float:
        return [*ARITHMETIC, *EXACT_FLOAT, *COMPARISON, "absd"]
    return [*ARITHMETIC, *BITWISE, *COMPARISON, *FIXED_POINT]


def samples(t: DType, seed: int) -> Array:
    """Values of all sizes, with the extreme ones meeting each other."""
    rng = np.random.default_rng(seed)
    if t.is_bool:
        return rng.integers(0, 2, N).astype(bool)
    if t.is_int:
        values = rng.integers(t.min, t.max, N, dtype=t.numpy, endpoint=True)
        special = np.array([t.min, t.max, 0, 1, t.max - 1, 3], t.numpy)
        if t.is_signed:
            special[-1] = -1
    else:
        kept = np.float32 if t.kind == "bfloat" else t.numpy
        values = (rng.standard_normal(N) * 10.0 ** rng.integers(-2, 3, N)).astype(kept)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 2.5], kept)
    values[rng.permutation(N)[:36]] = np.repeat(special, 6)
    small = rng.permutation(N)[:20]
    values[small] = (np.arange(20) % 10).astype(values.dtype)
    return from_bfloat_bits(to_bfloat_bits(values)) if t.kind == "bfloat" else values


def expression(name: str, t: DType, args: list[Expr], shift: int) -> Op:
    if name in ("mul_shift", "rounding_mul_shift"):
        return op(name, args[0], args[1], const(shift, t, args[0].lanes))
    count = {**ARITHMETIC, **BITWISE, **COMPARISON, **FIXED_POINT}.get(name, 1)
    count = {"div": 2, "fma": 3}.get(name, count)
    return op(name, *args[:count])


def expected(e: Op, t: DType, values: list[Array], shift: int) -> Array:
    given = values[: len(e.args)]
    if e.op in ("mul_shift", "rounding_mul_shift"):
        given = [*values[:2], np.full(N, shift, t.numpy)]
    with np.errstate(all="ignore"):
        return apply(e.op, t, *given)


def stored(a: Array, t: DType) -> Array:
    return to_bfloat_bits(a) if t.kind == "bfloat" else a


def same_values(got: Array, want: Array, t: DType) -> bool:
    if t.kind == "bfloat":
        got = from_bfloat_bits(got)
    return bool(np.array_equal(got, want, equal_nan=t.is_float))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("t", ALL, ids=str)
def test_operations(t: DType, lanes: int) -> None:
    values = [samples(t, seed) for seed in range(3)]
    base = var("x") * lanes
    args: list[Expr] = [dense(t, f"in{k}", base, lanes) for k in range(3)]
    cases = [(n, s) for n in operations(t) for s in (SHIFTS if "mul_shift" in n else (0,))]
    cases = [(n, min(s, 2 * t.bits)) for n, s in cases]
    exprs = [expression(n, t, args, s) for n, s in cases]
    stores = tuple(Store(f"out{k}", (ramp(base, 1, lanes),), e) for k, e in enumerate(exprs))
    buffers = [argument(f"in{k}", t) for k in range(3)]
    buffers += [argument(f"out{k}", e.dtype, writable=True) for k, e in enumerate(exprs)]
    kernel = Kernel(Program("ops", tuple(buffers), (), loop("x", N // lanes, Block(stores))), strict=True)
    arrays = {f"in{k}": stored(v, t) for k, v in enumerate(values)}
    arrays.update({f"out{k}": np.zeros(N, e.dtype.numpy) for k, e in enumerate(exprs)})
    assert kernel(arrays) == 0
    wrong = [
        (n, s)
        for k, ((n, s), e) in enumerate(zip(cases, exprs, strict=True))
        if not same_values(arrays[f"out{k}"], expected(e, t, values, s), e.dtype)
    ]
    assert not wrong


CONSTANTS = (0, 1, 2, 3, 7, 8, 10, 100)


@pytest.mark.parametrize("t", [t for t in ALL if t.is_int], ids=str)
def test_division_and_shifts_by_constants(t: DType) -> None:
    a = samples(t, 1)
    constants = [*CONSTANTS, t.max, *((-1, -2, -3, t.min) if t.is_signed else ())]
    cases = [(name, c) for name in ("floordiv", "mod") for c in constants]
    cases += [(name, c) for name in ("shl", "shr") for c in (0, 1, t.bits - 1, t.bits, 100)]
    base = var("x") * 8
    stores = tuple(
        Store(f"out{k}", (ramp(base, 1, 8),), op(name, dense(t, "a", base, 8), const(c, t, 8)))
        for k, (name, c) in enumerate(cases)
    )
    buffers = (argument("a", t), *(argument(f"out{k}", t, writable=True) for k in range(len(cases))))
    arrays = {"a": a, **{f"out{k}": np.zeros(N, t.numpy) for k in range(len(cases))}}
    assert Kernel(Program("constants", buffers, (), loop("x", N // 8, Block(stores))))(arrays) == 0
    with np.errstate(all="ignore"):
        wrong = [
            case
            for k, case in enumerate(cases)
            if not np.array_equal(arrays[f"out{k}"], apply(case[0], t, a, np.full(N, case[1], t.numpy)))
        ]
    assert not wrong


def test_select_and_within() -> None:
    a, out = np.arange(-8, 8, dtype=np.int16), np.zeros(16, np.int16)
    value = dense("int16", "a", i64(0), 16)
    zero = const(0, value.dtype, 16)
    e = op("select", op("lt", value, zero), op("neg", value), op("within", value, zero, zero))
    body = Store("out", (ramp(i64(0), 1, 16),), e)
    kernel = Kernel(Program("k", (argument("a", "int16"), argument("out", "int16", writable=True)), (), body))
    assert kernel({"a": a, "out": out}) == 0
    assert np.array_equal(out, abs(a))


def test_ordinary_arithmetic_may_contract_and_strict_may_not() -> None:
    from pantile.codegen.emit import emit
    from pantile.target import host

    v = [dense("float32", n, i64(0), 4) for n in "abc"]
    body = Store("out", (ramp(i64(0), 1, 4),), v[0] * v[1] + v[2])
    buffers = (*(argument(n, "float32") for n in "abc"), argument("out", "float32", writable=True))
    program = Program("k", buffers, (), body)
    assert "fadd contract" in emit(program, host())
    assert "contract" not in emit(program, host(), strict=True)


def test_conditions_are_bytes_in_memory() -> None:
    a, out = np.array([0, 1, 2, 255], np.uint8).view(bool), np.zeros(4, bool)
    body = Store("out", (ramp(i64(0), 1, 4),), op("not", dense(BOOL, "a", i64(0), 4)))
    Kernel(Program("k", (argument("a", BOOL), argument("out", BOOL, writable=True)), (), body))({"a": a, "out": out})
    assert out.view(np.uint8).tolist() == [1, 0, 0, 0]


def test_bfloat_math_rounds_after_each_operation() -> None:
    a = to_bfloat_bits(np.array([1.0, 257.0, 0.1, 3.0], np.float32))
    out = np.zeros(4, np.uint16)
    v = dense(BFLOAT16, "a", i64(0), 4)
    e = op("sub", op("add", v, const(256.0, BFLOAT16, 4)), const(256.0, BFLOAT16, 4))
    body = Store("out", (ramp(i64(0), 1, 4),), e)
    Kernel(Program("k", (argument("a", BFLOAT16), argument("out", BFLOAT16, writable=True)), (), body))(
        {"a": a, "out": out}
    )
    assert from_bfloat_bits(out).tolist() == [0.0, 256.0, 0.0, 4.0]
