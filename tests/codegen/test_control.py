"""Loops, branches, allocations, parallel bodies and failures."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pantile.codegen.checks import OUT_OF_BOUNDS
from pantile.codegen.emit import Alias, alias_metadata
from pantile.expr.build import cast, ramp
from pantile.expr.nodes import Load, const, op, var
from pantile.expr.types import BFLOAT16, BOOL, FLOAT32, FLOAT64, INT8, INT32, UINT16, DType
from pantile.ir.nodes import Alloc, Block, For, If, Let, Program, ScalarArg, Stmt, Store
from pantile.reference.operations import to_bfloat_bits
from pantile.target.kinds import Kind, Memory

from .kernels import Kernel, argument, dense, emitted, i64, loop, run

x, y, z = var("x"), var("y"), var("z")


def put(index: object, value: object) -> Store:
    return Store("out", (index,), cast(INT32, value))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_serial_loop(count: int) -> None:
    out = np.zeros(count, np.int32)
    body = For("x", i64(3), var("out.shape.0"), Kind.SERIAL, put(x + (-3), x * x))
    assert run(body, {"out": out}, ["out"]) == 0
    assert np.array_equal(out, np.arange(3, 3 + count) ** 2)


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_constant_extents(count: int) -> None:
    out = np.zeros(4, np.int32)
    assert run(loop("x", count, put(x, x + 1)), {"out": out}, ["out"]) == 0
    assert np.count_nonzero(out) == max(count, 0)


def test_branches_and_lets() -> None:
    out = np.zeros(6, np.int32)
    inner = If(op("lt", x, i64(3)), put(x, var("t")), put(x, var("t") + 100))
    assert run(loop("x", 6, Let("t", x * 2, inner)), {"out": out}, ["out"]) == 0
    assert out.tolist() == [0, 2, 4, 106, 108, 110]


def test_value_numbers_do_not_leave_their_branch() -> None:
    out = np.zeros(6, np.int32)
    body = loop("x", 6, Block((If(op("gt", x, i64(3)), put(x, x * 7)), put(x, x * 7))))
    assert run(body, {"out": out}, ["out"]) == 0
    assert np.array_equal(out, np.arange(6) * 7)


def doubled_through(memory: Memory, *, parallel: bool) -> Stmt:
    """out[y, x] = 2*y + x by way of a row of temporary storage."""
    t = Load(INT32, 1, "t", (x,))
    rows = Block((loop("x", 8, Store("t", (x,), cast(INT32, y * 2 + x))), loop("x", 8, put(y * 8 + x, t))))
    offset = i64(64) if memory is Memory.SCRATCH else None
    body = Alloc("t", INT32, i64(8), memory, offset, rows)
    return loop("y", 9, body, Kind.PARALLEL if parallel else Kind.SERIAL, i64(128) if parallel else None)


@pytest.mark.parametrize(
    ("memory", "parallel"),
    [(Memory.STACK, False), (Memory.REGISTER, True), (Memory.HEAP, False), (Memory.HEAP, True), (Memory.SCRATCH, True)],
)
def test_allocations(memory: Memory, parallel: bool) -> None:
    out = np.zeros((9, 8), np.int32)
    assert run(doubled_through(memory, parallel=parallel), {"out": out}, ["out"]) == 0
    assert np.array_equal(out, 2 * np.arange(9)[:, None] + np.arange(8))


def test_nested_parallel_loops_capture_all_kinds_of_values() -> None:
    out = np.zeros((5, 6, 8), np.float64)
    scalars = (ScalarArg("flag", BOOL), ScalarArg("tiny", INT8), ScalarArg("half", BFLOAT16), ScalarArg("f", FLOAT32))
    base = cast(FLOAT64, var("tiny", INT8)) + cast(FLOAT64, var("half", BFLOAT16)) + cast(FLOAT64, var("f", FLOAT32))
    chosen = op("select", var("flag", BOOL), base, const(0.0, FLOAT64))
    lanes = Let("row", cast(FLOAT64, ramp(z, 1, 8)), Let("c", chosen, loop("z", 1, Block(()))))
    vector = var("row", FLOAT64, 8)
    value = vector + var("c", FLOAT64)
    store = Store("out", (ramp(z * 48 + y * 8, 1, 8),), value)
    inner = loop("y", 6, store, Kind.PARALLEL)
    body = For("z", i64(0), i64(5), Kind.PARALLEL, Let(lanes.name, lanes.value, Let("c", chosen, inner)))
    program = Program("k", (argument("out", "float64", 3, writable=True),), scalars, body)
    given = {"flag": True, "tiny": -3, "half": int(to_bfloat_bits(np.array([2.5], np.float32))[0]), "f": 0.25}
    assert Kernel(program)({"out": out}, given) == 0
    want = np.arange(5)[:, None, None] + np.arange(8) - 0.25
    assert np.array_equal(out, np.broadcast_to(want, out.shape))


def test_parallel_loop_that_starts_elsewhere_and_is_empty() -> None:
    out = np.zeros(4, np.int32)
    body = For("x", var("out.shape.0") - 2, i64(2), Kind.PARALLEL, put(x, x))
    empty = For("y", i64(0), var("out.shape.0") - 9, Kind.PARALLEL, put(y, i64(9)))
    assert run(Block((body, empty)), {"out": out}, ["out"]) == 0
    assert out.tolist() == [0, 0, 2, 3]


def test_a_failure_leaves_nested_bodies_with_its_code() -> None:
    out = np.zeros(4, np.int32)
    failing = If(op("eq", x, i64(2)), put(i64(4), x))
    held = Alloc("t", INT32, i64(1000), Memory.HEAP, None, Block((failing, put(x, x))))
    body = loop("y", 3, loop("x", 4, held, Kind.PARALLEL), Kind.PARALLEL)
    assert run(body, {"out": out}, ["out"], debug=True) == OUT_OF_BOUNDS


def test_running_out_of_memory_returns_minus_one() -> None:
    out = np.zeros(1, np.int32)
    body = Alloc("t", INT32, i64(1 << 58), Memory.HEAP, None, Store("t", (var("out.shape.0"),), const(1, INT32)))
    assert run(Block((body, put(i64(0), Load(INT32, 1, "out", (i64(0),))))), {"out": out}, ["out"]) == -1


def test_scratch_buffers_that_share_memory_are_not_reordered() -> None:
    """One buffer ends where another begins; a store to the second must stay after the loads of the first."""

    def piece(name: str, offset: int, body: Stmt) -> Alloc:
        return Alloc(name, INT32, i64(16), Memory.SCRATCH, i64(offset), body)

    nothing = Block(())
    inside = Block((piece("a", 0, piece("c", 64, nothing)), piece("b", 0, nothing)))
    names = ("a", "b", "c")
    alias = alias_metadata(Program("k", (), (), loop("y", 2, inside, Kind.PARALLEL)), names)
    assert _said_to_be_apart(alias) == {("a", "c"), ("b", "c")}


def test_buffers_are_apart_in_lists_that_grow_with_the_digits_of_their_number() -> None:
    names = tuple(f"b{k}" for k in range(100))
    alias = alias_metadata(Program("k", (), (), Block(())), names)
    assert len(_said_to_be_apart(alias)) == 100 * 99 // 2
    assert max(line.count("!") for line in alias.lines) <= 9


def _said_to_be_apart(alias: Alias) -> set[tuple[str, str]]:
    """The pairs of buffers that LLVM takes to be apart: in some domain, the scopes of one are all among those that the
    other says it is not in."""
    nodes = {name: re.findall(r"!\d+", rest) for name, rest in (line.split(" = ", 1) for line in alias.lines)}
    lists = {n: [nodes[m] for m in re.findall(r"!\d+", note)] for n, note in alias.notes.items()}

    def apart(a: str, b: str) -> bool:
        scopes, without = lists[a][0], lists[b][1]
        domains = {nodes[s][-1] for s in without}
        mine = [{s for s in scopes if nodes[s][-1] == domain} for domain in domains]
        return any(own and own <= set(without) for own in mine)

    pairs = [(a, b) for a in alias.notes for b in alias.notes if a < b]
    for a, b in pairs:
        assert apart(a, b) == apart(b, a)
    return {(a, b) for a, b in pairs if apart(a, b)}


@pytest.mark.parametrize(("count", "unrolled"), [(64, 165), (65, 101)], ids=["few", "many"])
def test_where_there_are_many_loops_only_short_ones_are_unrolled_by_llvm(count: int, unrolled: int) -> None:
    long = [loop("x", 9, put(x, x)) for _ in range(count)]
    short = [loop("x", 8, put(x, x)) for _ in range(101)]
    text = emitted(Program("k", (argument("out", INT32, writable=True),), (), Block((*long, *short))))
    assert text.count("!llvm.loop !2") == unrolled
    assert text.count("!llvm.loop !4") == count + 101 - unrolled


def test_equal_parallel_bodies_are_written_once() -> None:
    def step(source: str, target: str, name: str, by: int) -> Stmt:
        value = dense(INT32, source, var(name)) + const(by, INT32)
        return loop(name, 9, Store(target, (var(name),), value), Kind.PARALLEL)

    arrays = {n: np.arange(9, dtype=np.int32) for n in "abcd"}
    body = Block((step("a", "b", "i", 2), step("b", "c", "j", 2), step("c", "d", "k", 3)))
    assert run(body, arrays, ["b", "c", "d"]) == 0
    assert np.array_equal(arrays["d"], np.arange(9) + 7)
    buffers = tuple(argument(n, INT32, writable=n != "a") for n in arrays)
    text = emitted(Program("k", buffers, (), body))
    assert text.count("define internal") == 2  # one adds 2, another 3
    in_place = Block((step("a", "b", "i", 2), step("b", "b", "j", 2)))
    assert emitted(Program("k", buffers, (), in_place)).count("define internal") == 2  # these may overlap


@pytest.mark.parametrize(("most", "functions"), [(3, 1), (40, 4)], ids=["few", "many"])
def test_bodies_that_differ_in_index_constants_are_written_once(most: int, functions: int) -> None:
    """Constants that are added or multiplied, and ends of loops; unless they are too many."""

    def step(k: int) -> Stmt:
        inner, taps = var(f"inner{k}"), range(1, most)
        values = [dense(INT32, "a", y * (k + 1) + inner * t * t + k * t * t * t) for t in taps]
        stores = [Store("out", (y * 20 + inner + k * 100,), sum(values, const(0, INT32)))]
        return loop("y", 3, loop(inner.name, 2 + k, *stores), Kind.PARALLEL)

    a, out = np.arange(300_000, dtype=np.int32), np.zeros(500, np.int32)
    body = Block(tuple(step(k) for k in range(1, 5)))
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    want = np.zeros_like(out)
    for k in range(1, 5):
        for row in range(3):
            for i in range(2 + k):
                want[k * 100 + row * 20 + i] = sum(row * (k + 1) + i * t * t + k * t**3 for t in range(1, most))
    assert np.array_equal(out, want)
    program = Program("k", (argument("a", INT32), argument("out", INT32, writable=True)), (), body)
    assert emitted(program).count("define internal") == functions


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_bodies_that_differ_in_floats_are_written_once(dtype: DType) -> None:
    """Weights, of a lane and of vectors."""

    def step(k: int) -> Stmt:
        weight, i = 0.1 * k - 0.7, var(f"i{k}")
        vector = Load(dtype, 4, "a", (ramp(i * 4, i64(1), 4),)) * const(weight, dtype, 4)
        single = dense(dtype, "a", i) * const(weight, dtype) + const(1.0, dtype)
        wide = Store("out", (ramp(i * 4 + k * 20, i64(1), 4),), vector)
        return loop(i.name, 4, Block((wide, Store("out", (i + k * 20 + 16,), single))), Kind.PARALLEL)

    a = np.arange(16).astype(dtype.numpy)
    out = np.zeros(100, dtype.numpy)
    body = Block(tuple(step(k) for k in range(1, 5)))
    assert run(body, {"a": a, "out": out}, ["out"]) == 0
    for k in range(1, 5):
        weight = dtype.numpy.type(0.1 * k - 0.7)
        np.testing.assert_allclose(out[k * 20 : k * 20 + 16], a * weight, rtol=1e-6)
        np.testing.assert_allclose(out[k * 20 + 16 : k * 20 + 20], a[:4] * weight + 1, rtol=1e-6)
    program = Program("k", (argument("a", dtype), argument("out", dtype, writable=True)), (), body)
    assert emitted(program).count("define internal") == 1


def test_every_failure_takes_the_same_way_out() -> None:
    """However many buffers are live, and however many failures there may be, each buffer is given back in one place."""

    def code(n: int) -> str:
        body: Stmt = put(i64(0), i64(1))
        for k in range(n):
            filled = Store(f"t{k}", (i64(0),), const(1, INT32))
            body = Alloc(f"t{k}", INT32, i64(1000), Memory.HEAP, None, Block((filled, body)))
        return emitted(Program("k", (argument("out", INT32, writable=True),), (), body))

    assert code(40).count("pantile_scratch_pop") == 2 * 40 + 1  # and where it is declared


def test_unaligned_vector_store_of_captured_pointer() -> None:
    a, out = np.arange(33, dtype=np.uint16), np.zeros(33, np.uint16)
    copy = Store("out", (ramp(x * 8 + 1, 1, 8),), dense(UINT16, "a", x * 8, 8))
    assert run(loop("x", 4, copy, Kind.PARALLEL), {"a": a, "out": out}, ["out"]) == 0
    assert np.array_equal(out[1:], a[:-1])


def test_heap_size_zero_is_not_out_of_memory() -> None:
    out = np.zeros(1, np.int32)
    body = Alloc("t", INT32, var("out.shape.0") - 1, Memory.HEAP, None, put(i64(0), i64(5)))
    assert run(body, {"out": out}, ["out"]) == 0
    assert out[0] == 5


def test_a_long_kernel_without_loops_is_not_optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs once; what it starts runs often."""
    sweeps = [For(f"x{k}", i64(0), i64(6), Kind.PARALLEL, put(var(f"x{k}"), var(f"x{k}") * k)) for k in range(3)]
    alone = loop("x", 6, put(x, x))
    monkeypatch.setattr("pantile.codegen.emit._LONG", 20)
    for body, quick in ((Block(tuple(sweeps)), True), (Block((*sweeps, alone)), False), (sweeps[0], False)):
        program = Program("k", (argument("out", INT32, writable=True),), (), body)
        heads = [line for line in emitted(program).splitlines() if line.startswith("define")]
        assert [("optnone" in line) for line in heads if "internal" not in line] == [quick]
        assert not any("optnone" in line for line in heads if "internal" in line)
    out = np.zeros(6, np.int32)
    assert run(Block(tuple(sweeps)), {"out": out}, ["out"]) == 0
    assert out.tolist() == [0, 2, 4, 6, 8, 10]
