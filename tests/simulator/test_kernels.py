"""The results of simulated kernels."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.expr.build import ramp
from pantile.expr.nodes import Broadcast, Cast, Load, Shuffle, op, var
from pantile.expr.types import ALL, BFLOAT16, FLOAT32, INDEX, INT32, UINT8, DType
from pantile.ir.instructions import BARRIER, shuffle
from pantile.ir.nodes import If, Kernel, Let, Stmt
from pantile.reference.operations import convert

from .hand_built import ZERO, B, K, T, index, kernel, load, number, registers, run, serial, shared, store, threads


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).random(shape, dtype=np.float32)


def blur_rows(barrier: bool = True) -> Kernel:
    """out[x] = img[x] + img[x + 1] + img[x + 2], by blocks of 64 threads, each with a tile of 128 in shared memory."""
    tile = [load("tile", T + i) for i in range(3)]
    return kernel(
        shared(
            "tile",
            130,
            threads(130, store("tile", T, load("img", B * 128 + T))),
            *([BARRIER] if barrier else []),
            threads(128, store("out", B * 128 + T, tile[0] + tile[1] + tile[2]), name="t"),
        ),
        bytes_shared=520,
    )


def test_threads_take_turns_through_shared_memory() -> None:
    img, out = floats(128 * 40 + 2), np.zeros(128 * 40, np.float32)
    run(blur_rows(), 40, out, img)
    np.testing.assert_array_equal(out, img[:-2] + img[1:-1] + img[2:])


def test_blocks_come_in_lots() -> None:
    blocks = 3000
    img, out = floats(128 * blocks + 2), np.zeros(128 * blocks, np.float32)
    run(blur_rows(), blocks, out, img)
    np.testing.assert_array_equal(out, img[:-2] + img[1:-1] + img[2:])


def test_registers_live_across_thread_loops() -> None:
    body = registers(
        "r",
        2,
        threads(128, store("r", T // 64, load("img", B * 128 + T) * number(2.0))),
        threads(128, store("out", B * 128 + T, load("r", T // 64) + number(1.0))),
    )
    img, out = floats(512), np.zeros(512, np.float32)
    run(kernel(body), 4, out, img)
    np.testing.assert_array_equal(out, img * 2 + 1)


def test_loops_whose_bounds_threads_do_not_share() -> None:
    """out[t] is the sum of t numbers from img[t] on, if t is odd."""
    at = B * 64 + T
    count = registers(
        "sum",
        1,
        store("sum", ZERO, number(0.0)),
        If(
            op("eq", T % 2, index(1)),
            serial(T, store("sum", ZERO, load("sum", ZERO) + load("img", at + K))),
            store("sum", ZERO, number(-1.0)),
        ),
        store("out", at, load("sum", ZERO)),
    )
    img, out = np.arange(300, dtype=np.float32), np.zeros(128, np.float32)
    run(kernel(threads(64, count)), 2, out, img)
    expected = [img[p : p + p % 64].sum() if p % 2 else -1 for p in range(128)]
    np.testing.assert_array_equal(out, expected)


def test_blocks_may_branch_each_their_way() -> None:
    edge = op("lt", B, index(1))
    inner = serial(B + 1, BARRIER, threads(64, store("out", B * 64 + T, load("img", ZERO) * Cast(FLOAT32, 1, B))))
    img, out = np.ones(1, np.float32), np.zeros(192, np.float32)
    run(kernel(If(edge, threads(64, store("out", T, number(9.0))), inner)), 3, out, img)
    np.testing.assert_array_equal(out.reshape(3, 64)[:, 0], [9, 1, 2])


def test_vectors() -> None:
    at = ramp((B * 64 + T) * 4, 1, 4)
    turned = Shuffle(FLOAT32, 4, (load("img", at),), (3, 2, 1, 0))
    value = turned + Broadcast(FLOAT32, 4, Cast(FLOAT32, 1, T))
    mask = op("ne", at % 4, op("mod", ramp(ZERO, 0, 4), ramp(index(4), 0, 4)))
    body = threads(64, Let("v", value, store("out", at, var("v", FLOAT32, 4), mask)))
    img, out = floats(512), np.zeros(512, np.float32)
    run(kernel(body), 2, out, img)
    expected = img.reshape(2, 64, 4)[:, :, ::-1] + np.arange(64, dtype=np.float32)[:, None]
    expected[:, :, 0] = 0
    np.testing.assert_array_equal(out, expected.reshape(-1))


def test_masked_lanes_load_zeros() -> None:
    at, last = ramp(T * 2, 1, 2), Broadcast(INDEX, 2, index(101))
    body = threads(64, store("out", at, load("img", at, mask=op("lt", at, last))))
    img, out = floats(101), np.ones(128, np.float32)
    run(kernel(body), 1, out, img)
    np.testing.assert_array_equal(out, np.concatenate([img, np.zeros(27, np.float32)]))


def test_a_vector_of_one_place() -> None:
    body = threads(64, store("out", ramp(T * 2, 1, 2), Load(FLOAT32, 2, "img", (T,))))
    img, out = floats(64), np.zeros(128, np.float32)
    run(kernel(body), 1, out, img)
    np.testing.assert_array_equal(out, np.repeat(img, 2))


@pytest.mark.parametrize("t", ALL, ids=str)
def test_all_types_go_through_all_memories(t: DType) -> None:
    values = np.arange(64).astype(np.float32)
    bits = convert(values, FLOAT32, t)
    img = (bits.view(np.uint32) >> 16).astype(np.uint16) if t is BFLOAT16 else bits.astype(t.numpy)
    out = np.zeros(64, t.numpy)
    body = shared(
        "s",
        64,
        threads(64, registers("r", 1, store("r", ZERO, load("img", T, t)), store("s", T, load("r", ZERO, t)), t=t)),
        BARRIER,
        threads(64, store("out", T, load("s", index(63) - T, t))),
        t=t,
    )
    run(kernel(body, buffers=(("out", t), ("img", t)), bytes_shared=64 * t.bytes), 1, out, img)
    np.testing.assert_array_equal(out, img[::-1])


def test_lanes_exchange_values() -> None:
    """A butterfly reduction: in the end, all lanes have the sum."""
    lane, stmts = T % 32, list[Stmt]()
    for k, distance in enumerate((16, 8, 4, 2, 1)):
        other = shuffle(load("r", index(k)), op("xor", lane, index(distance)))
        stmts.append(store("r", index(k + 1), load("r", index(k)) + other))
    last = store("out", B * 64 + T, load("r", index(5)))
    body = registers("r", 6, store("r", index(0), load("img", T)), *stmts, last)
    out, img = np.zeros(128, np.float32), np.arange(64, dtype=np.float32)
    run(kernel(threads(64, body)), 2, out, img)
    np.testing.assert_array_equal(out, np.tile(np.repeat([img[:32].sum(), img[32:].sum()], 32), 2))


def test_indices_have_the_bits_of_the_device() -> None:
    """On the device, indices have 32 bits, so 2**31 is negative."""
    far = Cast(INT32, 1, (T + (1 << 30)) * 2)
    out = np.zeros(64, np.int32)
    run(kernel(threads(64, store("out", T, far)), buffers=(("out", INT32),)), 1, out)
    assert out[0] == -(2**31)


def test_scalars_and_where_blocks_begin() -> None:
    gain, first = var("gain", FLOAT32), var("first")
    k = kernel(
        threads(32, store("out", B * 32 + T, gain)), buffers=(("out", FLOAT32),), block=32, scalars=(first, gain)
    )
    k = Kernel(k.name, k.var, first, k.scalars, k.buffers, k.body, k.threads, k.shared)
    out = np.zeros(160, np.float32)
    run(k, 2, out, scalars=(3, 0.1))
    np.testing.assert_array_equal(out, np.repeat(np.float32([0, 0, 0, 0.1, 0.1]), 32))


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[::2], np.s_[4:68], np.s_[::-2]], ids=str)
def test_arrays_with_any_strides_are_used_in_place(view: slice) -> None:
    img, whole = np.arange(128, dtype=np.uint8)[view][:64], np.zeros(128, np.uint8)
    out = whole[view][:64]
    copy = store("out", T * out.strides[0], load("img", T * img.strides[0], UINT8))
    run(kernel(threads(64, copy), buffers=(("out", UINT8), ("img", UINT8))), 1, out, img)
    np.testing.assert_array_equal(out, img)


def test_axes_with_strides_of_both_signs() -> None:
    img = np.arange(256, dtype=np.uint8).reshape(16, 16)[:8, ::-1][:, 4:12]
    out = np.zeros(64, np.uint8)
    at = T // 8 * 16 - T % 8
    run(
        kernel(threads(64, store("out", T, load("img", at, UINT8))), buffers=(("out", UINT8), ("img", UINT8))),
        1,
        out,
        img,
    )
    np.testing.assert_array_equal(out, img.reshape(-1))
