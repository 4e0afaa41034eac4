"""Instructions that the threads of a warp or of a block execute together, as data.

An `Instruction` in loops has a name, and this table says the rest: who takes part, how operands are distributed over
lanes, what is computed, as a loop nest over the elements of the operands, and what it is in LLVM. The verifier, the
simulator and code generation read the table; none of them knows an instruction by its name.

    shfl(value, lane)       for i in 0..32: result[i] = value[lane[i]]        a warp shuffle
    barrier()               no thread of the block continues before all have come
    warp_barrier()          no lane of the warp continues before all have come
    commit_group()          the asynchronous copies that a thread has issued since the last commit form a group
    wait_group(n)           a thread continues when no more than the last n of its groups are in flight

An asynchronous copy itself is a `Store` of that manner: it addresses memory as all stores do.
"""

from __future__ import annotations

from enum import Enum

from ..dataclass import value
from ..expr.nodes import Expr, Instruction, Load, const, var
from ..expr.types import FLOAT32, INDEX, INT32, DType
from ..target.gpu import FIRST_WITH_ASYNCHRONOUS_COPIES, WARP_SIZE
from ..target.kinds import Kind
from ..target.layout import Digit, Layout, Unit
from .nodes import Evaluate, For, Stmt, Store


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
    that of the result.
    """

    name: str
    layout: Layout | None = None
    dtype: DType | None = None


@value()
class InstructionSpec:
    """What is known of an instruction.

    In the call `llvm`, {0}, {1}, ... stand for the operands. With `in_words`, it moves 32 bits: its first operand is
    taken apart into words of that size. GPUs below compute capability `since` do not have it and need nothing instead.
    """

    name: str
    group: ThreadGroup
    llvm: str
    operands: tuple[Operand, ...] = ()
    result: Operand | None = None
    meaning: Stmt | None = None
    effect: Effect = Effect.NONE
    in_words: bool = False
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
INSTRUCTIONS = {spec.name: spec for spec in (_SHUFFLE, _BARRIER, _WARP_BARRIER, _COMMIT_GROUP, _WAIT_GROUP)}


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
