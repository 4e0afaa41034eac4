"""Instructions that the threads of a warp or of a block execute together, as data.

An `Instruction` in loops has only a name. This table has the rest: the threads that take part, the distribution of
operands over lanes, the computation as a loop nest over the elements of the operands, and the LLVM code. The verifier,
the simulator and code generation read the table, and none of them treats an instruction specially by its name.

    shfl(value, lane)       for i in 0..32: result[i] = value[lane[i]]        a warp shuffle
    barrier()               no thread of the block continues before all of them have arrived
    warp_barrier()          no lane of the warp continues before all of them have arrived
    mma(a, b, c)            for i, j, k: result[i, j] = c[i, j] + a[i, k]*b[k, j]    a matrix instruction
    ldmatrix(rows)          for i, j: result[i, j] = rows[i, j], or rows[j, i]: a fragment of rows that lanes load
    wgmma(a, ..., b, ..., c)    like mma, by a warpgroup, of matrices in shared memory; begins without waiting
    wgmma_wait(c, n)        c, once no more than the last n wgmma that the warpgroup has begun are in flight
    commit_group()          the asynchronous copies that a thread has issued since its last commit form a group
    fence_proxy()           makes the thread's writes to shared memory visible to products by warpgroups
    wait_group(n)           the thread continues once no more than the last n of its groups are in flight

An asynchronous copy itself is a `Store` of that manner, since it addresses memory like any other store.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from itertools import product, starmap

from ..dataclass import value
from ..errors import InternalError
from ..expr.build import cast
from ..expr.nodes import Const, Expr, Instruction, Load, const, var
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
from ..target.wgmma import CAPABILITY as OF_WARPGROUPS
from ..target.wgmma import ROWS as ROWS_OF_WARPGROUP
from ..target.wgmma import STEP, WARPS, CoreMatrices, Wgmma, named_wgmma
from .nodes import Block, Evaluate, For, Stmt, Store


class ThreadGroup(Enum):
    """The threads that execute an instruction together. All of them must reach it."""

    THREAD = "thread"
    WARP = "warp"
    WARPGROUP = "warpgroup"
    BLOCK = "block"


class Effect(Enum):
    """The effect of an instruction, in addition to the value that it computes."""

    NONE = "none"
    BARRIER = "barrier"
    WARP_BARRIER = "warp_barrier"
    COMMIT_GROUP = "commit_group"
    WAIT_GROUP = "wait_group"
    FENCE_PROXY = "fence_proxy"
    READ_MATRICES = "read_matrices"
    WAIT_MATRICES = "wait_matrices"


@value()
class Operand:
    """An operand or a result, and how its elements are distributed over the lanes of a warp.

    It is a vector with one element per register of the layout. If the layout has a single register, the instruction is
    applied to each element of a vector. An operand without a layout is an immediate: a number that is part of the
    instruction. An operand without a type has the type of the result. If `words` is set, LLVM takes the operand as
    several operands of this 32-bit type.

    If `matrix` is set, the operand is a matrix in shared memory with this number of rows (for `b`, columns) and terms.
    It is given as the load of its first row, followed by three numbers that locate its other elements
    (`CoreMatrices`).
    """

    name: str
    layout: Layout | None = None
    dtype: DType | None = None
    words: str = ""
    matrix: tuple[int, int] | None = None


@value()
class InstructionSpec:
    """The description of an instruction.

    In the call `llvm`, {0}, {1}, ... stand for the operands. If `in_words`, the instruction moves 32 bits, and its
    first operand is split into words of that size. If `from_memory`, it loads its operand itself, from an address in
    shared memory. GPUs below compute capability `since` lack the instruction and need no replacement for it.
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
_FENCE_PROXY = InstructionSpec(
    "fence_proxy",
    ThreadGroup.THREAD,
    'call void asm sideeffect "fence.proxy.async.shared::cta;", "~{{memory}}"()',
    effect=Effect.FENCE_PROXY,
    since=OF_WARPGROUPS,
)


