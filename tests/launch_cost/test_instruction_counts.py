"""Which instructions are counted, and in which loop or branch."""

from __future__ import annotations

from pantile.expr.build import cast
from pantile.expr.nodes import Expr, Ramp, op, var
from pantile.expr.types import FLOAT32, INT32
from pantile.ir.instructions import BARRIER
from pantile.ir.nodes import If, Kernel, Let, Manner, Stmt, Store
from pantile.launch_cost.instruction_counts import Pipe, levels_of

from ..simulator.hand_built import B, K, T, index, kernel, load, number, registers, serial, shared, store, threads

HERE = B * 64 + T
IMG: Expr = load("img", HERE)


def counted(k: Kernel) -> dict[Pipe, int]:
    """The instructions of all levels together, without those that are none."""
    total: dict[Pipe, int] = {}
    for level in levels_of(k).values():
        for pipe, number_ in level.instructions.items():
            total[pipe] = total.get(pipe, 0) + number_
    return {pipe: n for pipe, n in total.items() if n}


def floats(k: Kernel) -> int:
    return counted(k).get(Pipe.FLOAT, 0)


def loads(k: Kernel) -> int:
    return sum(len(level.loads) + len(level.hoisted) for level in levels_of(k).values())


def test_what_occurs_twice_is_computed_once() -> None:
    again = load("img", B * 64 + T)
    twice = kernel(threads(64, store("out", HERE, (IMG + 1.0) / (again + 1.0)), store("out", HERE + 64, again + 1.0)))
    assert loads(twice) == 1
    one = kernel(threads(64, store("out", HERE, IMG + 1.0)))
    assert floats(one) == 1 and floats(twice) == 1 + 8  # a division


def test_a_store_ends_the_life_of_loads_of_its_buffer() -> None:
    there = load("out", HERE)
    k = kernel(threads(64, store("out", HERE, there + 1.0), store("out", HERE, load("out", HERE) + 2.0)))
    assert loads(k) == 2


def test_a_barrier_ends_the_life_of_loads_of_shared_memory() -> None:
    def twice(*between: Stmt) -> Kernel:
        there = [store("out", T + k, load("s", T)) for k in range(2)]
        body = store("s", T, IMG), BARRIER, there[0], *between, there[1]
        return kernel(threads(64, shared("s", 64, *body)), bytes_shared=256)

    assert loads(twice()) == 2 and loads(twice(BARRIER)) == 3


def test_a_product_is_part_of_the_sum() -> None:
    a, b = IMG, load("img", HERE + 64)
    assert floats(kernel(threads(64, store("out", HERE, a * b + 1.0)))) == 1
    assert floats(kernel(threads(64, store("out", HERE, a * b + a * a)))) == 2
    assert floats(kernel(threads(64, store("out", HERE, a * b)))) == 1


def test_what_does_not_change_in_a_loop_is_computed_before_it() -> None:
    scale = load("img", index(0)) * load("img", index(1))
    body = store("out", K, load("img", K + 2) + scale)
    k = kernel(serial(100, body))
    (loop,) = [level for level in levels_of(k).values() if level.is_loop]
    assert len(loop.loads) == 1 and loop.instructions[Pipe.FLOAT] == 1
    assert len(loop.hoisted) == 2
    assert loop.parent is not None and not loop.parent.loads and loop.parent.instructions[Pipe.FLOAT] == 1


def test_loads_do_not_leave_branches_or_loops_that_store_there() -> None:
    inside = store("out", K, load("img", index(0)) + load("out", index(0)))
    k = kernel(serial(100, If(K < 50, inside)))
    (branch,) = [level for level in levels_of(k).values() if level.loads or level.hoisted]
    assert not branch.is_loop and len(branch.loads) == 2
    k = kernel(serial(100, inside))
    (loop,) = [level for level in levels_of(k).values() if level.is_loop]
    assert [e.buffer for e in loop.loads] == ["out"] and [e.buffer for e in loop.hoisted] == ["img"]


def test_values_of_one_branch_are_not_there_in_the_other() -> None:
    k = kernel(threads(64, If(T < 5, store("out", HERE, IMG + 1.0), store("out", HERE + 64, IMG + 1.0))))
    assert loads(k) == 2 and floats(k) == 2


def test_addresses_that_differ_by_a_constant_are_one() -> None:
    near = kernel(threads(64, store("out", HERE, IMG + load("img", HERE + 1) + load("img", HERE + 2))))
    far = kernel(threads(64, store("out", HERE, IMG + load("img", HERE * 2) + load("img", HERE * 3))))
    assert counted(far)[Pipe.INTEGER] - counted(near)[Pipe.INTEGER] == 2


def test_registers_cost_nothing() -> None:
    held = registers("sum", 1, store("sum", index(0), number(0.0)),
                     serial(9, store("sum", index(0), load("sum", index(0)) + load("img", K))),
                     store("out", HERE, load("sum", index(0))))  # fmt: skip
    k = kernel(threads(64, held))
    assert loads(k) == 1 and counted(k)[Pipe.MEMORY] == 2 and floats(k) == 1


def test_what_is_stored_to_registers_is_known_there() -> None:
    held = registers("held", 1, store("held", index(0), IMG * 2.0), store("out", HERE, load("held", index(0)) + 1.0))
    assert floats(kernel(threads(64, held))) == 1


def test_vectors_are_requested_together() -> None:
    def of(stride: int) -> int:
        at = Ramp(HERE.dtype, 4, HERE * 4, index(stride))
        return counted(kernel(threads(64, store("out", at, load("img", at)))))[Pipe.MEMORY]

    assert of(1) == 2 and of(2) == 8


def test_an_atomic_store_does_not_load() -> None:
    place = load("out", T)
    atomic = Store("out", (T,), place + 1.0, None, Manner.ATOMIC)
    assert loads(kernel(threads(64, atomic))) == 0


def test_conversions_functions_and_divisions() -> None:
    def of(value: Expr) -> dict[Pipe, int]:
        return counted(kernel(threads(64, store("out", HERE, value))))

    plain = of(IMG)
    assert of(op("sqrt", IMG))[Pipe.SPECIAL] == 1
    assert of(cast(FLOAT32, cast(INT32, IMG)))[Pipe.CONVERT] == 2
    n = load("img", HERE, INT32)
    by_eight, by_seven, by_data = (
        of(cast(FLOAT32, op("floordiv", n, d)))[Pipe.INTEGER] - plain[Pipe.INTEGER]
        for d in (number(8, INT32), number(7, INT32), load("img", HERE + 1, INT32))
    )
    assert by_eight == 1 < by_seven < by_data


def test_latency_is_that_of_the_longest_chain() -> None:
    one = kernel(threads(64, store("out", HERE, IMG + load("img", HERE + 1))))
    chain = kernel(
        threads(64, Let("i", cast(HERE.dtype, load("img", HERE, INT32)), store("out", HERE, load("img", var("i")))))
    )
    longest = [max(level.latency for level in levels_of(k).values()) for k in (one, chain)]
    assert 500 < longest[0] < 600 and 1000 <= longest[1] < 1100


def test_arrays_of_a_thread_are_in_registers_if_their_indices_are_constant() -> None:
    def summed(place: Expr) -> Kernel:
        body = store("a", index(1), IMG), store("out", HERE, load("a", place) + 1.0)
        return kernel(threads(64, registers("a", 4, *body)))

    by_constant, by_variable = (counted(summed(place))[Pipe.MEMORY] for place in (index(1), T % 4))
    assert (by_constant, by_variable) == (2, 4)
