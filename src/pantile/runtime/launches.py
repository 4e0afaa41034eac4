"""The plan of one call of a program with kernels of blocks: the memory that it needs, and the kernels that its host
part launches, in order.

    let n = (img.shape.0 + 31)//32              allocations   f: float32[img.shape.0*512]
    alloc f: float32[img.shape.0*512] in heap   launches      y.0(n)(f, img), n blocks
        launch y.0(n, f, img) n times                         z.1()(out, f), 8 blocks
        launch z.1(out, f) 8 times

A host part reads no data: all that it computes follows from extents, strides and params. It therefore need not be
compiled: it is interpreted once per kind of call, and again whenever params that it depends on have other values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dataclass import dataclass
from ..errors import InternalError, PantileError
from ..expr.nodes import Bits, Cast, Const, Expr, Number, Op, Var
from ..expr.types import INDEX, INT32, DType
from ..expr.visit import each_once
from ..ir.nodes import Alloc, Block, For, If, Kernel, Launch, Let, Produce, Program, Stmt
from ..ir.registers import estimated_registers
from ..reference.operations import apply, convert, held, reinterpret, rounded
from . import arguments

if TYPE_CHECKING:
    from ..machine.multiprocessor import Gpu


@dataclass(frozen=True)
class Allocation:
    """Memory for a number of elements, which is live from launch number `begin` until before launch number `end`."""

    name: str  # unique to this memory
    dtype: DType
    elements: int
    begin: int
    end: int


@dataclass(frozen=True)
class PlannedLaunch:
    """A kernel and its arguments, in the order of its captures; `buffers` names allocations and arguments."""

    kernel: Kernel
    scalars: tuple[Number, ...]
    buffers: tuple[str, ...]
    blocks: int
    stage: str = ""  # the stage at root that it computes


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of a call in order. A launch starts after all previous ones have finished."""

    allocations: Sequence[Allocation]
    launches: Sequence[PlannedLaunch]


class WideIndicesNeeded(PantileError):
    """32-bit indices are too narrow for this call, which needs code with wider ones."""


def check_near(plan: LaunchPlan) -> None:
    """Raise `WideIndicesNeeded` unless 32-bit indices suffice for all memory and all kernel arguments."""
    for a in plan.allocations:
        if a.elements > arguments.LARGEST_COUNT:
            raise WideIndicesNeeded(f"{a.name} has {a.elements:,} elements")
    for launch in plan.launches:
        for v, number in zip(launch.kernel.scalars, launch.scalars, strict=True):
            if v.dtype is INDEX and isinstance(number, int) and not -_LARGEST - 1 <= number <= _LARGEST:
                raise WideIndicesNeeded(f"{v.name} of {launch.kernel.name} is {number:,}")


_LARGEST = INT32.max


def launches(program: Program, scalars: Mapping[str, Number], resident: Callable[[Kernel], int]) -> LaunchPlan:
    """The plan of the host part, given the call's scalars by name. `resident` returns the number of resident blocks of
    a kernel on the GPU."""
    counts = {k.resident: resident(k) for k in program.kernels if k.resident is not None}
    with np.errstate(all="ignore"):
        return _Host(program, {**scalars, **counts}).plan()


def resident_blocks(gpu: Gpu, kernel: Kernel) -> int:
    """The number of resident blocks of a kernel on a GPU, with an estimated number of registers."""
    return gpu.resident_blocks(kernel.threads, kernel.shared, estimated_registers(kernel))


def scalars_of(
    program: Program, shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]], numbers: Sequence[Number]
) -> dict[str, Number]:
    """The scalars of a call by name; strides are counted in elements."""
    scalars: dict[str, Number] = {}
    for buffer, shape, steps in zip(program.buffers, shapes, strides, strict=True):
        scalars.update((buffer.extent(axis), n) for axis, n in enumerate(shape))
        scalars.update((buffer.stride(axis), n) for axis, n in enumerate(steps))
    scalars.update((a.name, n) for a, n in zip(program.scalars, numbers, strict=True))
    return scalars


