"""What kernels of blocks compute, run by this machine's threads: frames, thread loops, barriers, indices of 32 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pantile.expr.build import cast, ramp
from pantile.expr.nodes import Cast, Const, Expr, Load, Op, const, op, var
from pantile.expr.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INDEX,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT32,
    UINT64,
    DType,
)
from pantile.ir.instructions import BARRIER
from pantile.ir.nodes import Block, If, Let, ScalarArg, Store
from pantile.target.kinds import CacheOperator

from .emulated import run
from .hand_built import b, i, load, p, program, registers, serial, shared, store, threads, w

THREADS = 32
both_widths = pytest.mark.parametrize("index_bits", [32, 64])


@both_widths
@pytest.mark.parametrize("extent", [5, 32, 33, 100, 256, 300, 1000])
def test_every_point_is_computed_once(extent: int, index_bits: int) -> None:
    img, out = np.arange(3 * extent, dtype=np.float32), np.zeros(3 * extent, np.float32)
    body = threads("p", extent, store("out", b * w + p, load("out", b * w + p) + load("img", b * w + p)))
    run(program(body, THREADS), {"img": img, "out": out}, [extent], 3, index_bits=index_bits)
    assert (out == img).all()


@pytest.mark.parametrize("t", [FLOAT32, FLOAT64, UINT8, FLOAT16, INT32])
@pytest.mark.parametrize(("lanes", "multiple"), [(1, 1), (2, 1), (2, 2), (3, 1), (4, 4), (16, 16), (16, 2)])
def test_loads_by_a_cache_operator_are_the_same_values(t: DType, lanes: int, multiple: int) -> None:
    body = threads("p", 32 // lanes, store("out", b * w + p * lanes, load("img", b * w + p * lanes, t, lanes)))
    made = program(body, THREADS, buffers={"img": t, "out": t}, multiples=[("img.stride.0", multiple)])
    (kernel,) = made.kernels
    buffers = tuple(replace(x, cached=CacheOperator.GLOBAL) for x in kernel.buffers)
    img = (np.arange(3 * 48) * 37 % 251).astype(t.numpy)
    out = np.zeros_like(img)
    run(replace(made, kernels=(replace(kernel, buffers=buffers),)), {"img": img, "out": out}, [48], 3)
    count = 32 // lanes * lanes
    assert (out.reshape(3, 48)[:, :count] == img.reshape(3, 48)[:, :count]).all()


@both_widths
def test_threads_meet_at_barriers(index_bits: int) -> None:
    """Rows are turned around, in memory of the block, several times."""
    q = var("q")
    fill = threads("p", 64, store("tile", p, load("img", b * w + p)))
    turn = threads("p", 64, store("other", p, load("tile", 63 - p)))
    back = threads("p", 64, store("tile", p, load("other", p) + 1.0))
    use = threads("q", 64, store("out", b * w + q, load("tile", q)))
    again = serial("k", 3, Block((turn, BARRIER, back, BARRIER)))
    body = shared("tile", 64, 0, shared("other", 64, 256, Block((fill, BARRIER, again, use))))
    img, out = np.random.default_rng(0).random((2, 64), np.float32), np.zeros((2, 64), np.float32)
    run(program(body, THREADS, 512), {"img": img, "out": out}, [64], 2, index_bits=index_bits)
    assert (out == img[:, ::-1] + 1 + 1 + 1).all()


def test_each_thread_has_its_registers() -> None:
    q = var("q")
    keep = threads("p", 64, store("own", p // THREADS, load("img", p)))
    use = threads("q", 64, store("out", q, load("own", q // THREADS) * 2.0))
    img, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(program(registers("own", 2, Block((keep, use))), THREADS, scalars=()), {"img": img, "out": out}, [])
    assert (out == img * 2).all()


def test_vectors_and_masks() -> None:
    mask = Op(BOOL, 4, "lt", (ramp(p * 4, 1, 4), ramp(i(101), 0, 4)))
    at = ramp(p * 4, 1, 4)
    value = Load(FLOAT32, 4, "img", (at,), mask)
    gathered = Load(FLOAT32, 4, "img", (ramp(3 - p % 4, 5, 4),))
    body = threads("p", 32, Store("out", (at,), value + gathered, mask))
    img, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    run(program(body, THREADS, scalars=()), {"img": img, "out": out}, [])
    point = np.arange(128)
    wanted = np.where(point < 101, img + img[3 - point // 4 % 4 + 5 * (point % 4)], 0)
    assert (out == wanted).all()


NUMBERS: list[tuple[DType, object]] = [
    (BOOL, True), (INT8, -5), (UINT8, 200), (INT32, -(2**31)), (UINT32, 2**32 - 1), (INT64, -(2**62)),
    (UINT64, 2**64 - 1), (FLOAT16, 0.5), (BFLOAT16, 1.001), (FLOAT32, 0.25), (FLOAT64, 1 / 3), (INDEX, -(2**31)),
]  # fmt: skip


@both_widths
def test_scalars_of_every_type(index_bits: int) -> None:
    """Each comes out of the frame as it was put in."""
    names = [f"s{k}" for k in range(len(NUMBERS))]
    scalars = [var(n, t) for n, (t, _) in zip(names, NUMBERS, strict=True)]
    body = threads("p", 1, Block(tuple([store("out", i(k), cast(FLOAT64, v)) for k, v in enumerate(scalars)])))
    made = program(
        body,
        THREADS,
        buffers={"img": FLOAT32, "out": FLOAT64},
        scalars=[(v, v) for v in scalars],
        params=[ScalarArg(v.name, v.dtype) for v in scalars],
    )
    out = np.zeros(len(NUMBERS))
    run(made, {"img": np.zeros(1, np.float32), "out": out}, [v for _, v in NUMBERS], index_bits=index_bits)  # type: ignore[misc]
    wanted = [float(v) if t is not BFLOAT16 else 1.0 for t, v in NUMBERS]  # type: ignore[arg-type]
    assert out.tolist() == wanted


# Indices that need more than 32 bits


def computed(e: Expr, t: DType = FLOAT64, **scalars: int) -> float:
    """An expression of p = 0, of an index type or another."""
    named = [(var(n), i(0)) for n in scalars]
    body = threads("p", 1, store("out", p, cast(t, e)))
    out = np.zeros(1, t.numpy)
    img = np.array([2**40 + 7], np.int64)
    made = program(body, THREADS, buffers={"img": INT64, "out": t}, scalars=named)
    run(made, {"img": img, "out": out}, list(scalars.values()))
    return float(out[0])


h, n = var("h"), var("n")
LARGE = {"h": 100_000, "n": 90_000}


def test_products_of_coordinates_are_exact_as_data() -> None:
    assert computed(h * n, **LARGE) == 9e9
    assert computed(h * n + h, **LARGE) == 9e9 + 1e5
    assert computed(h * 50_000, **LARGE) == 5e9
    assert computed(op("max", h * n, h), **LARGE) == 9e9
    assert computed((h * n) // n, **LARGE) == 100_000


def test_products_of_coordinates_are_compared_exactly() -> None:
    assert computed(op("select", h * h + n * n < 2**31, i(1), i(2)), **LARGE) == 2


def test_products_behind_names_are_exact_as_data() -> None:
    body = threads("p", 1, Let("area", h * n, store("out", p, cast(FLOAT64, var("area") + 1))))
    out = np.zeros(1)
    made = program(body, THREADS, buffers={"img": FLOAT32, "out": FLOAT64}, scalars=[(h, i(0)), (n, i(0))])
    run(made, {"img": np.zeros(1, np.float32), "out": out}, [100_000, 90_000])
    assert out[0] == 9e9 + 1


def test_data_that_is_wider_than_an_index_is_limited_exactly() -> None:
    data = Cast(INDEX, 1, Load(INT64, 1, "img", (p,)))  # 2**40 + 7
    assert computed(op("min", op("max", data, i(0)), h), **LARGE) == 100_000
    assert computed(data, **LARGE) == 2**40 + 7
    assert computed(data % 16, **LARGE) == 7
    assert computed(op("min", data, h) * 2 - n, **LARGE) == 110_000
    assert computed(op("select", data > 2**35, h, n), **LARGE) == 100_000


def test_what_is_cut_off_of_an_address_does_not_matter() -> None:
    """img[data - 2**40], where data is 2**40 + 3."""
    place = Cast(INDEX, 1, Load(INT64, 1, "places", (p,))) - Const(INDEX, 1, 2**40)
    body = threads("p", 4, store("out", p, Load(FLOAT32, 1, "img", (place,))))
    arrays = {
        "places": np.array([3, 0, 2, 1]) + 2**40,
        "img": np.arange(4, dtype=np.float32),
        "out": np.zeros(4, np.float32),
    }
    made = program(body, THREADS, buffers={"places": INT64, "img": FLOAT32, "out": FLOAT32}, scalars=())
    run(made, arrays, [], blocks=1)
    assert arrays["out"].tolist() == [3, 0, 2, 1]


@both_widths
def test_versions_of_code_name_indices_of_different_widths(index_bits: int) -> None:
    """Blocks inside of an array and at its edges share nodes and names: `low` is a coordinate in one version, and data
    of 64 bits in the other."""
    low, q = var("low"), var("q")
    use = Let("q", low + p, store("out", b * 4 + p, load("img", q)))
    data = Cast(INDEX, 1, Load(INT64, 1, "places", (b,))) - Const(INDEX, 1, 2**40)
    inside, edge = (Let("low", first, use) for first in (b * 4, data))
    for versions in (If(b < 1, inside, edge), If(b > 0, edge, inside)):
        arrays = {
            "places": np.array([0, 2**40 + 1]),
            "img": np.arange(8, dtype=np.float32),
            "out": np.zeros(8, np.float32),
        }
        made = program(
            threads("p", 4, versions), THREADS, buffers={"places": INT64, "img": FLOAT32, "out": FLOAT32}, scalars=()
        )
        run(made, arrays, [], 2, index_bits=index_bits)
        assert arrays["out"].tolist() == [0, 1, 2, 3, 1, 2, 3, 4]


def test_branches_and_loops() -> None:
    """Triangles: each thread goes through as many iterations as its number says."""
    k = var("k")
    add = store("sum", i(0), load("sum", i(0)) + load("img", k))
    odd = If((k % 2).__eq__(1), add)
    parts = Block((store("sum", i(0), const(0.0, FLOAT32)), serial("k", p, odd), store("out", p, load("sum", i(0)))))
    img, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(program(threads("p", 32, registers("sum", 1, parts)), THREADS, scalars=()), {"img": img, "out": out}, [])
    assert out.tolist() == [sum(range(1, t, 2)) for t in range(32)]
