"""Code for every target, whatever the host: the vector instructions that must be there."""

from __future__ import annotations

import re

import pytest

from pantile.codegen.compile import assembly, compile_object, optimized
from pantile.codegen.emit import emit
from pantile.errors import InternalError
from pantile.expr.build import cast, ramp
from pantile.expr.nodes import Broadcast, Expr, Load, Shuffle, const, op, var
from pantile.expr.types import FLOAT16, FLOAT32, FLOAT64, INDEX, INT32, UINT8, UINT16, DType
from pantile.ir.nodes import BufferArg, Program, Store
from pantile.target import CPUS, host, named
from pantile.target.description import llvm_target
from pantile.target.kinds import Kind

from .kernels import argument, dense, loop

x = var("x")
LANES = 16


def kernel(value: Expr, t: DType, inputs: int = 3, **options: bool) -> Program:
    body = loop("x", var("out.shape.0"), Store("out", (ramp(x * LANES, 1, value.lanes),), value), Kind.SERIAL)
    buffers: tuple[BufferArg, ...] = tuple(argument(f"in{k}", t) for k in range(inputs))
    return Program("kernel", (*buffers, argument("out", value.dtype, writable=True)), (), body)


def inputs(t: DType) -> list[Load]:
    return [dense(t, f"in{k}", x * LANES, LANES) for k in range(3)]


def code(value: Expr, t: DType, name: str, *, strict: bool = False) -> str:
    return assembly(emit(kernel(value, t), CPUS[name], strict=strict), CPUS[name])


