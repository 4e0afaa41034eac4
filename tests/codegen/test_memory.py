"""Loads and stores of every shape, at the very ends of their buffers."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

import pantile as pt
from pantile.codegen.emit import emit
from pantile.expr.build import broadcast, cast, ramp
from pantile.expr.nodes import Broadcast, Expr, Load, Op, Ramp, Shuffle, const, op, var
from pantile.expr.types import INDEX, UINT8, dtype
from pantile.ir.nodes import Block, Manner, Prefetch, Program, Stmt, Store
from pantile.target import CPUS, host

from .kernels import Array, argument, dense, i64, run

Y, X = pt.vars("y x")
TYPES = ["uint8", "int16", "float32", "float64", "bool", "float16"]


def before_unmapped_page(a: Array) -> Array:
    """A copy that ends where memory that must not be touched begins."""
    page = mmap.PAGESIZE
    size = -(-a.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    raw = np.frombuffer(memory, np.uint8)
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(raw.ctypes.data + size), ctypes.c_size_t(page), 0)
    result = raw[size - a.nbytes : size].view(a.dtype)
    result[:] = a
    return result


def values(t: str, count: int) -> Array:
    return (np.arange(count) * 7 % 100).astype(t) if t != "bool" else np.arange(count) % 3 == 0


def store_all(buffer: str, value: Expr) -> Stmt:
    return Store(buffer, (ramp(i64(0), 1, value.lanes),), value)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("stride", [-2, -1, 0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("t", TYPES)
def test_affine_loads(t: str, stride: int, lanes: int) -> None:
    count = abs(stride) * (lanes - 1) + 1
    first = count - 1 if stride < 0 else 0
    a, out = before_unmapped_page(values(t, count)), np.zeros(lanes, t)
    load = Load(dtype(t), lanes, "a", (ramp(i64(first), stride, lanes),))
    assert run(store_all("out", load), {"a": a, "out": out}, ["out"]) == 0
    assert np.array_equal(out, a[first + stride * np.arange(lanes)])


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_neighbouring_strided_loads_share_one_wide_load(stride: int) -> None:
    lanes = 8
    a = before_unmapped_page(values("uint8", stride * lanes))
    outs = {f"out{k}": np.zeros(lanes, np.uint8) for k in range(stride)}
    stores = tuple(store_all(f"out{k}", Load(UINT8, lanes, "a", (ramp(i64(k), stride, lanes),))) for k in range(stride))
    assert run(Block(stores), {"a": a, **outs}, list(outs)) == 0
    assert all(np.array_equal(outs[f"out{k}"], a[k::stride]) for k in range(stride))
    buffers = (argument("a", UINT8), *(argument(n, UINT8, writable=True) for n in outs))
    text = emit(Program("k", buffers, (), Block(stores)), host())
    assert text.count(f"load <{stride * lanes} x i8>") == 1


@pytest.mark.parametrize("stride", [5, 16, None], ids=str)
@pytest.mark.parametrize(("t", "lanes", "columns"), [("float32", 4, 4), ("float64", 4, 2), ("uint8", 16, 8)])
def test_neighbouring_columns_are_rows_transposed(t: str, lanes: int, columns: int, stride: int | None) -> None:
    """In squares as large as the columns and the target's registers allow."""
    step = stride or 11
    a = before_unmapped_page(values(t, step * (lanes - 1) + columns))
    outs = {f"out{k}": np.zeros(lanes, t) for k in range(columns)}
    apart = i64(step) if stride else var("a.shape.0") - (a.size - step)

    def column(k: int) -> Load:
        return Load(dtype(t), lanes, "a", (Ramp(INDEX, lanes, i64(k), apart),))

    stores = tuple(store_all(f"out{k}", column(k)) for k in range(columns))
    assert run(Block(stores), {"a": a, **outs}, list(outs)) == 0
    assert all(np.array_equal(outs[f"out{k}"], a[k + step * np.arange(lanes)]) for k in range(columns))
    buffers = (argument("a", dtype(t)), *(argument(n, dtype(t), writable=True) for n in outs))
    text = emit(Program("k", buffers, (), Block(stores)), CPUS["aarch64"])
    assert text.count(f"load <{columns} x ") == lanes


