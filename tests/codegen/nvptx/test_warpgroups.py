"""Products by warpgroups: what the assembler takes, descriptors, and the hot loop of the app."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.apps.tensor_cores import OF_WARPGROUPS, product
from pantile.expr.nodes import Expr, Shuffle, Var, const
from pantile.expr.types import BFLOAT16, FLOAT16, FLOAT32, DType
from pantile.ir.instructions import BARRIER, FENCE_PROXY, wait_matrices, warpgroup_product
from pantile.ir.nodes import Block, Let, Program
from pantile.target import GPUS
from pantile.target.wgmma import COLUMNS, CoreMatrices, Wgmma, wgmma

from ...matrices import Product, Warpgroups, by_warpgroups
from .assembler import assembled, needs_assembler, spilled
from .hand_built import i, load, loops, p, program, ptx, shared, store, threads

SERIALIZED = r"C75\d\d"  # what the assembler says of products that it makes wait for each other


def multiplied(of: Wgmma, a: CoreMatrices, b: CoreMatrices, t: DType) -> Program:
    """A product of zeros in shared memory, whose `b` begins behind 8192 elements."""
    zeros: Expr = Shuffle(FLOAT32, of.registers, (const(0.0, FLOAT32),), (0,) * of.registers)
    e = warpgroup_product(of, load("tile", i(0), t, 8), a, load("tile", i(8192), t, 8), b, zeros)
    kept = store("out", p * of.registers, wait_matrices(Var(FLOAT32, of.registers, "d"), 0))
    clear = threads("q", 128, store("tile", Var(p.dtype, 1, "q") * 8, load("img", Var(p.dtype, 1, "q") * 8, t, 8)))
    body = Block((clear, FENCE_PROXY, BARRIER, threads("p", 128, Let("d", e, kept))))
    buffers = {"img": t, "out": FLOAT32}
    return program(shared("tile", 1 << 16, 0, body, t), 128, 1 << 17, buffers=buffers, scalars=())


def products() -> Iterator[tuple[Wgmma, DType]]:
    for columns in (COLUMNS[0], 64, COLUMNS[-1]):
        for t in (FLOAT16, BFLOAT16):
            of = wgmma(t.name, "float32", columns, 32)
            assert of is not None
            yield of, t


def test_sizes() -> None:
    assert wgmma("float16", "float32", 16, 16) is None  # those of one warp
    assert wgmma("float16", "float32", 28, 16) is wgmma("float16", "float32", 264, 16) is None
    assert wgmma("float16", "float32", 64, 24) is wgmma("float16", "float32", 64, 0) is None
    assert wgmma("float16", "float16", 64, 16) is None


@needs_assembler
@pytest.mark.parametrize("transposed", [False, True])
def test_the_assembler_takes_them(transposed: bool) -> None:
    for of, t in products():
        lies = CoreMatrices(64, 1024, transposed)
        code = ptx(multiplied(of, lies, lies, t))
        assert ".target sm_90a" in code
        said = assembled(code, GPUS["sm_90"])
        assert spilled(said) == {"0"} and not re.search(SERIALIZED, said)


def test_descriptors() -> None:
    """Addresses and distances in units of 16 bytes: from 8 terms to the next in bits 16 to 29, from 8 rows in bits 32
    to 45. Each instruction begins two groups of 8 terms further."""
    of = wgmma("float16", "float32", 64, 32)
    assert of is not None
    code = ptx(multiplied(of, CoreMatrices(64, 1024, False), CoreMatrices(520, 64, True), FLOAT16))
    added = [int(n) for n in re.findall(r"(?:add|or)\.[bs]64 \t%rd\d+, %rd\d+, (\d+);", code)]
    a = [(64 // 8 << 32 | 1024 // 8 << 16) + k * 2 * 1024 // 8 for k in range(2)]
    b = [(520 // 8 << 32 | 64 // 8 << 16) + k * 2 * 64 // 8 for k in range(2)]
    found = [n % (1 << 16) for n in added if n >> 32]  # what is known of addresses may be part of it
    assert [n >> 16 for n in added if n >> 32] == [n >> 16 for n in (*a, *b)]
    assert found[1] - found[0] == a[1] - a[0] and found[3] - found[2] == b[1] - b[0]
    products = re.findall(r"wgmma\.mma_async.*;", code)
    assert len(products) == 2 and all(e.endswith(", 1, 1, 1, 0, 1;") for e in products)


def test_only_products_by_warpgroups_are_for_one_generation() -> None:
    """PTX for sm_90a is for no later GPU."""
    case = Product()
    for schedule, target in ((by_warpgroups(case, Warpgroups()), "sm_90a"), (None, "sm_90")):
        p = case.pipeline(target="sm_90")
        code = (p if schedule is None else p.with_schedule(schedule)).asm()
        assert f".target {target}\n" in code


def app_code() -> str:
    p: pt.Pipeline = APPS["matmul_half"].build().with_options(target="sm_90")
    return p.with_schedule(product("sums", "out", tiles=OF_WARPGROUPS)).asm()


def test_the_hot_loop_of_a_product() -> None:
    """128 rows by 256 columns by 64 terms: two warpgroups execute four instructions each, and copy 16 bytes by each
    thread 12 times."""
    loop = min((loop for loop in loops(app_code()) if "wgmma.mma_async" in loop), key=len)
    assert loop.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16") == 64 // 16
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], \[.*\], 16;", loop)) == (128 + 256) * 64 // 8 // 256
    for once in ("bar.sync", "fence.proxy.async", "cp.async.wait_group", "wgmma.fence", "wgmma.commit_group"):
        assert loop.count(once) == 1
    assert "wgmma.wait_group.sync.aligned 1;" in loop
    assert not re.search(r"\.local|ld\.global|ld\.shared|st\.|cvt\.\w+\.f|div|rem|mov\.b32 \t%f", loop)
    lines = [line for line in loop.splitlines() if re.match(r"\t(@%p\d+ )?[a-z]", line)]
    others = [line for line in lines if not re.search(r"wgmma|cp\.async", line)]
    assert len(others) <= 110, others  # places of copies, slots, counting


@needs_assembler
@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_products_follow_each_other(ahead: int) -> None:
    """The assembler serializes none of them."""
    p = Product().pipeline(target="sm_90").with_schedule(by_warpgroups(Product(), Warpgroups(64, 64, 2, ahead=ahead)))
    said = assembled(p.asm(), GPUS["sm_90"])
    assert spilled(said) == {"0"} and not re.search(SERIALIZED, said)


@needs_assembler
def test_registers_of_the_app() -> None:
    said = assembled(app_code(), GPUS["sm_90"])
    assert spilled(said) == {"0"} and not re.search(SERIALIZED, said)
    assert all(int(n) <= 224 for n in re.findall(r"Used (\d+) registers", said))
