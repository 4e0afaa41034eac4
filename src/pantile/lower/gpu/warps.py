"""Warps: the iterations of a warp loop are warps of 32 threads, those of the lane loops in it their lanes.

before:  warp for w in 0..4:                             after:  thread for w in 0..4: thread for lane in 0..32:
             realize g: [x.min..x.min + 32]                          realize g: [0..1], g.from.2: [0..1]
             lane for q in x.min..x.min + 32:                        let q = x.min + lane
                 g[q] = a[q]                                         g[0] = a[q]
             lane for x in x.min..x.min + 30:                        g.from.2[0] = from_lane(min(lane + 2, 31), g[0])
                 f[x] = g[x] + g[x + 2]                              let x = x.min + min(lane, 29)
                                                                     if lane < 30: f[x] = g[0] + g.from.2[0]

All lanes do all of it, so that each may ask the others for what they have (one overlapped tile per warp, as Jangda and
Guha describe it: Model-Based Warp Overlapped Tiling for Image Processing Programs on GPUs, PACT 2020). Those for which
there is nothing left to do do what the last one does, and store nothing that others see. A value goes to other lanes as
soon as it is there, once for each distance at which somebody reads it; `carry` and `spread` are of the same kind.

Lanes combine the terms of a sum, a minimum and the like in pairs, which are neighbours at distance 16, 8, 4, 2 and 1:
then all of them have the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...analysis.interval import Scope
from ...dataclass import dataclass
from ...errors import UserError
from ...expr.build import broadcast, maximum, minimum, select
from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Broadcast, Const, Expr, FromLane, Load, Op, Ramp, Shuffle, Var, const, neutral, op, var
from ...expr.types import INDEX
from ...expr.visit import depends, loaded, names, same, transform, walk, walk_loads
from ...ir.nodes import For, If, Let, Realize, Stmt, Store
from ...ir.visit import block, expressions, rebuild
from ...ir.visit import walk as statements
from ...schedule.limits import WARP
from ...schedule.updates import ASSOCIATIVE
from ...target.kinds import Kind, Memory
from ..bounded import most
from ..footprint import step
from ..names import of_buffer, of_loop
from .named import Named

Refuse = Callable[[str, str], UserError]  # of which buffer, and why
_ZERO = const(0, INDEX)
_OF_BLOCKS = (Kind.BLOCK, Kind.WARP, Kind.THREAD, Kind.LANE)
_Indices = tuple[Expr, ...]


def warps(body: Stmt, refuse: Refuse) -> Stmt:
    """Thread loops instead of warp and lane loops."""
    has_lanes = any(isinstance(s, For) and s.kind in (Kind.WARP, Kind.LANE) for s in statements(body))
    return _visit(body, refuse, Named(), {}) if has_lanes else body


def _visit(s: Stmt, refuse: Refuse, named: Named, scope: Scope) -> Stmt:
    if isinstance(s, For) and s.kind is Kind.WARP:
        ((inner, scope),) = step(s, scope)
        is_last = not any(isinstance(i, For) and i.kind is Kind.WARP for i in statements(inner))
        lane = of_loop(s.var, "lane")
        made = _Warp(lane, refuse, inner).made(named, scope) if is_last else _visit(inner, refuse, named, scope)
        if is_last:
            made = For(lane, _ZERO, const(WARP, INDEX), Kind.THREAD, made)
        return For(s.var, s.min, s.extent, Kind.THREAD, made)
    alone = _lanes_alone(s)
    if alone is not None:  # what whole blocks of a warp loop leave over, for one warp
        one = For(of_loop(alone.var, "warp"), _ZERO, const(1, INDEX), Kind.WARP, s)
        return _visit(one, refuse, named, scope)
    named = named.inside(s)
    return rebuild(s, expressions(s), tuple([_visit(c, refuse, named, inner) for c, inner in step(s, scope)]))


def _lanes_alone(s: Stmt) -> For | None:
    """The first lane loop of a statement that is in a block and has no loops of warps or threads."""
    loops = [i for i in statements(s) if isinstance(i, For) and i.kind in _OF_BLOCKS]
    return loops[0] if loops and all(i.kind is Kind.LANE for i in loops) else None


@dataclass(frozen=True)
class _At:
    """Where a statement of a warp is."""

    named: Named  # lets, and the variable of the lane loop around by the number of a lane
    scope: Scope
    loop: For | None = None  # of lanes, that it is in
    alike: bool = True  # whether all lanes come here

    @property
    def number(self) -> str:
        """The name of a lane's own number in the loop that it is in."""
        return "" if self.loop is None else of_loop(self.loop.var, "lane")

    @property
    def all_lanes_work(self) -> bool:
        extent = None if self.loop is None else self.loop.extent
        return isinstance(extent, Const) and int(extent.value) == WARP

    def inside(self, s: Stmt, scope: Scope) -> _At:
        if isinstance(s, For) and s.kind is Kind.LANE:
            number = var(of_loop(s.var, "lane"))
            at = self.named.form(s.min).plus(linear(number))
            return _At(self.named.where(s.var, at), scope, s, self.alike)
        decides = expressions(s) if isinstance(s, (If, For)) else ()
        alike = self.alike and not any(self.differs(e) for e in decides)
        return replace(self, named=self.named.inside(s), scope=scope, alike=alike)

    def differs(self, e: Expr) -> bool:
        """Whether a value may be another one in each lane."""
        if self.loop is None:
            return False
        if e.dtype is INDEX and e.lanes == 1:
            return any(depends(a, [self.number]) or loaded(a) for a, _ in self.named.form(e).terms.values())
        return bool(loaded(e)) or any(self.differs(var(n)) for n in names(e))