def test_gather_with_data_dependent_index() -> None:
    table, a = np.arange(256, dtype=np.uint16) ** 2, np.array([3, 255, 0, 7, 9, 200, 1, 1], np.uint8)
    out = np.zeros(8, np.uint16)
    index = cast(INDEX, dense("uint8", "a", i64(0), 8))
    e = Load(dtype("uint16"), 8, "table", (index,))
    assert run(store_all("out", e), {"table": table, "a": a, "out": out}, ["out"]) == 0
    assert np.array_equal(out, table[a])


def test_gather_adds_a_ramp_to_data() -> None:
    a, table, out = np.array([3, 2, 0, 7], np.int32), np.arange(64.0), np.zeros(4)
    index = cast(INDEX, dense("int32", "a", i64(0), 4)) + Ramp(INDEX, 4, i64(8), i64(10))
    assert (
        run(store_all("out", Load(dtype("float64"), 4, "t", (index,))), {"a": a, "t": table, "out": out}, ["out"]) == 0
    )
    assert np.array_equal(out, table[a + 8 + 10 * np.arange(4)])


@pytest.mark.parametrize(
    ("t", "lanes", "offsets", "loads"),
    [
        ("float32", 8, [0, 1, 2, 3], {"<4 x float>": 8}),
        ("float32", 4, [5, 0, 2, 1], {"<2 x float>": 4, "float": 8}),
        ("float64", 4, [0, 1, 2, 3], {"<2 x double>": 8}),
        ("int32", 4, [0, 2, 4], {"i32": 12}),
        ("uint8", 4, [0, 1], {"i8": 8}),
        ("uint8", 8, [0, 1, 2], {"i16": 8, "i8": 8}),
        ("int8", 4, [0, 2, 1, 3], {"i32": 4, "i8": 0}),
        ("uint8", 2, [4, 0, 1, 2], {"i16": 2, "i8": 4}),
        ("uint8", 3, [0, 1, 2], {"i8": 9}),
        ("bool", 4, [0, 1, 2], {"i8": 12}),
        ("float32", 3, [0, 1], {"float": 6}),
    ],
)
def test_gathers_of_neighbours_share_loads(t: str, lanes: int, offsets: list[int], loads: dict[str, int]) -> None:
    where = np.arange(lanes, dtype=np.int32)[::-1] * 3
    table = before_unmapped_page(values(t, 1 + 3 * (lanes - 1) + max(offsets) + 1))
    outs = {f"out{k}": np.zeros(lanes, t) for k in offsets}
    base = cast(INDEX, dense("int32", "where", i64(0), lanes)) + broadcast(i64(1), lanes)

    def store(k: int) -> Stmt:
        return store_all(f"out{k}", Load(dtype(t), lanes, "table", (base + broadcast(i64(k), lanes),)))

    body = Block(tuple(map(store, offsets)))
    assert run(body, {"where": where, "table": table, **outs}, list(outs)) == 0
    assert all(np.array_equal(outs[f"out{k}"], table[where + 1 + k]) for k in offsets)
    arguments = [argument("where", dtype("int32")), argument("table", dtype(t))]
    arguments += [argument(n, dtype(t), writable=True) for n in outs]
    text = emit(Program("k", tuple(arguments), (), body), CPUS["x86-64-v4"])  # which has no fast instruction for it
    assert {load: text.count(f"load {load}, ptr") for load in loads} == loads


