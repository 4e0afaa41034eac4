"""The simulator's checks of products by warpgroups: fences, waits, and agreement of the four warps."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.expr.build import ramp
from pantile.expr.nodes import Expr, Load, Shuffle, Var, const
from pantile.expr.types import FLOAT16, FLOAT32
from pantile.ir.instructions import BARRIER, FENCE_PROXY, wait_matrices, warpgroup_product
from pantile.ir.nodes import Block, If, Kernel, Let, Stmt, Store
from pantile.simulator import SimulationError
from pantile.target.wgmma import CoreMatrices, wgmma

from .hand_built import ZERO, T, index, kernel, load, run, shared, store, threads

COLUMNS, TERMS = 24, 16
SIZE = (64 + COLUMNS) * TERMS
BEHIND_A = index(64 * TERMS)
OF = wgmma("float16", "float32", COLUMNS, TERMS)


def row(first: Expr) -> Load:
    return Load(FLOAT16, 8, "s", (ramp(first, 1, 8),))


def begun(then: Stmt, a: Expr = ZERO, b: Expr = BEHIND_A, name: str = "d") -> Stmt:
    """Begin a product of matrices in shared memory, added to zeros."""
    assert OF is not None
    c = Shuffle(FLOAT32, 12, (const(0.0, FLOAT32),), (0,) * 12)
    apart = [CoreMatrices(64, 8 * rows, False) for rows in (64, COLUMNS)]
    return Let(name, warpgroup_product(OF, row(a), apart[0], row(b), apart[1], c), then)


def waited(products: int = 0, name: str = "d") -> Stmt:
    d = wait_matrices(Var(FLOAT32, 12, name), products)
    return Let("e", d, Store("out", (ramp(T * 12, 1, 12),), Var(FLOAT32, 12, "e")))


COPY = threads(SIZE, store("s", T, load("img", T, FLOAT16)))


def multiplied(*between: Stmt, threads_: int = 128, inside: Stmt | None = None) -> Kernel:
    work = threads(threads_, begun(waited()) if inside is None else inside)
    body = shared("s", SIZE, COPY, *between, work, t=FLOAT16)
    return kernel(body, buffers=(("out", FLOAT32), ("img", FLOAT16)), block=128, bytes_shared=2 * SIZE)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return np.zeros(128 * 12, np.float32), rng.integers(-3, 4, SIZE).astype(np.float16)


def assert_fails(k: Kernel, text: str) -> None:
    with pytest.raises(SimulationError) as caught:
        run(k, 1, *arrays())
    assert text in str(caught.value)


def test_a_product() -> None:
    out, img = arrays()
    run(multiplied(FENCE_PROXY, BARRIER), 1, out, img)
    a = img[: 64 * TERMS].reshape(2, 64, 8).transpose(1, 0, 2).reshape(64, TERMS).astype(np.float32)
    b = img[64 * TERMS :].reshape(2, COLUMNS, 8).transpose(1, 0, 2).reshape(COLUMNS, TERMS).astype(np.float32)
    # Thread 32*w + 4*r + c has rows 16*w + r and 16*w + r + 8, and columns 2*c and 2*c + 1 of every 8.
    d = (a @ b.T).reshape(4, 2, 8, 3, 4, 2).transpose(0, 2, 4, 3, 1, 5)
    np.testing.assert_array_equal(out, d.reshape(-1))


def test_threads_fence_what_they_have_written() -> None:
    text = "s is multiplied at element 0, which nobody has fenced since it was written"
    assert_fails(multiplied(BARRIER), text)


def test_a_barrier_comes_behind_the_fence() -> None:
    assert_fails(multiplied(FENCE_PROXY), "written by thread")


def test_nobody_writes_to_matrices_in_flight() -> None:
    again = threads(SIZE, store("s", T, load("img", T, FLOAT16)))
    held = begun(Block(()))
    body = shared("s", SIZE, COPY, FENCE_PROXY, BARRIER, threads(128, held), BARRIER, again, t=FLOAT16)
    k = kernel(body, buffers=(("out", FLOAT32), ("img", FLOAT16)), block=128, bytes_shared=2 * SIZE)
    assert_fails(k, "writes s at element 0, which a warpgroup multiplies and has not waited for")


def test_the_last_products_are_not_waited_for() -> None:
    """After a wait for all but one product, the last of two products may still be in flight."""
    again = threads(SIZE, store("s", T, load("img", T, FLOAT16)))

    def two(products: int) -> Kernel:
        inside = begun(begun(waited(products), name="d"), name="c")
        body = shared("s", SIZE, COPY, FENCE_PROXY, BARRIER, threads(128, inside), BARRIER, again, t=FLOAT16)
        return kernel(body, buffers=(("out", FLOAT32), ("img", FLOAT16)), block=128, bytes_shared=2 * SIZE)

    run(two(0), 1, *arrays())
    assert_fails(two(1), "which a warpgroup multiplies and has not waited for")


def test_others_wait_for_a_barrier_before_they_write() -> None:
    again = threads(SIZE, store("s", T, load("img", T, FLOAT16)))
    body = shared("s", SIZE, COPY, FENCE_PROXY, BARRIER, threads(128, begun(waited())), again, t=FLOAT16)
    k = kernel(body, buffers=(("out", FLOAT32), ("img", FLOAT16)), block=128, bytes_shared=2 * SIZE)
    assert_fails(k, "writes s at element 1, read by thread 0 without a barrier in between")


def test_the_warps_of_a_group_execute_it_together() -> None:
    some = If(T < 96, begun(waited()))
    assert_fails(multiplied(FENCE_PROXY, BARRIER, inside=some), "of its warpgroup does not take part in")


def test_the_warps_of_a_group_multiply_the_same_matrices() -> None:
    other = begun(waited(), a=T // 32 * 8)
    assert_fails(multiplied(FENCE_PROXY, BARRIER, inside=other), "of another matrix than others of its warpgroup")


def test_matrices_are_aligned() -> None:
    other = begun(waited(), b=index(64 * TERMS - 4))
    text = "multiplies a matrix that begins at no multiple of 16 bytes"
    assert_fails(multiplied(FENCE_PROXY, BARRIER, inside=other), text)


def test_matrices_lie_inside() -> None:
    other = begun(waited(), b=index(64 * TERMS + 8))
    assert_fails(multiplied(FENCE_PROXY, BARRIER, inside=other), "of shared memory, where it has")