class _Host:
    """An interpreter for the statements of a host part."""

    def __init__(self, program: Program, scalars: Mapping[str, Number]) -> None:
        self._program = program
        self._kernels = {k.name: k for k in program.kernels}
        self._scalars = dict(scalars)
        self._memory = {b.name: b.name for b in program.buffers}  # the current name of each buffer
        self._instances: dict[str, int] = {}
        self._allocations: list[Allocation] = []
        self._launches: list[PlannedLaunch] = []
        self._stage = ""  # the stage at root whose loops are being interpreted

    def plan(self) -> LaunchPlan:
        self._run(self._program.body)
        return LaunchPlan(tuple(self._allocations), tuple(self._launches))

    def _run(self, s: Stmt) -> None:
        run = _STATEMENTS.get(type(s))
        if run is None:
            raise InternalError(f"a {type(s).__name__} is left in the host part of {self._program.name}")
        run(self, s)

    def _value(self, e: Expr) -> Number:
        return evaluate(e, self._scalars)

    def _let(self, s: Let) -> None:
        self._scalars[s.name] = self._value(s.value)
        self._run(s.body)

    def _block(self, s: Block) -> None:
        for c in s.stmts:
            self._run(c)

    def _produce(self, s: Produce) -> None:
        around, self._stage = self._stage, self._stage or s.stage
        self._run(s.body)
        self._stage = around

    def _if(self, s: If) -> None:
        taken = s.then if self._value(s.condition) else s.otherwise
        if taken is not None:
            self._run(taken)

    def _for(self, s: For) -> None:
        first = int(self._value(s.min))
        for k in range(first, first + int(self._value(s.extent))):
            self._scalars[s.var] = k
            self._run(s.body)

    def _alloc(self, s: Alloc) -> None:
        number = self._instances[s.buffer] = self._instances.get(s.buffer, 0) + 1
        name = s.buffer if number == 1 else f"{s.buffer}@{number}"
        place, elements, begin = len(self._allocations), max(0, int(self._value(s.size))), len(self._launches)
        self._allocations.append(Allocation(name, s.dtype, elements, begin, begin))
        self._memory[s.buffer] = name
        self._run(s.body)
        self._allocations[place] = replace(self._allocations[place], end=len(self._launches))

    def _launch(self, s: Launch) -> None:
        blocks = int(self._value(s.extent))
        if blocks > 0:
            scalars = tuple([self._value(e) for e in s.scalars])
            buffers = tuple([self._memory[b] for b in s.buffers])
            self._launches.append(PlannedLaunch(self._kernels[s.kernel], scalars, buffers, blocks, self._stage))


_STATEMENTS: dict[type[Stmt], Callable[[_Host, Any], None]] = {
    Let: _Host._let,
    Block: _Host._block,
    Produce: _Host._produce,
    If: _Host._if,
    For: _Host._for,
    Alloc: _Host._alloc,
    Launch: _Host._launch,
}


# Scalars


def evaluate(e: Expr, scalars: Mapping[str, Number]) -> Number:
    """Evaluate an expression of scalars as the reference evaluator does; indices and conditions are plain Python
    values."""
    if type(e) is Const:
        return e.value
    if type(e) is Var:
        return scalars[e.name]
    memo: dict[int, Number] = {}

    def visit(node: Expr) -> Number:
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Var):
            return scalars[node.name]
        return _operation(node, [memo[id(c)] for c in node.operands])

    return each_once(e, memo, visit)


def _operation(e: Expr, args: list[Number]) -> Number:
    kind = e.operands[-1].dtype if e.operands else e.dtype
    if isinstance(e, Op) and (kind is INDEX or kind.is_bool):
        function = _PLAIN.get(e.op)
        if function is not None:
            return function(*args)
    typed_args = [_in_type(value, a.dtype) for value, a in zip(args, e.operands, strict=True)]
    if isinstance(e, Op):
        result = apply(e.op, kind, *typed_args)
    elif isinstance(e, Cast):
        result = convert(typed_args[0], kind, e.dtype)
    elif isinstance(e, Bits):
        result = reinterpret(typed_args[0], kind, e.dtype)
    else:
        raise InternalError(f"a host part has to know {e}, which is no scalar of a call")
    number: Number = result.item()
    return number


def _in_type(value: Number, t: DType) -> Any:
    number = np.asarray(value)
    return rounded(number.astype(np.float64), t) if t.is_float else number.astype(held(t))


_PLAIN: dict[str, Callable[..., Number]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "neg": operator.neg,
    "abs": abs,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": lambda a: not a if isinstance(a, bool) else ~a,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "select": lambda condition, then, otherwise: then if condition else otherwise,
    "within": lambda value, low, high: value,
}
