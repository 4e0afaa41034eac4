"""Parallel loops become kernels, and those that are alike become one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.expr.build import ramp
from pantile.expr.nodes import Broadcast, Expr, Load, const, op, var
from pantile.expr.types import FLOAT32, INDEX
from pantile.ir.nodes import Alloc, Block, BufferArg, For, Launch, Let, Program, Stmt, Store
from pantile.ir.show import show_program
from pantile.ir.verify import FOR_CODE, verify
from pantile.ir.visit import walk_program
from pantile.lower.outline import outline
from pantile.target.kinds import Kind, Memory

x, y = var("x"), var("y")


def i64(value: int) -> Expr:
    return const(value, INDEX)


def f32(value: float, lanes: int = 1) -> Expr:
    return const(value, FLOAT32, lanes)


def parallel(name: str, body: Stmt, low: Expr | int = 0) -> For:
    low = i64(low) if isinstance(low, int) else low
    return For(name, low, i64(9), Kind.PARALLEL, body)


def outlined(*stmts: Stmt) -> Program:
    buffers = tuple(BufferArg(b, FLOAT32, 1, True, (1,)) for b in "abcd")
    program = outline(Program("k", buffers, (), Block(stmts)))
    verify(program, FOR_CODE)
    return program


Body = Callable[[Expr, int], Stmt]


def kernels(body: Body, numbers: range | tuple[int, ...] = (1, 2)) -> int:
    """How many kernels loops of such bodies have, one for each number."""
    return len(outlined(*(parallel(f"x{k}", body(var(f"x{k}"), k)) for k in numbers)).kernels)


def copied(value: Callable[[Expr, int], Expr], index: Callable[[Expr, int], Expr] = lambda i, k: i) -> Body:
    return lambda i, k: Store("b", (index(i, k),), value(i, k))


def a(index: Expr) -> Expr:
    return Load(FLOAT32, index.lanes, "a", (index,))


ALIKE: dict[str, Body] = {
    "names alone": copied(lambda i, k: a(i)),
    "an index that is added": copied(lambda i, k: a(i + (k + 1))),
    "an index to multiply by": copied(lambda i, k: a(i * (k + 1))),
    "a shift": copied(lambda i, k: a(op("floordiv", i, i64(2 << k)))),
    "a comparison": copied(lambda i, k: op("select", op("lt", i, i64(k)), a(i), f32(0))),
    "a weight": copied(lambda i, k: a(i) * f32(0.3 * k)),
    "a summand": copied(lambda i, k: a(i) + f32(0.5 * k)),
    "an extent": lambda i, k: For("y", i64(0), i64(k + 1), Kind.SERIAL, Store("b", (i + y,), a(y))),
    "where vectors begin that are loaded together": copied(
        lambda i, k: a(ramp(i * 2 + (2 * k + 2), 2, 8)) + a(ramp(i * 2 + (2 * k + 3), 2, 8)),
        lambda i, k: ramp(i * 8, 1, 8),
    ),
}
DIFFERENT: dict[str, Body] = {
    "a divisor of indices": copied(lambda i, k: a(op("floordiv", i, i64(2 * k + 1)))),
    "a remainder": copied(lambda i, k: a(op("mod", i, i64(2 << k)))),
    "a divisor": copied(lambda i, k: op("div", a(i), f32(3.0 * k))),
    "what is stored": copied(lambda i, k: f32(k)),
    "a limit of floats": copied(lambda i, k: op("min", a(i), f32(k))),
    "a stride": copied(lambda i, k: a(ramp(i, k, 8)), lambda i, k: ramp(i, 1, 8)),
    "lanes": copied(lambda i, k: a(ramp(i, 1, 4 * k)), lambda i, k: ramp(i, 1, 4 * k)),
    "a loop of one iteration": lambda i, k: For("y", i64(0), i64(k), Kind.SERIAL, Store("b", (i + y,), a(y))),
    "how far vectors are apart that are loaded together": copied(
        lambda i, k: a(ramp(i * 2 + 2, 2, 8)) + a(ramp(i * 2 + (k + 2), 2, 8)), lambda i, k: ramp(i * 8, 1, 8)
    ),
    "what is computed once": copied(lambda i, k: a(i + 1) + a(i + k)),
    "the size of a buffer": lambda i, k: Alloc("t", FLOAT32, i64(k), Memory.STACK, None, Store("b", (i,), a(i))),
    "the kind of a buffer": lambda i, k: Alloc(
        "t", FLOAT32, i64(8), Memory.STACK if k == 1 else Memory.HEAP, None, Store("b", (i,), a(i))
    ),
    "which buffers are one": lambda i, k: Store("b", (i,), Load(FLOAT32, 1, "ab"[k - 1], (i + 1,))),
    "zeros": copied(lambda i, k: op("select", op("lt", i, i64(4)), a(i), f32(0.0 if k == 1 else -0.0))),
}


@pytest.mark.parametrize("body", ALIKE.values(), ids=ALIKE)
def test_loops_that_differ_in_this_have_one_kernel(body: Body) -> None:
    assert kernels(body) == 1


@pytest.mark.parametrize("body", DIFFERENT.values(), ids=DIFFERENT)
def test_loops_that_differ_in_this_have_two(body: Body) -> None:
    assert kernels(body) == 2


def test_zeros_of_both_signs_are_two_weights() -> None:
    def product(i: Expr, weight: float) -> Stmt:
        return parallel(i.name, Store("b", (i,), op("mul", a(i), f32(weight))))  # type: ignore[attr-defined]

    program = outlined(product(x, 0.0), product(y, -0.0))
    assert [str(s.scalars[-1]) for s in walk_program(program) if isinstance(s, Launch)] == ["0", "-0"]


def test_a_loop_that_is_in_two_places_is_not_taken_for_two_loops() -> None:
    def inner(i: Expr, extent: int) -> For:
        return For("y", i64(0), i64(extent), Kind.SERIAL, Store("b", (i + y,), a(y)))

    def shared(i: Expr, k: int) -> Stmt:
        one = inner(i, k + 1)
        return Block((one, one if k == 1 else inner(i, k + 4)))

    assert (kernels(shared), kernels(shared, (1, 1)), kernels(shared, (2, 3))) == (2, 1, 1)


def test_rows_and_columns_of_a_stencil_are_two_kernels() -> None:
    """Both add three numbers at indices (y + n)*w + x + m: three rows are not one that is read at three places."""
    w = var("w")

    def stencil(i: Expr, k: int) -> Stmt:
        taps = [a((i + (n if k == 1 else 1)) * w + ramp(i, 1, 4) + (n if k == 2 else 1)) for n in range(1, 4)]
        return Store("b", (ramp(i * w, 1, 4),), taps[0] + taps[1] + taps[2])

    loops = Block(tuple(parallel(f"x{k}", stencil(var(f"x{k}"), k)) for k in (1, 2)))
    assert len(outlined(Let("w", i64(9), loops)).kernels) == 2


def test_constants_that_differ_alike_are_one_parameter() -> None:
    loops = [
        parallel(f"x{k}", Store("b", (var(f"x{k}") + (k + 5),), a(var(f"x{k}") + (k + 7)) * f32(k + 1) + f32(k + 1)))
        for k in range(1, 4)
    ]
    program = outlined(*loops)
    assert show_program(program).splitlines()[1:] == [
        "    launch x1.0(0, 2, b, a) 9 times",
        "    launch x1.0(1, 3, b, a) 9 times",
        "    launch x1.0(2, 4, b, a) 9 times",
        "",
        "kernel x1.0(x1.constant.0: index, x1.constant.1: float32, b: float32[], a: float32[]) for x1 from 0:",
        "    b[x1 + x1.constant.0 + 6] = a[x1 + x1.constant.0 + 8]*x1.constant.1 + x1.constant.1",
    ]


@pytest.mark.parametrize(("first", "second", "count"), [("vw", "ww", 1), ("vw", "wv", 1), ("ww", "vw", 2)])
def test_scalars_that_differ_in_the_first_loop_may_be_one_in_others(first: str, second: str, count: int) -> None:
    def copy(i: Expr, strides: str) -> Stmt:
        return Store("b", (i * var(strides[0]),), a((i + 1) * var(strides[1])))

    loops = Block((parallel("x1", copy(var("x1"), first)), parallel("x2", copy(var("x2"), second))))
    program = outlined(Let("v", i64(7), Let("w", i64(9), loops)))
    assert len(program.kernels) == count
    given = [[str(e) for e in s.scalars] for s in walk_program(program) if isinstance(s, Launch)]
    assert given == [list(dict.fromkeys(first)), list(second)]


@pytest.mark.parametrize(("alignment", "count"), [(16, 1), (4, 2)])
def test_blocks_of_arrays_that_are_aligned_otherwise_have_kernels_of_their_own(alignment: int, count: int) -> None:
    """Threads load fewer bytes at once from what is less aligned."""
    aligned = {"a": 16, "b": 16, "c": alignment}
    buffers = tuple(BufferArg(b, FLOAT32, 1, True, (1,), bytes_) for b, bytes_ in aligned.items())
    loops = [For(f"{b}.x", i64(0), i64(9), Kind.BLOCK, Store(b, (var(f"{b}.x"),), a(var(f"{b}.x")))) for b in "bc"]
    assert len(outline(Program("k", buffers, (), Block(tuple(loops)))).kernels) == count


@pytest.mark.parametrize("kind", [Kind.BLOCK, Kind.PARALLEL])
@pytest.mark.parametrize(("many", "count"), [(3, 1), (2, 2)])
def test_what_is_made_of_scalars_alone_is_captured_by_many_loops(kind: Kind, many: int, count: int) -> None:
    """A chain's stages need more and more columns, and what is divided is written in several ways."""
    w = var("w")
    ends = [(w + 31) // 32, w // 32 + 1, (w + 1) // 32 * 2][:many]

    def loop(k: int, end: Expr) -> For:
        i = var(f"x{k}")
        return For(i.name, i64(0), i64(9), kind, Store("b", (i,), op("select", op("lt", i, end), a(i), f32(0))))

    program = outlined(Let("w", i64(99), Block(tuple(loop(k, end) for k, end in enumerate(ends)))))
    assert len(program.kernels) == count
    if count == 1:
        assert [str(s.scalars[0]) for s in walk_program(program) if isinstance(s, Launch)] == list(map(str, ends))
        assert "select(x0 < x0.constant.0, a[x0], 0)" in show_program(program)


@pytest.mark.parametrize(("most", "count"), [(8, 1), (9, 2)])
def test_there_are_at_most_eight_parameters(most: int, count: int) -> None:
    def body(i: Expr, k: int) -> Stmt:
        total = a(i)
        for t in range(1, most + 1):
            total = total * f32(t + 100 * k * t)
        return Store("b", (i,), total)

    assert kernels(body) == count


def test_loops_begin_where_their_launches_say() -> None:
    program = outlined(*(parallel(f"x{k}", Store("b", (var(f"x{k}"),), f32(1)), k) for k in (0, 3, 4)))
    assert [k.min.__class__.__name__ for k in program.kernels] == ["Const", "Var"]
    assert "launch x3.1(4, b) 9 times" in show_program(program)


def piece(name: str, offset: int, body: Stmt) -> Alloc:
    return Alloc(name, FLOAT32, i64(16), Memory.SCRATCH, i64(offset), body)


def test_buffers_that_may_overlap_are_not_taken_for_others() -> None:
    """Where copies of code have a buffer each of the same name, it may share memory with another in one of them. Code
    that may move accesses of others past each other must not be theirs."""

    def move(name: str, source: str, target: str) -> For:
        return parallel(name, Store(target, (var(name),), Load(FLOAT32, 1, source, (var(name),))))

    def count(*before: Stmt) -> int:
        one = piece("s", 0, piece("t", 64, move("x1", "s", "t")))
        other = piece("u", 0, piece("v", 64, move("x2", "u", "v")))
        return len(outlined(parallel("z", Block((*before, one, other)))).kernels) - 1

    assert (count(), count(piece("t", 0, Block(())))) == (1, 2)


def test_nested_loops_are_kernels_that_launch_others() -> None:
    def nested(k: int) -> Stmt:
        outer, inner = var(f"o{k}"), var(f"i{k}")
        store = Store("b", (outer * 9 + inner,), a(inner + (k + 2)) * var(f"t{k}", FLOAT32))
        return parallel(outer.name, Let(f"t{k}", a(outer), parallel(inner.name, store)))

    program = outlined(nested(1), nested(1), nested(2))
    assert [k.name for k in program.kernels] == ["i1.0", "o1.1", "o2.2"]
    assert [v.name for v in program.kernels[0].scalars] == ["o1", "t1", "i1.constant.0"]


def test_debug_builds_have_a_kernel_for_each_loop() -> None:
    """A report names the buffer that an access missed."""
    img = pt.Input("img", "float32", ndim=1)
    i = pt.Var("i")
    stages: list[pt.Func] = []
    for k in range(3):
        f = pt.Func(f"f{k}")
        f[i] = (stages[-1][i] if stages else img[i]) + 1.0
        stages.append(f)
    schedule = pt.Schedule(*(pt.on(f"f{k}").parallel("i") for k in range(3)))
    pipeline = pt.Pipeline(stages[-1], shape=img.shape, schedule=schedule)
    assert pipeline.llvm().count("(ptr noalias %closure") == 1
    checked = pipeline.with_options(debug=True)
    assert checked.llvm().count("(ptr noalias %closure") == 3
    assert np.array_equal(checked(img=np.zeros(5, np.float32)), np.full(5, 3, np.float32))


def test_broadcast_numbers_side_by_side_stay_so() -> None:
    """Code for some targets loads them as lanes of one register."""

    def body(step: int) -> Body:
        def of(i: Expr, k: int) -> Stmt:
            numbers = [Broadcast(FLOAT32, 4, a(i + (k + 1) * (step if n else 1) + n)) for n in range(2)]
            return Store("b", (ramp(i * 4, 1, 4),), numbers[0] * numbers[1])

        return of

    assert (kernels(body(1)), kernels(body(2))) == (1, 2)
