"""Instructions of a warp or block: the calls that `ir/instructions.py` has for them.

Where a call moves 32 bits, smaller values are widened, larger ones are moved in parts; a vector of two 16-bit values is
one part. What an instruction computes is written as a pure value: equal ones are merged, and unused ones are not
written.
"""

from __future__ import annotations

from ..expr.nodes import Const, Instruction, Load
from ..expr.types import FLOAT32
from ..ir.instructions import INSTRUCTIONS, Effect, InstructionSpec
from ..ir.nodes import Evaluate
from ..target.gpu import compute_capability
from .context import Context
from .memory import from_memory, shared_address, to_memory
from .types import integer_type, memory_type, scalar_type, value_type
from .vectors import gather, pick

_WORD = 32  # bits


def write_evaluate(ctx: Context, s: Evaluate) -> None:
    """Write an instruction without a result, if the GPU has it."""
    spec = INSTRUCTIONS[s.value.name]
    if compute_capability(ctx.module.target.cpu) < spec.since:
        return
    ctx.fn.effect(spec.llvm.format(*(a.value for a in s.value.args if isinstance(a, Const))))
    if spec.effect in (Effect.BARRIER, Effect.WARP_BARRIER):  # other threads may have stored what is loaded after it
        ctx.fn.forget_all_loads()


def write_instruction(ctx: Context, e: Instruction, args: list[str]) -> str:
    """Write an instruction of operands that are written already, and name its result."""
    spec = INSTRUCTIONS[e.name]
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
    """An instruction whose operands and result are elements in words, one operand for each."""
    fn, operands = ctx.fn, list[str]()
    for operand, a, arg in zip(spec.operands, e.args, args, strict=True):
        words = a.lanes * a.dtype.bits // _WORD
        raw = to_memory(ctx, a.dtype, a.lanes, arg)
        whole = _reinterpreted(ctx, raw, memory_type(a.dtype, a.lanes), integer_type(_WORD, words))
        parts = [pick(fn, whole, "i32", words, k) for k in range(words)]
        operands.append(", ".join(f"{operand.words} {_reinterpreted(ctx, p, 'i32', operand.words)}" for p in parts))
    return _joined(ctx, spec, e, fn.value(spec.llvm.format(*operands)))


def write_matrix_load(ctx: Context, e: Instruction) -> str:
    """Write an instruction that loads its operand from shared memory."""
    spec, (rows,) = INSTRUCTIONS[e.name], e.args
    assert isinstance(rows, Load)
    return _joined(ctx, spec, e, ctx.fn.load(rows.buffer, spec.llvm.format(shared_address(ctx, rows)), ""))


def _joined(ctx: Context, spec: InstructionSpec, e: Instruction, result: str) -> str:
    """The value whose words an instruction returns."""
    assert spec.result is not None
    fn, word, count = ctx.fn, spec.result.words, e.lanes * e.dtype.bits // _WORD
    type_ = ", ".join([word] * count)
    parts = [fn.value(f"extractvalue {{{type_}}} {result}, {k}") for k in range(count)]
    whole = gather(fn, [_reinterpreted(ctx, p, word, "i32") for p in parts], "i32")
    raw = _reinterpreted(ctx, whole, integer_type(_WORD, count), memory_type(e.dtype, e.lanes))
    return from_memory(ctx, e.dtype, e.lanes, raw)


def _reinterpreted(ctx: Context, value: str, before: str, after: str) -> str:
    """A value of one LLVM type as the same bits of another."""
    return value if before == after else ctx.fn.value(f"bitcast {before} {value} to {after}")


def _narrow(ctx: Context, bits: int, operand: str) -> str:
    return operand if bits == _WORD else ctx.fn.value(f"trunc {integer_type(bits)} {operand} to i32")


class _Words:
    """An instruction that takes its first operand in words of 32 bits; `rest` are the other operands."""

    def __init__(self, ctx: Context, spec: InstructionSpec, rest: list[str]) -> None:
        self._ctx, self._spec, self._rest = ctx, spec, rest

    def moved(self, value: str, type_: str, bits: int) -> str:
        """The result for a value of so many bits, which are whole words or less than one."""
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
