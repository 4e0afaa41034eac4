"""Forbidden actions of kernels. Each is planted in a kernel that is otherwise correct."""

from __future__ import annotations

import pickle
from operator import mul

import numpy as np
import pytest

from pantile.expr.nodes import Expr, op
from pantile.expr.types import FLOAT32, UINT8
from pantile.ir.instructions import BARRIER, COMMIT_GROUP, WARP_BARRIER, shuffle, wait_group
from pantile.ir.nodes import Alloc, Block, If, Kernel, Manner, Stmt, Store
from pantile.simulator import Global, SimulationError
from pantile.target.kinds import Memory

from .hand_built import ZERO, B, K, T, index, kernel, load, number, registers, run, serial, shared, store, threads
from .test_kernels import blur_rows, floats


def assert_fails(k: Kernel, text: str, blocks: int = 2, img: int = 1000, out: int = 1000) -> SimulationError:
    with pytest.raises(SimulationError) as caught:
        run(k, blocks, np.zeros(out, np.float32), floats(img))
    assert str(caught.value) == text
    return caught.value


def test_a_barrier_is_missing() -> None:
    assert_fails(
        blur_rows(barrier=False),
        "kernel k, block 0, thread 0: reads tile at element 1, written by thread 1 without a barrier in between",
    )


def test_a_barrier_is_missing_before_the_next_write() -> None:
    neighbour = load("s", (T + 1) % 64)
    body = shared(
        "s",
        64,
        serial(
            3,
            threads(64, store("s", T, load("img", T + K))),
            BARRIER,
            threads(64, store("out", (B * 3 + K) * 64 + T, neighbour)),
        ),
    )
    assert_fails(
        kernel(body, bytes_shared=256),
        "kernel k, block 0, thread 0: writes s at element 0, read by thread 63 without a barrier in between",
    )


def exchanged(*between: Stmt, turned: Expr = T - T % 32 + (T + 1) % 32) -> Kernel:
    """A kernel in which each thread passes a value to another thread, by default of the same warp, through shared
    memory."""
    body = store("s", T, load("img", T)), *between, store("out", B * 64 + T, load("s", turned))
    return kernel(shared("s", 64, threads(64, *body)), bytes_shared=256)


def test_lanes_wait_for_each_other() -> None:
    img, out = floats(64), np.zeros(128, np.float32)
    run(exchanged(WARP_BARRIER), 2, out, img)
    np.testing.assert_array_equal(out.reshape(2, 2, 32), [np.roll(img.reshape(2, 32), -1, axis=1)] * 2)
    missing = "kernel k, block 0, thread 0: reads s at element 1, written by thread 1 without a barrier in between"
    assert_fails(exchanged(), missing)


def test_barriers_of_warps_are_none_between_warps() -> None:
    far = "kernel k, block 0, thread 0: reads s at element 32, written by thread 32 without a barrier in between"
    assert_fails(exchanged(WARP_BARRIER, turned=(T + 32) % 64), far)
    again = exchanged(WARP_BARRIER, store("s", (T + 32) % 64, number(1.0)))
    written = "kernel k, block 0, thread 0: writes s at element 32, written by thread 32 without a barrier in between"
    assert_fails(again, written)


def test_who_has_read_before_a_warp_waited() -> None:
    """A warp barrier waits for lanes of the warp that have read an element, but not for those of another warp."""

    def made(place: Expr, waits: bool) -> Kernel:
        read = store("out", B * 64 + T, load("s", place))
        last = If(T < 1, store("s", index(0), number(1.0)))
        wait = [WARP_BARRIER] if waits else []
        first = threads(64, store("s", T, load("img", T)))
        body = first, BARRIER, threads(64, read, *wait, last)
        return kernel(shared("s", 64, *body), bytes_shared=256)

    run(made(T - T % 32, True), 2, np.zeros(128, np.float32), floats(64))
    read = "kernel k, block 0, thread 0: writes s at element 0, read by several threads without a barrier in between"
    assert_fails(made(T - T % 32, False), read)
    assert_fails(made(ZERO, True), read)


def test_all_lanes_come_to_a_barrier_of_their_warp() -> None:
    text = "executes warp_barrier, which thread 40 of its warp does not take part in"
    assert_fails(exchanged(If(T < 40, WARP_BARRIER)), f"kernel k, block 0, thread 32: {text}")
    with pytest.raises(SimulationError, match="without a barrier in between"):
        run(exchanged(If(T < 32, WARP_BARRIER)), 1, np.zeros(64, np.float32), floats(64))


