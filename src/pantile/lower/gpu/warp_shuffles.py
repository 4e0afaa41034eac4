"""Warp shuffles: a buffer of a warp is distributed over registers of its lanes.

before:  realize g: [x.min..x.min + 32]                  after:  realize g: [0..1], g.from.2: [0..1]
         lane for q in x.min..x.min + 32: g[q] = a[q]            lane for q in x.min..x.min + 32:
         lane for x in x.min..x.min + 30:                            g[0] = a[q]
             f[x] = g[x] + g[x + 2]                                  g.from.2[0] = shfl(g[0], min(lane + 2, 31))
                                                                 lane for x in x.min..x.min + 30:
                                                                     f[x] = g[0] + g.from.2[0]

A value is shuffled to other lanes as soon as it is stored, once for each constant distance at which it is read. Where
data or a loop decides which lane to read from, the shuffle is at the read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import NamedTuple

from ...analysis.interval import Scope
from ...dataclass import dataclass
from ...errors import UserError
from ...expr.build import broadcast, logical_and, minimum, select
from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Broadcast, Const, Expr, Load, Ramp, Shuffle, Var, const, var
from ...expr.types import INDEX
from ...expr.visit import conjuncts, depends, loaded, names, same, substitute
from ...ir.instructions import shuffle
from ...ir.nodes import For, If, Realize, Stmt, Store
from ...ir.visit import block, walk
from ...target.gpu import WARP_SIZE
from ...target.kinds import Kind
from ..extent_bounds import most
from ..names import of_buffer, of_loop
from .let_sums import Named

Refuse = Callable[[str, str], UserError]  # a buffer, and the reason
_ZERO = const(0, INDEX)
_Indices = tuple[Expr, ...]


class Turn(NamedTuple):
    """The progress of a loop that begins elsewhere in each lane."""

    value: Expr
    most: int | None  # bound of the trip count, if it is known


@dataclass(frozen=True)
class At:
    """The context of a statement of a warp."""

    named: Named  # lets, and the variable of the lane loop in terms of the lane's number
    scope: Scope
    loop: For | None = None  # the lane loop around
    alike: bool = True  # whether control flow here is uniform
    turns: Mapping[str, Turn] = field(default_factory=dict)  # loops that begin elsewhere in each lane

    @property
    def number(self) -> str:
        """The name of a lane's number in the loop around."""
        return "" if self.loop is None else of_loop(self.loop.var, "lane")

    @property
    def all_lanes_work(self) -> bool:
        extent = None if self.loop is None else self.loop.extent
        return isinstance(extent, Const) and int(extent.value) == WARP_SIZE

    def inside(self, s: Stmt, scope: Scope) -> At:
        if isinstance(s, For) and s.kind is Kind.LANE:
            number = var(of_loop(s.var, "lane"))
            at = self.named.form(s.min).plus(linear(number))
            return At(self.named.where(s.var, at), scope, s, self.alike, self.turns)
        alike = self.alike and self.decides_alike(s)
        if isinstance(s, For) and self.differs(s.min):
            turn = var(of_loop(s.var, "turn"))
            named = self.named.where(s.var, self.named.form(s.min).plus(linear(turn)))
            turns = {**self.turns, turn.name: Turn(var(s.var) - s.min, most(s.extent, self.scope))}
            return replace(self, named=named, scope=scope, alike=alike, turns=turns)
        return replace(self, named=self.named.inside(s), scope=scope, alike=alike)

    def decides_alike(self, s: Stmt) -> bool:
        """Whether control flow in a statement is uniform: all lanes take the same branch and the same number of
        iterations.
        """
        decides = s.condition if isinstance(s, If) else s.extent if isinstance(s, For) else None
        return decides is None or not self.differs(decides)

    def differs(self, e: Expr) -> bool:
        """Whether a value may differ between lanes."""
        if self.loop is None:
            return False
        if e.dtype is INDEX and e.lanes == 1:
            return any(depends(a, [self.number]) or loaded(a) for a, _ in self.named.form(e).terms.values())
        return bool(loaded(e)) or any(self.differs(var(n)) for n in names(e))


class WarpAccess(NamedTuple):
    indices: _Indices
    at: At
    is_store: bool


def first_lane(index: Expr) -> Expr:
    if isinstance(index, Ramp):
        return index.base
    return index.value if isinstance(index, Broadcast) else index


def _is_alike(e: Expr) -> bool:
    """Whether all lanes of a vector hold the same value."""
    return e.lanes == 1 or isinstance(e, Broadcast)


def _nth(e: Expr, k: int) -> Expr:
    """One lane of a vector."""
    if _is_alike(e):
        return first_lane(e)
    return simplify(e.base + e.stride * k) if isinstance(e, Ramp) else Shuffle(e.dtype, 1, (e,), (k,))


def _element(e: Load, k: int) -> Load:
    """The load of one lane of a vector."""
    mask = None if e.mask is None else _nth(e.mask, k)
    return Load(e.dtype, 1, e.buffer, tuple([_nth(i, k) for i in e.indices]), mask)


