"""Lane registers: a buffer of a warp is distributed over registers of its lanes, which read each other's registers by
shuffles.

before:  realize g: [x.min..x.min + 32] over (32 threads)    after:  realize g: [0..1], g.from.2: [0..1]
         lane for q in 0..32: g[x.min + q] = a[x.min + q]            lane for q in 0..32:
         lane for x in 0..30:                                            g[0] = a[x.min + q]
             f[x] = g[x.min + x] + g[x.min + x + 2]                      g.from.2[0] = shfl(g[0], min(lane + 2, 31))
                                                                     lane for x in 0..30:
                                                                         f[x] = g[0] + g.from.2[0]

A value is shuffled to other lanes as soon as it is stored, once for each constant distance at which it is read. The
shuffle is at the read instead if data or a loop decides which lane to read from, or if there are several rows of lanes,
so that a lane's next elements follow those of all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ...expr.build import broadcast, logical_and, minimum, select
from ...expr.linear import simplify
from ...expr.nodes import Const, Expr, Load, Ramp, Shuffle, const, var
from ...expr.types import INDEX
from ...expr.visit import conjuncts, depends, same, substitute
from ...ir.instructions import shuffle
from ...ir.nodes import For, Realize, Stmt, Store
from ...ir.visit import block, walk
from ...target.gpu import WARP_SIZE
from ...target.layout import Layout
from ..lanes import joined_loads
from ..names import of_buffer
from .own_registers import ZERO, Access, Indices, OwnRegisters, Refuse, is_alike, moved_to, number
from .thread_context import At, ThreadLoop, first_lane


class _Share(NamedTuple):
    """How a dim is distributed: each of `lanes` lanes holds `each` adjacent elements, and the numbers of consecutive
    lanes differ by `weight`.

    There may be several such rows of lanes; the elements of a row follow those of the row before.
    """

    each: int
    lanes: int
    weight: int
    rows: int

    def step(self, loop: ThreadLoop) -> int:
        """The distance between the elements of a lane and those of the lane with the previous iteration, or 0 if it is
        not constant.

        With several rows, this holds for the lanes of one row.
        """
        end = loop.weight + 1 if self.rows == 1 else loop.span
        is_within = self.weight <= loop.weight and end <= self.weight * self.lanes
        return self.each * (loop.weight // self.weight) if is_within else 0


class _Source(NamedTuple):
    """The lane and the register that hold an element along a dim. In lanes below `wrapped`, the register is one row
    further."""

    lane: Expr
    register: Expr
    wrapped: int = 0


class LaneRegisters(OwnRegisters):
    """A buffer of a warp. If the lanes do not share it, each lane has a copy of the whole buffer."""

    def __init__(self, s: Realize, at: At, lane: Expr, refuse: Refuse) -> None:
        """`lane` is the number of a thread within its warp."""
        super().__init__(s, at)
        self.lane, self.refuse = lane, refuse
        self.accesses = list[Access]()
        self.shares = dict(_shares(s, s.layout)) if s.layout is not None else {}  # by dim
        self.extents: dict[tuple[int, ...], tuple[Expr, ...]] = {}  # register -> extents of loops that store it first
        self.distances: dict[int, str] = {}  # distance in lanes -> the buffer of values shuffled over it
        self.numbers: dict[str, set[int]] = {}  # buffer -> dims along which its indices are constant

    def note(self, access: Access) -> None:
        self.accesses.append(access)

    def decide(self, small: bool) -> None:
        """Find the constant distances over which values are shuffled when they are stored."""
        stores = [a for a in self.accesses if a.is_store]
        for a in stores:
            self.check(a)
        if self.shares and any(not a.at.alike for a in stores):
            raise self.refuse(self.s, "a condition that is not the same for all lanes decides about it")
        loads = [(i, a.at) for a in self.accesses if not a.is_store for i in self.elements(a.indices)]
        distances = [self.distance(indices, at) or 0 for indices, at in loads]
        self.distances = {far: of_buffer(self.s.buffer, "from", far) for far in distances if far}
        self.numbers = {name: {*range(len(self.s.box))} - {*self.shares} for name in self.buffers}
        for a in stores:
            for name in self.buffers:
                self.numbers[name] -= self.unknown(a.indices, a.at, self.numbers[name])
        for (indices, at), far in zip(loads, distances, strict=True):
            name = self.distances.get(far, self.s.buffer)
            self.numbers[name] -= self.unknown(indices, at, self.numbers[name])

    def check(self, store: Access) -> None:
        """Refuse a store whose index does not move with the lanes as the layout says."""
        moves = [store.at.moved(i, low) for i, low in zip(store.indices, self.lows, strict=True)]
        others = [a for _, rest in moves for a, _ in rest.terms.values() if depends(a, store.at.variables)]
        each = [[n for steps, _ in moves if (n := steps[x.var])] for x in store.at.loops]
        if others or any(len(steps) > 1 or steps[0] < 0 for steps in each if steps):
            raise self.refuse(self.s, "what a lane computes of it is not side by side")
        for k, (steps, _) in enumerate(moves):
            is_whole = k not in self.shares or self.shares[k].rows > 1 or any(steps.values())
            if not is_whole or any(steps[x.var] != self.step(k, x) for x in store.at.loops if x.lanes > 1):
                raise self.refuse(self.s, "lanes of one loop share it otherwise than those of another")

    def step(self, k: int, loop: ThreadLoop) -> int:
        """The distance along a dim between the elements of a lane and those of the lane with the previous iteration."""
        return self.shares[k].step(loop) if k in self.shares else 0

    @property
    def buffers(self) -> list[str]:
        """The lane's own registers, and the registers for values shuffled from other lanes."""
        return [self.s.buffer, *self.distances.values()]

    def realized(self, body: Stmt) -> Stmt:
        layout = Layout(((),) * len(self.s.box)) if self.shares else None
        for name in self.buffers:
            box = tuple(self.side(k, name) for k in range(len(self.s.box)))
            body = Realize(name, self.s.dtype, box, self.s.memory, body, layout=layout)
        return body

    def side(self, k: int, name: str) -> tuple[Expr, Expr]:
        """The start and the number of a lane's registers along a dim."""
        low, extent = self.s.box[k]
        if k in self.shares:
            return ZERO, const(self.shares[k].each * self.shares[k].rows, INDEX)
        return (ZERO if k in self.numbers[name] else low), extent

    def held(self, name: str, indices: Indices, at: At, registers: dict[int, Expr]) -> Indices:
        """The indices of a lane's registers. `registers` gives the indices along the dims that lanes share."""
        numbered = self.numbered(indices, at, self.numbers[name])
        return tuple([moved_to(i, registers[k]) if k in registers else i for k, i in enumerate(numbered)])

    # Stores

    def store(self, s: Store, at: At) -> Stmt:
        registers = {k: self.stored(k, s.indices[k], at) for k in self.shares}
        indices = self.held(s.buffer, s.indices, at, registers)
        if not self.shares:
            return replace(s, indices=indices)
        mine = Load(s.value.dtype, s.value.lanes, s.buffer, indices)
        made: list[Stmt] = [replace(s, indices=indices, value=self.kept(s.value, mine, at, (*registers.values(),)))]
        for far, name in self.distances.items():
            lane = minimum(self.lane + far, const(WARP_SIZE - 1, INDEX))
            made.append(Store(name, self.held(name, s.indices, at, registers), shuffle(mine, lane)))
        return block(*made)

    def stored(self, k: int, index: Expr, at: At) -> Expr:
        """The register of an element along a dim. The lane itself must compute the element."""
        each, lanes, _, rows = self.shares[k]
        first = simplify(at.moved(index, self.lows[k])[1].expr())
        last = simplify(first + index.stride * (index.lanes - 1)) if isinstance(index, Ramp) else first
        if isinstance(first, Const) and isinstance(last, Const):
            row, place = divmod(int(first.value), each * lanes)
            if 0 <= row < rows and place < each and place + int(last.value) - int(first.value) < each:
                return const(row * each + place, INDEX)
        raise self.refuse(self.s, f"a lane has {each * rows} values of it, and computes others")

    def kept(self, value: Expr, before: Load, at: At, registers: tuple[Expr, ...]) -> Expr:
        """The value that a lane stores. Lanes that an update does not reach keep their value."""
        extents = tuple([at.named.form(loop.extent).expr() for loop in at.loops])
        first = self.extents.setdefault(tuple([int(i.value) for i in registers if isinstance(i, Const)]), extents)
        if len(first) == len(extents) and all(map(same, first, extents)):
            return value
        return select(broadcast(at.works(self.lane), value.lanes), value, before)

    # Loads

    def load(self, e: Load, at: At, is_place: bool) -> Expr:
        if not self.shares:
            return replace(e, indices=self.held(e.buffer, e.indices, at, {}))
        if all(map(is_alike, e.operands)):
            return broadcast(self.element(_element(e, 0), at, is_place), e.lanes)
        if self.is_of_one_lane(e.indices) and (e.mask is None or is_alike(e.mask)):
            return self.element(e, at, is_place)
        parts = [self.element(_element(e, k), at, is_place) for k in range(e.lanes)]
        whole = joined_loads(parts)
        return Shuffle(e.dtype, len(parts), tuple(parts), tuple(range(len(parts)))) if whole is None else whole

    def is_of_one_lane(self, indices: Indices) -> bool:
        """Whether one lane holds all elements of a vector."""
        return all(is_alike(indices[k]) for k in self.shares)

    def elements(self, indices: Indices) -> list[Indices]:
        """The indices of a vector access: one entry if a single lane holds the vector, otherwise one for each
        element."""
        if self.is_of_one_lane(indices):
            return [indices]
        return [tuple([_nth(i, k) for i in indices]) for k in range(max(i.lanes for i in indices))]

    def element(self, e: Load, at: At, is_place: bool) -> Expr:
        """Read an element from this lane's own registers, from values shuffled earlier, or by a shuffle here."""
        sources = {k: self.source(k, e.indices[k], at) for k in self.shares}
        registers = {k: source.register for k, source in sources.items()}
        far = self.distance(e.indices, at)
        if far is not None and not (is_place and not at.all_lanes_work):
            name = self.distances.get(far, self.s.buffer)
            return replace(e, buffer=name, indices=self.held(name, e.indices, at, registers))
        lane: Expr = ZERO
        for k, source in sources.items():
            lane = lane + source.lane * self.shares[k].weight
        lane = substitute(simplify(lane), {name: turn.value for name, turn in at.turns.items()})
        return self.shuffled(e, sources, lane, at)

    def source(self, k: int, index: Expr, at: At) -> _Source:
        """The lane and the register that hold an element along a dim."""
        each, lanes, _, rows = share = self.shares[k]
        steps, rest = at.moved(index, self.lows[k])
        place, moved = simplify(rest.expr()), [var(name) * (n // each) for name, n in steps.items() if n]
        if any(n % each for n in steps.values()):
            raise self.refuse(self.s, "neighbouring lanes read it at distances that are no lane's")
        register = simplify(place % each)
        if not isinstance(register if rows == 1 else place, Const) and each * rows > 1:
            raise self.refuse(self.s, f"which of {each * rows} values of a lane is read is not constant")
        if not isinstance(place, Const) or rows == 1 and int(place.value) >= 0:
            return _Source(sum(moved, place // each), register)
        loops = [x for x in at.loops if steps[x.var]]
        is_alone = len(loops) == 1 and steps[loops[0].var] == each and loops[0].lanes <= lanes
        if not is_alone and any(steps[x.var] != share.step(x) for x in loops):
            raise self.refuse(self.s, "lanes ask each other for values at places that differ")
        row, behind = divmod(int(place.value), each * lanes)
        far = behind // each
        register = const(row * each + behind % each, INDEX)
        return _Source(sum(moved, const(far, INDEX)) % lanes, register, far if moved else 0)

    def shuffled(self, e: Load, sources: dict[int, _Source], lane: Expr, at: At) -> Expr:
        """Shuffle the value of another lane. All lanes use the same index, since each lane loads the value for the
        lanes that read from it.
        """
        if any(at.differs(i) for k, i in enumerate(e.indices) if k not in self.shares):
            raise self.refuse(self.s, "lanes ask each other for values at places that differ")
        asks = None if e.mask is None else first_lane(e.mask)
        mask = None if asks is None else broadcast(self.is_there(e, asks, at), e.lanes)
        mine = self.offered(replace(e, mask=mask), at, sources)
        return shuffle(mine, lane if asks is None else select(asks, lane, self.lane))

    def offered(self, e: Load, at: At, sources: dict[int, _Source]) -> Expr:
        """The value that a lane provides to the lane that reads from it."""
        k, source = next(((k, source) for k, source in sources.items() if source.wrapped), (0, None))
        if source is None:
            registers = {k: source.register for k, source in sources.items()}
            return replace(e, indices=self.held(e.buffer, e.indices, at, registers))
        each, lanes, weight, rows = self.shares[k]
        first = number(source.register) or 0
        places = [const(n, INDEX) for n in (first, first + each) if 0 <= n < each * rows]  # no lane reads any other
        now, *behind = [self.offered(e, at, {**sources, k: _Source(source.lane, n)}) for n in places]
        if not behind:
            return now
        return select(broadcast(self.lane // weight % lanes < source.wrapped, e.lanes), behind[0], now)

    def is_there(self, e: Load, asks: Expr, at: At) -> Expr:
        """The uniform condition under which any lane may read a value. `asks` is the condition of this lane alone."""
        conditions = conjuncts(asks)
        alike = [c for c in conditions if not at.differs(c)]
        if len(alike) < len(conditions):
            for k, (low, n) in enumerate(self.s.box):
                ends = [_nth(e.indices[k], lane) for lane in {0, e.lanes - 1}] if k not in self.shares else []
                alike += [c for i in ends for c in (i >= low, i < low + n)]
            alike += self.is_stored()
        return logical_and(*alike)

    def is_stored(self) -> list[Expr]:
        """The conditions under which lanes hold values, as far as they are known at the load: the loop that stores them
        may run no iterations.
        """
        loops = [i.var for i in walk(self.s.body) if isinstance(i, For)]
        first = next(iter(self.extents.values()), ())
        return [extent >= 1 for extent in first if not depends(extent, loops)]

    def distance(self, indices: Indices, at: At) -> int | None:
        """The distance in lanes to the lane that holds an element, if it is constant."""
        total, moved = 0, set[str]()
        for k, (each, lanes, weight, rows) in self.shares.items():
            steps, rest = at.moved(indices[k], self.lows[k])
            place = simplify(rest.expr())
            if not isinstance(place, Const) or any(steps[x.var] != self.step(k, x) for x in at.loops if x.lanes > 1):
                return None
            far = int(place.value) // each
            if far < 0 or rows > 1 and far % lanes or not any(steps.values()):
                return None
            moved.update(name for name, n in steps.items() if n)
            total += far * weight if rows == 1 else 0
        return total if moved.issuperset(x.var for x in at.loops if x.lanes > 1) else None


def _shares(s: Realize, layout: Layout) -> Iterator[tuple[int, _Share]]:
    """Yield how each dim that lanes share is distributed."""
    for k, (_, extent) in enumerate(s.box):
        digits = list(layout.steps(k))
        if digits:
            (each, first), *others = digits
            lanes = first.size
            for far, d in others:  # digits of a loop around, whose lanes follow those of this one
                lanes *= d.size if (far, d.weight) == (each * lanes, first.weight * lanes) else 1
            rows = -(-int(extent.value) // (each * lanes)) if isinstance(extent, Const) else 1
            yield k, _Share(each, lanes, first.weight, max(rows, 1))


def _nth(e: Expr, k: int) -> Expr:
    """Return one lane of a vector."""
    if is_alike(e):
        return first_lane(e)
    return simplify(e.base + e.stride * k) if isinstance(e, Ramp) else Shuffle(e.dtype, 1, (e,), (k,))


def _element(e: Load, k: int) -> Load:
    """Return the load of one lane of a vector."""
    mask = None if e.mask is None else _nth(e.mask, k)
    return Load(e.dtype, 1, e.buffer, tuple([_nth(i, k) for i in e.indices]), mask)
