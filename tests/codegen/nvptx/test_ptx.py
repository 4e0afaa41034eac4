"""PTX of hand-built kernels: which memory, how wide, how many barriers, what is in registers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pantile.codegen.emit import emit
from pantile.expr.build import cast, ramp
from pantile.expr.nodes import Cast, Expr, Load, Op, const, op, var
from pantile.expr.types import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT8, UINT16, DType
from pantile.ir.instructions import BARRIER
from pantile.ir.nodes import Block, For, If, Launch, Let, Program, ScalarArg, Stmt
from pantile.target import GPUS
from pantile.target.kinds import CacheOperator, Kind

from .assembler import assembled, needs_assembler, spilled
from .hand_built import (
    SM_90,
    STRIDE,
    b,
    i,
    load,
    loops,
    p,
    program,
    ptx,
    registers,
    serial,
    shared,
    store,
    threads,
    w,
)


def copied(t: DType = FLOAT32, lanes: int = 4, offset: int = 0, **given: object) -> Program:
    at = b * w + p * lanes + offset
    return program(
        threads("p", 256, store("out", at, load("img", at, t, lanes))), buffers={"img": t, "out": t}, **given
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("t", "lanes", "loads"),
    [(FLOAT32, 4, "v4.b32"), (FLOAT32, 2, "v2.b32"), (FLOAT64, 2, "v2.b64"), (UINT8, 16, "v4.b32"), (UINT8, 4, "b32"),
     (UINT16, 8, "v4.b32"), (UINT16, 2, "b32"), (FLOAT16, 8, "v4.b32"), (BFLOAT16, 8, "v4.b32")],
)  # fmt: skip
def test_neighbours_are_loaded_at_once_where_places_are_known(t: DType, lanes: int, loads: str) -> None:
    text = ptx(copied(t, lanes, multiples=[(STRIDE, 16)]))
    assert re.findall(r"ld\.global\S*", text) == [f"ld.global.nc.{loads}"]
    assert re.findall(r"st\.global\S*", text) == [f"st.global.{loads}"]


def test_neighbours_are_loaded_one_by_one_where_places_are_unknown() -> None:
    for made in (
        copied(),
        copied(multiples=[(STRIDE, 6)], alignment=16),
        copied(offset=1, multiples=[(STRIDE, 4)]),
        copied(multiples=[(STRIDE, 4)], alignment=4),
    ):
        assert "v4" not in ptx(made)
    assert ptx(copied(multiples=[(STRIDE, 4)], alignment=8)).count("ld.global.nc.v2.b32") == 2


def test_lanes_that_a_constant_mask_leaves_out_are_zero() -> None:
    """LLVM has no code for a load with a constant mask whose other lanes are not undefined: it aborts."""
    on = Op(BOOL, 4, "lt", (ramp(i(0), 1, 4), ramp(i(2), 0, 4)))
    at = b * w + p * 4
    value = Load(FLOAT32, 4, "img", (ramp(at, 1, 4),), on)
    made = program(threads("p", 256, store("out", at, value)), multiples=[(STRIDE, 4)])
    assert "masked.load" not in emit(made, SM_90)
    text = ptx(made)
    assert re.findall(r"ld\.global\S*", text) == ["ld.global.nc.b32"] * 2
    assert re.search(r"st\.global\.v4\.b32 .*0f00000000, 0f00000000", text)


def test_scalars_side_by_side_are_loaded_at_once() -> None:
    at = b * w + p * 2
    body = threads("p", 256, store("out", b * w + p, load("img", at) + load("img", at + 1)))
    assert "ld.global.nc.v2.b32" in ptx(program(body, multiples=[(STRIDE, 2)]))


def test_places_are_known_through_lets_and_limits() -> None:
    row = Let("row", op("min", b * 8, w - 8) * w, threads("p", 64, store("out", var("row") + p * 4, four("row"))))
    assert "ld.global.nc.v4" in ptx(program(row, 64, multiples=[(STRIDE, 4)]))
    assert "v4" not in ptx(program(row, 64, multiples=[(STRIDE, 3)]))


@pytest.mark.parametrize("extent", [1, 4])
def test_places_of_a_loop_are_not_those_of_an_equal_name(extent: int) -> None:
    """One version of some code has a let where the other has a loop, of one iteration or of several."""
    use = threads("p", 64, store("out", b * 256 + p * 4, four("row")))
    versions = If(b < 1, Let("row", b * 4, use), For("row", b, i(extent), Kind.SERIAL, use))
    assert ptx(program(versions, 64)).count("ld.global.nc.b32") == 4, "which may lie anywhere"


@pytest.mark.parametrize("extent", [1, 4])
def test_signs_in_a_loop_are_not_those_of_an_equal_name(extent: int) -> None:
    use = threads("p", 64, store("out", b * 64 + p, load("img", var("row") // op("max", w, i(1)))))
    versions = If(b < 1, Let("row", b, use), For("row", b - w, i(extent), Kind.SERIAL, use))
    assert "div.s32" in ptx(program(versions, 64))


def four(row: str) -> Expr:
    return load("img", var(row) + p * 4, lanes=4)


def test_what_is_stored_to_is_not_loaded_as_constant() -> None:
    body = threads("p", 256, store("out", p, load("out", p) + load("img", p)))
    assert re.findall(r"ld\.global\S*", ptx(program(body, scalars=()))) == ["ld.global.b32", "ld.global.nc.b32"]


def by_operator(made: Program, operator: CacheOperator) -> Program:
    """A program whose kernel loads all that it only reads by this cache operator."""
    (kernel,) = made.kernels
    return replace(made, kernels=(replace(kernel, buffers=tuple(replace(x, cached=operator) for x in kernel.buffers)),))


@needs_assembler
@pytest.mark.parametrize("operator", [CacheOperator.GLOBAL, CacheOperator.STREAMING])
@pytest.mark.parametrize(
    ("t", "lanes", "loads"),
    [(FLOAT32, 4, "v2.b64"), (FLOAT32, 2, "b64"), (FLOAT32, 1, "b32"), (FLOAT64, 2, "v2.b64"), (UINT8, 16, "v2.b64"),
     (UINT8, 4, "b32"), (UINT8, 1, "u8"), (UINT16, 1, "b16"), (FLOAT16, 2, "b32"), (BFLOAT16, 8, "v2.b64")],
)  # fmt: skip
def test_loads_by_a_cache_operator_are_as_wide(t: DType, lanes: int, loads: str, operator: CacheOperator) -> None:
    for target in (GPUS["sm_70"], SM_90):
        text = ptx(by_operator(copied(t, lanes, multiples=[(STRIDE, 16)]), operator), target)
        assert re.findall(r"ld\.global\S*", text) == [f"ld.global.{operator}.{loads}"]
        assembled(text, target)
    assert ptx(by_operator(copied(), operator)).count(f"ld.global.{operator}.b32") == 4, "which may lie anywhere"


def test_the_first_operator_is_that_of_all_loads() -> None:
    assert ptx(by_operator(copied(), CacheOperator.ALL)) == ptx(copied())


def test_what_is_stored_to_is_loaded_as_it_is() -> None:
    body = threads("p", 256, store("out", p, load("out", p) + load("img", p)))
    text = ptx(by_operator(program(body, scalars=()), CacheOperator.GLOBAL))
    assert re.findall(r"ld\.global\S*", text) == ["ld.global.b32", "ld.global.cg.b32"]


def test_what_is_launched_in_place_is_not_loaded_as_constant() -> None:
    made = program(threads("p", 256, store("out", p, load("img", p))), scalars=())
    assert isinstance(made.body, Launch)
    in_place = replace(made, body=replace(made.body, buffers=("out", "out")))
    assert "ld.global.nc" in ptx(made)
    assert "ld.global.nc" not in ptx(in_place)


# Threads


def simple(extent: int) -> str:
    return ptx(program(threads("p", extent, store("out", p, load("img", p) * 2.0)), scalars=()))


def test_points_of_a_tile_are_taken_in_turn() -> None:
    assert (simple(256).count("st.global"), simple(256).count("bra")) == (1, 0)
    assert (simple(1024).count("st.global"), simple(1024).count("bra")) == (4, 0)
    assert re.findall(r"st\.global\.b32 \t\[%rd\d+(\+\d+)?\]", simple(1024)) == ["", "+1024", "+2048", "+3072"]


def test_some_threads_have_no_last_point() -> None:
    text = simple(600)
    assert text.count("st.global") == 3
    assert len(re.findall(r"setp\.\w+\.\w+ ", text)) == 1
    assert re.search(r"setp\.gt\.u32 .*, 87;", text)
    assert simple(10).count("st.global") == 1


def test_many_points_are_a_loop() -> None:
    (loop,) = loops(simple(256 * 40 + 3))
    assert loop.count("st.global") < 40


# Memory of a block


def tile(extent: int = 256) -> Stmt:
    """A row and its neighbours by way of memory of the block."""
    fill = threads("p", extent + 2, store("tile", p, load("img", b * w + p)))
    q = var("q")
    use = threads("q", extent, store("out", b * w + q, load("tile", q) + load("tile", q + 1) + load("tile", q + 2)))
    return shared("tile", extent + 2, 64, Block((fill, BARRIER, use)))


def test_memory_of_a_block_is_shared() -> None:
    text = ptx(program(tile(), bytes_=64 + 258 * 4))
    assert text.count("bar.sync") == 1
    assert text.count("st.shared") == 2
    assert text.count("ld.shared") == 3
    assert ".extern .shared .align 16 .b8 shared[];" in text
    assert re.findall(r"ld\.shared\.b32 \t%r\d+, \[%r\d+\+(\d+)\]", text) == ["64", "68", "72"]


def test_what_others_store_is_loaded_again_after_a_barrier() -> None:
    move = threads("p", 256, store("tile", p, load("tile", 255 - p)))
    q = var("q")
    put = threads("q", 256, store("out", q, load("tile", q)))
    again = serial("k", 3, Block((move, BARRIER)))
    text = ptx(program(shared("tile", 256, 0, Block((again, put))), scalars=(), bytes_=1024))
    assert text.count("bar.sync") == 3
    assert text.count("ld.shared") == 4


def test_barriers_under_uniform_branches() -> None:
    body = If(b < w, Block((tile(),)))
    assert ptx(program(body, bytes_=2048)).count("bar.sync") == 1


# Registers


def test_a_window_in_registers() -> None:
    """Rows are read once; the window is carried over thread loops, in arrays of constant indices."""
    k = var("k")
    first = threads("p", 256, Block((store("win", i(0), load("img", p)), store("win", i(1), load("img", w + p)))))
    q = var("q")
    step = threads("q", 256, Block((
        store("win", i(2), load("img", (k + 2) * w + q)),
        store("out", k * w + q, load("win", i(0)) + load("win", i(1)) + load("win", i(2))),
        store("win", i(0), load("win", i(1))), store("win", i(1), load("win", i(2))),
    )))  # fmt: skip
    text = ptx(program(registers("win", 3, Block((first, serial("k", var("w"), step))))))
    assert ".local" not in text
    (loop,) = loops(text)
    assert loop.count("ld.global") == 1


def test_sums_of_several_points_in_registers() -> None:
    """Each thread has four points; the fourth dimension of the tile is the number of the copy."""
    q, r = var("q"), var("r")
    begin = threads("p", 1024, store("acc", p // 256, const(0.0, FLOAT32)))
    add = threads("q", 1024, store("acc", q // 256, load("acc", q // 256) + load("img", var("k") * w + q)))
    end = threads("r", 1024, store("out", r, load("acc", r // 256)))
    text = ptx(program(registers("acc", 4, Block((begin, serial("k", w, add), end)))))
    assert ".local" not in text
    (loop,) = loops(text)
    assert loop.count("add.f32") == 4


def test_no_index_has_64_bits_but_in_addresses() -> None:
    q = var("k")
    body = threads("p", 256, registers("sum", 1, Block((
        store("sum", i(0), const(0.0, FLOAT32)),
        serial("k", var("w"), store("sum", i(0), load("sum", i(0)) + load("img", q * w + p) * load("img", p * w + q))),
        store("out", p, load("sum", i(0))),
    ))))  # fmt: skip
    (loop,) = loops(ptx(program(body)))
    assert not re.search(r"mul\.(lo|hi)\.\w64|mad\.lo\.\w64|cvt\.\w64|shl\.b64", loop)


# Arithmetic


def value(e: Expr, *, strict: bool = False, cpu: str = "sm_90") -> str:
    body = threads("p", 256, store("out", p, e))
    made = program(body, buffers={"img": FLOAT32, "other": FLOAT32, "out": e.dtype}, scalars=())
    return ptx(made, GPUS[cpu], strict=strict)


def test_products_and_sums_are_fused_unless_strict() -> None:
    x, y = load("img", p), load("other", p)
    assert "fma.rn.f32" in value(x * y + x)
    strict = value(x * y + x, strict=True)
    assert "mul.rn.f32" in strict
    assert "add.rn.f32" in strict
    assert "fma" not in strict


@pytest.mark.parametrize(
    ("t", "cpu", "suffix", "computed"),
    [
        (FLOAT16, "sm_70", "f16x2", "fma sub"),
        (FLOAT16, "sm_75", "f16x2", "fma sub"),
        (FLOAT16, "sm_90", "f16x2", "fma sub min"),
        (BFLOAT16, "sm_80", "bf16x2", "fma min"),
        (BFLOAT16, "sm_90", "bf16x2", "fma sub min"),
    ],
    ids=str,
)
@pytest.mark.parametrize("lanes", [2, 8])
def test_floats_of_16_bits_are_computed_in_pairs(t: DType, cpu: str, suffix: str, computed: str, lanes: int) -> None:
    """Two at a time, where the GPU has instructions for it; of bfloat16, sm_80 has fused ones and extremes alone."""
    x, y = (load(name, p * lanes, t, lanes) for name in ("img", "other"))
    e = (x * y + x) * (x - y) + op("min", -x, y)
    made = program(threads("p", 256, store("out", p * lanes, e)), buffers=dict.fromkeys(("img", "other", "out"), t))
    text = ptx(made, GPUS[cpu])
    pairs = re.findall(rf"(\w+)(?:\.rn|\.NaN)?\.{suffix}", text)
    assert set(computed.split()) <= set(pairs)
    assert pairs.count("fma") >= lanes
    if cpu >= "sm_80":
        assert not re.search(r"\.f32|\.b?f16\b", text)


def test_floats_of_16_bits_are_rounded_by_instructions() -> None:
    x = load("img", p * 2, FLOAT32, 2)
    for t, instruction in ((FLOAT16, "cvt.rn.f16x2.f32"), (BFLOAT16, "cvt.rn.bf16x2.f32")):
        made = program(threads("p", 256, store("out", p * 2, Cast(t, 2, x))), buffers={"img": FLOAT32, "out": t})
        assert ptx(made).count(instruction) == 1
        assert not re.search(r"(add|and|or)\.[bs]32 .*(32767|-65536|4194304)", ptx(made))


def test_conversions_are_one_instruction() -> None:
    x = load("img", p)
    assert re.search(r"cvt\.rzi\.s32\.f32", value(cast("int32", x)))
    limited = cast(UINT8, op("min", op("max", x, const(0.0, FLOAT32)), const(255.0, FLOAT32)))
    text = value(limited)
    assert re.search(r"cvt\.rzi\.u32\.f32", text)
    assert not re.search(r"(min|max)(\.NaN)?\.f32", text)


def test_division_of_what_is_not_negative() -> None:
    n = op("max", var("n"), i(1))
    body = threads("p", 256, store("out", (b // n) * w + p % n, load("img", p)))
    text = ptx(program(body, scalars=((w, var(STRIDE)), (var("n"), var("img.shape.1")))))
    assert "div.u32" in text
    assert "rem.u32" in text
    assert not re.search(r"(div|rem)\.s", text)


# Assembling


@needs_assembler
@pytest.mark.parametrize("cpu", GPUS)
def test_the_assembler_takes_it_and_spills_nothing(cpu: str) -> None:
    wide = copied(multiples=[(STRIDE, 4)])
    for m in (program(tile(), bytes_=64 + 258 * 4), wide, copied(UINT8, 16), copied(FLOAT16, 8)):
        assert spilled(assembled(ptx(m, GPUS[cpu]), GPUS[cpu])) == {"0"}


def test_any_name_and_any_scalar() -> None:
    """Names that PTX does not know, and scalars of every kind."""
    kinds = [("π", FLOAT16), ("b f", BFLOAT16), ("flag", BOOL), ("large", INT64), ("x", FLOAT64)]
    total: Expr = const(0.0, FLOAT64)
    for name, t in kinds:
        total = total + cast(FLOAT64, var(name, t))
    body = threads("p", 32, store("out", p, total))
    scalars = [(var(name, t), var(name, t)) for name, t in kinds]
    params = [ScalarArg(name, t) for name, t in kinds]
    made = program(body, 32, buffers={"img": FLOAT32, "out": FLOAT64}, scalars=scalars, params=params)
    (kernel,) = made.kernels
    assert isinstance(made.body, Launch)
    name = 'é "x"; .y'
    odd = replace(made, body=replace(made.body, kernel=name), kernels=(replace(kernel, name=name),))
    text = ptx(odd)
    assert re.findall(r"\.entry (\w+)\(", text) == ["k0__x_y"]