def _matrix_product(
    rows: int, columns: int, terms: int, operand: DType, accumulator: DType, by_columns: bool = False
) -> Stmt:
    """The loop nest of a matrix instruction. If `by_columns`, the first index of `b` is that of a column."""
    i, j, k = var("i"), var("j"), var("k")
    of_b = (j, k) if by_columns else (k, j)
    a, b = (cast(accumulator, Load(operand, 1, name, at)) for name, at in (("a", (i, k)), ("b", of_b)))
    begin = Store("result", (i, j), Load(accumulator, 1, "c", (i, j)))
    add = Store("result", (i, j), Load(accumulator, 1, "result", (i, j)) + a * b)

    def of_all(body: Stmt) -> Stmt:
        return _counted("i", rows, _counted("j", columns, body))

    return Block((of_all(begin), of_all(_counted("k", terms, add))))


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
        _matrix_product(ROWS, COLUMNS, mma.terms, operand, accumulator),
        since=FIRST_WITH_MMA,
    )


def matrix_load(count: int, is_packed: bool) -> str:
    """The name of the `ldmatrix` instruction that loads `count` matrices. If `is_packed`, the elements of a row are
    packed in the registers of lanes; otherwise, the matrices are transposed."""
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
_OF_THREADS = (_SHUFFLE, _BARRIER, _WARP_BARRIER, _COMMIT_GROUP, _WAIT_GROUP, _FENCE_PROXY)
_OF_MATRICES = (*map(_of_mma, MMAS.values()), *starmap(_of_matrix_load, product((2, 4), (True, False))))
INSTRUCTIONS = {spec.name: spec for spec in (*_OF_THREADS, *_OF_MATRICES)}


# Instructions of warpgroups, which come in many sizes


def _of_wgmma(of: Wgmma) -> InstructionSpec:
    operand, accumulator, steps = dtype(of.operand), dtype(of.accumulator), of.terms // STEP
    results = ", ".join(f"${k}" for k in range(of.registers))
    lines = ["wgmma.fence.sync.aligned;"]
    for k in range(of.registers, of.registers + steps):
        shape = f"m{ROWS_OF_WARPGROUP}n{of.columns}k{STEP}.{of.types}"
        lines.append(
            f"wgmma.mma_async.sync.aligned.{shape} {{{{{results}}}}}, ${k}, ${k + steps}, 1, 1, 1, {{3}}, {{7}};"
        )
    lines.append("wgmma.commit_group.sync.aligned;")
    constraints = ",".join([*["=f"] * of.registers, *["l"] * 2 * steps, *map(str, range(of.registers)), "~{{memory}}"])
    matrices = [
        (Operand(name, dtype=operand, matrix=(rows, of.terms)), *(Operand(f"{name}_{n}") for n in _WHERE))
        for name, rows in (("a", ROWS_OF_WARPGROUP), ("b", of.columns))
    ]
    code = "\\0A".join(lines)
    return InstructionSpec(
        of.name,
        ThreadGroup.WARPGROUP,
        f'call {_sums(of.registers)} asm sideeffect "{code}", "{constraints}"({{0}}, {{4}}, {{8}})',
        (*matrices[0], *matrices[1], Operand("c", of.c, words="float")),
        Operand("result", of.c, accumulator, "float"),
        _matrix_product(ROWS_OF_WARPGROUP, of.columns, of.terms, operand, accumulator, by_columns=True),
        Effect.READ_MATRICES,
        since=OF_WARPGROUPS,
    )


