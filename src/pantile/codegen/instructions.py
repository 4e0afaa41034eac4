"""Writes the instructions of a warp or block as the calls that `ir/instructions.py` specifies.

If a call moves 32 bits, smaller values are widened and larger ones are moved in parts; a vector of two 16-bit values is
one part. The result of an instruction is written as a pure value: equal instructions are merged, and unused ones are
not written.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import Const, Expr, Instruction, Load
from ..expr.types import FLOAT32
from ..ir.instructions import Effect, InstructionSpec, Operand, ThreadGroup, lies, spec_of
from ..ir.nodes import Evaluate
from ..target.gpu import LONGEST_ACCESS, compute_capability
from ..target.wgmma import CORE, STEP, CoreMatrices
from .context import Context
from .memory import from_memory, shared_address, to_memory
from .types import integer_type, memory_type, scalar_type, value_type
from .vectors import gather, pick

_WORD = 32  # bits


def write_evaluate(ctx: Context, s: Evaluate) -> None:
    """Write an instruction without a result, unless the GPU lacks it."""
    spec = spec_of(s.value.name)
    if compute_capability(ctx.module.target.cpu) < spec.since:
        return
    ctx.fn.effect(spec.llvm.format(*(a.value for a in s.value.args if isinstance(a, Const))))
    if spec.effect in (Effect.BARRIER, Effect.WARP_BARRIER):  # later loads may see stores of other threads
        ctx.fn.forget_all_loads()


def write_instruction(ctx: Context, e: Instruction, write: Callable[[Context, Expr], str]) -> str:
    """Write an instruction and its operands, and return the name of its result."""
    spec = spec_of(e.name)
    if spec.from_memory:
        return _of_memory(ctx, spec, e)
    if spec.group is ThreadGroup.WARPGROUP:
        return _of_warpgroup(ctx, spec, e, write)
    args = [write(ctx, a) for a in e.args]
    if not spec.in_words:
        return _of_fragments(ctx, spec, e, args)
    value, *rest = args
    words = _Words(ctx, spec, [_narrow(ctx, e.args[1 + k].dtype.bits, a) for k, a in enumerate(rest)])
    bits = FLOAT32.bits if e.dtype.kind == "bfloat" else 1 if e.dtype.is_bool else e.dtype.bits  # of a value
    if bits * e.lanes % _WORD and e.lanes > 1:
        element = scalar_type(e.dtype)
        parts = [pick(ctx.fn, value, element, e.lanes, k) for k in range(e.lanes)]
        return gather(ctx.fn, [words.moved(part, element, bits) for part in parts], element)
    return words.moved(value, value_type(e.dtype, e.lanes), bits * e.lanes)


def _of_fragments(ctx: Context, spec: InstructionSpec, e: Instruction, args: list[str]) -> str:
    """Write an instruction whose operands and result are packed in words, each of which is an operand of the call."""
    operands = [_words(ctx, of, a, arg) for of, a, arg in zip(spec.operands, e.args, args, strict=True)]
    return _joined(ctx, spec, e, ctx.fn.value(spec.llvm.format(*operands)))


def _words(ctx: Context, operand: Operand, e: Expr, value: str) -> str:
    """The words of an operand, as the arguments of a call."""
    words = e.lanes * e.dtype.bits // _WORD
    raw = to_memory(ctx, e.dtype, e.lanes, value)
    whole = _reinterpreted(ctx, raw, memory_type(e.dtype, e.lanes), integer_type(_WORD, words))
    parts = [pick(ctx.fn, whole, "i32", words, k) for k in range(words)]
    return ", ".join(f"{operand.words} {_reinterpreted(ctx, p, 'i32', operand.words)}" for p in parts)


def _of_warpgroup(ctx: Context, spec: InstructionSpec, e: Instruction, write: Callable[[Context, Expr], str]) -> str:
    """Write an instruction that begins an asynchronous operation or waits for it, so it must be neither shared nor
    omitted."""
    operands = list[str]()
    for k, (operand, a) in enumerate(zip(spec.operands, e.args, strict=True)):
        if operand.matrix is not None and isinstance(a, Load):
            operands.append(_descriptors(ctx, a, lies(e, k), operand.matrix[1]))
        elif isinstance(a, Const):
            operands.append(str(a.value))
        else:
            operands.append(_words(ctx, operand, a, write(ctx, a)))
    return _joined(ctx, spec, e, ctx.fn.effect_value(spec.llvm.format(*operands)))


def _descriptors(ctx: Context, row: Load, where: CoreMatrices, terms: int) -> str:
    """The PTX matrix descriptors of a matrix in shared memory, one for the terms of each instruction. A descriptor has
    the address and two distances in units of 16 bytes, beginning at bits 0, 16 and 32."""
    fn, unit = ctx.fn, LONGEST_ACCESS // row.dtype.bytes
    address = fn.value(f"ptrtoint {shared_address(ctx, row)} to i32")
    start = fn.value(f"zext i32 {fn.value(f'lshr exact i32 {address}, {LONGEST_ACCESS.bit_length() - 1}')} to i64")
    distances = where.terms_apart // unit << 16 | where.rows_apart // unit << 32
    far = STEP // CORE * where.terms_apart // unit
    return ", ".join(f"i64 {fn.value(f'add i64 {start}, {distances + k * far}')}" for k in range(terms // STEP))


def _of_memory(ctx: Context, spec: InstructionSpec, e: Instruction) -> str:
    """Write an instruction that loads its operand from shared memory."""
    (rows,) = e.args
    assert isinstance(rows, Load)
    return _joined(ctx, spec, e, ctx.fn.load(rows.buffer, spec.llvm.format(shared_address(ctx, rows)), ""))


def _joined(ctx: Context, spec: InstructionSpec, e: Instruction, result: str) -> str:
    """Build a value from the words that an instruction returns."""
    assert spec.result is not None
    fn, word, count = ctx.fn, spec.result.words, e.lanes * e.dtype.bits // _WORD
    type_ = ", ".join([word] * count)
    parts = [fn.value(f"extractvalue {{{type_}}} {result}, {k}") for k in range(count)]
    whole = gather(fn, [_reinterpreted(ctx, p, word, "i32") for p in parts], "i32")
    raw = _reinterpreted(ctx, whole, integer_type(_WORD, count), memory_type(e.dtype, e.lanes))
    return from_memory(ctx, e.dtype, e.lanes, raw)


def _reinterpreted(ctx: Context, value: str, before: str, after: str) -> str:
    """Reinterpret the bits of a value of one LLVM type as another."""
    return value if before == after else ctx.fn.value(f"bitcast {before} {value} to {after}")


def _narrow(ctx: Context, bits: int, operand: str) -> str:
    return operand if bits == _WORD else ctx.fn.value(f"trunc {integer_type(bits)} {operand} to i32")


class _Words:
    """An instruction whose first operand is split into 32-bit words; `rest` has the other operands."""

    def __init__(self, ctx: Context, spec: InstructionSpec, rest: list[str]) -> None:
        self._ctx, self._spec, self._rest = ctx, spec, rest

    def moved(self, value: str, type_: str, bits: int) -> str:
        """The result for a value with this number of bits, which is either a multiple of a word or less than one."""
        fn, whole = self._ctx.fn, integer_type(bits)
        raw = _reinterpreted(self._ctx, value, type_, whole)
        if bits < _WORD:
            word = self._word(fn.value(f"zext {whole} {raw} to i32"))
            return _reinterpreted(self._ctx, fn.value(f"trunc i32 {word} to {whole}"), whole, type_)
        words = bits // _WORD
        if words == 1:
            return _reinterpreted(self._ctx, self._word(raw), whole, type_)
        vector = integer_type(_WORD, words)
        parts = _reinterpreted(self._ctx, raw, whole, vector)
        moved = [self._word(pick(fn, parts, "i32", words, k)) for k in range(words)]
        return _reinterpreted(self._ctx, gather(fn, moved, "i32"), vector, type_)

    def _word(self, value: str) -> str:
        return self._ctx.fn.value(self._spec.llvm.format(value, *self._rest))
