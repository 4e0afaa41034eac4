"""Arrays and numbers on their way into a kernel."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pantile.errors import Location
from pantile.expr.types import ALL, BFLOAT16, dtype
from pantile.runtime.arguments import (
    Number,
    as_number,
    element_strides,
    from_bfloat_bits,
    known_strides,
    to_bfloat_bits,
)
from pantile.runtime.packing import Packing

WHERE = Location("here.py", 1)


def test_bfloat_keeps_every_value_it_has() -> None:
    for bits in range(0x10000):
        value = from_bfloat_bits(bits)
        if value == value:
            assert to_bfloat_bits(value) == bits
        else:
            assert to_bfloat_bits(value) & 0x7FC0 == 0x7FC0


@pytest.mark.parametrize(
    ("value", "bits"), [(1.00390625, 0x3F80), (1.01171875, 0x3F82), (1.004, 0x3F81), (3.38953e38, 0x7F7F)]
)
def test_bfloat_rounds_to_nearest_even(value: float, bits: int) -> None:
    assert to_bfloat_bits(value) == bits
    assert as_number(Number("p", BFLOAT16, None, WHERE), value) == from_bfloat_bits(bits)


A = np.zeros((4, 6, 3), "int32")
B = np.zeros((4, 9, 3), np.int32)


@pytest.mark.parametrize(
    ("array", "known", "strides"),
    [
        (A, (None, None, 1), [18, 3, 1]),
        (A.transpose(2, 0, 1), (1, None, None), [1, 18, 3]),
        (A[:, :, 1], (None, None), [18, 3]),
        (A[:, ::-1, ::-1], (None, None, None), [18, -3, -1]),
        (A[:, :, :1], (None, None, 1), [18, 3, 0]),
        (A[:1, :1, 1], (None, 1), [0, 0]),
        (A[0, 0, 0], (), []),
        (B.transpose(2, 0, 1), (1, None, 3), [1, 27, 3]),
        (B[:, ::2, 0], (None, None), [27, 6]),
        (B[:, ::-1], (None, None, 1), [27, -3, 1]),
        (np.broadcast_to(A[0, 0], (5, 3)), (None, 1), [0, 1]),
    ],
)
def test_layout(array: np.ndarray, known: tuple[int | None, ...], strides: list[int]) -> None:
    assert known_strides(array) == known
    assert element_strides(array) == strides


def test_numbers_lie_at_the_start_of_their_slots() -> None:
    for t in ALL:
        value = True if t.is_bool else 1.5 if t.is_float else t.min
        block = Packing([], [t]).pack([], [value], 0x1234)
        assert len(block) == 16 and struct.unpack("q", block[8:]) == (0x1234,)
        held = to_bfloat_bits(1.5) if t.kind == "bfloat" else value
        assert np.frombuffer(block[: t.bytes], t.numpy)[0] == held


def test_integers_fill_their_slots() -> None:
    block = Packing([], [dtype("int8"), dtype("uint8")]).pack([], [-1, 255], 0)
    assert struct.unpack("qqq", block) == (-1, 255, 0)


def test_arrays_come_first() -> None:
    a, b = np.zeros((2, 3), "uint16"), np.zeros(4, "float64")[::-2]
    block = Packing([a, b], [dtype("int32")]).pack([a, b], [7], 0)
    addresses = a.ctypes.data, b.ctypes.data
    assert struct.unpack("10q", block) == (addresses[0], 2, 3, 3, 1, addresses[1], 2, -2, 7, 0)