def test_gather_adds_a_shuffled_ramp_to_data() -> None:
    a, table, out = np.array([3, 2, 0, 7], np.int32), np.arange(64.0), np.zeros(4)
    places = Shuffle(INDEX, 4, (Ramp(INDEX, 3, i64(8), i64(10)), i64(50)), (0, 2, 1, 3))
    index = places + cast(INDEX, dense("int32", "a", i64(0), 4)) - Broadcast(INDEX, 4, i64(2))
    assert (
        run(store_all("out", Load(dtype("float64"), 4, "t", (index,))), {"a": a, "t": table, "out": out}, ["out"]) == 0
    )
    assert np.array_equal(out, table[a + np.array([6, 26, 16, 48])])


def test_ramp_with_a_run_time_stride() -> None:
    a, out = np.arange(40, dtype=np.int32), np.zeros(4, np.int32)
    stride = var("a.shape.0") // 8
    shifted = Op(INDEX, 4, "add", (Ramp(INDEX, 4, i64(1), stride), Broadcast(INDEX, 4, stride)))
    assert run(store_all("out", Load(dtype("int32"), 4, "a", (shifted,))), {"a": a, "out": out}, ["out"]) == 0
    assert out.tolist() == [6, 11, 16, 21]


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("stride", [-1, 1, 2, 3])
@pytest.mark.parametrize("t", ["uint8", "float32", "bool"])
def test_masked_loads_and_stores_touch_only_their_lanes(t: str, stride: int, lanes: int) -> None:
    on = lanes // 2
    count = abs(stride) * (on - 1) + 1
    first = count - 1 if stride < 0 else 0
    a, out = before_unmapped_page(values(t, count)), before_unmapped_page(values(t, count)[::-1].copy())
    kept = out.copy()
    copy = np.ones(lanes, t)
    index = ramp(i64(first), stride, lanes)
    mask = op("lt", Ramp(INDEX, lanes, i64(0), i64(1)), const(on, INDEX, lanes))
    load = Load(dtype(t), lanes, "a", (index,), mask)
    body = Block((Store("out", (index,), load, mask), store_all("copy", load)))
    assert run(body, {"a": a, "out": out, "copy": copy}, ["out", "copy"]) == 0
    touched = first + stride * np.arange(on)
    kept[touched] = a[touched]
    assert np.array_equal(out, kept)
    assert np.array_equal(copy, np.concatenate([a[touched], np.zeros(lanes - on, t)]))


@pytest.mark.parametrize("condition", [True, False])
def test_masked_scalar(condition: bool) -> None:
    a, out = np.array([5.0]), np.array([9.0])
    mask = op("gt", dense("float64", "a", i64(0)), const(1.0 if condition else 7.0, dtype("float64")))
    body = Store("out", (i64(0),), Load(dtype("float64"), 1, "a", (i64(0),), mask), mask)
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    assert out[0] == (5.0 if condition else 9.0)


@pytest.mark.parametrize("stride", [-1, 1, 2, 3, 5])
def test_stores(stride: int) -> None:
    a, out = values("int16", 8), np.zeros(abs(stride) * 7 + 1, np.int16)
    first = 7 if stride < 0 else 0
    body = Store("out", (ramp(i64(first), stride, 8),), dense("int16", "a", i64(0), 8))
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    want = np.zeros_like(out)
    want[first + stride * np.arange(8)] = a
    assert np.array_equal(out, want)


def test_scatter_keeps_the_last_of_equal_lanes() -> None:
    where, out = np.array([2, 0, 2, 2], np.int32), np.zeros(3, np.int32)
    body = Store("out", (cast(INDEX, dense("int32", "where", i64(0), 4)),), cast("int32", ramp(i64(10), 1, 4)))
    assert run(body, {"where": where, "out": out}, ["out"]) == 0
    assert out.tolist() == [11, 0, 13]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_interleaving_shuffle(count: int) -> None:
    arrays = {f"a{k}": values("uint8", 16) + k for k in range(count)}
    out = np.zeros(16 * count, np.uint8)
    vectors = tuple(dense("uint8", n, i64(0), 16) for n in arrays)
    order = tuple(k * 16 + i for i in range(16) for k in range(count))
    body = store_all("out", Shuffle(UINT8, 16 * count, vectors, order))
    assert run(body, {**arrays, "out": out}, ["out"]) == 0
    assert np.array_equal(out, np.stack(list(arrays.values()), axis=1).ravel())


