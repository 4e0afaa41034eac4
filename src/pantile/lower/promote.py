"""Promote: scalar replacement of accumulators. Elements that a loop accumulates at invariant indices are held in
registers.

before:  for k in 0..n:                      after:  realize f.held: float32[0..2] in register
             f[i] = f[i] + a[k]                      f.held[0] = f[i]
             f[i + 1] = f[i + 1] + b[k]              f.held[1] = f[i + 1]
                                                     for k in 0..n:
                                                         f.held[0] = f.held[0] + a[k]
                                                         f.held[1] = f.held[1] + b[k]
                                                     f[i] = f.held[0]
                                                     f[i + 1] = f.held[1]

The accumulators must certainly not alias. At this point, accesses still have one index per dim, so rows differ by a
constant. Once flattened, they differ by an unknown stride, and LLVM would have to store each sum before it loads the
next. Inactive lanes of a mask keep the value of the register. An element that the loop stores to before it loads from
it is not an accumulator and may be uninitialized before the loop. Such an element is promoted without a load if the
loop certainly runs, and otherwise not promoted.

A loop over the iterations that a split or a partition leaves may have none. Its elements may then not exist, because
their indices may be invariant only thanks to the small number of iterations. The accumulators of such a loop are
promoted under the condition that it has iterations:

before:  for k in 24..n: f[8] = f[8] + a[k]   after:  if n > 24: f.held[0] = f[8]; for k in 24..n: ...; f[8] = f.held[0]
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from enum import Enum
from itertools import combinations

from ..dataclass import dataclass
from ..expr.build import ramp, select
from ..expr.linear import linear
from ..expr.nodes import Const, Expr, Load, const
from ..expr.types import INDEX, DType
from ..expr.visit import key, loaded, names, transform, union, walk_loads
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Let, Manner, Prefetch, Realize, Stmt, Store
from ..target.kinds import Kind, Memory
from .lanes import constant_stride, first_lane
from .names import is_end, of_buffer

# The size of the largest register files. Accumulators that exceed it are better kept in memory.
MOST_BYTES = 2048
_Key = tuple[object, ...]


def promote(body: Stmt) -> Stmt:
    """Promote accumulators of serial loops to registers, around as many loops as possible."""
    return _Promoter().visit(body)


@dataclass(frozen=True)
class _BufferUses:
    """The buffers that a statement and all statements inside of it load from, store to and allocate."""

    reads: frozenset[str]
    writes: frozenset[str]
    allocated: frozenset[str]


class _Promoter:
    def __init__(self) -> None:
        self.known: dict[int, _BufferUses] = {}
        self.keep: list[Stmt] = []  # alive while their ids are keys
        self.registers: set[str] = set()

    def visit(self, s: Stmt) -> Stmt:
        at = self.accessed(s)
        if at.reads.isdisjoint(at.writes):
            return s
        buffers = sorted((at.reads & at.writes) - at.allocated - self.registers) if _is_loops(s) else []
        promoted = _promotable(s, buffers, at.writes)
        for h in promoted:
            s = h.inside(s)
            self.registers.add(h.name)
        s = ir.map_children(s, self.visit)
        for h in promoted:
            s = h.around(s)
        return s

    def accessed(self, s: Stmt) -> _BufferUses:
        accessed = self.known.get(id(s))
        if accessed is None:
            inner = [self.accessed(c) for c in ir.children(s)]
            accessed = self.known[id(s)] = _BufferUses(
                union([*(i.reads for i in inner), *map(loaded, ir.expressions(s))]),
                union([*(i.writes for i in inner), *([frozenset((s.buffer,))] if isinstance(s, Store) else [])]),
                union([*(i.allocated for i in inner), *([frozenset((s.buffer,))] if isinstance(s, Realize) else [])]),
            )
            self.keep.append(s)
        return accessed


def _is_loops(s: Stmt) -> bool:
    """Whether a statement is a serial loop, or a sequence of them."""
    if isinstance(s, Let):
        return _is_loops(s.body)
    if isinstance(s, Block):
        return all(map(_is_loops, s.stmts))
    return isinstance(s, For) and s.kind is Kind.SERIAL


@dataclass(frozen=True)
class _Accumulator:
    """The indices of an accumulator in its buffer, and its first lane among the registers."""

    indices: tuple[Expr, ...]
    dtype: DType
    lanes: int
    first: int
    filled: bool  # whether it is loaded from memory before the loop

    def held(self) -> Expr:
        """The index of its register."""
        first = const(self.first, INDEX)
        return first if self.lanes == 1 else ramp(first, 1, self.lanes)


@dataclass(frozen=True)
class _PromotedBuffer:
    """The promoted accumulators of one buffer."""

    buffer: str
    places: dict[_Key, _Accumulator]

    @property
    def name(self) -> str:
        return of_buffer(self.buffer, "held")

    def inside(self, s: Stmt) -> Stmt:
        """The loop with accesses to memory replaced by registers."""
        memo: dict[int, Expr] = {}

        def load(e: Expr) -> Expr | None:
            if not (isinstance(e, Load) and e.buffer == self.buffer):
                return None
            return Load(e.dtype, e.lanes, self.name, (self.places[_key(e.indices)].held(),))

        def store(t: Stmt) -> Stmt | None:
            if not (isinstance(t, Store) and t.buffer == self.buffer):
                return None
            place = self.places[_key(t.indices)]
            unchanged = Load(place.dtype, place.lanes, self.name, (place.held(),))
            return Store(self.name, (place.held(),), t.value if t.mask is None else select(t.mask, t.value, unchanged))

        return ir.map_exprs(ir.transform(s, store), lambda e: transform(e, load, memo, self._is_in))

    def _is_in(self, e: Expr) -> bool:
        return self.buffer in loaded(e)

    def around(self, loop: Stmt) -> Stmt:
        """Load the registers, run the loop, and store them back."""
        fill = [
            Store(self.name, (p.held(),), Load(p.dtype, p.lanes, self.buffer, p.indices)) for p in self.all if p.filled
        ]
        drain = [Store(self.buffer, p.indices, Load(p.dtype, p.lanes, self.name, (p.held(),))) for p in self.all]
        box = ((const(0, INDEX), const(sum(p.lanes for p in self.all), INDEX)),)
        promoted = Realize(self.name, self.all[0].dtype, box, Memory.REGISTER, ir.block(*fill, loop, *drain))
        return If(loop.extent > 0, promoted) if isinstance(loop, For) and _may_be_nothing_left(loop) else promoted

    @property
    def all(self) -> list[_Accumulator]:
        return list(self.places.values())


def _promotable(loops: Stmt, buffers: Sequence[str], written: Set[str]) -> list[_PromotedBuffer]:
    """The buffers that the loops access only at a few loop-invariant, non-aliasing indices."""
    places = _places(loops, buffers, ir.bound_names(loops), written) if buffers else {}
    return [
        _PromotedBuffer(buffer, accumulators)
        for buffer, accumulators in places.items()
        if accumulators and all(_apart(a, b) for a, b in combinations(accumulators.values(), 2))
    ]


def _places(
    s: Stmt, buffers: Iterable[str], moving: set[str], written: Set[str]
) -> dict[str, dict[_Key, _Accumulator]]:
    """The accumulators of each buffer, found in one walk for all buffers.

    Buffers are left out if an index is not loop-invariant, if there are too many accumulators, if accesses are not
    simple, or if promotion might store to memory to which the loop does not.
    """
    places: dict[str, dict[_Key, _Accumulator]] = {buffer: {} for buffer in buffers}
    sizes = dict.fromkeys(places, 0)
    for buffer, indices, t, lanes, how in _accesses(s, places, certain=True, runs=True, tested=s):
        is_new = _key(indices) not in places[buffer]
        moves = any(not (moving.isdisjoint(names(i)) and written.isdisjoint(loaded(i))) for i in indices)
        if t is None or moves or is_new and how in _NOT_FIRST:
            del places[buffer]
        elif is_new:
            places[buffer][_key(indices)] = _Accumulator(
                indices, t, lanes, sizes[buffer], how is not _AccessKind.STORED
            )
            sizes[buffer] += lanes
            if sizes[buffer] * t.bytes > MOST_BYTES:
                del places[buffer]
        if not places:
            break
    return places


class _AccessKind(Enum):
    LOADED = "loaded"
    STORED = "stored"
    STORED_IF_IT_RUNS = "stored, if a loop around it has iterations"
    LEFT = "loaded or stored, if a loop around it has iterations left by others"


_NOT_FIRST = (_AccessKind.STORED_IF_IT_RUNS, _AccessKind.LEFT)


_Access = tuple[str, tuple[Expr, ...], DType | None, int, _AccessKind]


def _may_be_empty(s: For) -> bool:
    """Whether a loop may have no iterations."""
    return not (isinstance(s.extent, Const) and s.extent.value > 0)


def _may_be_nothing_left(s: For) -> bool:
    """Whether a loop is over the iterations that others have left, of which there may be none."""
    if not _may_be_empty(s):
        return False
    return s.min.value > 0 if isinstance(s.min, Const) else any(map(is_end, names(s.min)))


def _accesses(
    s: Stmt, buffers: Container[str], certain: bool, runs: bool, tested: Stmt, is_left: bool = False
) -> Iterator[_Access]:
    """Yield indices, type and lanes of all accesses of some buffers in order. The type is None if the access cannot be
    promoted. `tested` is the loop around which it is tested whether it runs."""
    for e in walk_loads(*ir.expressions(s)):
        if e.buffer in buffers:
            how = _AccessKind.LEFT if is_left else _AccessKind.LOADED
            yield e.buffer, e.indices, e.dtype if certain and e.mask is None else None, e.lanes, how
    if isinstance(s, Store) and s.buffer in buffers:
        plain = certain and s.manner is Manner.PLAIN and (s.mask is None or _reads(s.value, s.buffer, s.indices))
        how = _AccessKind.LEFT if is_left else _AccessKind.STORED if runs else _AccessKind.STORED_IF_IT_RUNS
        yield s.buffer, s.indices, s.value.dtype if plain else None, s.value.lanes, how
    if isinstance(s, (Prefetch, Realize)) and s.buffer in buffers:
        yield s.buffer, (), None, 1, _AccessKind.LOADED
    certain = certain and not (isinstance(s, If) or isinstance(s, For) and s.kind is not Kind.SERIAL)
    if isinstance(s, For):
        runs, is_left = runs and not _may_be_empty(s), is_left or s is not tested and _may_be_nothing_left(s)
    for c in ir.children(s):
        yield from _accesses(c, buffers, certain, runs, tested, is_left)


def _reads(value: Expr, buffer: str, indices: tuple[Expr, ...]) -> bool:
    """Whether the value depends on the stored element itself in every lane, so that all lanes may be read and written
    back."""
    loads = (e for e in walk_loads(value) if e.buffer == buffer and e.mask is None)
    return any(_key(e.indices) == _key(indices) for e in loads)


def _apart(a: _Accumulator, b: _Accumulator) -> bool:
    """Whether two accumulators certainly do not overlap."""
    return any(_distance(i, j) >= max(_width(i), _width(j)) for i, j in zip(a.indices, b.indices, strict=True))


def _distance(a: Expr, b: Expr) -> int:
    """The distance between the first elements of two indices, or 0 if it is not constant."""
    difference = linear(first_lane(a)).plus(linear(first_lane(b)), -1)
    return 0 if difference.terms else abs(difference.constant)


def _width(index: Expr) -> int:
    """The number of adjacent elements that an index covers, or a very large number if its lanes are not adjacent."""
    return index.lanes if index.lanes == 1 or constant_stride(index) == 1 else 1 << 62


def _key(indices: tuple[Expr, ...]) -> _Key:
    return tuple(map(key, indices))
