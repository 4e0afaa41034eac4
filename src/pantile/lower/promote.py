"""Promote: what a loop accumulates at places that do not move is held in registers while the loop runs.

before:  for k in 0..n:                      after:  realize f.held: float32[0..2] in register
             f[i] = f[i] + a[k]                      f.held[0] = f[i]
             f[i + 1] = f[i + 1] + b[k]              f.held[1] = f[i + 1]
                                                     for k in 0..n:
                                                         f.held[0] = f.held[0] + a[k]
                                                         f.held[1] = f.held[1] + b[k]
                                                     f[i] = f.held[0]
                                                     f[i + 1] = f.held[1]

The places must certainly be apart. Here indices still have an entry per dim, so rows differ by a constant; once
flattened they differ by a stride that nobody knows, and LLVM would have to store each sum before it loads the next.
Lanes that a mask leaves out keep what the register holds. A place that the loop stores to before it loads from it is
no accumulator: nobody may have written it before. It is not loaded then if the loop certainly runs, and else not held.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from enum import Enum
from itertools import combinations

from ..dataclass import dataclass
from ..expr.build import ramp, select
from ..expr.linear import linear
from ..expr.nodes import Const, Expr, Load, Ramp, const
from ..expr.types import INDEX, DType
from ..expr.visit import key, loaded, names, transform, union, walk_loads
from ..ir import visit as ir
from ..ir.nodes import Block, For, If, Let, Manner, Prefetch, Realize, Stmt, Store
from ..target.kinds import Kind, Memory
from .names import of_buffer

# As large as register files get; more accumulators than that are better off in memory.
MOST_BYTES = 2048
_Key = tuple[object, ...]


def promote(body: Stmt) -> Stmt:
    """Hold the accumulators of serial loops in registers, around as many loops as possible."""
    return _Promoter().visit(body)


@dataclass(frozen=True)
class _Accessed:
    """The buffers that a statement loads from, stores to, and has memory for, with everything inside it."""

    reads: frozenset[str]
    writes: frozenset[str]
    own: frozenset[str]


class _Promoter:
    def __init__(self) -> None:
        self.known: dict[int, _Accessed] = {}
        self.keep: list[Stmt] = []  # while `known` knows their ids
        self.registers: set[str] = set()

    def visit(self, s: Stmt) -> Stmt:
        at = self.accessed(s)
        if at.reads.isdisjoint(at.writes):
            return s
        held = _held(s, sorted((at.reads & at.writes) - at.own - self.registers), at.writes) if _is_loops(s) else []
        for h in held:
            s = h.inside(s)
            self.registers.add(h.name)
        s = ir.rebuild(s, ir.expressions(s), tuple([self.visit(c) for c in ir.children(s)]))
        for h in held:
            s = h.around(s)
        return s

    def accessed(self, s: Stmt) -> _Accessed:
        accessed = self.known.get(id(s))
        if accessed is None:
            inner = [self.accessed(c) for c in ir.children(s)]
            accessed = self.known[id(s)] = _Accessed(
                union([*(i.reads for i in inner), *map(loaded, ir.expressions(s))]),
                union([*(i.writes for i in inner), *([frozenset((s.buffer,))] if isinstance(s, Store) else [])]),
                union([*(i.own for i in inner), *([frozenset((s.buffer,))] if isinstance(s, Realize) else [])]),
            )
            self.keep.append(s)
        return accessed


def _is_loops(s: Stmt) -> bool:
    """Whether a statement is a serial loop, or several one after another."""
    if isinstance(s, Let):
        return _is_loops(s.body)
    if isinstance(s, Block):
        return all(map(_is_loops, s.stmts))
    return isinstance(s, For) and s.kind is Kind.SERIAL


@dataclass(frozen=True)
class _Place:
    """Where an accumulator lives in its buffer, and its first lane among those held."""

    indices: tuple[Expr, ...]
    dtype: DType
    lanes: int
    first: int
    filled: bool  # whether memory has something that loops need

    def held(self) -> Expr:
        """Its index among the accumulators held."""
        first = const(self.first, INDEX)
        return first if self.lanes == 1 else ramp(first, 1, self.lanes)


@dataclass(frozen=True)
class _Held:
    """The accumulators of one buffer."""

    buffer: str
    places: dict[_Key, _Place]

    @property
    def name(self) -> str:
        return of_buffer(self.buffer, "held")

    def inside(self, s: Stmt) -> Stmt:
        """The loop with registers instead of memory."""
        memo: dict[int, Expr] = {}

        def load(e: Expr) -> Expr | None:
            if not (isinstance(e, Load) and e.buffer == self.buffer):
                return None
            return Load(e.dtype, e.lanes, self.name, (self.places[_key(e.indices)].held(),))

        def store(t: Stmt) -> Stmt | None:
            if not (isinstance(t, Store) and t.buffer == self.buffer):
                return None
            place = self.places[_key(t.indices)]
            kept = Load(place.dtype, place.lanes, self.name, (place.held(),))
            return Store(self.name, (place.held(),), t.value if t.mask is None else select(t.mask, t.value, kept))

        return ir.map_exprs(ir.transform(s, store), lambda e: transform(e, load, memo, self._is_in))

    def _is_in(self, e: Expr) -> bool:
        return self.buffer in loaded(e)

    def around(self, loop: Stmt) -> Stmt:
        """From memory to registers, the loop, and back."""
        fill = [
            Store(self.name, (p.held(),), Load(p.dtype, p.lanes, self.buffer, p.indices)) for p in self.all if p.filled
        ]
        drain = [Store(self.buffer, p.indices, Load(p.dtype, p.lanes, self.name, (p.held(),))) for p in self.all]
        box = ((const(0, INDEX), const(sum(p.lanes for p in self.all), INDEX)),)
        return Realize(self.name, self.all[0].dtype, box, Memory.REGISTER, ir.block(*fill, loop, *drain))

    @property
    def all(self) -> list[_Place]:
        return list(self.places.values())


def _held(loops: Stmt, buffers: Sequence[str], written: Set[str]) -> list[_Held]:
    """The buffers that loops access at a few places only, which do not move and do not overlap."""
    places = _places(loops, buffers, set(_bound(loops)), written) if buffers else {}
    return [
        _Held(buffer, accumulators)
        for buffer, accumulators in places.items()
        if accumulators and all(_apart(a, b) for a, b in combinations(accumulators.values(), 2))
    ]


def _bound(s: Stmt) -> Iterator[str]:
    """The names that are given a value inside a statement."""
    for inner in ir.walk(s):
        if isinstance(inner, For):
            yield inner.var
        elif isinstance(inner, Let):
            yield inner.name


def _places(s: Stmt, buffers: Iterable[str], moving: set[str], written: Set[str]) -> dict[str, dict[_Key, _Place]]:
    """Every place of each buffer that the statement accesses, in one walk for all; without the buffers whose places
    move, or are too many, or hard to follow, or might be stored to where nothing else was."""
    places: dict[str, dict[_Key, _Place]] = {buffer: {} for buffer in buffers}
    sizes = dict.fromkeys(places, 0)
    for buffer, indices, t, lanes, how in _accesses(s, places, certain=True, runs=True):
        is_new = _key(indices) not in places[buffer]
        moves = any(not (moving.isdisjoint(names(i)) and written.isdisjoint(loaded(i))) for i in indices)
        if t is None or moves or is_new and how is _How.STORED_IF_IT_RUNS:
            del places[buffer]
        elif is_new:
            places[buffer][_key(indices)] = _Place(indices, t, lanes, sizes[buffer], how is not _How.STORED)
            sizes[buffer] += lanes
            if sizes[buffer] * t.bytes > MOST_BYTES:
                del places[buffer]
        if not places:
            break
    return places


class _How(Enum):
    LOADED = "loaded"
    STORED = "stored"
    STORED_IF_IT_RUNS = "stored, if a loop around it has iterations"


_Access = tuple[str, tuple[Expr, ...], DType | None, int, _How]


def _accesses(s: Stmt, buffers: Container[str], certain: bool, runs: bool) -> Iterator[_Access]:
    """Indices, type and lanes of all accesses of some buffers, in their order; no type where memory has to be accessed
    as it says."""
    for e in walk_loads(*ir.expressions(s)):
        if e.buffer in buffers:
            yield e.buffer, e.indices, e.dtype if certain and e.mask is None else None, e.lanes, _How.LOADED
    if isinstance(s, Store) and s.buffer in buffers:
        plain = certain and s.manner is Manner.PLAIN and (s.mask is None or _reads(s.value, s.buffer, s.indices))
        how = _How.STORED if runs else _How.STORED_IF_IT_RUNS
        yield s.buffer, s.indices, s.value.dtype if plain else None, s.value.lanes, how
    if isinstance(s, (Prefetch, Realize)) and s.buffer in buffers:
        yield s.buffer, (), None, 1, _How.LOADED
    certain = certain and not (isinstance(s, If) or isinstance(s, For) and s.kind is not Kind.SERIAL)
    runs = runs and not (isinstance(s, For) and not (isinstance(s.extent, Const) and s.extent.value > 0))
    for c in ir.children(s):
        yield from _accesses(c, buffers, certain, runs)


def _reads(value: Expr, buffer: str, indices: tuple[Expr, ...]) -> bool:
    """Whether the value is made of what the place holds in every lane, so that all may be read and written back."""
    loads = (e for e in walk_loads(value) if e.buffer == buffer and e.mask is None)
    return any(_key(e.indices) == _key(indices) for e in loads)


def _apart(a: _Place, b: _Place) -> bool:
    """Whether two places certainly have no element in common."""
    return any(_distance(i, j) >= max(_width(i), _width(j)) for i, j in zip(a.indices, b.indices, strict=True))


def _distance(a: Expr, b: Expr) -> int:
    """How far the first elements of two indices are apart; 0 if that is not known."""
    difference = linear(_first(a)).plus(linear(_first(b)), -1)
    return 0 if difference.terms else abs(difference.constant)


def _first(index: Expr) -> Expr:
    return index.base if isinstance(index, Ramp) else index


def _width(index: Expr) -> int:
    """How many neighbours an index covers; very many if its lanes do not lie side by side."""
    if index.lanes == 1:
        return 1
    dense = isinstance(index, Ramp) and isinstance(index.stride, Const) and index.stride.value == 1
    return index.lanes if dense else 1 << 62


def _key(indices: tuple[Expr, ...]) -> _Key:
    return tuple(map(key, indices))