def _of_wait(registers: int) -> InstructionSpec:
    """The wait for products. The registers that products may still change are its operands and results, so that LLVM
    moves no read of them before the wait."""
    layout = Layout(((Digit(WARPS * WARP_SIZE, Unit.THREAD),), (Digit(registers, Unit.REGISTER),)))
    constraints = ",".join([*["=f"] * registers, *map(str, range(registers)), "~{{memory}}"])
    i, j = var("i"), var("j")
    move = Store("result", (i, j), Load(FLOAT32, 1, "c", (i, j)))
    return InstructionSpec(
        f"{_WAIT}{registers}",
        ThreadGroup.WARPGROUP,
        f'call {_sums(registers)} asm sideeffect "wgmma.wait_group.sync.aligned {{1}};", "{constraints}"({{0}})',
        (Operand("c", layout, words="float"), Operand("groups")),
        Operand("result", layout, FLOAT32, "float"),
        _counted("i", WARPS * WARP_SIZE, _counted("j", registers, move)),
        Effect.WAIT_MATRICES,
        since=OF_WARPGROUPS,
    )


def _sums(registers: int) -> str:
    return f"{{{{{', '.join(['float'] * registers)}}}}}"


_WHERE = ("rows_apart", "terms_apart", "transposed")
_WAIT = "wgmma_wait.x"
_NUMBER = re.compile(rf"{re.escape(_WAIT)}(\d+)")


@cache
def find_spec(name: str) -> InstructionSpec | None:
    """The description of the instruction with this name; None if there is no such instruction."""
    of, wait = named_wgmma(name), _NUMBER.fullmatch(name)
    if of is not None:
        return _of_wgmma(of)
    return _of_wait(int(wait[1])) if wait else INSTRUCTIONS.get(name)


def spec_of(name: str) -> InstructionSpec:
    """The description of the instruction with this name."""
    spec = find_spec(name)
    if spec is None:
        raise InternalError(f"there is no instruction {name}")
    return spec


def warpgroup_product(of: Wgmma, a: Load, a_lies: CoreMatrices, b: Load, b_lies: CoreMatrices, c: Expr) -> Instruction:
    """A product by a warpgroup. `a` and `b` are loads of the first rows of the matrices, `a_lies` and `b_lies` their
    layouts in shared memory. The product is in flight until the warpgroup has waited for it."""
    args = list[Expr]()
    for row, lies in ((a, a_lies), (b, b_lies)):
        args += [row, *(const(n, INT32) for n in (lies.rows_apart, lies.terms_apart, int(lies.transposed)))]
    return Instruction(dtype(of.accumulator), of.registers, of.name, (*args, c))


def lies(e: Instruction, k: int) -> CoreMatrices:
    """The layout in shared memory of the matrix that is operand `k` of a product by a warpgroup."""
    rows, terms, transposed = (int(n.value) for n in e.args[k + 1 : k + 4] if isinstance(n, Const))
    return CoreMatrices(rows, terms, bool(transposed))


def wait_matrices(c: Expr, groups: int) -> Instruction:
    """The sums `c`, once no more than the last `groups` products of the warpgroup are in flight."""
    return Instruction(c.dtype, c.lanes, f"{_WAIT}{c.lanes}", (c, const(groups, INT32)))


def shuffle(value: Expr, lane: Expr) -> Instruction:
    """The value of another lane of the warp."""
    return Instruction(value.dtype, value.lanes, _SHUFFLE.name, (value, lane))


def _evaluated(spec: InstructionSpec, *immediates: int) -> Evaluate:
    return Evaluate(Instruction(INT32, 1, spec.name, tuple(const(n, INT32) for n in immediates)))


BARRIER = _evaluated(_BARRIER)
WARP_BARRIER = _evaluated(_WARP_BARRIER)
COMMIT_GROUP = _evaluated(_COMMIT_GROUP)
FENCE_PROXY = _evaluated(_FENCE_PROXY)


def wait_group(groups: int) -> Evaluate:
    """Make each thread wait until no more than its last `groups` groups of copies are in flight."""
    return _evaluated(_WAIT_GROUP, groups)


def effect_of(s: Stmt) -> Effect:
    """The effect of a statement that evaluates an instruction; NONE for all other statements."""
    return spec_of(s.value.name).effect if isinstance(s, Evaluate) else Effect.NONE
