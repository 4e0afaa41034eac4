"""The work of launches, without running them: what the simulator counts, of some blocks and iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pantile.apps import APPS
from pantile.apps.tensor_cores import OF_WARPGROUPS, OF_WARPS, Tiles, product
from pantile.backends import LaunchReport
from pantile.expr.build import cast
from pantile.expr.nodes import Expr, Number, Var, var
from pantile.expr.types import FLOAT32, INDEX, INT32
from pantile.ir.nodes import If, Kernel, Let, Stmt
from pantile.launch_cost import Pipe, sampled_launch, work_of
from pantile.simulator import counting

from ..simulator.hand_built import Array, B, K, T, kernel, load, number, run, serial, store, threads
from ..simulator.test_kernels import blur_rows, floats

DATA = (("out", FLOAT32), ("at", INT32))
N = var("n")


def moved(k: Kernel, blocks: int, *arrays: Array, scalars: Sequence[Number] = ()) -> tuple[int, int, bool] | None:
    work = work_of(k, scalars, [a.nbytes for a in arrays], blocks)
    return None if work is None else (work.read, work.written, work.is_bound)


def counted(k: Kernel, blocks: int, *arrays: Array, scalars: Sequence[Number] = ()) -> tuple[int, int, bool]:
    with counting() as counts:
        run(k, blocks, *arrays, scalars=scalars)
    found = counts[0].traffic.global_sectors
    return 32 * found["load"], 32 * found["store"], False


def test_of_shared_memory_nothing_is_counted() -> None:
    arrays = np.zeros(512, np.float32), floats(514)
    assert moved(blur_rows(), 4, *arrays) == counted(blur_rows(), 4, *arrays) == (4 * 17 * 32, 4 * 16 * 32, False)


@pytest.mark.parametrize("stride", [1, 3, 8])
def test_what_few_blocks_do_counts_for_all(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block has a quarter of the threads, and rows have different lengths."""
    row = serial(N, store("out", B * 64 + T, load("img", (B * 64 + T) * stride + K)))
    k = kernel(threads(64, If(B * 64 + T < 6160, row)), scalars=(Var(INDEX, 1, "n"),))
    arrays = np.zeros(6400, np.float32), floats(6400 * stride + 40)
    expected = counted(k, 97, *arrays, scalars=(40,))
    assert moved(k, 97, *arrays, scalars=(40,)) == pytest.approx(expected, rel=0.003)
    for name, limit in {"_THREADS": 1024, "_ACCESSES": 0, "_ROOM": 8}.items():
        monkeypatch.setattr(sampled_launch, name, limit)
    assert moved(k, 97, *arrays, scalars=(40,)) == pytest.approx(expected, rel=0.05)


def of_data(body: Stmt) -> Kernel:
    return kernel(threads(64, body), buffers=DATA)


AT: Expr = cast(INDEX, load("at", T, INT32))


def test_places_that_data_decide_are_in_sectors_of_their_own() -> None:
    arrays = np.zeros(640, np.float32), np.arange(64, dtype=np.int32)
    assert moved(of_data(store("out", AT, number(1.0))), 1, *arrays) == (8 * 32, 64 * 32, True)
    held = Let("i", AT, store("out", var("i"), number(1.0)))
    assert moved(of_data(held), 1, *arrays) == (8 * 32, 64 * 32, True)
    few = np.zeros(8, np.float32), arrays[1]
    assert moved(of_data(held), 1, *few) == (8 * 32, 2 * 32, True)  # the buffer is one sector


def test_branches_that_data_decide_are_both_taken() -> None:
    either = If(AT > 0, store("out", T, number(1.0)), store("out", T + 64, load("at", T + 64, INT32)))
    arrays = np.zeros(128, np.float32), np.zeros(128, np.int32)
    assert moved(of_data(either), 1, *arrays) == (2 * 8 * 32, 2 * 8 * 32, True)


def test_how_often_a_loop_runs_that_data_decide_is_unknown() -> None:
    arrays = np.zeros(64, np.float32), np.zeros(64, np.int32)
    assert moved(of_data(serial(AT, store("out", T, number(1.0)))), 1, *arrays) is None
    assert moved(of_data(serial(AT, Let("i", K, store("register", K, number(1.0))))), 1, *arrays) == (8 * 32, 0, False)


def test_numbers_of_a_call_decide() -> None:
    gain = Var(FLOAT32, 1, "gain")
    k = kernel(threads(64, If(gain > 1.5, store("out", T, number(0.0)))), scalars=(gain,))
    arrays = np.zeros(64, np.float32), floats(1)
    assert moved(k, 3, *arrays, scalars=(2.0,)) == (0, 3 * 8 * 32, False)
    assert moved(k, 3, *arrays, scalars=(1.0,)) == (0, 0, False)


@pytest.mark.parametrize(("pipe", "tiles"), [(Pipe.MATRIX, OF_WARPS), (Pipe.WARPGROUP_MATRIX, OF_WARPGROUPS)])
def test_products_by_tensor_cores(pipe: Pipe, tiles: Tiles) -> None:
    """Each is 16 by 8 sums of 16 products."""
    sizes: dict[str, Any] = {"a": (256, 512), "b": (512, 384)}
    pipeline = APPS["matmul_half"].build().with_options(target="cuda-sim")
    report = pipeline.with_schedule(product("sums", "out", tiles=tiles)).predict(**sizes)
    assert isinstance(report, LaunchReport)
    (launch,) = report.kernels
    assert launch.work is not None and launch.time is not None
    columns = 384 if pipe is Pipe.MATRIX else 512  # the last block of 256 begins further left
    assert launch.work.instructions[pipe] == 256 * 512 * columns / (16 * 8 * 16)
    assert launch.time.busy["tensor cores"] > 0