class _Access(NamedTuple):
    indices: _Indices
    at: _At
    is_store: bool


def _first(index: Expr) -> Expr:
    if isinstance(index, Ramp):
        return index.base
    return index.value if isinstance(index, Broadcast) else index


@dataclass(frozen=True)
class _Shared:
    """How lanes share a buffer: along which dim, and how many elements each has."""

    dim: int
    each: int


class _Warp:
    """What one warp does; `lane` is the name of a thread's number in it."""

    def __init__(self, lane: str, refuse: Refuse, body: Stmt) -> None:
        self.lane, self.refuse, self.body = var(lane), refuse, body
        self.own = {i.buffer for i in statements(body) if isinstance(i, Realize)}
        self.parts = set[str]()  # of these, what each lane has values of its own in
        self.spread: dict[int, _Spread] = {}  # by id of what realizes them, in no lane loop
        self.others: dict[str, list[_Access]] = {}  # accesses of what is not the warp's own
        self.count = 0

    def made(self, named: Named, scope: Scope) -> Stmt:
        at = _At(named, scope)
        self.note(self.body, at, {})
        self.check_others()
        for spread in self.spread.values():
            spread.decide()
        return self.lanes(self.rewritten(self.body, at, {}), at)

    def check_others(self) -> None:
        """What others see, too, and this warp stores: a lane reads of it what it has stored itself, where it has done
        so. Lanes do not wait for each other's stores."""
        for buffer, found in self.others.items():
            stores = {a.is_store for a in found} == {True, False}
            if stores and len({self.moved(a) for a in found}) > 1:
                raise self.refuse(buffer, "one lane would read what another has stored in memory")

    def moved(self, a: _Access) -> tuple[tuple[int, str], ...]:
        """Which element of each dim a lane accesses, as far as that depends on its number."""
        forms = [a.at.named.form(_first(i)) for i in a.indices]
        steps = [(f, f.coefficient(a.at.number)) for f in forms]
        return tuple((n, str(simplify(_without(f, a.at.number)))) if n else (0, "") for f, n in steps)

    # Registers of lanes

    def note(self, s: Stmt, at: _At, current: Mapping[str, _Spread]) -> None:
        """Who accesses what. `current`: buffers that lanes may share, by name."""
        found = [(e.buffer, _Access(e.indices, at, False)) for e in walk_loads(*expressions(s))]
        if isinstance(s, Store):
            found.append((s.buffer, _Access(s.indices, at, True)))
        for buffer, access in found:
            if buffer in current:
                current[buffer].accesses.append(access)
            elif buffer not in self.own:
                self.others.setdefault(buffer, []).append(access)
        if isinstance(s, Realize) and at.loop is None and s.memory not in (Memory.SHARED, Memory.HEAP):
            self.spread[id(s)] = _Spread(self, s, at)
            current = {**current, s.buffer: self.spread[id(s)]}
        for c, scope in step(s, at.scope):
            self.note(c, at.inside(s, scope), current)

    def rewritten(self, s: Stmt, at: _At, current: Mapping[str, _Spread]) -> Stmt:
        """With accesses of what a lane has."""
        mine = self.spread.get(id(s))
        if mine is not None and mine.how is not None:
            current = {**current, mine.s.buffer: mine}
        inside = tuple([self.rewritten(c, at.inside(s, scope), current) for c, scope in step(s, at.scope)])
        touched = [n for n in current if any(n in loaded(e) for e in expressions(s))]
        new = expressions(s)
        if touched:
            places = [i for e in walk_loads(*expressions(s)) for i in e.indices]
            places += s.indices if isinstance(s, Store) else ()
            in_places = {n for n in touched if any(n in loaded(i) for i in places)}

            def load(e: Expr) -> Expr | None:
                if not isinstance(e, Load) or e.buffer not in current:
                    return None
                return current[e.buffer].load(e, at, e.buffer in in_places)

            new = tuple([transform(e, load, concerns=loaded) for e in new])
        s = rebuild(s, new, inside)
        if isinstance(s, Store) and s.buffer in current:
            return current[s.buffer].store(s, at)
        return mine.realized(s.body) if mine is not None and mine.how is not None and isinstance(s, Realize) else s

    # Loops of lanes

    def lanes(self, s: Stmt, at: _At) -> Stmt:
        """What one lane does."""
        if isinstance(s, Store):
            return self.store(s, at)
        if isinstance(s, If) and not at.inside(s, at.scope).alike and _has_shuffles(s):
            buffer = next(i.buffer for i in statements(s) if isinstance(i, Store))
            raise self.refuse(buffer, "a condition that is not the same for all lanes decides about what they exchange")
        if isinstance(s, Realize) and at.loop is not None:
            self.parts.add(s.buffer)
        inside = tuple([self.lanes(c, at.inside(s, scope)) for c, scope in step(s, at.scope)])
        if not (isinstance(s, For) and s.kind is Kind.LANE):
            return rebuild(s, expressions(s), inside)
        return self.dissolved(s, at, inside[0])

    def dissolved(self, s: For, at: _At, body: Stmt) -> Stmt:
        extent = simplify(s.extent)
        largest = most(extent, at.scope)
        if largest is None or largest > WARP:
            stored = next((i.buffer for i in statements(body) if isinstance(i, Store)), "")
            found = "an unknown number of" if largest is None else str(largest)
            raise self.refuse(stored, f"there are {found} iterations for {WARP} lanes")
        number = self.lane if largest == WARP and isinstance(extent, Const) else minimum(self.lane, extent - 1)
        made: Stmt = Let(of_loop(s.var, "lane"), number, Let(s.var, s.min + var(of_loop(s.var, "lane")), body))
        return made if isinstance(extent, Const) else If(extent >= 1, made)

    def store(self, s: Store, at: _At) -> Stmt:
        if s.buffer not in self.parts and at.loop is not None and not any(at.differs(i) for i in s.indices):
            return self.combined(s, at)
        if s.buffer in self.own or at.loop is not None and at.all_lanes_work:
            return s
        return self.by(self.lane < at.loop.extent if at.loop is not None else self.lane < 1, s)

    def by(self, condition: Expr, s: Store) -> Stmt:
        """A store by some lanes. All of them take part in what it exchanges."""
        if not _has_shuffles(s):
            return If(condition, s)
        name = self.fresh(s.buffer)
        value = Var(s.value.dtype, s.value.lanes, name)
        return Let(name, s.value, If(condition, replace(s, value=value)))

    def fresh(self, buffer: str) -> str:
        self.count += 1
        return of_buffer(buffer, "combined", self.count)

    def combined(self, s: Store, at: _At) -> Stmt:
        """What lanes add to one place, and the like: in pairs, so that in the end all have the same."""
        assert at.loop is not None
        found = _accumulated(s)
        if found is None:
            raise self.refuse(s.buffer, "lanes would store different values in one place")
        value, operation = found.term, found.operation
        if not at.all_lanes_work:
            value = select(self.lane < at.loop.extent, value, neutral(operation, value.dtype))
        lets = [(self.fresh(s.buffer), value)]
        distance = WARP // 2
        while distance:
            mine = Var(value.dtype, 1, lets[-1][0])
            other = FromLane(value.dtype, 1, mine, op("xor", self.lane, const(distance, INDEX)))
            lets.append((self.fresh(s.buffer), op(operation, mine, other)))
            distance //= 2
        total = Var(value.dtype, 1, lets[-1][0])
        made: Stmt = Store(s.buffer, s.indices, op(operation, found.kept, total), s.mask, s.manner)
        made = made if s.buffer in self.own else If(self.lane < 1, made)
        for name, e in reversed(lets):
            made = Let(name, e, made)
        return made


