"""Conversions between every two types, against the reference's meaning of them."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.codegen import casts
from pantile.codegen.compile import assembly
from pantile.expr.build import bits, cast, ramp
from pantile.expr.nodes import Expr, const, op, var
from pantile.expr.types import ALL, BFLOAT16, DType, dtype
from pantile.ir.nodes import Block, Program, Store
from pantile.reference.operations import convert, from_bfloat_bits, reinterpret
from pantile.target import named

from .kernels import Kernel, argument, dense, emitted, i64, loop
from .test_operations import N, same_values, samples, stored


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", ALL, ids=str)
def test_casts(source: DType, lanes: int) -> None:
    assert_converts(source, lanes)


@pytest.mark.parametrize("source", [t for t in ALL if t.is_float], ids=str)
def test_casts_where_conversions_do_not_saturate(source: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As x86's, on any machine."""
    monkeypatch.setattr(casts, "_converts_by_saturating", lambda ctx: False)
    assert_converts(source, 8)


def test_vectors_of_x86_are_converted_at_once() -> None:
    value = cast("int32", dense("float32", "a", i64(0), 16))
    body = Store("out", (ramp(i64(0), 1, 16),), value)
    program = Program("k", (argument("a", "float32"), argument("out", "int32", writable=True)), (), body)
    target = named("x86-64-v4")
    assert "vcvttss2si" not in assembly(emitted(program, target), target)


def test_two_lanes_that_are_limited_before() -> None:
    """LLVM aborts where AVX-512 is to saturate two lanes."""
    x = pt.Var("x")
    keep, img, f = pt.Input("keep", "int32", 1), pt.Input("img", "float32", 1), pt.Func("f")
    some = pt.select(keep[x] > 0, pt.cast("int16", pt.select(keep[x] > 0, img[x], 1.0)), pt.cast("int16", 0))
    f[x] = pt.rounding_mul_shift(some, pt.cast("int16", 1), 2)
    two = pt.Schedule(pt.on(f).vectorize("x", 2))
    assert "vpminsd" in pt.Pipeline(f, shape=img.shape, schedule=two, target="x86-64-v4", strict=True).asm()


def assert_converts(source: DType, lanes: int) -> None:
    values = samples(source, 7)
    base = var("x") * lanes
    loaded = dense(source, "a", base, lanes)
    stores = tuple(Store(str(to), (ramp(base, 1, lanes),), cast(to, loaded)) for to in ALL)
    buffers = (argument("a", source), *(argument(str(to), to, writable=True) for to in ALL))
    arrays = {"a": stored(values, source), **{str(to): np.zeros(N, to.numpy) for to in ALL}}
    assert Kernel(Program("casts", buffers, (), loop("x", N // lanes, Block(stores))))(arrays) == 0
    with np.errstate(all="ignore"):
        wrong = [to for to in ALL if not same_values(arrays[str(to)], convert(values, source, to), to)]
    assert not wrong


@pytest.mark.parametrize("to", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("inwards", [0, 3], ids=["range", "inside"])
def test_clamped_floats(to: str, inwards: int) -> None:
    t = dtype(to)
    low, high = t.min + inwards, t.max - inwards
    a = np.array([-1e9, -3.7, -0.5, 0.0, 1.5, 254.9, 1e9, np.nan], np.float32)
    out = np.zeros(8, t.numpy)
    v, f = dense("float32", "a", i64(0), 8), dtype("float32")
    clamped = op("min", op("max", op("round", v), const(low, f, 8)), const(high, f, 8))
    kernel = _one_store(cast(t, clamped), "float32", to)
    assert kernel({"a": a, "out": out}) == 0
    assert np.array_equal(out, convert(np.clip(np.rint(a), low, high), f, t))


@pytest.mark.parametrize("to", ["uint8", "int8", "uint16", "int16"])
def test_rounded_floats(to: str) -> None:
    t, f = dtype(to), dtype("float32")
    ends = [t.min - 0.5, t.min + 0.5, t.max - 0.5, t.max + 0.5]
    others = [-1e9, -0.5, 0.49999997, 1.5, 2.5, -2.5, 100.50001, 3e38, -np.inf, np.inf, np.nan, -0.0]
    a = np.array([*ends, *others], f.numpy)
    out = np.zeros(16, t.numpy)
    kernel = _one_store(cast(t, op("round", dense("float32", "a", i64(0), 16))), "float32", to, 16)
    assert kernel({"a": a, "out": out}) == 0
    with np.errstate(all="ignore"):
        assert np.array_equal(out, convert(np.rint(a), f, t))


def _one_store(value: Expr, source: str, to: str, lanes: int = 8) -> Kernel:
    body = Store("out", (ramp(i64(0), 1, lanes),), value)
    return Kernel(Program("k", (argument("a", source), argument("out", to, writable=True)), (), body))


@pytest.mark.parametrize(
    ("source", "to"),
    [("float32", "uint32"), ("int64", "float64"), ("float16", "int16"), ("bfloat16", "uint16"), ("uint16", "bfloat16")],
)
def test_bits(source: str, to: str) -> None:
    a, out = np.arange(1, 9).astype(dtype(source).numpy), np.zeros(8, dtype(to).numpy)
    kernel = _one_store(bits(to, dense(source, "a", i64(0), 8)), source, to)
    assert kernel({"a": a, "out": out}) == 0
    held = from_bfloat_bits(a) if dtype(source) == BFLOAT16 else a
    want = reinterpret(held, dtype(source), dtype(to))
    assert same_values(out, want, dtype(to))


def test_a_narrowed_ramp_wraps() -> None:
    a, out = np.zeros(1, np.uint8), np.zeros(8, np.uint8)
    kernel = _one_store(cast("uint8", ramp(i64(250), 3, 8)), "uint8", "uint8")
    assert kernel({"a": a, "out": out}) == 0
    assert out.tolist() == [(250 + 3 * i) % 256 for i in range(8)]
