"""Every operation of every type becomes PTX, without calls and without memory of threads, as scalars and as vectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pantile.expr.nodes import BITWISE, FIXED_POINT, FLOATING, OPS, Cast, Expr, const, op
from pantile.expr.types import ALL, BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, UINT8, UINT64, DType
from pantile.expr.visit import walk_loads
from pantile.ir.nodes import Block, BufferArg, CapturedBuffer, Kernel, Launch, Program
from pantile.target import GPUS

from ...long import LONG
from .assembler import assembled, needs_assembler, spilled
from .hand_built import i, load, p, ptx, store, threads

_OF_CONDITIONS = ("and", "or", "xor", "not", "eq", "ne", "select", "min", "max")
_INPUTS = ("a", "b", "c")


def has(name: str, t: DType) -> bool:
    if t.is_bool:
        return name in _OF_CONDITIONS
    if name in FLOATING:
        return t.is_float
    return not t.is_float or (name not in BITWISE and (name not in FIXED_POINT or name == "absd"))


def operation(name: str, t: DType, lanes: int) -> Expr:
    a, b, c = (load(n, p * lanes, t, lanes) for n in _INPUTS)
    if name == "select":
        return op(name, op("ne", a, b), b, c)
    if name.endswith("mul_shift"):
        return op(name, a, b, const(7, t, lanes))
    return op(name, *(a, b, c)[: OPS[name]])


def all_of(t: DType, lanes: int) -> Program:
    """A kernel for each operation and conversion of a type."""
    values = [operation(name, t, lanes) for name in OPS if name != "within" and has(name, t)]
    values += [Cast(to, lanes, load("a", p * lanes, t, lanes)) for to in ALL]
    return kernels_of(values, t)


def alone(value: Expr) -> Program:
    """A kernel for one value."""
    (t,) = {e.dtype for e in walk_loads(value)}
    return kernels_of([value], t)


def kernels_of(values: Sequence[Expr], t: DType) -> Program:
    """A kernel for each value of inputs of a type."""
    inputs = [CapturedBuffer(n, t) for n in _INPUTS]
    kernels, launches, arguments = [], [], [BufferArg(n, t, 1, False, (1,)) for n in _INPUTS]
    for k, value in enumerate(values):
        out = f"out{k}"
        arguments.append(BufferArg(out, value.dtype, 1, True, (1,)))
        captured = (*inputs, CapturedBuffer(out, value.dtype))
        body = threads("p", 256, store(out, p * value.lanes, value))
        kernels.append(Kernel(f"k{k}", "block", i(0), (), captured, body, 256))
        launches.append(Launch(f"k{k}", (), (*_INPUTS, out), i(1)))
    return Program("all", tuple(arguments), (), Block(tuple(launches)), tuple(kernels))


SOME_GPUS = ("sm_70", "sm_75", "sm_90")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("t", ALL, ids=str)
def test_all_of_a_type(t: DType, strict: bool) -> None:
    for cpu in ("sm_90",) if strict and not t.is_float and not LONG else GPUS if t is BFLOAT16 else SOME_GPUS:
        text = ptx(all_of(t, 1), GPUS[cpu], strict=strict)
        assert "call" not in text
        assert ".local" not in text


@pytest.mark.parametrize("t", [UINT8, FLOAT16, BFLOAT16, FLOAT32, INT64], ids=str)
def test_all_of_a_type_as_vectors(t: DType) -> None:
    assert ".local" not in ptx(all_of(t, 4), GPUS["sm_80"])


@needs_assembler
@pytest.mark.parametrize("t", [UINT8, INT16, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_the_assembler_takes_all_of_a_type(t: DType) -> None:
    assert spilled(assembled(ptx(all_of(t, 1)), GPUS["sm_90"])) == {"0"}


@pytest.mark.parametrize("name", ["shl", "shr"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_amounts_of_64_bits_are_not_cut_to_32(name: str, lanes: int) -> None:
    """A shift of PTX takes 32 bits of them: by 2**32 it would be by none at all."""
    text = ptx(alone(operation(name, UINT64, lanes)))
    assert text.count("min.u64") == lanes


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_absolute_values_of_16_bits_may_be_negative(lanes: int) -> None:
    """That of -32768 is itself. A device takes what abs.s16 makes of it for 32768 where it is widened."""
    text = ptx(alone(Cast(INT32, lanes, operation("abs", INT16, lanes))))
    assert "abs.s16" not in text and text.count("max.s16") == lanes
