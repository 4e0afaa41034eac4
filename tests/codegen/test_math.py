"""The expanded functions against a wider precision, within the bounds that their documentation states."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest

import pantile.codegen.math
from pantile.codegen.compile import compile_object
from pantile.codegen.emit import emit
from pantile.codegen.engine import LoadedCode, load
from pantile.codegen.math import TRANSCENDENTAL, expand
from pantile.errors import InternalError
from pantile.expr.build import ramp
from pantile.expr.nodes import OPS, Cast, Const, Expr, Load, Op, Var, const, op, var
from pantile.expr.types import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INDEX, DType
from pantile.expr.visit import walk
from pantile.ir.nodes import BufferArg, For, Program, Store
from pantile.target import host
from pantile.target.kinds import Kind

from .interpret import BASIC, Array, evaluate

Function = Callable[..., Array]
Run = Callable[..., Array]
WIDE: dict[DType, type[np.floating[Any]]] = {FLOAT32: np.float64, FLOAT64: np.longdouble}


def erf(x: Array) -> Array:
    """By C in float64; beyond, 2 x exp(-x**2) / sqrt(pi) times the sum of (2 x**2)**n / (1 * 3 * ... * (2n+1))."""
    if x.dtype.itemsize <= 8:
        return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)
    if np.any(np.abs(x) > 7):  # 1 in float64 before that
        return np.where(np.abs(x) > 7, np.sign(x), erf(np.where(np.abs(x) > 7, 0, x)))
    t = np.abs(x)
    term = np.ones_like(t)
    total = term.copy()
    for n in range(1, 200):
        term = term * (2 * t * t / (2 * n + 1))
        total = total + term
    half_pi = np.arctan2(x.dtype.type(1), x.dtype.type(0))
    return np.asarray(np.copysign(t * np.exp(-t * t) * total * np.sqrt(2 / half_pi), x))


REFERENCE: dict[str, Function] = {
    "exp": np.exp, "log": np.log, "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "asin": np.arcsin, "acos": np.arccos, "erf": erf, "cbrt": np.cbrt, "atan2": np.arctan2,
}  # fmt: skip
LARGEST_ANGLE = 1e12
PERIODIC = ("sin", "cos", "tan")
LANES = 8


def documented() -> dict[tuple[str, DType], tuple[float, int]]:
    """Function, type -> bound in ulp, operations; read from the table in the documentation."""
    rows = re.findall(
        r"^    (\w+) +([\d.]+) +([\d.]+) +(\d+) +(\d+)$", pantile.codegen.math.__doc__ or "", re.MULTILINE
    )
    single = {(name, FLOAT32): (float(bound), int(count)) for name, bound, _, count, _ in rows}
    return single | {(name, FLOAT64): (float(bound), int(count)) for name, _, bound, _, count in rows}


DOCUMENTED = documented()
EVERY = pytest.mark.parametrize(("name", "dtype"), [pytest.param(n, t, id=f"{n}-{t}") for n, t in DOCUMENTED])


# Two ways to run a function over arrays


def call(name: str, t: DType, lanes: int = 1) -> Op:
    return op(name, *(Var(t, lanes, n) for n in ("a", "b")[: OPS[name]]))


def interpreted(contract: bool) -> Run:
    def run(name: str, t: DType, *args: Array) -> Array:
        e = expand(call(name, t))
        chunks = [range(i, min(i + 65536, len(args[0]))) for i in range(0, len(args[0]), 65536)]
        pieces = ({n: a[c.start : c.stop] for n, a in zip("ab", args, strict=False)} for c in chunks)
        return np.concatenate([evaluate(e, piece, contract) for piece in pieces])

    return run


@cache
def kernel(name: str, t: DType, strict: bool) -> LoadedCode:
    """out[i] = name(a[i], b[i]), in vectors."""
    names = ("a", "b")[: OPS[name]]
    index = ramp(var("i") * LANES, 1, LANES)
    value = op(name, *(Load(t, LANES, n, (index,)) for n in names))
    loop = For("i", const(0, INDEX), var("out.shape.0") // LANES, Kind.SERIAL, Store("out", (index,), value))
    buffers = tuple(BufferArg(n, t, 1, n == "out", (1,)) for n in (*names, "out"))
    text = emit(Program("kernel", buffers, (), loop), host(), strict=strict)
    return load([compile_object(text, host())], "kernel", {})


def compiled(strict: bool) -> Run:
    def run(name: str, t: DType, *args: Array) -> Array:
        size = -(-len(args[0]) // LANES) * LANES
        arrays = [np.resize(a, size) for a in args] + [np.empty(size, t.numpy)]
        slots = [s for a in arrays for s in (a.ctypes.data, size, 1)] + [0]
        entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(kernel(name, t, strict).address)
        assert entry((ctypes.c_int64 * len(slots))(*slots), 1) == 0
        return arrays[-1][: len(args[0])]

    return run


RUNS = {
    "interpreted": interpreted(False),
    "contracted": interpreted(True),
    "compiled": compiled(False),
    "strict": compiled(True),
}
runs = pytest.mark.parametrize("how", RUNS)


# Samples


def patterns(t: DType, count: int, seed: int = 0) -> Array:
    """Bit patterns over the whole format, evenly spaced from a random start."""
    step = (1 << t.bits) // count | 1
    start = int(np.random.default_rng(seed).integers(step))
    return (start + np.arange(count, dtype=np.uint64) * np.uint64(step)).astype(f"uint{t.bits}").view(t.numpy)


def neighbourhoods(t: DType) -> Array:
    """Numbers around those where something changes."""
    info = np.finfo(t.numpy)
    halves = np.arange(-24, 25) * (np.pi / 4)
    logs = np.log(np.array([info.max, info.smallest_normal, info.smallest_subnormal, 2.0, 0.5], np.longdouble))
    marks = np.concatenate(
        [halves, logs, 2.0 ** np.arange(-5, 6), [2 / 3, 4 / 3, 0.5**0.5, 2**0.5, 10, 20, info.smallest_normal]]
    ).astype(t.numpy)
    marks = np.concatenate([marks, -marks, np.array([0.0, -0.0], t.numpy)])
    steps = np.arange(-40, 41)
    return (marks.view(f"int{t.bits}")[:, None] + steps).ravel().view(t.numpy)


def unary_samples(t: DType, count: int) -> Array:
    rng = np.random.default_rng(1)
    usual = [rng.uniform(-b, b, count // 2) for b in (1.0, 10.0, 750.0, 1e9)]
    return np.concatenate([patterns(t, count), neighbourhoods(t), *usual]).astype(t.numpy)


def binary_samples(t: DType, count: int) -> tuple[Array, Array]:
    """Any two numbers; points of a square; bases near 1 with exponents that use the whole range of results."""
    rng = np.random.default_rng(2)
    any_two = [rng.permutation(patterns(t, count, seed)) for seed in (1, 2)]
    square = rng.uniform(-3, 3, (2, count))
    bases = np.concatenate([rng.uniform(0.5, 2, count), np.abs(any_two[0])]).astype(t.numpy)
    info = np.finfo(t.numpy)
    with np.errstate(all="ignore"):
        logs = np.log2(bases.astype(np.float64))
        exponents = rng.uniform(info.minexp - info.nmant - 2, info.maxexp, 2 * count) / logs
        return (
            np.concatenate([any_two[0], square[0], bases]).astype(t.numpy),
            np.concatenate([any_two[1], square[1], exponents]).astype(t.numpy),
        )


def samples(name: str, t: DType, count: int) -> tuple[Array, ...]:
    if OPS[name] == 2:
        return binary_samples(t, count)
    x = unary_samples(t, count)
    return (x[np.abs(x) <= LARGEST_ANGLE] if name in PERIODIC else x,)


def ulps(got: Array, exact: Array) -> Array:
    """Distance in units of the last place of the exact result; infinity counts as the number after the largest."""
    info, wide = np.finfo(got.dtype), exact.dtype.type
    beyond = wide(2) ** int(info.maxexp)
    exact_in_range = np.clip(exact, -beyond, beyond)
    exponent = np.clip(np.frexp(exact_in_range)[1] - 1, info.minexp, info.maxexp - 1)
    error = np.abs(np.clip(got.astype(wide), -beyond, beyond) - exact_in_range) / np.ldexp(
        wide(1), exponent - info.nmant
    )
    both_nan = np.isnan(got) & np.isnan(exact)
    return np.where(both_nan, 0, np.where(np.isnan(error), np.inf, error))


def exact_result(name: str, t: DType, args: tuple[Array, ...]) -> Array:
    return REFERENCE[name](*(a.astype(WIDE[t]) for a in args))


@lru_cache(maxsize=1)
def samples_and_exact_result(name: str, t: DType) -> tuple[tuple[Array, ...], Array]:
    """Kept for all ways to run the function."""
    args = samples(name, t, 20_000 if t == FLOAT64 else 100_000)
    return args, exact_result(name, t, args)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


# Tests


def test_every_function_is_documented() -> None:
    assert {name for name, _ in DOCUMENTED} == TRANSCENDENTAL == set(REFERENCE)


@runs
@EVERY
def test_error_stays_within_the_documented_bound(name: str, dtype: DType, how: str) -> None:
    if np.finfo(WIDE[dtype]).nmant < dtype.bits - 4:
        pytest.skip("no wider type to compare with")
    args, exact = samples_and_exact_result(name, dtype)
    error = ulps(RUNS[how](name, dtype, *args), exact)
    worst = int(np.argmax(error))
    assert error[worst] <= DOCUMENTED[name, dtype][0], [a[worst] for a in args]


@pytest.mark.parametrize("name", sorted(n for n in TRANSCENDENTAL if OPS[n] == 1))
def test_error_of_compiled_code_over_every_997th_float32(name: str) -> None:
    x = np.arange(0, 1 << 32, 997, dtype=np.uint32).view(np.float32)
    x = x[np.abs(x) <= LARGEST_ANGLE] if name in PERIODIC else x
    error = ulps(RUNS["compiled"](name, FLOAT32, x), exact_result(name, FLOAT32, (x,)))
    assert error.max() <= DOCUMENTED[name, FLOAT32][0], x[np.argmax(error)]


SPECIAL = [0.0, 1.0, 2.0, 3.0, 0.5, 0.3, 2.0**23 + 1, 2.0**24 + 2, 1e-40, 1e30, np.inf]


@runs
@EVERY
def test_special_values_are_those_of_numpy(name: str, dtype: DType, how: str) -> None:
    numbers = np.array([*SPECIAL, *(-s for s in SPECIAL), np.nan], dtype.numpy)
    args = tuple(v.ravel() for v in np.meshgrid(*[numbers] * OPS[name]))
    if name in PERIODIC:
        args = (args[0][~(np.abs(args[0]) > LARGEST_ANGLE) | np.isinf(args[0])],)
    got, expected = RUNS[how](name, dtype, *args), REFERENCE[name](*args)
    special = ~np.isfinite(expected) | (np.abs(expected) <= 1e-30) | (np.abs(expected) == 1)
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
    near = np.abs(got - expected) <= 4 * np.spacing(np.abs(expected))
    assert np.all(same | near & ~(expected == 0)), [a[special & ~same] for a in args]


@runs
@pytest.mark.parametrize("t", [FLOAT32, FLOAT64], ids=str)
def test_waves_stay_between_minus_one_and_one_for_any_argument(t: DType, how: str) -> None:
    x = unary_samples(t, 100_000)
    x = x[np.isfinite(x)]
    for name in ("sin", "cos", "tanh"):
        assert np.all(np.abs(RUNS[how](name, t, x)) <= 1)
    assert not np.any(np.isnan(RUNS[how]("tan", t, x)))


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 4.0])
def test_small_constant_powers_are_products(exponent: float) -> None:
    x = unary_samples(FLOAT32, 10_000)
    product = expand(op("pow", Var(FLOAT32, 1, "a"), Const(FLOAT32, 1, exponent)))
    assert all(e.op == "mul" for e in walk(product) if isinstance(e, Op))
    error = ulps(evaluate(product, {"a": x}), np.power(x.astype(np.float64), exponent))
    assert error.max() <= DOCUMENTED["pow", FLOAT32][0]


@pytest.mark.parametrize("name", sorted(TRANSCENDENTAL))
def test_float16_is_computed_in_float32_and_rounded_once(name: str) -> None:
    args = tuple(a.astype(np.float16) for a in samples(name, FLOAT32, 20_000))
    for how in ("compiled", "strict"):
        got = RUNS[how](name, FLOAT16, *args)
        exact = REFERENCE[name](*(a.astype(np.float64) for a in args))
        assert ulps(got, exact).max() <= 0.51


@pytest.mark.parametrize("name", sorted(TRANSCENDENTAL))
def test_bfloat16_is_computed_in_float32_and_rounded_once(name: str) -> None:
    e = expand(call(name, BFLOAT16, LANES))
    assert isinstance(e, Cast)
    assert e.dtype == BFLOAT16
    assert e.value.dtype == FLOAT32


def operations(e: Expr, t: DType) -> int:
    """Vector operations: 64-bit ones of a float32 function count twice, reinterpreting and negating are free."""

    def cost(node: Expr) -> int:
        if not (isinstance(node, Cast) or (isinstance(node, Op) and node.op != "neg")):
            return 0
        operands = node.args if isinstance(node, Op) else (node.value,)
        return max(n.dtype.bits for n in (node, *operands)) // t.bits or 1

    return sum(map(cost, walk(e)))


@EVERY
def test_documented_operation_count(name: str, dtype: DType) -> None:
    assert operations(expand(call(name, dtype)), dtype) == DOCUMENTED[name, dtype][1]


@EVERY
@pytest.mark.parametrize("lanes", [1, 4, 7])
def test_result_is_basic_and_keeps_type_and_lanes(name: str, dtype: DType, lanes: int) -> None:
    e = expand(call(name, dtype, lanes))
    assert (e.dtype, e.lanes) == (dtype, lanes)
    assert {n.op for n in walk(e) if isinstance(n, Op)} <= BASIC.keys()
    assert {n.lanes for n in walk(e)} == {lanes}


def test_anything_else_is_refused() -> None:
    with pytest.raises(InternalError, match=r"sqrt\(a\) is not a transcendental function"):
        expand(op("sqrt", Var(FLOAT32, 1, "a")))