@dataclass(frozen=True)
class _Distribution:
    """How a buffer is distributed over lanes: along which dim, and how many elements each lane holds."""

    dim: int
    each: int


def without(form: Linear, *left_out: str) -> Expr:
    terms = {k: t for k, t in form.terms.items() if not (isinstance(t[0], Var) and t[0].name in left_out)}
    return Linear(form.constant, terms).expr()


class DistributedBuffer:
    """A buffer of a warp as registers of its lanes: element i of the shared dim belongs to lane i // each."""

    def __init__(self, s: Realize, around: At, lane: Expr, refuse: Refuse) -> None:
        """`lane` is the number of a thread in its warp."""
        self.s, self.lane, self.refuse = s, lane, refuse
        self.lows = [around.named.form(low) for low, _ in s.box]
        self.accesses = list[WarpAccess]()
        self.distribution: _Distribution | None = None  # None: each lane has all of it
        self.extent: Expr | None = None  # trip count of the loop that stores to it first
        self.distances: dict[int, str] = {}  # distance in lanes -> the buffer of values shuffled from there

    def decide(self) -> None:
        """Decide the distribution over lanes, and the constant distances at which values are shuffled when they are
        stored.
        """
        stores = [a for a in self.accesses if a.is_store]
        distributions = {self.moves(a) for a in stores}
        if len(distributions) > 1:
            raise self.refuse(self.s.buffer, "lanes of one loop share it otherwise than those of another")
        self.distribution = next(iter(distributions), None)
        if self.distribution is None:
            return
        if any(not a.at.alike for a in stores):
            why = "a condition that is not the same for all lanes decides about it"
            raise self.refuse(self.s.buffer, why)
        for a in self.accesses:
            for indices in self.elements(a.indices) if not a.is_store else ():
                far = self.distance(self.form(indices, a.at), a.at)
                if far:
                    self.distances[far] = of_buffer(self.s.buffer, "from", far)

    def moves(self, store: WarpAccess) -> _Distribution | None:
        """The dim along which a store moves with the lane, and how far."""
        forms, number = self.forms(store.indices, store.at), store.at.number
        strides = [(k, f.coefficient(number)) for k, f in enumerate(forms) if f.coefficient(number)]
        others = [a for f in forms for a, _ in f.terms.values() if not isinstance(a, Var) and depends(a, [number])]
        if any(n <= 0 for _, n in strides) or len(strides) > 1 or others:
            raise self.refuse(self.s.buffer, "what a lane computes of it is not side by side")
        return _Distribution(*strides[0]) if strides else None

    def forms(self, indices: _Indices, at: At) -> list[Linear]:
        """The indices relative to the start of the buffer, in terms of the lane's number."""
        return [at.named.form(first_lane(i)).plus(low, -1) for i, low in zip(indices, self.lows, strict=True)]

    @property
    def buffers(self) -> list[str]:
        """The lane's own registers, and those of values shuffled from other lanes."""
        return [self.s.buffer, *self.distances.values()]

    def realized(self, body: Stmt) -> Stmt:
        assert self.distribution is not None
        each = (_ZERO, const(self.distribution.each, INDEX))
        box = tuple(each if k == self.distribution.dim else side for k, side in enumerate(self.s.box))
        for name in self.buffers:
            body = Realize(name, self.s.dtype, box, self.s.memory, body)
        return body

    def store(self, s: Store, at: At) -> Stmt:
        place = simplify(without(self.form(s.indices, at), at.number))
        index = s.indices[self.shared.dim]
        last = simplify(place + index.stride * (index.lanes - 1)) if isinstance(index, Ramp) else place
        if not all(isinstance(i, Const) and 0 <= int(i.value) < self.shared.each for i in (place, last)):
            raise self.refuse(self.s.buffer, f"a lane has {self.shared.each} values of it, and computes others")
        indices = self.replaced(s.indices, replace(index, base=place) if isinstance(index, Ramp) else place)
        mine = Load(s.value.dtype, s.value.lanes, s.buffer, indices)
        made: list[Stmt] = [replace(s, indices=indices, value=self.kept(s.value, mine, at))]
        for far, name in self.distances.items():
            lane = minimum(self.lane + far, const(WARP_SIZE - 1, INDEX))
            made.append(Store(name, indices, shuffle(mine, lane)))
        return block(*made)

    def kept(self, value: Expr, before: Load, at: At) -> Expr:
        """The value that a lane stores; lanes that an update does not reach keep theirs."""
        assert at.loop is not None
        extent = at.named.form(at.loop.extent).expr()
        self.extent = extent if self.extent is None else self.extent
        if same(extent, self.extent):
            return value
        return select(broadcast(self.lane < at.loop.extent, value.lanes), value, before)

    def load(self, e: Load, at: At, is_place: bool) -> Expr:
        if all(map(_is_alike, e.operands)):
            return broadcast(self.element(_element(e, 0), at, is_place), e.lanes)
        if self.is_of_one_lane(e.indices) and (e.mask is None or _is_alike(e.mask)):
            return self.element(e, at, is_place)
        parts = [self.element(_element(e, k), at, is_place) for k in range(e.lanes)]
        whole = self.side_by_side(parts)
        return Shuffle(e.dtype, len(parts), tuple(parts), tuple(range(len(parts)))) if whole is None else whole

    def is_of_one_lane(self, indices: _Indices) -> bool:
        """Whether one lane holds all elements of a vector."""
        return _is_alike(indices[self.shared.dim])

    def elements(self, indices: _Indices) -> list[_Indices]:
        """The indices of a vector access, separated by the lanes that hold its elements."""
        if self.is_of_one_lane(indices):
            return [indices]
        return [tuple([_nth(i, k) for i in indices]) for k in range(indices[self.shared.dim].lanes)]

    def side_by_side(self, parts: list[Expr]) -> Expr | None:
        """The parts of a vector as one load, if they are adjacent elements of one lane."""
        first = parts[0]
        if not isinstance(first, Load):
            return None
        start = first.indices[self.shared.dim]
        for k, part in enumerate(parts):
            if not isinstance(part, Load) or part.buffer != first.buffer:
                return None
            if not same(part.indices[self.shared.dim], simplify(start + k)):
                return None
        index = Ramp(INDEX, len(parts), start, const(1, INDEX))
        return Load(first.dtype, len(parts), first.buffer, self.replaced(first.indices, index))

    def element(self, e: Load, at: At, is_place: bool) -> Expr:
        """An element: from this lane's own registers, from values shuffled before, or by a shuffle here."""
        form = self.form(e.indices, at)
        if form.coefficient(at.number) % self.shared.each:
            raise self.refuse(self.s.buffer, "neighbouring lanes read it at distances that are no lane's")
        rest = simplify(without(form, at.number))
        place = simplify(rest % self.shared.each)
        if not isinstance(place, Const) and self.shared.each > 1:
            why = f"which of {self.shared.each} values of a lane is read is not constant"
            raise self.refuse(self.s.buffer, why)
        indices = self.replaced(e.indices, place)
        far = self.distance(form, at)
        if far is not None and not (is_place and not at.all_lanes_work):
            return replace(e, buffer=self.distances[far] if far else self.s.buffer, indices=indices)
        lane = simplify(
            (var(at.number) * (form.coefficient(at.number) // self.shared.each) if at.number else _ZERO)
            + rest // self.shared.each
        )
        lane = substitute(lane, {name: turn.value for name, turn in at.turns.items()})
        return self.shuffled(replace(e, indices=indices), lane, at)

    def shuffled(self, e: Load, lane: Expr, at: At) -> Expr:
        """Shuffle the value of another lane, at an index that all lanes share: each lane loads for those that read from
        it.
        """
        if any(at.differs(i) for k, i in enumerate(e.indices) if k != self.shared.dim):
            raise self.refuse(self.s.buffer, "lanes ask each other for values at places that differ")
        if e.mask is None:
            return shuffle(e, lane)
        asks = first_lane(e.mask)
        mine = replace(e, mask=broadcast(self.is_there(e, asks, at), e.lanes))
        return shuffle(mine, select(asks, lane, self.lane))

    def is_there(self, e: Load, asks: Expr, at: At) -> Expr:
        """The uniform condition under which any lane may read a value. `asks` is this lane's own condition."""
        conditions = conjuncts(asks)
        alike = [c for c in conditions if not at.differs(c)]
        if len(alike) < len(conditions):
            for k, (low, n) in enumerate(self.s.box):
                ends = [_nth(e.indices[k], lane) for lane in {0, e.lanes - 1}] if k != self.shared.dim else []
                alike += [c for i in ends for c in (i >= low, i < low + n)]
            alike += self.is_stored()
        return logical_and(*alike)

    def is_stored(self) -> list[Expr]:
        """Whether the lanes hold values, as far as that is known at the load: the loop that stores them may run no
        iterations.
        """
        loops = [i.var for i in walk(self.s.body) if isinstance(i, For)]
        return [] if self.extent is None or depends(self.extent, loops) else [self.extent >= 1]

    def distance(self, form: Linear, at: At) -> int | None:
        """The distance in lanes to the lane that holds an element, if it is constant."""
        rest = simplify(without(form, at.number))
        alike = bool(at.number) and form.coefficient(at.number) == self.shared.each and isinstance(rest, Const)
        return int(rest.value) // self.shared.each if alike and isinstance(rest, Const) else None

    @property
    def shared(self) -> _Distribution:
        assert self.distribution is not None
        return self.distribution

    def form(self, indices: _Indices, at: At) -> Linear:
        return self.forms(indices, at)[self.shared.dim]

    def replaced(self, indices: _Indices, index: Expr) -> _Indices:
        return tuple([index if k == self.shared.dim else i for k, i in enumerate(indices)])