class _Accumulated(NamedTuple):
    operation: str
    kept: Expr  # what the place holds
    term: Expr


def _accumulated(s: Store) -> _Accumulated | None:
    """What a store adds to its place, or combines with it otherwise."""
    value = s.value
    if not isinstance(value, Op) or value.op not in ASSOCIATIVE or value.lanes > 1 or s.mask is not None:
        return None
    for kept, term in (value.args, value.args[::-1]):
        is_here = isinstance(kept, Load) and kept.buffer == s.buffer and all(map(same, kept.indices, s.indices))
        if is_here and s.buffer not in loaded(term):
            return _Accumulated(value.op, kept, term)
    return None


def _has_shuffles(s: Stmt) -> bool:
    return any(isinstance(e, FromLane) for i in statements(s) for e in walk(*expressions(i)))


def _without(form: Linear, name: str) -> Expr:
    terms = {k: t for k, t in form.terms.items() if not (isinstance(t[0], Var) and t[0].name == name)}
    return Linear(form.constant, terms).expr()


class _Spread:
    """A buffer of a warp as registers of its lanes: element i of the shared dim belongs to lane i // each."""

    def __init__(self, warp: _Warp, s: Realize, around: _At) -> None:
        self.warp, self.s = warp, s
        self.lows = [around.named.form(low) for low, _ in s.box]
        self.accesses = list[_Access]()
        self.how: _Shared | None = None  # None: each lane has all of it
        self.extent: Expr | None = None  # of the loop that stores it first
        self.distances: dict[int, str] = {}  # at which values of other lanes are read -> where they are kept

    def decide(self) -> None:
        """How lanes share it, and at which distances they read it. An element that is read at a constant distance goes
        there as soon as it is there."""
        stores = [a for a in self.accesses if a.is_store]
        found = {self.moves(a) for a in stores}
        if len(found) > 1:
            raise self.warp.refuse(self.s.buffer, "lanes of one loop share it otherwise than those of another")
        self.how = next(iter(found), None)
        if self.how is None:
            return
        if any(not a.at.alike for a in stores):
            why = "a condition that is not the same for all lanes decides about it"
            raise self.warp.refuse(self.s.buffer, why)
        for a in self.accesses:
            for k in self.elements(a.indices[self.how.dim]) if not a.is_store else ():
                far = self.distance(self.form(a.indices, a.at), k, a.at)
                if far:
                    self.distances[far] = of_buffer(self.s.buffer, "from", far)
        self.warp.own.update(self.distances.values())
        self.warp.parts.update([self.s.buffer, *self.distances.values()])

    def moves(self, store: _Access) -> _Shared | None:
        """Along which dim a store moves with the lane, and how far."""
        forms, number = self.forms(store.indices, store.at), store.at.number
        found = [(k, f.coefficient(number)) for k, f in enumerate(forms) if f.coefficient(number)]
        others = [a for f in forms for a, _ in f.terms.values() if not isinstance(a, Var) and depends(a, [number])]
        if any(n <= 0 for _, n in found) or len(found) > 1 or others:
            raise self.warp.refuse(self.s.buffer, "what a lane computes of it is not side by side")
        return _Shared(*found[0]) if found else None

    def forms(self, indices: _Indices, at: _At) -> list[Linear]:
        """The indices, counted from where the buffer begins, in numbers of lanes."""
        return [at.named.form(_first(i)).plus(low, -1) for i, low in zip(indices, self.lows, strict=True)]

    def realized(self, body: Stmt) -> Stmt:
        assert self.how is not None
        each = (_ZERO, const(self.how.each, INDEX))
        box = tuple(each if k == self.how.dim else side for k, side in enumerate(self.s.box))
        for name in (self.s.buffer, *self.distances.values()):
            body = Realize(name, self.s.dtype, box, self.s.memory, body)
        return body

    def store(self, s: Store, at: _At) -> Stmt:
        place = simplify(_without(self.form(s.indices, at), at.number))
        index = s.indices[self.shared.dim]
        last = index.lanes - 1 if isinstance(index, Ramp) else 0
        if not isinstance(place, Const) or not 0 <= int(place.value) <= self.shared.each - 1 - last:
            raise self.warp.refuse(self.s.buffer, f"a lane has {self.shared.each} values of it, and computes others")
        indices = self.replaced(s.indices, replace(index, base=place) if isinstance(index, Ramp) else place)
        mine = Load(s.value.dtype, s.value.lanes, s.buffer, indices)
        made: list[Stmt] = [replace(s, indices=indices, value=self.kept(s.value, mine, at))]
        for far, name in self.distances.items():
            lane = minimum(self.warp.lane + far, const(WARP - 1, INDEX))
            lane = lane if far > 0 else maximum(self.warp.lane + far, _ZERO)
            made.append(Store(name, indices, FromLane(mine.dtype, mine.lanes, mine, lane)))
        return block(*made)

    def kept(self, value: Expr, before: Load, at: _At) -> Expr:
        """A value that lanes store. What an update has nothing to do with stays as it is."""
        assert at.loop is not None
        extent = at.named.form(at.loop.extent).expr()
        self.extent = extent if self.extent is None else self.extent
        if same(extent, self.extent):
            return value
        return select(broadcast(self.warp.lane < at.loop.extent, value.lanes), value, before)

    def load(self, e: Load, at: _At, is_place: bool) -> Expr:
        index, form = e.indices[self.shared.dim], self.form(e.indices, at)
        elements = self.elements(index)
        parts = [self.element(e, form, k, at, is_place) for k in elements]
        if len(parts) == 1:
            return parts[0] if e.lanes == 1 else Broadcast(e.dtype, e.lanes, parts[0])
        whole = self.side_by_side(parts)
        return Shuffle(e.dtype, len(parts), tuple(parts), tuple(range(len(parts)))) if whole is None else whole

    def elements(self, index: Expr) -> range:
        if not isinstance(index, Ramp):
            return range(1)
        if not isinstance(index.stride, Const) or index.stride.value != 1:
            raise self.warp.refuse(self.s.buffer, "it is read in steps")
        return range(index.lanes)

    def side_by_side(self, parts: list[Expr]) -> Expr | None:
        """All of one lane, as one load."""
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

    def element(self, e: Load, form: Linear, k: int, at: _At, is_place: bool) -> Expr:
        """One element: the lane's own, one that came from another lane, or one that is asked for now."""
        if form.coefficient(at.number) % self.shared.each:
            raise self.warp.refuse(self.s.buffer, "neighbouring lanes read it at distances that are no lane's")
        rest = simplify(_without(form, at.number) + k)
        place = simplify(rest % self.shared.each)
        if not isinstance(place, Const) and self.shared.each > 1:
            why = f"which of {self.shared.each} values of a lane is read is not constant"
            raise self.warp.refuse(self.s.buffer, why)
        indices = tuple([_first(i) for i in self.replaced(e.indices, place)])
        far = self.distance(form, k, at)
        if far is not None and not (is_place and not at.all_lanes_work):
            buffer = self.distances[far] if far else self.s.buffer
            return Load(e.dtype, 1, buffer, indices)
        lane = simplify((var(at.number) * (form.coefficient(at.number) // self.shared.each) if at.number else _ZERO)
                        + rest // self.shared.each)  # fmt: skip
        if e.mask is not None:
            lane = select(e.mask, lane, self.warp.lane)
        return FromLane(e.dtype, 1, Load(e.dtype, 1, self.s.buffer, indices), lane)

    def distance(self, form: Linear, k: int, at: _At) -> int | None:
        """How many lanes away an element is, if that is constant."""
        rest = simplify(_without(form, at.number) + k)
        alike = bool(at.number) and form.coefficient(at.number) == self.shared.each and isinstance(rest, Const)
        return int(rest.value) // self.shared.each if alike and isinstance(rest, Const) else None

    @property
    def shared(self) -> _Shared:
        assert self.how is not None
        return self.how

    def form(self, indices: _Indices, at: _At) -> Linear:
        return self.forms(indices, at)[self.shared.dim]

    def replaced(self, indices: _Indices, index: Expr) -> _Indices:
        return tuple([index if k == self.shared.dim else i for k, i in enumerate(indices)])