def test_pieces_of_warps() -> None:
    """Each warp has its own elements of a buffer, and no access beyond them is allowed."""

    def made(elements: int, apart: int) -> Kernel:
        body = store("s", T % 32, load("img", T)), WARP_BARRIER, store("out", B * 64 + T, load("s", (T + 1) % 32))
        own = Alloc("s", FLOAT32, index(elements), Memory.SHARED, ZERO, Block(body), apart=apart)
        return kernel(threads(64, own), bytes_shared=320)

    img, out = floats(64), np.zeros(128, np.float32)
    run(made(32, 192), 2, out, img)
    np.testing.assert_array_equal(out.reshape(2, 2, 32), [np.roll(img.reshape(2, 32), -1, axis=1)] * 2)
    outside = "kernel k, block 0, thread 31: s is written at element 31 of shared memory, where it has 31"
    assert_fails(made(31, 192), outside)
    assert_fails(made(32, 196), "kernel k, block 0: s is at bytes 0 .. 323 of shared memory, of which there are 320")
    with pytest.raises(SimulationError, match="without a barrier in between"):
        run(made(32, 64), 1, np.zeros(64, np.float32), floats(64))


def test_a_barrier_is_missing_where_memory_is_shared() -> None:
    first = shared(
        "f",
        64,
        threads(64, store("f", T, number(1.0))),
        BARRIER,
        threads(64, store("out", B * 64 + T, load("f", index(63) - T))),
    )
    second = shared("g", 64, threads(64, store("g", T, number(2.0))))
    assert_fails(
        kernel(first, second, bytes_shared=256),
        "kernel k, block 0, thread 0: writes g at element 0, read by thread 63 without a barrier in between",
    )
    run(kernel(first, BARRIER, second, bytes_shared=256), 2, np.zeros(128, np.float32), floats(1))


def copied_ahead(waits: bool = True, barrier: bool = True, commits: bool = True) -> Kernel:
    """A kernel with rows in two slots: while one row is read, the next one is copied."""

    def copy(row: Expr) -> Stmt:
        return threads(64, Store("s", (row % 2 * 64 + T,), load("img", row * 64 + T), manner=Manner.ASYNCHRONOUS))

    group = [COMMIT_GROUP] if commits else []
    ready = [*([wait_group(0)] if waits else []), *([BARRIER] if barrier else [])]
    body = Alloc("s", FLOAT32, index(128), Memory.SHARED, ZERO, Block((
        copy(ZERO), *group,
        serial(
            4, *ready, If(K < 3, copy(K + 1)), *group,
            threads(64, store("out", (B * 4 + K) * 64 + T, load("s", K % 2 * 64 + (T + 1) % 64))),
        ),
    )), 2)  # fmt: skip
    return kernel(body, bytes_shared=512)


def test_asynchronous_copies_are_waited_for() -> None:
    img, out = floats(256), np.zeros(512, np.float32)
    run(copied_ahead(), 2, out, img)
    np.testing.assert_array_equal(out.reshape(2, 4, 64), [np.roll(img.reshape(4, 64), -1, axis=1)] * 2)
    early = "reads s at element 1, to which a copy is on its way that nobody has waited for"
    assert_fails(copied_ahead(waits=False), f"kernel k, block 0, thread 0: {early}")
    assert_fails(copied_ahead(commits=False), f"kernel k, block 0, thread 0: {early}")
    assert_fails(
        copied_ahead(barrier=False),
        "kernel k, block 0, thread 0: reads s at element 1, written by thread 1 without a barrier in between",
    )


def test_a_barrier_comes_behind_the_wait() -> None:
    """Other threads see the copies that a thread has waited for only after a barrier that follows the wait."""
    copy = threads(64, Store("s", (T,), load("img", T), manner=Manner.ASYNCHRONOUS))
    body = shared(
        "s",
        64,
        copy,
        COMMIT_GROUP,
        BARRIER,
        wait_group(0),
        threads(64, store("out", B * 64 + T, load("s", index(63) - T))),
    )
    assert_fails(
        kernel(body, bytes_shared=256),
        "kernel k, block 0, thread 0: reads s at element 63, written by thread 63 without a barrier in between",
    )


