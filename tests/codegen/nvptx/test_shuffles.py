"""Values that go from lane to lane of a warp, of all types, and the instructions for that."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pantile.apps import APPS
from pantile.expr.nodes import Load
from pantile.expr.types import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT8, UINT16, DType
from pantile.ir.instructions import shuffle
from pantile.ir.nodes import Program
from pantile.target import GPUS

from .assembler import assembled, needs_assembler, spilled
from .emulated import run
from .hand_built import load, p, program, ptx, store, threads


def moved(t: DType, lanes: int = 1) -> Program:
    """Each thread's values, three threads further in its warp."""
    value = load("img", p * lanes, t, lanes)
    assert isinstance(value, Load)
    other = shuffle(value, (p + 3) % 32)
    return program(threads("p", 64, store("out", p * lanes, other)), 64, buffers={"img": t, "out": t}, scalars=())


TYPES = [(UINT8, 1), (UINT8, 4), (UINT8, 2), (BOOL, 1), (UINT16, 1), (UINT16, 2), (UINT16, 4), (FLOAT16, 1),
         (FLOAT16, 2), (BFLOAT16, 1), (FLOAT32, 1), (FLOAT32, 2), (FLOAT64, 1), (INT64, 2)]  # fmt: skip


@pytest.mark.parametrize(("t", "lanes"), TYPES)
def test_all_types(t: DType, lanes: int) -> None:
    bytes_ = np.random.default_rng(2).integers(0, 2 if t is BOOL else 120, 64 * lanes * t.bytes).astype(np.uint8)
    img, out = bytes_.view(f"V{t.bytes}"), np.zeros_like(bytes_).view(f"V{t.bytes}")
    run(moved(t, lanes), {"img": img, "out": out}, [])
    rows = img.reshape(2, 32, lanes)
    np.testing.assert_array_equal(out.reshape(2, 32, lanes), np.roll(rows, -3, axis=1))


@pytest.mark.parametrize(
    ("t", "lanes", "words"),
    [(UINT16, 2, 1), (UINT8, 4, 1), (UINT8, 2, 2), (FLOAT64, 1, 2), (FLOAT32, 2, 2), (FLOAT16, 1, 1), (BOOL, 1, 1)],
)
def test_whole_words_are_moved_at_once(t: DType, lanes: int, words: int) -> None:
    for target in GPUS.values():
        assert len(re.findall(r"shfl\.sync\.idx\.b32", ptx(moved(t, lanes), target))) == words


def test_equal_shuffles_are_one() -> None:
    first, again = (shuffle(load("img", p), (p + 1) % 32) for _ in range(2))
    made = program(threads("p", 64, store("out", p, first * again)), 64, scalars=())
    assert ptx(made).count("shfl.sync") == 1


@needs_assembler
def test_corners_march_down_in_registers() -> None:
    """Harris: loads, shuffles and arithmetic; no memory of threads or blocks, no 64-bit products. Blocks inside of the
    picture have code of their own, which is as long as that of the others."""
    app = APPS["harris"]
    p = app.build().with_options(target="sm_90")
    text = p.with_schedule(app.schedule("expert", p.options.target)).asm()
    rows, versions = 8, 2
    assert text.count("ld.global.nc.b32") == versions * 3 * (rows + 4), "of three channels, once per row"
    gray, slopes = 2 * (rows + 4), 4 * (rows + 2)
    assert text.count("shfl.sync.idx.b32") == versions * (gray + slopes), "from two other lanes"
    assert not re.search(r"\.local|\.shared|bar\.sync|mul\S*64", text)
    assert spilled(assembled(text, GPUS["sm_90"])) == {"0"}
