"""Find parallel loops that can share a kernel: loops that are equal except for names, a few index constants and a few
floats.

A loop is serialized from its first statement to its last: each name becomes the number of its first occurrence, each
captured scalar and each constant that may differ becomes a hole, and a repeated expression becomes its number. Loops
with equal lists have the same structure: entries correspond one to one, and an expression that is computed once in one
loop is computed once in the other. Two scalars of the first loop of a kernel may be a single one in other loops, such
as two strides that happen to be equal. Constants that differ (a margin, the number of a layer, a weight) become
parameters of the kernel, if they are few. Not every constant may differ, since code is specialized for some: a divisor
that is not a power of two, which LLVM turns into a multiplication; a stride; the start of vectors that are loaded
together; the size and the offset of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..expr.nodes import COMPARISON, Broadcast, Const, Expr, Load, Op, Ramp, Shuffle, Var, const
from ..expr.types import FLOAT32, FLOAT64, INDEX, DType
from ..expr.visit import Key, key, loaded, names
from ..expr.visit import walk as walk_expr
from ..ir.nodes import Alloc, Block, Evaluate, For, If, Launch, Let, Prefetch, Produce, Stmt, Store
from ..ir.visit import expressions, walk
from ..target.kinds import Kind
from .lanes import constant_stride

MOST_PARAMETERS = 8  # more would slow down the code
_INDEX_OPS = frozenset({"add", "mul", "select"})
_FLOAT_OPS = frozenset({"add", "sub", "mul"})  # not divisions
_FLOATS = (FLOAT32, FLOAT64)
_TOGETHER = (-1, 0, 1)  # strides of vectors that are loaded one by one, not together with others

Constant = tuple[DType, int | str]  # floats as text, which distinguishes 0 and -0
Spot = For | Op  # a node whose constant may differ: its extent or its second operand


class SerializedLoop(NamedTuple):
    """A serialized loop: the structure that a kernel's loops share, the constants in its holes, and its captures."""

    shape: tuple[object, ...]
    constants: tuple[Constant, ...]
    spots: tuple[Spot, ...]  # the node of each of these constants
    captures: tuple[Key, ...]  # one for each occurrence of one of `scalars`
    scalars: tuple[Expr, ...]
    buffers: tuple[str, ...]


def read(
    loop: For,
    dtypes: Mapping[str, DType],
    overlaps: Mapping[str, Iterable[str]],
    loose: Mapping[str, int],
    computes: bool = True,
) -> SerializedLoop:
    """Serialize a parallel loop that contains no other parallel loop.

    `overlaps` has the buffers that may share memory with each buffer. `loose` has the arrays that are less aligned than
    others, from which threads of blocks load fewer bytes at once. With `computes`, the loop computes expressions of
    captured scalars itself; otherwise it captures their values.
    """
    reader = _Reader(loop, dtypes, computes)
    for s in walk(loop.body):
        reader.statement(s)
    buffers = [b for b in reader.buffers if b not in reader.own_buffers]
    meeting = [(a, b) for a, x in enumerate(buffers) for b, y in enumerate(buffers) if y in overlaps.get(x, ())]
    cached = dict(loop.cached)
    of_block = (
        [None if loop.scratch is None else key(loop.scratch), *map(loose.get, buffers), *map(cached.get, buffers)]
        if loop.kind is Kind.BLOCK
        else []
    )
    shape = (starts_at_zero(loop), loop.threads, loop.persistent, *of_block, *reader.tokens, *meeting)
    constants, scalars = tuple(reader.constants), tuple(reader.scalars.values())
    return SerializedLoop(shape, constants, tuple(reader.spots), tuple(reader.captures), scalars, tuple(buffers))


def starts_at_zero(loop: For) -> bool:
    return isinstance(loop.min, Const) and loop.min.value == 0


def is_added(spot: Spot | Expr) -> bool:
    """Whether the constant is a summand of an index. It stays the last summand, where addressing modes take it."""
    return isinstance(spot, Op) and spot.op == "add" and spot.dtype is INDEX


