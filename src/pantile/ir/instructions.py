"""Instructions that the threads of a warp or of a block execute together, as data.

An `Instruction` in loops has a name, and this table says the rest: who takes part, how operands are distributed over
lanes, what is computed, as a loop nest over the elements of the operands, and what it is in LLVM. The verifier, the
simulator and code generation read the table; none of them knows an instruction by its name.

    shfl(value, lane)       for i in 0..32: result[i] = value[lane[i]]        a warp shuffle
    barrier()               no thread of the block continues before all have come
    warp_barrier()          no lane of the warp continues before all have come
    mma(a, b, c)            for i, j, k: result[i, j] = c[i, j] + a[i, k]*b[k, j]    a matrix instruction
    ldmatrix(rows)          for i, j: result[i, j] = rows[i, j], or rows[j, i]: rows that lanes load, as a fragment
    commit_group()          the asynchronous copies that a thread has issued since the last commit form a group
    wait_group(n)           a thread continues when no more than the last n of its groups are in flight

An asynchronous copy itself is a `Store` of that manner: it addresses memory as all stores do.
"""

from __future__ import annotations

from enum import Enum
from itertools import product, starmap

from ..dataclass import value
from ..expr.build import cast
from ..expr.nodes import Expr, Instruction, Load, const, var
from ..expr.types import FLOAT16, FLOAT32, INDEX, INT32, DType, dtype
from ..target.gpu import FIRST_WITH_ASYNCHRONOUS_COPIES, WARP_SIZE
from ..target.kinds import Kind
from ..target.layout import Digit, Layout, Unit
from ..target.mma import (
    COLUMN_LANES,
    COLUMNS,
    FIRST_WITH_MMA,
    MATRIX,
    MMAS,
    PACKED,
    ROW_LANES,
    ROWS,
    WORD,
    Mma,
)
from .nodes import Block, Evaluate, For, Stmt, Store


class ThreadGroup(Enum):
    """The threads that execute an instruction together: all of them have to come to it."""

    THREAD = "thread"
    WARP = "warp"
    BLOCK = "block"


class Effect(Enum):
    """What an instruction does besides computing a value."""

    NONE = "none"
    BARRIER = "barrier"
    WARP_BARRIER = "warp_barrier"
    COMMIT_GROUP = "commit_group"
    WAIT_GROUP = "wait_group"


@value()
class Operand:
    """An operand or a result, and how its elements are distributed over the lanes of a warp.

    It is a vector with an element per register of the layout; where that has one register, the elements of a vector are
    treated alike. Without a layout it is an immediate: a number that is part of the instruction. Without a type it has
    that of the result. In `words`, it is so many operands in LLVM, of this type of 32 bits.
    """

    name: str
    layout: Layout | None = None
    dtype: DType | None = None
    words: str = ""


@value()
class InstructionSpec:
    """What is known of an instruction.

    In the call `llvm`, {0}, {1}, ... stand for the operands. With `in_words`, it moves 32 bits: its first operand is
    taken apart into words of that size. With `from_memory`, it loads its operand itself, from an address in shared
    memory. GPUs below compute capability `since` do not have it and need nothing instead.
    """

    name: str
    group: ThreadGroup
    llvm: str
    operands: tuple[Operand, ...] = ()
    result: Operand | None = None
    meaning: Stmt | None = None
    effect: Effect = Effect.NONE
    in_words: bool = False
    from_memory: bool = False
    since: tuple[int, int] = (0, 0)


_ONE_PER_LANE = Layout(((Digit(WARP_SIZE, Unit.THREAD),),))


def _shuffled() -> Stmt:
    """The loop nest of a shuffle; it moves values of any type."""
    lane = Load(INDEX, 1, "lane", (var("i"),))
    move = Store("result", (var("i"),), Load(FLOAT32, 1, "value", (lane,)))
    return For("i", const(0, INDEX), const(WARP_SIZE, INDEX), Kind.SERIAL, move)


_SHUFFLE = InstructionSpec(
    "shfl",
    ThreadGroup.WARP,
    "call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 {0}, i32 {1}, i32 31) memory(none)",
    (Operand("value", _ONE_PER_LANE), Operand("lane", _ONE_PER_LANE, INDEX)),
    Operand("result", _ONE_PER_LANE),
    _shuffled(),
    in_words=True,
)
_BARRIER = InstructionSpec(
    "barrier", ThreadGroup.BLOCK, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", effect=Effect.BARRIER
)
_WARP_BARRIER = InstructionSpec(
    "warp_barrier", ThreadGroup.WARP, "call void @llvm.nvvm.bar.warp.sync(i32 -1)", effect=Effect.WARP_BARRIER
)
_COMMIT_GROUP = InstructionSpec(
    "commit_group",
    ThreadGroup.THREAD,
    "call void @llvm.nvvm.cp.async.commit.group()",
    effect=Effect.COMMIT_GROUP,
    since=FIRST_WITH_ASYNCHRONOUS_COPIES,
)
_WAIT_GROUP = InstructionSpec(
    "wait_group",
    ThreadGroup.THREAD,
    "call void @llvm.nvvm.cp.async.wait.group(i32 {0})",
    (Operand("groups"),),
    effect=Effect.WAIT_GROUP,
    since=FIRST_WITH_ASYNCHRONOUS_COPIES,
)


