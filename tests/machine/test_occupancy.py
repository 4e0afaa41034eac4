"""How many blocks a multiprocessor holds, beside what NVIDIA's occupancy calculator gives."""

from __future__ import annotations

import pytest

from pantile.machine import named
from pantile.machine.capabilities import MULTIPROCESSORS, multiprocessor
from pantile.machine.multiprocessor import occupancy

from .calculated import CALCULATED

# Compute capability; threads, bytes of shared memory and registers; blocks, warps of the multiprocessor and the limit.
CASES = [
    # What fills a multiprocessor.
    ((3, 5), (256, 0, 32), (8, 64, "threads")),
    ((5, 0), (64, 0, 32), (32, 64, "blocks")),
    ((7, 0), (256, 0, 32), (8, 64, "threads")),
    ((7, 5), (512, 2048, 64), (2, 32, "threads")),
    ((8, 6), (256, 0, 32), (6, 48, "threads")),
    ((8, 9), (64, 0, 32), (24, 48, "blocks")),
    ((12, 0), (512, 0, 40), (3, 48, "threads")),
    # Blocks that are small.
    ((3, 5), (32, 0, 16), (16, 16, "blocks")),
    ((6, 1), (32, 0, 16), (32, 32, "blocks")),
    ((7, 5), (32, 0, 16), (16, 16, "blocks")),
    ((8, 6), (64, 0, 16), (16, 32, "blocks")),
    # A block that is part of a warp more.
    ((7, 5), (513, 0, 32), (1, 17, "threads")),
    # Registers are given to warps in units of 256: 33 for a thread count as 40.
    ((7, 0), (256, 0, 33), (6, 48, "registers")),
    ((7, 0), (256, 0, 40), (6, 48, "registers")),
    ((7, 5), (512, 2048, 65), (1, 16, "registers")),
    ((8, 0), (128, 0, 255), (2, 8, "registers")),
    ((9, 0), (256, 0, 128), (2, 16, "registers")),
    # There are twice as many registers.
    ((3, 7), (256, 0, 64), (8, 64, "threads")),
    ((3, 5), (256, 0, 64), (4, 32, "registers")),
    # A warp lies in one of four parts, which on 6.0 are two: with 168 registers, 3 warps in each of four, 6 of two.
    ((6, 1), (96, 0, 168), (4, 12, "registers")),
    ((6, 0), (32, 0, 168), (12, 12, "registers")),
    ((6, 1), (32, 0, 144), (12, 12, "registers")),
    ((6, 0), (32, 0, 144), (14, 14, "registers")),
    # Nor does 6.0 start what 6.1 could not.
    ((6, 0), (412, 0, 134), (0, 0, "registers")),
    # Half of the registers is all that a block may have.
    ((5, 3), (1024, 0, 32), (2, 64, "threads")),
    ((5, 3), (1024, 0, 33), (0, 0, "registers")),
    ((6, 2), (512, 0, 65), (0, 0, "registers")),
    ((5, 2), (1024, 0, 64), (1, 32, "registers")),
    # Too many of a block, or of a thread.
    ((7, 5), (1024, 0, 65), (0, 0, "registers")),
    ((9, 0), (32, 0, 256), (0, 0, "registers")),
    # Shared memory in units of 256 bytes, and since 8.0 of 128, with 1 KiB for the system in each block.
    ((7, 5), (64, 8192, 32), (8, 16, "shared memory")),
    ((7, 5), (64, 8193, 32), (7, 14, "shared memory")),
    ((7, 0), (128, 48 << 10, 32), (2, 8, "shared memory")),
    ((8, 0), (128, 40 << 10, 32), (4, 16, "shared memory")),
    ((8, 0), (128, 163 << 10, 32), (1, 4, "shared memory")),
    ((8, 6), (128, 49 << 10, 32), (2, 8, "shared memory")),
    ((9, 0), (256, 75 << 10, 32), (3, 24, "shared memory")),
    ((9, 0), (256, 227 << 10, 32), (1, 8, "shared memory")),
    ((10, 0), (256, 113 << 10, 32), (2, 16, "shared memory")),
    ((3, 7), (128, 48 << 10, 32), (2, 8, "shared memory")),
    # More than a block may have.
    ((7, 5), (64, (64 << 10) + 1, 32), (0, 0, "shared memory")),
    ((6, 1), (64, (48 << 10) + 1, 32), (0, 0, "shared memory")),
    ((8, 6), (64, 100 << 10, 32), (0, 0, "shared memory")),
    # More threads than a block may have.
    ((9, 0), (1056, 0, 16), (0, 0, "threads")),
]


@pytest.mark.parametrize(("capability", "given", "expected"), CASES, ids=str)
def test_what_the_calculator_gives(
    capability: tuple[int, int], given: tuple[int, int, int], expected: tuple[int, int, str]
) -> None:
    has = multiprocessor(capability)
    blocks, warps, limit = expected
    assert occupancy(has, *given) == (blocks, warps / has.warps, limit)


@pytest.mark.parametrize("capability", CALCULATED, ids=str)
def test_what_the_calculator_of_the_toolkit_gives(capability: tuple[int, int]) -> None:
    has = multiprocessor(capability)
    cases = CALCULATED[capability]
    assert [occupancy(has, *given).blocks for *given, _ in cases] == [blocks for *_, blocks in cases]


@pytest.mark.parametrize("capability", MULTIPROCESSORS, ids=str)
def test_whatever_is_resident_fits(capability: tuple[int, int]) -> None:
    has = multiprocessor(capability)
    for threads in (32, 96, 128, 256, 384, 512, 1024):
        for shared in (0, 1, 4096, 12345, 48 << 10, has.shared_per_block):
            for registers in (1, 24, 32, 40, 63, 64, 96, 128, 255):
                blocks, share, _ = occupancy(has, threads, shared, registers)
                warps = blocks * threads // 32
                assert blocks <= has.blocks and warps <= has.warps and share == warps / has.warps
                assert warps * 32 * registers <= has.registers
                assert blocks * (shared + has.shared_reserved) <= has.shared


def test_of_a_gpu() -> None:
    assert named("RTX 2080 Ti").occupancy(512, 2048, 64) == (2, 1.0, "threads")