class _Reader:
    """Serializes a loop."""

    def __init__(self, loop: For, dtypes: Mapping[str, DType], computes: bool) -> None:
        self.dtypes, self.computes = dtypes, computes
        self.tokens: list[object] = []
        self.constants: list[Constant] = []
        self.spots: list[Spot] = []
        self.own_scalars = {loop.var: 0}  # name -> number
        self.captures: list[Key] = []
        self.scalars: dict[Key, Expr] = {}  # captured scalars
        self.buffers: dict[str, int] = {}
        self.own_buffers: set[str] = set()
        self._met: dict[Key, int] = {}  # expression -> number
        self._loops: dict[int, int] = {}  # loops of known extents; the same loop may occur several times
        self._starts: dict[int, int] = {}  # buffer -> constant of the first vector loaded from it

    def statement(self, s: Stmt) -> None:
        """Serialize a statement: its kind, its expressions, then the statements inside."""
        self.tokens += _STATEMENTS[type(s)](self, s)
        roots = expressions(s)
        if isinstance(s, For) and _is_loop_of_known_extent(s):
            if id(s) not in self._loops:
                self._leave_gap(s, s.extent)
            self.tokens.append(self._loops.setdefault(id(s), len(self._loops)))
            roots = (s.min, *roots[2:])
        self._expressions(roots)

    def own_scalar(self, name: str) -> int:
        return self.own_scalars.setdefault(name, len(self.own_scalars))

    def buffer(self, name: str) -> int:
        return self.buffers.setdefault(name, len(self.buffers))

    def own_buffer(self, name: str) -> int:
        self.own_buffers.add(name)
        return self.buffer(name)

    def _expressions(self, roots: tuple[Expr, ...]) -> None:
        """Serialize every node before its operands. A repeated node becomes its number, since the code computes it only
        once."""
        add, met = self.tokens.append, self._met
        stack = list(roots[::-1])
        while stack:
            e = stack.pop()
            if isinstance(e, Var):
                number = self.own_scalars.get(e.name)
                add((Var, e.dtype, e.lanes, number))
                if number is None:
                    self._capture(e)
                continue
            if isinstance(e, Const):
                add((Const, e.lanes, _constant(e)))
                continue
            if not self.computes and self._is_of_captures(e):
                add((Var, e.dtype, e.lanes, None))
                self._capture(e)
                continue
            known = key(e)
            if known in met:
                add(met[known])
                continue
            met[known] = len(met)
            gap, below = _gap(e), e.operands
            add((type(e), e.dtype, e.lanes, self._attributes(e), gap is None))
            if gap is not None:
                self._leave_gap(e, gap)
                below = (below[0], *below[2:])
            stack += below[::-1]

    def _capture(self, e: Expr) -> None:
        self.captures.append(key(e))
        self.scalars.setdefault(key(e), e)

    def _is_of_captures(self, e: Expr) -> bool:
        """Whether an expression consists of captured scalars, without products, which may need more bits."""
        return (
            isinstance(e, Op)
            and e.dtype is INDEX
            and e.lanes == 1
            and not loaded(e)
            and names(e).isdisjoint(self.own_scalars)
            and not any(map(_is_product, walk_expr(e)))
        )

    def _leave_gap(self, spot: Any, constant: Any) -> None:
        self.constants.append(_constant(constant))
        self.spots.append(spot)

    def _attributes(self, e: Expr) -> object:
        if isinstance(e, Op):
            return e.op
        if isinstance(e, Load):
            number, index = self.buffer(e.buffer), e.indices[0]
            if e.lanes > 1 and isinstance(index, Ramp) and constant_stride(index) not in _TOGETHER:
                return number, len(e.indices), e.mask is None, self._distance(number, index.base)
            return number, len(e.indices), e.mask is None
        if isinstance(e, Broadcast) and isinstance(e.value, Load):
            return self._distance(self.buffer(e.value.buffer), e.value.indices[0])
        return (e.order, len(e.vectors)) if isinstance(e, Shuffle) else None

    def _distance(self, buffer: int, index: Expr) -> int:
        """The distance from the first index of a buffer whose loads may be combined."""
        gap = _gap(index) if is_added(index) else None
        offset = 0 if gap is None else int(gap.value)
        return offset - self._starts.setdefault(buffer, offset)


def _is_loop_of_known_extent(s: For) -> bool:
    """Whether it is a loop of a known extent. A loop of a single iteration does not count as a loop."""
    return isinstance(s.extent, Const) and s.extent.value > 1 and s.kind is not Kind.THREAD


def _is_product(e: Expr) -> bool:
    return isinstance(e, Op) and e.op == "mul" and not any(isinstance(a, Const) for a in e.args)