def test_shuffle_of_scalars_and_unequal_vectors() -> None:
    a, out = values("int32", 6), np.zeros(4, np.int32)
    one, three = dense("int32", "a", i64(0)), dense("int32", "a", i64(1), 4)
    body = store_all("out", Shuffle(dtype("int32"), 4, (one, three, one), (0, 4, 1, 5)))
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    assert out.tolist() == [a[0], a[4], a[1], a[0]]


def test_shuffle_of_scalars_to_a_vector() -> None:
    a, out = values("int32", 6), np.zeros(3, np.int32)
    scalars = tuple(dense("int32", "a", i64(k)) for k in range(3))
    assert run(store_all("out", Shuffle(dtype("int32"), 3, scalars, (2, 1, 0))), {"a": a, "out": out}, ["out"]) == 0
    assert out.tolist() == [a[2], a[1], a[0]]


def test_a_store_ends_what_a_load_knew() -> None:
    a = np.array([1, 0, 0], np.int32)
    one = dense("int32", "a", i64(0))
    body = Block((Store("a", (i64(1),), one), Store("a", (i64(0),), one + 5), Store("a", (i64(2),), one)))
    assert run(body, {"a": a}, ["a"]) == 0
    assert a.tolist() == [6, 1, 6]


def test_nontemporal_and_prefetch() -> None:
    a, out = values("float32", 8), np.zeros(8, np.float32)
    store = Store("out", (ramp(i64(0), 1, 8),), dense("float32", "a", i64(0), 8), None, Manner.NONTEMPORAL)
    body = Block((Prefetch("a", (i64(100),)), Prefetch("a", (ramp(i64(100), 1, 4),)), store))
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    assert np.array_equal(a, out)
    buffers = (argument("a", "float32"), argument("out", "float32", writable=True))
    text = emit(Program("k", buffers, (), body), host())
    assert "!nontemporal" in text and "@llvm.prefetch" in text


def test_broadcast_of_a_scalar_load() -> None:
    a, out = np.array([7], np.uint8), np.zeros(16, np.uint8)
    assert run(store_all("out", broadcast(dense("uint8", "a", i64(0)), 16)), {"a": a, "out": out}, ["out"]) == 0
    assert (out == 7).all()


def doubled() -> Expr:
    return dense("float32", "a", i64(0), 4) * const(2.0, dtype("float32"), 4)


def test_equal_loads_and_arithmetic_are_written_once() -> None:
    body = Block((store_all("b", doubled() + doubled()), store_all("c", doubled())))
    buffers = (argument("a", "float32"), *(argument(n, "float32", writable=True) for n in "bc"))
    text = emit(Program("k", buffers, (), body), host())
    assert text.count("= load <4 x float>") == 1 and text.count("fmul") == 1


def test_loads_after_parallel_loops() -> None:
    """What other threads stored is loaded again."""
    img, v, f = pt.Input("img", "float32", ndim=2), pt.Func("v"), pt.Func("f")
    v[Y, X] = pt.edge(img)[Y, X - 1] + 1.0
    f[Y, X] = v[Y, X - 1] + v[Y, X + 1]
    p = pt.Pipeline(f, shape=img.shape).with_schedule(
        pt.Schedule(
            pt.on("f").unroll("x", 4).split("y", "y", "yi", 2).reorder("y", "x", "x_u", "yi").vectorize("yi"),
            pt.on("v").compute_at("f", "x_u").store_at("f", "x").parallel("y"),
        )
    )
    given = np.arange(48, dtype=np.float32).reshape(4, 12) ** 2
    np.testing.assert_array_equal(p(img=given, num_threads=2), p.reference(img=given))
