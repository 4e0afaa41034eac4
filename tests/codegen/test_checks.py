"""Debug builds report the first access outside a buffer instead of making it."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.codegen.emit import buffer_names
from pantile.expr.build import cast, ramp
from pantile.expr.nodes import Load, Ramp, const, op, var
from pantile.expr.types import INDEX, INT32
from pantile.ir.nodes import Alloc, Block, BufferArg, Program, Stmt, Store
from pantile.lower.outline import outline
from pantile.target.kinds import Kind, Memory

from .kernels import Array, Kernel, argument, i64, loop

x = var("x")
LOAD, STORE = 1, 2


def checked(body: Stmt, a: Array, out: Array, strides: tuple[int | None, ...] = (1,)) -> tuple[int, list[int]]:
    buffers = (BufferArg("a", INT32, a.ndim, False, strides), argument("out", INT32, writable=True))
    kernel = Kernel(Program("k", buffers, (), body), debug=True)
    code = kernel({"a": a, "out": out})
    return code, kernel.report[:5].tolist()


def copy(index: object, to: object = None, lanes: int = 1) -> Store:
    where = ramp(i64(0), 1, lanes) if to is None else to
    return Store("out", (where,), Load(INT32, lanes, "a", (index,)))  # type: ignore[arg-type]


def arrays(count: int = 8) -> tuple[Array, Array]:
    return np.arange(count, dtype=np.int32), np.zeros(8, np.int32)


def test_everything_inside_passes() -> None:
    a, out = arrays()
    assert checked(copy(ramp(i64(0), 1, 8), lanes=8), a, out)[0] == 0
    assert np.array_equal(a, out)


@pytest.mark.parametrize("index", [-1, 8])
def test_scalar_load(index: int) -> None:
    assert checked(copy(i64(index)), *arrays()) == (1, [LOAD, 0, index, 0, 7])


def test_vector_load_names_the_worst_lane() -> None:
    assert checked(copy(ramp(i64(3), 2, 4), lanes=4), *arrays()) == (1, [LOAD, 0, 9, 0, 7])


@pytest.mark.parametrize(("first", "step", "worst"), [(-1, 1, -1), (5, 1, 8), (7, -3, -2), (11, -3, 11), (9, 0, 9)])
def test_ends_of_vectors(first: int, step: int, worst: int) -> None:
    assert checked(copy(ramp(i64(first), step, 4), lanes=4), *arrays()) == (1, [LOAD, 0, worst, 0, 7])


@pytest.mark.parametrize(("first", "step"), [(0, 1), (4, 1), (7, -2), (1, 2)])
def test_vectors_that_reach_the_ends_of_their_buffer_pass(first: int, step: int) -> None:
    a, out = arrays()
    assert checked(copy(ramp(i64(first), step, 4), lanes=4), a, out)[0] == 0
    assert np.array_equal(out[:4], a[first + step * np.arange(4)])


def test_the_largest_of_places_that_data_decides() -> None:
    a, out = np.array([3, 9, -5, 1], np.int32), np.zeros(8, np.int32)
    places = cast(INDEX, Load(INT32, 4, "a", (ramp(i64(0), 1, 4),)))
    assert checked(copy(places, lanes=4), a, out) == (1, [LOAD, 0, 9, 0, 3])


def test_store_in_a_parallel_loop() -> None:
    code, report = checked(loop("x", 9, Store("out", (x,), cast(INT32, x)), Kind.PARALLEL), *arrays())
    assert (code, report) == (1, [STORE, 1, 8, 0, 7])


def test_masked_off_lanes_may_point_anywhere() -> None:
    mask = op("lt", Ramp(INDEX, 4, i64(0), i64(1)), const(2, INDEX, 4))
    body = Store("out", (ramp(i64(6), 1, 4),), const(5, INT32, 4), mask)
    assert checked(body, *arrays())[0] == 0


def test_allocations_are_numbered_after_the_arguments() -> None:
    body = Alloc("t", INT32, var("a.shape.0"), Memory.HEAP, None, Store("t", (i64(8),), const(1, INT32)))
    assert checked(body, *arrays()) == (1, [STORE, 2, 8, 0, 7])
    program = Program("k", (argument("a", INT32), argument("out", INT32)), (), body)
    assert buffer_names(program) == ("a", "out", "t")


def test_buffers_of_loops_that_are_alike_keep_their_names() -> None:
    def filled(buffer: str, first: int) -> Stmt:
        stored = Store(buffer, (x + first,), cast(INT32, x))
        return loop("x", 8, Alloc(buffer, INT32, i64(10), Memory.STACK, None, stored), Kind.PARALLEL)

    body = Block((filled("t", 1), filled("u", 3)))
    assert checked(body, *arrays()) == (1, [STORE, 3, 10, 0, 9])
    program = Program("k", (argument("a", INT32), argument("out", INT32)), (), body)
    assert buffer_names(outline(program, share=False)) == ("a", "out", "t", "u")


def test_nested_kernels_know_the_limits_of_what_they_are_given() -> None:
    inner = loop("y", 8, Store("t", (x + var("y"),), cast(INT32, x)), Kind.PARALLEL)
    body = loop("x", 3, Alloc("t", INT32, i64(9), Memory.HEAP, None, inner), Kind.PARALLEL)
    assert checked(body, *arrays()) == (1, [STORE, 2, 9, 0, 8])


def test_negative_strides_and_two_dimensions() -> None:
    a, out = np.arange(12, dtype=np.int32).reshape(3, 4)[::-1, ::2], np.zeros(8, np.int32)
    assert checked(copy(i64(-8)), a, out, (None, None))[0] == 0
    assert checked(copy(i64(-9)), a, out, (None, None)) == (1, [LOAD, 0, -9, -8, 2])
    assert checked(copy(i64(3)), a, out, (None, None)) == (1, [LOAD, 0, 3, -8, 2])


def test_an_empty_array_allows_nothing() -> None:
    assert checked(copy(i64(0)), *arrays(0)) == (1, [LOAD, 0, 0, 0, -1])
