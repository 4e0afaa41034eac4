"""Matrix instructions: the words that lanes give and get, what the assembler takes, and the hot loop of a product."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from pantile.apps import APPS
from pantile.errors import InternalError
from pantile.expr.nodes import Expr, Instruction, Var
from pantile.expr.types import BFLOAT16, FLOAT16, DType, dtype
from pantile.ir.instructions import BARRIER, matrix_load
from pantile.ir.nodes import Block, Let, Program
from pantile.target import GPUS, named
from pantile.target.gpu import REGISTERS
from pantile.target.layout import Layout, Unit
from pantile.target.mma import MMAS, Mma

from .assembler import assembled, needs_assembler, spilled
from .emulated import run
from .hand_built import i, load, loops, p, program, ptx, shared, store, threads

Array = np.ndarray[Any, np.dtype[Any]]
ALL = pytest.mark.parametrize("mma", [*MMAS.values()], ids=lambda mma: mma.name)
LOADS = pytest.mark.parametrize(("count", "is_packed"), [*product((2, 4), (True, False))])


def multiplied(mma: Mma) -> Program:
    """A warp whose lanes load their fragments as they lie in memory, one lane after the other."""
    of, to = dtype(mma.operand), dtype(mma.accumulator)
    buffers = {"a": of, "b": of, "c": to, "out": to}
    counts = [layout.count(Unit.REGISTER) for layout in (mma.a, mma.b(), mma.c)]
    args: list[Expr] = [load(name, p * n, buffers[name], n) for name, n in zip("abc", counts, strict=True)]
    d = Var(to, 4, "d")
    body = Let("d", Instruction(to, 4, mma.name, tuple(args)), store("out", p * 4, d))
    return program(threads("p", 32, body), 32, buffers=buffers, scalars=(), blocks=i(1))


def fragments(matrix: Array, layout: Layout) -> Array:
    found = np.zeros((32, layout.count(Unit.REGISTER)), matrix.dtype)
    for at in product(*map(range, layout.shape)):
        place = layout.place(*at)
        found[place.thread, place.register] = matrix[at]
    return found


def stored(matrix: Array, t: DType) -> Array:
    """Small integers as a type; bfloat16s are the upper halves of floats."""
    return (
        (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if t is BFLOAT16 else matrix.astype(t.numpy)
    )


@ALL
def test_products(mma: Mma) -> None:
    rng, of, to = np.random.default_rng(3), dtype(mma.operand), dtype(mma.accumulator)
    low = 0 if of.kind == "uint" else -9
    a, b, c = (rng.integers(low, 9, shape) for shape in ((16, mma.terms), (mma.terms, 8), (16, 8)))
    arrays = {
        "a": fragments(stored(a, of), mma.a),
        "b": fragments(stored(b, of), mma.b()),
        "c": fragments(stored(c, to), mma.c),
        "out": np.zeros((32, 4), to.numpy),
    }
    run(multiplied(mma), arrays, [])
    np.testing.assert_array_equal(arrays["out"], fragments(stored(c + a @ b, to), mma.c))


def transposed(count: int, is_packed: bool, t: DType = FLOAT16, offset: int = 0) -> Program:
    """A warp that loads rows of 8 elements which it has copied to shared memory."""
    copy = threads("q", 256, store("tile", Var(p.dtype, 1, "q"), load("img", Var(p.dtype, 1, "q"), t)))
    rows = load("tile", p % (8 * count) * 8 + offset, t, 8)
    e = Instruction(t, 2 * count, matrix_load(count, is_packed), (rows,))
    body = Block((copy, BARRIER, threads("p", 32, store("out", p * (2 * count), e))))
    buffers = {"img": t, "out": t}
    return program(shared("tile", 264, 0, body, t), 32, 528, buffers=buffers, scalars=())


@LOADS
def test_loads_of_matrices(count: int, is_packed: bool) -> None:
    img, out = np.arange(256, dtype=np.float16), np.zeros((32, count, 2), np.float16)
    run(transposed(count, is_packed), {"img": img, "out": out}, [])
    rows = img[: 64 * count].reshape(count, 8, 8)
    turned = rows if is_packed else rows.swapaxes(1, 2)
    np.testing.assert_array_equal(out, turned.reshape(count, 32, 2).swapaxes(0, 1))


def test_rows_are_aligned() -> None:
    with pytest.raises(InternalError, match="is not known to begin at a multiple of 16 bytes"):
        ptx(transposed(4, True, offset=4))


@needs_assembler
@pytest.mark.parametrize("capability", ["sm_80", "sm_90"])
def test_the_assembler_takes_them(capability: str) -> None:
    for mma in MMAS.values():
        code = ptx(multiplied(mma), GPUS[capability])
        assert f"mma.sync.aligned.{mma.shape.removeprefix('mma.')}.row.col" in code
        assembled(code, GPUS[capability])
    for count, is_packed, t in product((2, 4), (True, False), (FLOAT16, BFLOAT16)):
        code = ptx(transposed(count, is_packed, t), GPUS[capability])
        assert f"ldmatrix.sync.aligned.m8n8.x{count}.{'' if is_packed else 'trans.'}shared.b16" in code
        assert not re.search(r"cvt|fma|st\.local", code)  # what goes through registers stays as it is
        assembled(code, GPUS[capability])


def test_products_of_bfloat16_convert_nothing() -> None:
    code = ptx(multiplied(MMAS["bfloat16", "float32"]))
    assert not re.search(r"cvt|shl|prmt", code.split("mma.sync")[0].split("ld.global")[-1])


def app_code(capability: str) -> str:
    """The code of the app."""
    app = APPS["matmul_half"]
    assert app.on_tensor_cores is not None
    return app.build().with_options(target=capability).with_schedule(app.on_tensor_cores()).asm()


def hot_loop(capability: str) -> str:
    """The loop over slices of blocks that lie inside."""
    return min((loop for loop in loops(app_code(capability)) if "mma.sync" in loop), key=len)


def test_the_hot_loop_of_a_product() -> None:
    """64 rows by 64 columns by 64 terms: an instruction for each 16 by 8 by 16, and a load for each 16 by 16."""
    loop = hot_loop("sm_90")
    assert loop.count("mma.sync") == (64 // 16) * (64 // 8) * (64 // 16)
    assert loop.count("ldmatrix.sync.aligned.m8n8.x4") == (64 // 16 + 64 // 16) * (64 // 16)
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], \[.*\], 16;", loop)) == 2 * 128 * 64 // 8 // 128
    assert loop.count("bar.sync") == 1 and loop.count("cp.async.wait_group") == 1
    assert not re.search(r"\.local|ld\.global|ld\.shared|st\.|cvt\.\w+\.f|div|rem", loop)
    lines = [line for line in loop.splitlines() if re.match(r"\t(@%p\d+ )?[a-z]", line)]
    others = [line for line in lines if not re.search(r"mma\.sync|ldmatrix|cp\.async", line)]
    assert len(others) <= 110, others  # places and guards of 16 copies per thread, slots, counting


@needs_assembler
@pytest.mark.parametrize("capability", ["sm_80", "sm_90"])
def test_two_blocks_of_a_product_have_registers(capability: str) -> None:
    said = assembled(app_code(capability), named(capability))
    assert spilled(said) == {"0"}
    assert all(int(n) <= REGISTERS // (2 * 128) for n in re.findall(r"Used (\d+) registers", said))