def _gap(e: Expr) -> Const | None:
    """The constant of a node if it may differ, otherwise None. A divisor is given by its exponent."""
    if not isinstance(e, Op) or len(e.args) < 2:
        return None
    constant = e.args[1]
    if not isinstance(constant, Const):
        return None
    if e.dtype in _FLOATS:
        return constant if e.op in _FLOAT_OPS else None
    if e.lanes > 1 or constant.dtype is not INDEX:
        return None
    if e.op == "floordiv":
        divisor = int(constant.value)
        is_power = divisor > 0 and divisor & (divisor - 1) == 0
        return const(divisor.bit_length() - 1, INDEX) if is_power else None  # the number of bits to shift by
    return constant if e.op in _INDEX_OPS or e.op in COMPARISON else None


def _constant(e: Const) -> Constant:
    return e.dtype, float(e.value).hex() if e.dtype.is_float else int(e.value)


_STATEMENTS: dict[type[Stmt], Callable[[_Reader, Any], tuple[object, ...]]] = {
    For: lambda r, s: (For, s.kind, r.own_scalar(s.var), s.scratch is None, _is_loop_of_known_extent(s)),
    Let: lambda r, s: (Let, r.own_scalar(s.name)),
    Block: lambda r, s: (Block, len(s.stmts)),
    If: lambda r, s: (If, s.otherwise is None),
    Store: lambda r, s: (Store, r.buffer(s.buffer), s.mask is None, s.manner),
    Produce: lambda r, s: (),  # a marker without meaning
    Alloc: lambda r, s: (Alloc, r.own_buffer(s.buffer), s.dtype, s.memory, s.offset is None, s.slots),
    Prefetch: lambda r, s: (Prefetch, r.buffer(s.buffer), r.dtypes[s.buffer]),
    Evaluate: lambda r, s: (Evaluate,),
    Launch: lambda r, s: (Launch, s.kernel, *map(r.buffer, s.buffers), s.scratch is None),
}


class Family:
    """The loops of one kernel. Constants that always differ together become a single parameter.

    The parameter is the difference from the first loop's constant for constants that are added, and the constant itself
    for others.
    """

    def __init__(self, first: SerializedLoop) -> None:
        self.first = first
        self._added = [is_added(spot) for spot in first.spots]
        self._members = {first.constants}
        # For each constant, a class number that it shares with the constants that equal it in all loops so far, and the
        # classes of constants that differ between loops.
        self._classes = _numbered(self._needs(first.constants))
        self._varying: list[int] = []

    def _needs(self, member: tuple[Constant, ...]) -> list[Constant]:
        return [
            (t, value - base) if added else (t, value)  # type: ignore[operator]
            for (t, value), (_, base), added in zip(member, self.first.constants, self._added, strict=True)
        ]

    def join(self, loop: SerializedLoop) -> bool:
        """Add a loop, unless this takes too many parameters or the loop has several scalars where the first loop has
        one."""
        if len(set(zip(self.first.captures, loop.captures, strict=True))) > len(self.first.scalars):
            return False
        member = loop.constants
        if member in self._members:
            return True
        needs, base = self._needs(member), self._needs(self.first.constants)
        classes = _numbered(zip(self._classes, needs, strict=True))
        before = set(self._varying)
        varying = {
            k: None
            for k, old, mine, first in zip(classes, self._classes, needs, base, strict=True)
            if old in before or mine != first
        }
        if len(varying) > MOST_PARAMETERS:
            return False
        self._classes, self._varying = classes, list(varying)
        self._members.add(member)
        return True

    def scalars(self, loop: SerializedLoop) -> tuple[Expr, ...]:
        """The scalars that a loop captures, in the order of the first loop."""
        given, by_key = dict(zip(self.first.captures, loop.captures, strict=True)), {key(e): e for e in loop.scalars}
        return tuple([by_key[given[key(e)]] for e in self.first.scalars])

    def parameters(self, loop: SerializedLoop) -> list[Constant]:
        """The arguments that a loop passes to the kernel."""
        needs = self._needs(loop.constants)
        return [needs[self._classes.index(k)] for k in self._varying]

    def places(self) -> list[tuple[Spot, int]]:
        """The nodes at which constants of the first loop become parameters, with the numbers of these."""
        number = {k: n for n, k in enumerate(self._varying)}
        return [(spot, number[k]) for spot, k in zip(self.first.spots, self._classes, strict=True) if k in number]


def _numbered(items: Iterable[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(item, len(numbers)) for item in items]
