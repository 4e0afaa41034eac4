"""GPUs by name, and multiprocessors by compute capability, beside what NVIDIA publishes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import get_args

import pytest

from pantile.errors import UserError
from pantile.machine import GPUS, Gpu, named
from pantile.machine.capabilities import MULTIPROCESSORS, like, multiprocessor
from pantile.machine.known import GpuName
from pantile.target.gpu import MOST_SHARED, SHARED_WITHOUT_OPT_IN

CAPABILITIES = (
    "3.2", "3.5", "3.7", "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9",
    "9.0", "10.0", "10.3", "12.0",
)  # fmt: skip


def test_names() -> None:
    assert list(GPUS) == list(get_args(GpuName)) and [g.name for g in GPUS.values()] == list(GPUS)
    assert ["{}.{}".format(*c) for c in MULTIPROCESSORS] == list(CAPABILITIES)


# TFLOPS of float32 and of dense float16 products added to float32 by tensor cores, as data sheets give them.
PUBLISHED = {
    "K40": (5.04, None),  # at its boost clock
    "GTX TITAN": (4.7, None),
    "Tegra K1": (0.327, None),
    "GTX 1080 Ti": (11.3, None),
    "Quadro P6000": (12.6, None),
    "Tesla V100": (15.7, 125.0),
    "Jetson AGX Xavier": (1.41, 11.3),
    "RTX 2070": (7.5, 29.9),
    "RTX 2080 Ti": (13.4, 53.8),
    "A100": (19.5, 312.0),
    "H100": (66.9, None),  # whose tensor cores are told at a lower clock
    "H200": (66.9, None),
}


@pytest.mark.parametrize("name", GPUS)
def test_rates_are_those_of_data_sheets(name: str) -> None:
    gpu, (floats, products) = GPUS[name], PUBLISHED[name]
    per_second = 2e-12 * gpu.multiprocessors * gpu.ghz * 1e9
    assert per_second * gpu.multiprocessor.cores == pytest.approx(floats, rel=0.01)
    if products is not None:
        (rate,) = {
            i.fmas
            for i in gpu.multiprocessor.matrix_instructions
            if (i.operands, i.accumulator) == ("float16", "float32")
        }
        assert per_second * rate == pytest.approx(products, rel=0.01)


def test_tensor_cores_of_hopper_at_the_clock_that_they_are_told_at() -> None:
    h100 = named("H100")
    rates = {i.operands: i.fmas for i in h100.multiprocessor.matrix_instructions if i.accumulator != "float16"}
    teraflops = {name: 2e-3 * h100.multiprocessors * 1.83 * rate for name, rate in rates.items()}
    assert teraflops["bfloat16"] == pytest.approx(989, rel=0.01)
    assert teraflops["tfloat32"] == pytest.approx(494, rel=0.01)
    assert teraflops["float8"] == teraflops["int8"] == pytest.approx(1979, rel=0.01)


def test_tensor_cores_came_with_volta() -> None:
    assert all(bool(m.matrix_instructions) == (c >= (7, 0)) for c, m in MULTIPROCESSORS.items())


def test_geforces_add_to_float32_at_half_the_rate() -> None:
    half, whole = (
        {(i.operands, i.accumulator): i.fmas for i in m.matrix_instructions}
        for m in (named("RTX 2080 Ti").multiprocessor, multiprocessor((7, 5)))
    )
    assert half == {**whole, ("float16", "float32"): whole["float16", "float32"] // 2}


# Shared memory of a multiprocessor and, opted in to, of a block, in KiB; resident threads and blocks.
GUIDE = {
    (3, 5): (48, 48, 2048, 16), (3, 7): (112, 48, 2048, 16), (5, 0): (64, 48, 2048, 32), (5, 2): (96, 48, 2048, 32),
    (5, 3): (64, 48, 2048, 32), (6, 0): (64, 48, 2048, 32), (6, 1): (96, 48, 2048, 32), (6, 2): (64, 48, 2048, 32),
    (7, 0): (96, 96, 2048, 32), (7, 2): (96, 96, 2048, 32), (7, 5): (64, 64, 1024, 16), (8, 0): (164, 163, 2048, 32),
    (8, 6): (100, 99, 1536, 16), (8, 7): (164, 163, 1536, 16), (8, 9): (100, 99, 1536, 24),
    (9, 0): (228, 227, 2048, 32), (10, 0): (228, 227, 2048, 32), (10, 3): (228, 227, 2048, 32),
    (12, 0): (100, 99, 1536, 24),
}  # fmt: skip


@pytest.mark.parametrize("capability", GUIDE)
def test_the_table_of_the_programming_guide(capability: tuple[int, int]) -> None:
    has = multiprocessor(capability)
    assert (has.shared >> 10, has.shared_per_block >> 10, has.threads, has.blocks) == GUIDE[capability]
    assert has.registers == (131072 if capability == (3, 7) else 65536)
    assert has.registers_per_block == (32768 if capability in ((5, 3), (6, 2)) else 65536)


def test_limits_of_schedules_are_those_of_the_largest() -> None:
    assert max(m.shared_per_block for m in MULTIPROCESSORS.values()) == MOST_SHARED
    assert min(m.shared_per_block for m in MULTIPROCESSORS.values()) == SHARED_WITHOUT_OPT_IN


def test_a_gpu_that_nobody_has_described_is_like_the_newest_before_it() -> None:
    assert like((12, 1)) == multiprocessor((12, 0)) and like((8, 8)) == multiprocessor((8, 7))
    assert like((7, 5)) is multiprocessor((7, 5))
    with pytest.raises(UserError, match=r"nothing is known of compute capability 2\.1; known are 3\.2"):
        like((2, 1))


def test_what_all_have_in_common() -> None:
    gpu = named("RTX 2070")
    assert (gpu.warp_size, gpu.banks, gpu.bank_width, gpu.sector, gpu.line) == (32, 32, 4, 32, 128)
    assert (gpu.threads_per_block, gpu.shared_without_opt_in) == (1024, 49152)
    assert gpu.target.cpu == "sm_75" and gpu.target.has_blocks


def test_values() -> None:
    gpu = named("A100")
    assert pickle.loads(pickle.dumps(gpu)) == gpu and replace(gpu, ghz=1.0) != gpu
    assert {gpu: 1}[replace(gpu)] == 1
    assert isinstance(gpu, Gpu) and "Gpu(name='A100', capability=(8, 0), multiprocessors=108" in repr(gpu)
