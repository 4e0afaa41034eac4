"""The bytes of global memory that a launch moves, without running it: those of the sectors that its warps request.

Some blocks are gone through as the simulator does, and of long loops some iterations, other ones in each block; these
count for all others. Only places and conditions are computed. Where data decide them, the bytes are an upper bound:
each thread requests a sector of its own, and both branches are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..dataclass import memoized
from ..expr.nodes import Expr, Load, Number
from ..expr.visit import loaded, names, walk_loads
from ..ir.atomic import combined
from ..ir.nodes import For, If, Kernel, Let, Manner, Prefetch, Stmt, Store
from ..ir.visit import children, expressions
from ..target.description import INDEX_BITS
from ..target.gpu import SECTOR, WARP_SIZE
from ..target.kinds import Kind
from .accesses import ThreadAccess
from .active import Active, Array
from .expressions import Expressions, Scope
from .races import Epochs
from .traffic import sectors

_THREADS = 1 << 13  # in the blocks that are gone through, at least; of kernels with few accesses
_ACCESSES = 1 << 19  # as many as have so many: few of their blocks may do all the work
_ACCESSES_OF_LOOP = 1 << 22  # in the iterations of a loop that are gone through, by all threads
_ROOM = 1 << 8  # and by one


class MovedBytes(NamedTuple):
    """What a launch reads from global memory and writes to it; if `is_bound`, at most, since data decide some of it."""

    read: int
    written: int
    is_bound: bool


def moved_bytes(kernel: Kernel, scalars: Sequence[Number], sizes: Sequence[int], blocks: int) -> MovedBytes | None:
    """The bytes that a launch moves, given the captures of its kernel in order: the values of scalars, and the bytes of
    buffers. None if data decide how often something is accessed."""
    sample = _Sample(kernel, scalars, sizes, blocks)
    with np.errstate(all="ignore"):
        sample.run()
    read, written = (round(sample.sectors[kind]) * SECTOR for kind in ("load", "store"))
    return None if sample.is_unknown else MovedBytes(read, written, sample.is_bound)


class _Part(NamedTuple):
    """The active threads, for how many each block counts, and how many accesses of a loop may be gone through."""

    active: Active
    weight: Array
    room: int


class _Sample:
    """Some blocks of a launch, in lockstep. Names that are not in `_scalars` depend on data."""

    def __init__(self, kernel: Kernel, scalars: Sequence[Number], sizes: Sequence[int], blocks: int) -> None:
        self.sectors = {"load": 0.0, "store": 0.0}
        self.is_bound = self.is_unknown = False
        self.kernel_name, self.first_block = kernel.name, 0
        self._random = np.random.default_rng(0)
        self._expressions = Expressions(INDEX_BITS)
        self._buffers = {b.name: (b.dtype.bytes, size) for b, size in zip(kernel.buffers, sizes, strict=True)}
        values = zip(kernel.scalars, scalars, strict=True)
        self._scalars = {v.name: self._expressions.number(n, v.dtype) for v, n in values}
        self._accesses_of: dict[int, int] = {}
        threads = max(_THREADS, _ACCESSES // max(1, self._accesses(kernel.body)))
        number = max(1, min(blocks, threads // kernel.threads))
        warps = -(-kernel.threads // WARP_SIZE)
        self.epochs = Epochs(np.zeros(number, np.int64), np.zeros((number, warps), np.int64))
        self._kernel, self._blocks, self._shape = kernel, blocks, (number, kernel.threads)

    def run(self) -> None:
        everything = Active(np.ones(self._shape, np.bool_))
        number, first = self._shape[0], self._value(self._kernel.min, everything)
        chosen = self._spread(np.arange(number), np.full(number, self._blocks), number)
        self._scalars[self._kernel.var] = first + chosen.reshape(-1, 1)
        room = min(_ROOM, _ACCESSES_OF_LOOP // everything.count)
        self._statement(self._kernel.body, _Part(everything, np.full(number, self._blocks / number), room))

    def _spread(self, part: Array | int, of: Array, parts: int) -> Array:
        """Numbers below `of`, each at random in one of as many equal parts."""
        return ((part + self._random.random(len(of))) * of / parts).astype(np.int64)

    # ---- statements

    def _statement(self, s: Stmt, part: _Part) -> None:
        if isinstance(s, For):
            self._for(s, part)
        elif isinstance(s, If):
            self._if(s, part)
        else:
            for e in _computed(s):
                self._load(e, part)
            if isinstance(s, Let) and self._is_known(s.value):
                self._scalars[s.name] = self._value(s.value, part.active)
            elif isinstance(s, Store):
                self._access("store", s.buffer, s.indices[0], s.mask, part)
            for c in children(s):
                self._statement(c, part)

    def _if(self, s: If, part: _Part) -> None:
        self._load(s.condition, part)
        branches = [(s.then, part.active), (s.otherwise, part.active)]
        if self._is_known(s.condition):
            holds = self._value(s.condition, part.active)
            branches = [(s.then, part.active.where(holds)), (s.otherwise, part.active.where(~holds))]
        else:
            self.is_bound = self.is_bound or self._accesses(s) > 0
        for branch, active in branches:
            if branch is not None and active.count:
                self._statement(branch, part._replace(active=active))

    def _for(self, s: For, part: _Part) -> None:
        self._load(s.min, part)
        self._load(s.extent, part)
        accesses = self._accesses(s.body)
        if not self._is_known(s.extent):
            self.is_unknown = self.is_unknown or accesses > 0
            return
        if not accesses:
            return
        extent = np.broadcast_to(self._value(s.extent, part.active), self._shape)
        offset, step = (np.arange(self._shape[1]), self._shape[1]) if s.kind is Kind.THREAD else (0, 1)
        most = (np.where(part.active.mask, extent, 0).max(axis=1) + step - 1) // step  # the iterations of each block
        largest = int(most.max())
        rounds = min(largest, max(1, part.room // accesses))
        first = self._value(s.min, part.active) if self._is_known(s.min) else None
        for k in range(rounds):
            at = np.full(len(most), k) if rounds == largest else self._spread(k, most, rounds)
            value = at.reshape(-1, 1) * step + offset
            weight = part.weight if rounds == largest else part.weight * most / rounds
            if first is not None:
                self._scalars[s.var] = first + value
            active = part.active.where(value < extent)
            if active.count:
                self._statement(s.body, _Part(active, weight, part.room // rounds))

    # ---- accesses

    def _load(self, e: Expr, part: _Part) -> None:
        for load in self._loads(e):
            self._access("load", load.buffer, load.indices[0], load.mask, part)

    @memoized
    def _loads(self, e: Expr) -> list[Load]:
        """The loads of an expression from global memory."""
        return [n for n in walk_loads(e) if n.buffer in self._buffers]

    def _accesses(self, s: Stmt) -> int:
        """How many accesses to global memory a statement has, each counted once."""
        if id(s) not in self._accesses_of:
            own = sum(len(self._loads(e)) for e in _computed(s)) + (isinstance(s, Store) and s.buffer in self._buffers)
            self._accesses_of[id(s)] = own + sum(map(self._accesses, children(s)))
        return self._accesses_of[id(s)]

    def _access(self, kind: str, buffer: str, index: Expr, mask: Expr | None, part: _Part) -> None:
        if buffer not in self._buffers:
            return
        bytes_, size = self._buffers[buffer]
        known = mask is None or self._is_known(mask)
        lanes = None if mask is None or not known else self._value(mask, part.active)
        self.is_bound = self.is_bound or not known
        if self._is_known(index):
            moved = sectors(ThreadAccess(self._value(index, part.active), lanes, index.lanes, part.active), bytes_)
        else:
            self.is_bound = True
            threads = part.active.mask.reshape(-1, WARP_SIZE).sum(axis=1)
            moved = np.minimum(threads, -(-size // SECTOR)) * index.lanes
        self.sectors[kind] += float(moved.reshape(len(part.weight), -1).sum(axis=1) @ part.weight)

    def _is_known(self, e: Expr) -> bool:
        """Whether an expression does not depend on data."""
        return not loaded(e) and names(e) <= self._scalars.keys()

    def _value(self, e: Expr, active: Active) -> Array:
        return self._expressions(e).value(Scope(self._scalars, {}, active, self))


def _computed(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates; an atomic store does not load what it combines with."""
    if isinstance(s, Store) and s.manner is Manner.ATOMIC:
        return (*s.indices, combined(s)[1])
    return () if isinstance(s, Prefetch) else expressions(s)