def _matrix_product(mma: Mma, operand: DType, accumulator: DType) -> Stmt:
    """The loop nest of a matrix instruction."""
    i, j, k = var("i"), var("j"), var("k")
    a, b = (cast(accumulator, Load(operand, 1, name, at)) for name, at in (("a", (i, k)), ("b", (k, j))))
    begin = Store("result", (i, j), Load(accumulator, 1, "c", (i, j)))
    add = Store("result", (i, j), Load(accumulator, 1, "result", (i, j)) + a * b)

    def of_all(body: Stmt) -> Stmt:
        return _counted("i", ROWS, _counted("j", COLUMNS, body))

    return Block((of_all(begin), of_all(_counted("k", mma.terms, add))))


def _counted(name: str, extent: int, body: Stmt) -> Stmt:
    return For(name, const(0, INDEX), const(extent, INDEX), Kind.SERIAL, body)


def _of_mma(mma: Mma) -> InstructionSpec:
    operand, accumulator = dtype(mma.operand), dtype(mma.accumulator)
    word = _HALVES if operand is FLOAT16 else "i32"
    sums = {FLOAT32: "float", FLOAT16: _HALVES}.get(accumulator, "i32")
    results = ", ".join([sums] * (mma.c.count(Unit.REGISTER) * accumulator.bytes // WORD))
    return InstructionSpec(
        mma.name,
        ThreadGroup.WARP,
        f"call {{{{{results}}}}} @llvm.nvvm.{mma.shape}.row.col.{mma.suffix}({{0}}, {{1}}, {{2}})",
        (Operand("a", mma.a, operand, word), Operand("b", mma.b(), operand, word), Operand("c", mma.c, words=sums)),
        Operand("result", mma.c, accumulator, sums),
        _matrix_product(mma, operand, accumulator),
        since=FIRST_WITH_MMA,
    )


def matrix_load(count: int, is_packed: bool) -> str:
    """The name of `ldmatrix`, for so many matrices, whose rows are registers of their lanes or are transposed."""
    return f"ldmatrix.x{count}{'' if is_packed else '.trans'}"


def _of_matrix_load(count: int, is_packed: bool) -> InstructionSpec:
    name = matrix_load(count, is_packed)
    lane, registers = Digit(count * MATRIX, Unit.THREAD), Digit(MATRIX, Unit.REGISTER)
    rows, columns = (ROW_LANES, Digit(count, Unit.REGISTER, PACKED)), (Digit(PACKED, Unit.REGISTER), COLUMN_LANES)
    m, i, j = var("m") * MATRIX, var("i"), var("j")
    row, column = (i, j) if is_packed else (j, i)
    move = Store("result", (m + i, j), Load(FLOAT32, 1, "rows", (m + row, column)))
    words = ", ".join(["i32"] * count)
    shape = f"m{MATRIX}n{MATRIX}{name.removeprefix('ldmatrix')}.b16.p3"
    return InstructionSpec(
        name,
        ThreadGroup.WARP,
        f"call {{{{{words}}}}} @llvm.nvvm.ldmatrix.sync.aligned.{shape}({{0}})",
        (Operand("rows", Layout(((lane,), (registers,)))),),
        Operand("result", Layout((rows, columns)), words="i32"),
        _counted("m", count, _counted("i", MATRIX, _counted("j", MATRIX, move))),
        from_memory=True,
        since=FIRST_WITH_MMA,
    )


_HALVES = "<2 x half>"
_OF_THREADS = (_SHUFFLE, _BARRIER, _WARP_BARRIER, _COMMIT_GROUP, _WAIT_GROUP)
_OF_MATRICES = (*map(_of_mma, MMAS.values()), *starmap(_of_matrix_load, product((2, 4), (True, False))))
INSTRUCTIONS = {spec.name: spec for spec in (*_OF_THREADS, *_OF_MATRICES)}


def shuffle(value: Expr, lane: Expr) -> Instruction:
    """The value that another lane of the warp has."""
    return Instruction(value.dtype, value.lanes, _SHUFFLE.name, (value, lane))


def _evaluated(spec: InstructionSpec, *immediates: int) -> Evaluate:
    return Evaluate(Instruction(INT32, 1, spec.name, tuple(const(n, INT32) for n in immediates)))


BARRIER = _evaluated(_BARRIER)
WARP_BARRIER = _evaluated(_WARP_BARRIER)
COMMIT_GROUP = _evaluated(_COMMIT_GROUP)


def wait_group(groups: int) -> Evaluate:
    """A thread waits until no more than the last `groups` of its groups of copies are in flight."""
    return _evaluated(_WAIT_GROUP, groups)


def effect_of(s: Stmt) -> Effect:
    """The effect of a statement that evaluates an instruction; NONE for all other statements."""
    return INSTRUCTIONS[s.value.name].effect if isinstance(s, Evaluate) else Effect.NONE