def test_all_but_the_last_groups_are_waited_for() -> None:
    def copy(k: int) -> Stmt:
        return threads(64, Store("s", (T + 64 * k,), load("img", T + 64 * k), manner=Manner.ASYNCHRONOUS))

    copies = [s for k in range(3) for s in (copy(k), COMMIT_GROUP)]

    def read(k: int) -> Kernel:
        used = threads(64, store("out", B * 64 + T, load("s", index(63 + 64 * k) - T)))
        return kernel(shared("s", 192, *copies, wait_group(1), BARRIER, used), bytes_shared=768)

    run(read(1), 2, np.zeros(128, np.float32), floats(192))
    assert_fails(
        read(2),
        "kernel k, block 0, thread 0: reads s at element 191, to which a copy is on its way that nobody has waited for",
    )


def combine(buffer: str, at: Expr, value: Expr) -> Store:
    return Store(buffer, (at,), load(buffer, at) + value, None, Manner.ATOMIC)


def test_threads_combine_one_place() -> None:
    """Atomic updates of one element do not race with each other, but they race with plain accesses."""
    meet = threads(64, combine("s", T // 2, load("img", T)))
    begin, end = threads(32, store("s", T, number(0.0))), threads(32, store("out", B * 32 + T, load("s", T)))

    def made(*body: Stmt) -> Kernel:
        return kernel(shared("s", 32, *body), bytes_shared=128)

    out, img = np.zeros(32, np.float32), floats(64)
    run(made(begin, BARRIER, meet, meet, BARRIER, end), 1, out, img)
    np.testing.assert_allclose(out, 2 * img.reshape(32, 2).sum(axis=1), rtol=1e-6)
    combined = "kernel k, block 0, thread 1: combines s at element 0, written by thread 0 without a barrier in between"
    assert_fails(made(begin, meet, BARRIER, end), combined)
    assert_fails(
        made(begin, BARRIER, meet, end),
        "kernel k, block 0, thread 0: reads s at element 0, written by several threads without a barrier in between",
    )
    assert_fails(
        made(meet), "kernel k, block 0, thread 0: s is read at element 0 of shared memory, which nobody has written"
    )


def test_a_thread_reads_what_it_alone_has_combined() -> None:
    """Without a barrier, a thread may read an element that only it has updated atomically, but not one that another
    thread has updated."""
    add = threads(32, store("s", T, number(1.0)), combine("s", T, load("img", T)))

    def made(place: Expr) -> Kernel:
        return kernel(shared("s", 32, add, threads(32, store("out", T, load("s", place)))), bytes_shared=128)

    out, img = np.zeros(32, np.float32), floats(32)
    run(made(T), 1, out, img)
    np.testing.assert_array_equal(out, img + 1)
    assert_fails(
        made((T + 1) % 32),
        "kernel k, block 0, thread 0: reads s at element 1, written by thread 1 without a barrier in between",
        blocks=1,
    )


def test_blocks_combine_one_place() -> None:
    first = kernel(threads(32, store("out", B * 32 + T, number(0.0))))
    out, img = np.zeros(64, np.float32), floats(64)
    run(first, 2, out, img)
    meet = threads(64, combine("out", T // 2, load("img", T)))
    assert_fails(
        kernel(meet, BARRIER, threads(32, store("out", T, number(1.0)))),
        "kernel k, block 0, thread 0: out is combined at element 0 of its memory, which nobody has written",
    )


def test_two_threads_write_one_place() -> None:
    text = "kernel k, block 0, thread 0: writes s at element 0, written by thread 1 without a barrier in between"
    values = load("img", T)
    assert_fails(kernel(shared("s", 32, threads(64, store("s", T // 2, values))), bytes_shared=128), text)
    # Threads may write the same value in one thread loop, but not in two.
    same = store("s", T // 2, load("img", T // 2))
    run(kernel(shared("s", 32, threads(64, same)), bytes_shared=128), 1, np.zeros(1, np.float32), floats(64))
    run(kernel(shared("s", 32, threads(64, same, same)), bytes_shared=128), 1, np.zeros(1, np.float32), floats(64))
    other = threads(64, store("s", index(31) - T // 2, load("img", index(31) - T // 2)))
    assert_fails(
        kernel(shared("s", 32, threads(64, same), other), bytes_shared=128),
        "kernel k, block 0, thread 0: writes s at element 31, written by thread 63 without a barrier in between",
    )


def test_bytes_of_one_word_are_different_places() -> None:
    each = threads(64, store("s", T, load("img", T, UINT8)))
    body = shared("s", 64, each, BARRIER, threads(64, store("out", T, load("s", T, UINT8))), t=UINT8)
    out, img = np.zeros(64, np.uint8), np.arange(64, dtype=np.uint8)
    run(kernel(body, buffers=(("out", UINT8), ("img", UINT8)), bytes_shared=64), 1, out, img)
    assert (out == img).all()


def test_threads_race_in_global_memory() -> None:
    body = [
        threads(64, store("out", B * 64 + T, number(1.0))),
        threads(64, store("out", B * 64 + T, load("out", B * 64 + (T + 1) % 64) + number(1.0))),
    ]
    text = "kernel k, block 0, thread 0: reads out at element 1, written by thread 1 without a barrier in between"
    assert_fails(kernel(*body), text)
    text = "kernel k, block 0, thread 0: writes out at element 0, read by thread 63 without a barrier in between"
    assert_fails(kernel(body[0], BARRIER, body[1]), text)


def test_blocks_race() -> None:
    value = load("img", B)
    assert_fails(
        kernel(threads(64, store("out", B * 63 + T, value))),
        "kernel k, block 0, thread 63: writes out at element 63, written by block 1 in the same launch",
    )
    run(kernel(threads(64, store("out", B * 63 + T, number(3.0)))), 2, np.zeros(127, np.float32), floats(1))
    next_block = load("out", (B * 64 + T + 64) % 128)
    own = threads(64, store("out", B * 64 + T, value))
    assert_fails(
        kernel(own, BARRIER, threads(64, store("out", B * 64 + T, next_block))),
        "kernel k, block 0, thread 0: reads out at element 64, written by block 1 in the same launch",
    )


def test_blocks_of_different_lots_race() -> None:
    assert_fails(
        kernel(threads(64, store("out", B % 1025 * 64 + T, load("img", B)))),
        "kernel k, block 1025, thread 0: writes out at element 0, written by block 0 in the same launch",
        blocks=1026,
        img=1026,
        out=1025 * 64,
    )


@pytest.mark.parametrize(("offset", "who"), [(0, "block 1, thread 36"), (-3, "block 0, thread 0")])
def test_outside_of_global_memory(offset: int, who: str) -> None:
    at, element = B * 64 + T + offset, 100 if offset == 0 else offset
    assert_fails(
        kernel(threads(64, store("out", B * 64 + T, load("img", at)))),
        f"kernel k, {who}: img is read at element {element} of its memory, which has elements 0 .. 99",
        img=100,
    )
    assert_fails(
        kernel(threads(64, store("out", at, number(1.0)))),
        f"kernel k, {who}: out is written at element {element} of its memory, which has elements 0 .. 99",
        out=100,
    )


def test_inactive_threads_may_be_anywhere() -> None:
    inside = op("lt", B * 64 + T, index(100))
    body = threads(64, If(inside, store("out", B * 64 + T, load("img", B * 64 + T))))
    img, out = floats(100), np.zeros(100, np.float32)
    run(kernel(body), 2, out, img)
    np.testing.assert_array_equal(out, img)


def test_between_the_elements_of_an_array() -> None:
    whole = floats(10, 64)
    k = kernel(threads(64, store("out", T, load("img", T))))
    with pytest.raises(
        SimulationError,
        match=r"thread 32: img is read at element 32 of its memory, which has elements "
        r"0 \.\. 607, but not this one",
    ):
        run(k, 1, np.zeros(64, np.float32), whole[:, :32])


def test_outside_of_shared_memory_and_registers() -> None:
    assert_fails(
        kernel(shared("s", 60, threads(64, store("s", T, number(1.0)))), bytes_shared=240),
        "kernel k, block 0, thread 60: s is written at element 60 of shared memory, where it has 60",
    )
    assert_fails(
        kernel(shared("s", 64, threads(64, store("s", T, number(1.0)))), bytes_shared=240),
        "kernel k, block 0: s is at bytes 0 .. 255 of shared memory, of which there are 240",
    )
    assert_fails(
        kernel(threads(64, registers("r", 2, store("r", T // 16, number(1.0))))),
        "kernel k, block 0, thread 32: r is written at element 2 of registers, where it has 2",
    )


def test_read_before_written() -> None:
    some = threads(63, store("s", T, number(1.0)))
    every = threads(64, store("out", B * 64 + T, load("s", T)))
    assert_fails(
        kernel(shared("s", 64, some, BARRIER, every), bytes_shared=256),
        "kernel k, block 0, thread 63: s is read at element 63 of shared memory, which nobody has written",
    )
    once = If(op("eq", T, index(5)), store("r", ZERO, number(1.0)))
    assert_fails(
        kernel(threads(64, registers("r", 1, once, store("out", B * 64 + T, load("r", ZERO))))),
        "kernel k, block 0, thread 0: r is read at element 0 of registers, which the thread has not written",
    )
    assert_fails(
        kernel(threads(64, store("out", B * 64 + T, load("out", B * 64 + T)))),
        "kernel k, block 0, thread 0: out is read at element 0 of its memory, which nobody has written",
    )


def test_values_do_not_outlive_a_buffer() -> None:
    first = If(op("eq", K, ZERO), threads(64, store("s", T, number(1.0))))
    every = threads(64, store("out", (B * 2 + K) * 64 + T, load("s", T)))
    assert_fails(
        kernel(serial(2, shared("s", 64, first, BARRIER, every)), bytes_shared=256),
        "kernel k, block 0, thread 0: s is read at element 0 of shared memory, which nobody has written",
    )


def test_buffers_that_share_memory_live_one_after_the_other() -> None:
    inner = shared("g", 32, threads(32, store("g", T, number(2.0))), BARRIER, offset=128)
    body = shared(
        "f",
        64,
        threads(64, store("f", T, number(1.0))),
        BARRIER,
        inner,
        threads(64, store("out", B * 64 + T, load("f", T))),
    )
    assert_fails(
        kernel(body, bytes_shared=256),
        "kernel k, block 0, thread 32: f is read at element 32 of shared memory, which holds a value of g",
    )


def test_threads_do_not_all_come_to_a_barrier() -> None:
    mine = registers(
        "r", 1, threads(64, store("r", ZERO, load("img", T))), If(op("lt", load("r", ZERO), number(0.5)), BARRIER)
    )
    found = assert_fails(kernel(mine), "kernel k, block 0, thread 1: waits at a barrier that thread 0 does not come to")
    assert (found.kernel, found.block, found.thread) == ("k", 0, 1)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)


def test_threads_leave_a_loop_with_a_barrier_apart() -> None:
    times = op("select", op("lt", load("r", ZERO), number(0.5)), index(2), index(1))
    bounds = registers("r", 1, threads(64, store("r", ZERO, load("img", T))), serial(times, BARRIER))
    assert_fails(kernel(bounds), "kernel k, block 0, thread 1: waits at a barrier that thread 0 does not come to")


def test_no_barrier_in_a_thread_loop() -> None:
    assert_fails(
        kernel(threads(64, BARRIER)), "kernel k, block 0: there is a barrier in loop t, which threads leave apart"
    )


def test_a_lane_that_is_not_active_is_asked() -> None:
    neighbour = shuffle(load("img", T), (T + 1) % 32)
    assert_fails(
        kernel(threads(64, If(T < 40, store("out", B * 64 + T, neighbour)))),
        "kernel k, block 0, thread 32: executes shfl, which thread 40 of its warp does not take part in",
    )
    run(kernel(threads(64, If(T < 32, store("out", B * 64 + T, neighbour)))), 2, np.zeros(128, np.float32), floats(64))


def test_a_lane_that_no_warp_has_is_asked() -> None:
    assert_fails(
        kernel(threads(64, store("out", B * 64 + T, shuffle(load("img", T), T % 32 + 1)))),
        "kernel k, block 0: warp 0 executes shfl with lane[i] = 32; value has elements 0 .. 31",
    )


def test_floats_of_equal_value_and_other_bits_are_not_the_same() -> None:
    zeros = op("mul", number(0.0), op("select", op("lt", T, index(1)), number(-1.0), number(1.0)))
    body = shared("s", 1, threads(64, store("s", ZERO, zeros)))
    assert_fails(
        kernel(body, bytes_shared=4),
        "kernel k, block 0, thread 0: writes s at element 0, written by thread 63 without a barrier in between",
    )


@pytest.mark.parametrize("shape", [(2**31 - 1, 2**31 - 1), (3, 2), (2, 2, 2)])
def test_arrays_that_come_to_their_elements_again(shape: tuple[int, ...]) -> None:
    """Arrays may have more indices than memory has elements, and their size does not determine which elements are
    theirs."""
    steps = {(2**31 - 1, 2**31 - 1): (0, 0), (3, 2): (0, 5), (2, 2, 2): (1, 1, 5)}[shape]
    memory = np.arange(8, dtype=np.uint8)
    array = np.lib.stride_tricks.as_strided(memory, shape, steps)
    found = Global.of_array("img", UINT8, array, writable=False)
    own = {sum(map(mul, place, steps)) for place in np.ndindex(*(min(n, 9) for n in shape))}
    assert found.legal is None or set(np.flatnonzero(found.legal)) == own
    assert found.legal is not None or own == set(range(len(found.data)))