CASES = {
    "halving": (op("halving_add", *inputs(UINT8)[:2]), UINT8, {"aarch64": "uhadd"}),
    "rounding_halving": (
        op("rounding_halving_add", *inputs(UINT8)[:2]), UINT8,
        {"aarch64": "urhadd", "x86-64-v3": "vpavgb", "x86-64-v4": "vpavgb", "riscv64": "vaaddu"},
    ),
    "saturating": (
        op("saturating_add", *inputs(UINT16)[:2]), UINT16,
        {"aarch64": "uqadd", "x86-64-v3": "vpaddusw", "x86-64-v4": "vpaddusw", "riscv64": "vsaddu"},
    ),
    "absd": (op("absd", *inputs(UINT8)[:2]), UINT8, {"aarch64": "uabd", "x86-64-v3": "vpsubb"}),
    "mul_high": (
        op("mul_shift", *inputs(UINT16)[:2], const(16, UINT16, LANES)), UINT16,
        {"aarch64": "umull", "x86-64-v3": "vpmulhuw", "x86-64-v4": "vpmulhuw", "riscv64": "vmulhu|vwmulu"},
    ),
    "contracted": (
        inputs(FLOAT32)[0] * inputs(FLOAT32)[1] + inputs(FLOAT32)[2], FLOAT32,
        {"aarch64": "fmla", "x86-64-v3": r"vfmadd\d+ps.*ymm", "x86-64-v4": r"vfmadd\d+ps.*zmm", "riscv64": "vfma"},
    ),
    "clamped_cast": (
        cast(UINT8, op("min", op("max", inputs(FLOAT32)[0], const(0, FLOAT32, LANES)), const(255, FLOAT32, LANES))),
        FLOAT32, {"aarch64": "uqxtn2", "x86-64-v3": "vcvttps2dq", "x86-64-v4": "vcvttps2dq", "riscv64": "vfn?cvt"},
    ),
    "divide_by_three": (
        inputs(UINT16)[0] // 3, UINT16, {"aarch64": "umull2", "x86-64-v3": "vpmulhuw", "riscv64": "vmulhu"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CPUS))
@pytest.mark.parametrize("case", list(CASES))
def test_vector_instructions(case: str, name: str) -> None:
    value, t, expected = CASES[case]
    text = code(value, t, name)
    assert not re.search(r"\b(call|bl|jal)\b", text), "no library calls"
    assert re.search(expected.get(name, ""), text)


def test_clamps_to_the_range_of_a_type_come_with_the_cast() -> None:
    value, t, _ = CASES["clamped_cast"]
    assert not re.search(r"\bf(min|max)", code(value, t, "aarch64"))


def test_strict_does_not_contract() -> None:
    value, t, _ = CASES["contracted"]
    assert "fmla" not in code(value, t, "aarch64", strict=True)


@pytest.mark.parametrize("t", [FLOAT32, FLOAT64], ids=str)
def test_a_number_that_vectors_are_multiplied_by_stays_in_one_lane(t: DType) -> None:
    a, _, c = inputs(t)
    text = code(a * Broadcast(t, LANES, dense(t, "in1", x)) + c, t, "aarch64")
    assert re.search(r"fmla\s+v\d+\.\w+, v\d+\.\w+, v\d+\.[sd]\[0\]", text)
    assert not re.search(r"\b(ld1r|dup)\b", text)


def test_interleaved_loads_and_stores() -> None:
    channels = [Load(UINT8, LANES, "in0", (ramp(x * (3 * LANES) + k, 3, LANES),)) for k in range(3)]
    order = tuple(k * LANES + i for i in range(LANES) for k in range(3))
    changed = tuple(op("saturating_add", c, const(k, UINT8, LANES)) for k, c in enumerate(channels))
    text = code(Shuffle(UINT8, 3 * LANES, changed, order), UINT8, "aarch64")
    assert "ld3" in text and "st3" in text


@pytest.mark.parametrize("name", list(CPUS))
@pytest.mark.parametrize("t", ["float16", "bfloat16"])
def test_16_bit_floats_need_no_library(t: str, name: str) -> None:
    from pantile.expr.types import dtype

    a, b, c = inputs(dtype(t))
    value = op("fma", op("sqrt", a / b), cast(t, cast("float64", c) * 2.0), cast(t, cast("int32", b)))
    assert not re.search(r"\b(call|bl|jal)\b", code(value, dtype(t), name))


def test_no_vectorizing_or_run_time_unrolling_by_llvm() -> None:
    scalar = Store("out", (x,), dense("float32", "in0", x) * 2.0)
    program = Program(
        "k",
        (argument("in0", FLOAT32), argument("out", FLOAT32, writable=True)),
        (),
        loop("x", var("out.shape.0"), scalar),
    )
    text = str(optimized(emit(program, host()), host()))
    assert " x float>" not in text and text.count("fmul") == 1


def test_objects_for_every_target() -> None:
    value, t, _ = CASES["contracted"]
    for to in CPUS.values():
        assert compile_object(emit(kernel(value, t), to), to)[:4] == b"\x7fELF"


def test_text_that_llvm_refuses_is_a_bug_of_ours() -> None:
    with pytest.raises(InternalError, match="LLVM refuses the generated code"):
        compile_object("define i32 @f() {\n  ret i64 0\n}\n", host())


@pytest.mark.parametrize("t", [UINT8, UINT16], ids=str)
def test_one_masked_lane_is_stored_alone(t: DType) -> None:
    """LLVM knows the mask, of which one lane is on, and must not store the lane as wide as it was computed."""
    at = ramp(const(0, INDEX), 1, 4)
    wide = Load(INT32, 4, "in0", (at,)) >> const(9, INT32, 4)
    body = Store("out", (at,), cast(t, wide), op("lt", at, const(1, INDEX, 4)))
    program = Program("kernel", (argument("in0", INT32), argument("out", t, writable=True)), (), body)
    text = assembly(emit(program, CPUS["x86-64-v4"]), CPUS["x86-64-v4"])
    stores = re.findall(r"^\s+(\S+)\s+[^(\n]*, \(%r\w+\)( \{%k\d\})?$", text, re.MULTILINE)
    assert stores, "nothing is stored"
    assert all(mask or name in ("movb", "movw", "vpextrb", "vpextrw") for name, mask in stores), text


def test_a_core_keeps_its_instructions_in_the_order_of_another() -> None:
    """Code for Neoverse N1 is put in order as for another core; half floats and fused products are still there."""
    core = llvm_target("aarch64-unknown-linux-gnu", "neoverse-n1", "+fullfp16,+dotprod")
    a, b, c = inputs(FLOAT16)
    asm = assembly(emit(kernel(a * b + c, FLOAT16), core), core)
    assert re.search(r"fmla\s+v\d+\.8h", asm)


MODULE = """define internal i32 @unused() {
entry:
  ret i32 0
}

define i32 @k(i32 %x) {
entry:
  %y = add i32 %x, 0
  ret i32 %y
}
"""


@pytest.mark.parametrize(("target", "most", "alone"), [("host", 9, True), ("sm_90", 9, False), ("sm_90", 1, True)])
def test_functions_are_simplified(target: str, most: int, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On CPUs, and where blocks are long, each by itself: passes over a whole module leave out what nobody uses."""
    monkeypatch.setattr("pantile.codegen.compile._LONG", most)
    module = str(optimized(MODULE, named(target)))
    assert "= add" not in module
    assert ("@unused" in module) == alone
