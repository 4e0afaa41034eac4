"""The instructions of a kernel's warps as compilers leave them, by the loop or branch that they end up in.

An expression that occurs twice is computed once (value numbering), and a loop-invariant expression is computed before
the loop (loop-invariant code motion). Loads are values, too, until something may be stored to their buffer. Addresses
that differ by a constant count once, and stepping them through loops is one addition. A product that is added to
something is one instruction together with the sum. No other optimizations are modelled. A thread's own array is in
registers if all of its indices are constant; otherwise it is in local memory, and accesses are instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum

from ..dataclass import dataclass
from ..expr.nodes import Cast, Const, Expr, Instruction, Load, Op, Ramp, Shuffle, Var
from ..expr.types import INDEX, DType
from ..expr.visit import names, operands_first, walk_loads
from ..ir.atomic import combined
from ..ir.instructions import Effect, effect_of, spec_of
from ..ir.nodes import Alloc, Evaluate, For, If, Kernel, Let, Manner, Prefetch, Stmt, Store
from ..ir.visit import children, expressions, walk
from ..target.gpu import LONGEST_ACCESS
from ..target.kinds import Kind, Memory
from ..target.mma import COLUMNS, MMAS
from ..target.wgmma import STEP, named_wgmma


class Pipe(Enum):
    """The units of a multiprocessor that execute instructions."""

    FLOAT = "float"  # sums and products of floats
    INTEGER = "integer"  # integers, comparisons, selections, minima and maxima
    CONVERT = "convert"
    SPECIAL = "special"  # approximations of functions
    MEMORY = "memory"  # loads, stores and shuffles
    MATRIX = "matrix"  # products of matrices, by tensor cores
    WARPGROUP_MATRIX = "warpgroup matrix"  # likewise, by warpgroups, counted in products of the size of one warp's


Instructions = Mapping[Pipe, int]
_NONE: Instructions = {}
_ONE_INTEGER: Instructions = {Pipe.INTEGER: 1}
_ITERATION: Instructions = {Pipe.INTEGER: 2}  # counts and branches
_DIVISION: Instructions = {Pipe.INTEGER: 20, Pipe.SPECIAL: 1}
_DIVISION_BY_CONSTANT: Instructions = {Pipe.INTEGER: 4}
# The instructions on floats, and the approximations, that functions of floats consist of.
_FUNCTIONS = {
    "div": (8, 1), "sqrt": (6, 1), "rsqrt": (3, 1), "exp": (6, 1), "log": (14, 0), "sin": (18, 0), "cos": (18, 0),
    "tan": (30, 1), "tanh": (12, 2), "asin": (16, 1), "acos": (16, 1), "erf": (20, 1), "cbrt": (14, 2),
    "atan2": (25, 1), "pow": (30, 2), "mod": (14, 1), "floordiv": (12, 1),
}  # fmt: skip
_MATRIX_PRODUCTS = {mma.name for mma in MMAS.values()}
_FREE = ("within", "neg", "abs")  # promises, and modifiers that operands of other instructions may have
_SUMS = ("add", "sub")
# Cycles until a result can be used.
_ARITHMETIC_LATENCY, _FUNCTION_LATENCY = 4.5, 40.0
_SHARED_LATENCY, _GLOBAL_LATENCY, _BARRIER_LATENCY = 30.0, 500.0, 30.0


@dataclass(eq=False)
class Level:
    """The body of a kernel, a loop or a branch: what a warp executes each time it runs, without the loops and branches
    inside it. `hoisted` are the loads that are moved before the loop with this body; they are executed if it runs at
    all. `latency` is the longest chain of dependent operations, in cycles."""

    parent: Level | None
    is_loop: bool
    stored: frozenset[str]  # buffers that are stored to inside
    instructions: Counter[Pipe] = field(default_factory=Counter)
    loads: list[Load] = field(default_factory=list)
    hoisted: list[Load] = field(default_factory=list)
    latency: float = 0.0

    def outwards(self) -> Iterator[Level]:
        level: Level | None = self
        while level is not None:
            yield level
            level = level.parent

    def add(self, instructions: Instructions, times: int = 1) -> None:
        for pipe, number in instructions.items():
            self.instructions[pipe] += number * times


@dataclass(eq=False)
class _Value:
    """A value, the level that computes it, and after how many cycles from the start of that level it can be used."""

    level: Level
    ready: float = 0.0
    instructions: Instructions = field(default_factory=dict)
    is_product: bool = False  # that is not yet fused with a sum
    base: _Value | None = None  # this value is `base` plus a constant


def levels_of(kernel: Kernel) -> dict[int, Level]:
    """The levels of a kernel, by the identities of the bodies of the kernel, its loops and its branches."""
    return _Numbering(kernel).levels


class _Numbering:
    """Visits a kernel in program order and finds equal values."""

    def __init__(self, kernel: Kernel) -> None:
        self.levels: dict[int, Level] = {}
        self._memories = {s.buffer: s.memory for s in walk(kernel.body) if isinstance(s, Alloc)}
        own = {b for b, memory in self._memories.items() if memory in (Memory.REGISTER, Memory.STACK)}
        self._registers = own - set(_indexed_by_variables(kernel.body, own))
        self._versions: Counter[str] = Counter()
        self._known: dict[tuple[object, ...], _Value] = {}
        self._level = self._outermost = self._enter(kernel.body, None, is_loop=False)
        self._names = {v.name: _Value(self._level) for v in kernel.scalars}
        self._names[kernel.var] = _Value(self._level)
        self._statement(kernel.body)

    def _enter(self, body: Stmt, parent: Level | None, *, is_loop: bool) -> Level:
        stored = frozenset([s.buffer for s in walk(body) if isinstance(s, Store)])
        self.levels[id(body)] = Level(parent, is_loop, stored)
        return self.levels[id(body)]

    # ---- statements

    def _statement(self, s: Stmt) -> None:
        if isinstance(s, For):
            self._for(s)
        elif isinstance(s, If):
            self._expression(s.condition)
            self._level.add(_ONE_INTEGER)
            for branch in children(s):
                self._inside(branch, is_loop=False)
        elif isinstance(s, Let):
            self._names[s.name] = self._expression(s.value)
            self._statement(s.body)
        elif isinstance(s, Store):
            self._store(s)
        elif isinstance(s, Evaluate):
            self._effect(s)
        elif not isinstance(s, Prefetch):
            for c in children(s):
                self._statement(c)

    def _for(self, s: For) -> None:
        self._expression(s.min)
        self._expression(s.extent)
        self._inside(s.body, is_loop=s.kind is not Kind.THREAD, var=s.var)  # threads are chosen by a branch
        self.levels[id(s.body)].add(_ITERATION)

    def _inside(self, body: Stmt, *, is_loop: bool, var: str | None = None) -> None:
        outer, self._level = self._level, self._enter(body, self._level, is_loop=is_loop)
        if var is not None:
            self._names[var] = _Value(self._level)
        # Before and after an iteration, elements may have been stored by any other iteration.
        self._versions.update(self._level.stored)
        self._statement(body)
        self._versions.update(self._level.stored)
        self._level = outer

    def _store(self, s: Store) -> None:
        stored = combined(s)[1] if s.manner is Manner.ATOMIC else s.value  # an atomic update does not load the element
        value, index = self._expression(stored), self._expression(s.indices[0])
        if s.mask is not None:
            self._expression(s.mask)
        self._versions[s.buffer] += not self._in_registers(s.buffer) or not isinstance(s.indices[0], Const)
        if self._in_registers(s.buffer):
            self._known[(s.buffer, self._versions[s.buffer], index)] = value
            return
        self._address(s.buffer, index)
        self._level.add({Pipe.MEMORY: _requests(s.indices[0], s.value.dtype)})

    def _effect(self, s: Evaluate) -> None:
        self._level.add(_ONE_INTEGER)
        if effect_of(s) in (Effect.BARRIER, Effect.WARP_BARRIER):
            self._versions.update(b for b in self._outermost.stored if not self._in_registers(b))
            self._level.latency += _BARRIER_LATENCY

    # ---- values

    def _expression(self, root: Expr) -> _Value:
        found: dict[int, _Value] = {}
        for e in operands_first(root, lambda node: node.operands):
            found[id(e)] = self._value(e, [found[id(c)] for c in e.operands])
        return found[id(root)]

    def _value(self, e: Expr, operands: list[_Value]) -> _Value:
        if isinstance(e, Var):
            return self._names[e.name]
        if isinstance(e, Load):
            return self._load(e, operands)
        key = (*_operation(e), *operands)
        known = self._found(key)
        if known is not None:
            return known
        level = self._place(operands)
        if isinstance(e, Op) and e.op in _SUMS and e.dtype.is_float:
            _fuse(operands, level)
        instructions, latency = _cost(e)
        self._known[key] = value = self._computed(level, operands, instructions, latency)
        value.is_product = isinstance(e, Op) and e.op == "mul" and e.dtype.is_float
        if isinstance(e, Op) and e.op in _SUMS and e.dtype is INDEX and isinstance(e.args[1], Const):
            value.base = operands[0].base or operands[0]
        return value

    def _found(self, key: tuple[object, ...]) -> _Value | None:
        known = self._known.get(key)
        return known if known is not None and known.level in self._level.outwards() else None

    def _computed(self, level: Level, operands: Sequence[_Value], instructions: Instructions, latency: float) -> _Value:
        """Return a new value, whose operands are available at the start of the level or computed in it."""
        ready = max([v.ready for v in operands if v.level is level], default=0.0) + latency
        level.add(instructions)
        level.latency = max(level.latency, ready)
        return _Value(level, ready, instructions)

    def _place(self, operands: Sequence[_Value], buffer: str | None = None) -> Level:
        """The outermost level at which a value can be computed: outside of the loops in which it does not change. A
        load from memory stays inside of a branch, which may not be taken."""
        place = level = self._level
        stays = buffer is not None and not self._in_registers(buffer)
        while level.parent is not None and buffer not in level.stored and all(v.level is not level for v in operands):
            if stays and not level.is_loop:
                break
            if level.is_loop:
                place = level.parent
            level = level.parent
        return place

    def _load(self, e: Load, operands: list[_Value]) -> _Value:
        key = (e.buffer, self._versions[e.buffer], *operands)
        known = self._found(key)
        if known is not None:
            return known
        level = self._place(operands, e.buffer)
        if self._in_registers(e.buffer):
            self._known[key] = _Value(level)
            return self._known[key]
        self._address(e.buffer, operands[0])
        left = [inner for inner in self._level.outwards() if inner.parent is level and inner.is_loop]
        (left[0].hoisted if left else level.loads).append(e)
        latency = _SHARED_LATENCY if e.buffer in self._memories else _GLOBAL_LATENCY
        requests = {Pipe.MEMORY: _requests(e.indices[0], e.dtype)}
        self._known[key] = self._computed(level, operands, requests, latency)
        return self._known[key]

    def _address(self, buffer: str, index: _Value) -> None:
        key = ("address", buffer, index.base or index)
        if self._found(key) is None:
            self._known[key] = self._computed(self._place([index]), [index], _ONE_INTEGER, _ARITHMETIC_LATENCY)

    def _in_registers(self, buffer: str) -> bool:
        return buffer in self._registers


def _indexed_by_variables(body: Stmt, buffers: Collection[str]) -> Iterator[str]:
    """Yield the buffers that have an access whose index depends on a variable."""
    if not buffers:
        return
    for s in walk(body):
        if isinstance(s, Store) and s.buffer in buffers and names(s.indices[0]):
            yield s.buffer
        for e in expressions(s):
            yield from (e.buffer for e in walk_loads(e) if e.buffer in buffers and names(e.indices[0]))


def _fuse(operands: Sequence[_Value], level: Level) -> None:
    """Make one of the products that are added part of the instruction of the sum."""
    for v in operands:
        if v.is_product and v.level is level:
            level.add(v.instructions, -1)
            v.is_product = False
            return


def _operation(e: Expr) -> tuple[object, ...]:
    """The operation of an expression, without its operands."""
    if isinstance(e, Const):
        return Const, e.dtype, e.value
    if isinstance(e, Op):
        return e.op, e.dtype, e.lanes
    if isinstance(e, Instruction):
        return e.name, e.dtype, e.lanes
    return type(e), e.dtype, e.lanes, e.order if isinstance(e, Shuffle) else None


def _requests(index: Expr, t: DType) -> int:
    """The number of instructions that access these elements. One instruction accesses several contiguous ones."""
    together = LONGEST_ACCESS // t.bytes if isinstance(index, Ramp) and _is_one(index.stride) else 1
    return -(-index.lanes // max(1, together))


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1


def _cost(e: Expr) -> tuple[Instructions, float]:
    """The instructions of an expression, and the cycles until its result can be used."""
    if isinstance(e, Instruction):
        return _of_instruction(e), _SHARED_LATENCY
    if isinstance(e, Cast):
        return _of_cast(e)
    if not isinstance(e, Op) or e.op in _FREE:
        return _NONE, 0.0
    t = e.args[-1].dtype
    if t.is_float and e.op in _FUNCTIONS:
        floats, approximations = _FUNCTIONS[e.op]
        return {Pipe.FLOAT: floats * e.lanes, Pipe.SPECIAL: approximations * e.lanes}, _FUNCTION_LATENCY
    if e.op in ("floordiv", "mod"):
        return _of_division(e)
    if t is INDEX and e.op in ("add", "sub", "mul"):
        return _NONE, _ARITHMETIC_LATENCY  # part of addresses
    words = e.lanes * max(1, t.bits // 32) if t is not INDEX else e.lanes
    if e.op in ("floor", "ceil", "round", "trunc"):
        return {Pipe.CONVERT: words}, _ARITHMETIC_LATENCY
    is_float = t.is_float and e.op in (*_SUMS, "mul", "fma")
    return {Pipe.FLOAT if is_float else Pipe.INTEGER: words}, _ARITHMETIC_LATENCY


def _of_instruction(e: Instruction) -> Instructions:
    spec, of_warpgroup = spec_of(e.name), named_wgmma(e.name)
    if of_warpgroup is not None:
        return {Pipe.WARPGROUP_MATRIX: of_warpgroup.columns // COLUMNS * (of_warpgroup.terms // STEP)}
    if spec.from_memory or spec.effect is Effect.WAIT_MATRICES:
        return _NONE  # it is the load of its operand, or counts with the product
    return {Pipe.MATRIX: 1} if e.name in _MATRIX_PRODUCTS else {Pipe.MEMORY: e.lanes}


def _of_cast(e: Cast) -> tuple[Instructions, float]:
    source, to = e.value.dtype, e.dtype
    if source.is_float or to.is_float:
        return {Pipe.CONVERT: e.lanes}, 2 * _ARITHMETIC_LATENCY
    wider = INDEX in (source, to) or to.bits >= source.bits
    return ({}, 0.0) if wider else ({Pipe.INTEGER: e.lanes}, _ARITHMETIC_LATENCY)


def _of_division(e: Op) -> tuple[Instructions, float]:
    divisor = e.args[1]
    if not isinstance(divisor, Const):
        return {pipe: n * e.lanes for pipe, n in _DIVISION.items()}, _FUNCTION_LATENCY
    shift = int(divisor.value).bit_count() == 1
    instructions = _ONE_INTEGER if shift else _DIVISION_BY_CONSTANT
    return {pipe: n * e.lanes for pipe, n in instructions.items()}, _ARITHMETIC_LATENCY * sum(instructions.values())
