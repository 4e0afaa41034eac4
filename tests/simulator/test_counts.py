"""Counts of launches, compared with known values."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.expr.build import ramp
from pantile.expr.types import FLOAT32, FLOAT64, UINT8, DType
from pantile.ir.instructions import BARRIER
from pantile.ir.nodes import Kernel
from pantile.simulator import Counts, counting, occupancy, table

from .hand_built import ZERO, B, T, kernel, load, number, registers, run, shared, store, threads
from .test_kernels import blur_rows, floats


def counted(k: Kernel, blocks: int, *arrays: np.ndarray) -> Counts:
    with counting() as counts:
        run(k, blocks, *arrays)
    (found,) = counts
    return found


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"), [(1, 0, 4), (1, 3, 5), (2, 0, 8), (8, 0, 32), (100, 0, 32), (0, 7, 1)]
)
def test_sectors_of_global_memory(stride: int, offset: int, sectors: int) -> None:
    body = threads(32, store("out", B * 32 + T, load("img", T * stride + offset)))
    found = counted(kernel(body, block=32), 3, np.zeros(96, np.float32), floats(4000)).traffic
    assert found.global_sectors == {"load": 3 * sectors, "store": 3 * 4}
    assert found.global_accesses == {"load": 3, "store": 3}
    assert found.global_bytes["load"] == 3 * 128


@pytest.mark.parametrize(("t", "sectors"), [(UINT8, 1), (FLOAT32, 4), (FLOAT64, 8)], ids=str)
def test_sectors_of_types(t: DType, sectors: int) -> None:
    body = threads(32, store("out", T, load("img", T, t)))
    k = kernel(body, block=32, buffers=(("out", t), ("img", t)))
    found = counted(k, 1, np.zeros(32, t.numpy), np.ones(32, t.numpy)).traffic
    assert found.global_sectors == {"load": sectors, "store": sectors}


def test_dense_vectors_are_one_access() -> None:
    dense, apart = ramp(T * 4, 1, 4), ramp(T, 32, 4)
    arrays = np.zeros(128, np.float32), floats(128)
    found = counted(kernel(threads(32, store("out", dense, load("img", dense))), block=32), 1, *arrays).traffic
    assert found.global_accesses["load"] == 1 and found.global_sectors["load"] == 16
    found = counted(kernel(threads(32, store("out", apart, load("img", apart))), block=32), 1, *arrays).traffic
    assert found.global_accesses["load"] == 4 and found.global_sectors["load"] == 16


def test_inactive_threads_move_nothing() -> None:
    found = counted(kernel(threads(40, store("out", T, load("img", T)))), 1, np.zeros(40, np.float32), floats(40))
    assert found.traffic.global_sectors == {"load": 5, "store": 5} and found.traffic.global_accesses["load"] == 2


@pytest.mark.parametrize(("stride", "passes"), [(1, 1), (2, 2), (16, 16), (32, 32), (33, 1), (0, 1)])
def test_passes_over_banks(stride: int, passes: int) -> None:
    """Reads of a column conflict in a 32x32 square, but not if rows have 33 elements."""
    column = threads(32, store("out", T, load("s", T * stride)))
    fill = threads(32 * 33, store("s", T, load("img", T)))
    body = shared("s", 32 * 33, fill, BARRIER, column)
    k = kernel(body, block=32, bytes_shared=32 * 33 * 4)
    found = counted(k, 2, np.zeros(32, np.float32), floats(32 * 33)).traffic
    assert found.shared_passes["load"] == 2 * passes and found.bank_conflicts["load"] == 2 * (passes - 1)
    assert found.bank_conflicts["store"] == 0 and found.shared_passes["store"] == 2 * 33


def test_long_elements_take_turns_without_conflicts() -> None:
    fill = threads(32, store("s", T, load("img", T, FLOAT64)))
    k = kernel(shared("s", 32, fill, t=FLOAT64), block=32, buffers=(("img", FLOAT64),), bytes_shared=256)
    found = counted(k, 1, np.ones(32)).traffic
    assert found.shared_passes["store"] == 2 and found.bank_conflicts["store"] == 0


def test_barriers_and_operations() -> None:
    found = counted(blur_rows(), 4, np.zeros(512, np.float32), floats(514))
    assert (found.blocks, found.threads, found.barriers, found.shared_bytes) == (4, 64, 4, 520)
    assert found.operations["float"] == 4 * 128 * 2
    assert found.traffic.global_sectors["load"] == 4 * 17 and found.traffic.global_sectors["store"] == 4 * 16


def test_nothing_is_counted_unless_asked() -> None:
    with counting() as counts:
        pass
    run(blur_rows(), 1, np.zeros(128, np.float32), floats(130))
    assert counts == []


def test_occupancy() -> None:
    assert occupancy(256, 0, 32) == (8, 1.0, "threads")
    assert occupancy(32, 0, 32) == (32, 0.5, "blocks")
    assert occupancy(256, 0, 128) == (2, 0.25, "registers")
    assert occupancy(256, 100 << 10, 32) == (2, 0.25, "shared memory")
    assert occupancy(1024, 48 << 10, 32, "sm_70") == (2, 1.0, "threads")
    assert occupancy(1024, 64 << 10, 32, "sm_75") == (1, 1.0, "threads")
    assert occupancy(128, 0, 32, "sm_90a") == occupancy(128, 0, 32)


def test_registers_are_estimated() -> None:
    few = counted(kernel(threads(64, store("out", T, number(1.0)))), 1, np.zeros(64, np.float32), floats(1))
    window = registers("r", 40, threads(64, store("r", ZERO, number(1.0))))
    many = counted(kernel(window), 1, np.zeros(64, np.float32), floats(1))
    assert 16 < few.registers < 32 and 56 < many.registers < 72


def test_table() -> None:
    found = counted(blur_rows(), 4, np.zeros(512, np.float32), floats(514))
    head, row = table([found]).split("\n")
    assert head.split()[:3] == ["kernel", "blocks", "threads"] and len(head) == len(row)
    assert row.split()[:5] == ["k", "4", "64", "68", "64"] and row.endswith("100% by blocks")
