"""Fragments: the elements that each lane loads of an operand of a matrix instruction.

    left[i.min + i.lane, ramp(k.min + 2*k.lane, 1, 2)], ...     each lane loads its own elements, adjacent ones in pairs
    ldmatrix.x4(left[i.min + lane%16, ramp(k.min + lane//16*8, 1, 8)])       each lane loads a row of 8 for other lanes

`ldmatrix` loads matrices of 16-bit elements from shared memory, 8 rows of 16 bytes each. A row is a row or a column of
the operand, whichever is contiguous in memory (the instruction transposes columns), and begins at a multiple of 16
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dataclass import dataclass
from ...expr.build import ramp
from ...expr.congruence import known_remainder
from ...expr.linear import linear, simplify
from ...expr.nodes import Const, Expr, Instruction, Load, Shuffle, Var
from ...expr.visit import depends, names, substitute, transform
from ...ir.instructions import matrix_load
from ...ir.nodes import Realize, Stmt
from ...target.kinds import Memory
from ...target.layout import Digit, Layout, Unit
from ...target.mma import COLUMN_LANES, MATRIX, PACKED, ROW_LANES
from ..lanes import joined_loads
from .let_sums import Named


@dataclass(frozen=True)
class Storage:
    """How a buffer is stored in memory: the order of its dims, with the contiguous one last, and the number of unused
    entries at the end of each dim."""

    order: tuple[int, ...]
    pads: tuple[int, ...]


@dataclass(frozen=True)
class SharedMatrices:
    """The buffers in shared memory around a statement, from which fragments may be loaded by rows."""

    storage: Mapping[str, Storage]  # by buffer, for all buffers
    named: Named
    realized: Mapping[str, Realize]

    def inside(self, s: Stmt) -> SharedMatrices:
        """The buffers around the children of a statement."""
        realized = {**self.realized, s.buffer: s} if isinstance(s, Realize) else self.realized
        return SharedMatrices(self.storage, self.named.inside(s), realized)

    def contiguous(self, e: Expr) -> int | None:
        """The dim along which a load may read whole rows, if the rows of its buffer begin at multiples of 16 bytes;
        otherwise None."""
        s = self.realized.get(e.buffer) if isinstance(e, Load) and e.mask is None and e.dtype.bytes == 2 else None
        if s is None or s.memory is not Memory.SHARED or s.buffer not in self.storage:
            return None
        dim, pads = self.storage[s.buffer].order[-1], self.storage[s.buffer].pads
        extent = s.box[dim][1]
        is_whole = isinstance(extent, Const) and (int(extent.value) + pads[dim]) % MATRIX == 0
        return dim if is_whole else None

    def is_start(self, buffer: str, dim: int, index: Expr) -> bool:
        """Whether an index along the contiguous dim is a multiple of 16 bytes from the start of the buffer."""
        low = self.realized[buffer].box[dim][0]
        behind = self.named.form(index).plus(self.named.form(low), -1)
        return known_remainder(behind.expr(), MATRIX, {}) == 0


@dataclass(frozen=True)
class Fragment:
    """How each lane reads its elements of a matrix in whole fragments."""

    layout: Layout
    loops: tuple[str, str]  # the loops over the dims of the matrix
    begin: Mapping[str, Expr]  # the first coordinate of each loop
    lanes: Mapping[Digit, Var]  # the digits of a lane's number
    shared: SharedMatrices

    def vector(self, e: Expr) -> Expr:
        """The elements of an operand that a lane holds, in the order of its registers."""
        by_rows = self.matrices(e) if isinstance(e, Load) else None
        if by_rows is not None:
            return by_rows
        count = self.layout.count(Unit.REGISTER)
        return Shuffle(e.dtype, count, tuple(self.parts(e)), tuple(range(count)))

    def matrices(self, e: Load) -> Expr | None:
        """Load the elements by `ldmatrix`, one row by each lane. None if rows are not contiguous or not aligned."""
        dim = self.shared.contiguous(e)
        along = None if dim is None else self.loop_along(e, dim)
        if dim is None or along is None:
            return None
        count = self.layout.count(Unit.REGISTER) // PACKED
        lane = self.lanes[ROW_LANES] * ROW_LANES.weight + self.lanes[COLUMN_LANES]
        matrix, row = lane // MATRIX % count, lane % MATRIX
        at = dict[str, Expr]()
        for loop, digits in zip(self.loops, self.layout.dims, strict=True):
            place, step = self.begin[loop] if loop == along else self.begin[loop] + row, 1
            for d in digits:
                if d.unit is Unit.REGISTER and d.weight >= PACKED:
                    place = place + matrix // (d.weight // PACKED) % d.size * step
                step *= d.size
            at[loop] = place
        indices = [simplify(substitute(i, at)) for i in e.indices]
        if not self.shared.is_start(e.buffer, dim, indices[dim]):
            return None
        indices[dim] = ramp(indices[dim], 1, MATRIX)
        rows = Load(e.dtype, MATRIX, e.buffer, tuple(indices))
        return Instruction(e.dtype, count * PACKED, matrix_load(count, self.is_packed(along)), (rows,))

    def loop_along(self, e: Load, dim: int) -> str | None:
        """The only loop that moves the index along a dim of a buffer, if it does so by steps of 1 and moves no other
        index."""
        form = linear(e.indices[dim])
        loops = [x for x in self.loops if any(x in names(atom) for atom, _ in form.terms.values())]
        others = [i for k, i in enumerate(e.indices) if k != dim]
        if len(loops) > 1 or not loops or form.coefficient(loops[0]) != 1 or any(depends(i, loops) for i in others):
            return None
        is_alone = sum(loops[0] in names(atom) for atom, _ in form.terms.values()) == 1
        return loops[0] if is_alone else None

    def is_packed(self, loop: str) -> bool:
        """Whether elements that are adjacent along a loop share a register."""
        return any(d.unit is Unit.REGISTER and d.weight == 1 for d in self.layout.dims[self.loops.index(loop)])

    def parts(self, e: Expr) -> list[Expr]:
        """The elements in parts: elements that are adjacent in memory and in registers are loaded together."""
        elements = [self.element(e, n) for n in range(self.layout.count(Unit.REGISTER))]
        digits = [d for of_dim in self.layout.dims for d in of_dim]
        adjacent = next(d.size for d in digits if d.unit is Unit.REGISTER and d.weight == 1)
        parts = list[Expr]()
        for k in range(0, len(elements), adjacent):
            run = elements[k : k + adjacent]
            joined = joined_loads(run)
            parts += run if joined is None else [joined]
        return parts

    def element(self, e: Expr, register: int) -> Expr:
        """The element in a register of a lane."""
        at = {}
        for loop, digits in zip(self.loops, self.layout.dims, strict=True):
            place, step = self.begin[loop], 1
            for d in digits:
                number = self.lanes[d] if d.unit is Unit.THREAD else register // d.weight % d.size
                place, step = place + number * step, step * d.size
            at[loop] = simplify(place)

        def change(n: Expr) -> Expr | None:
            if isinstance(n, Load):
                return Load(n.dtype, 1, n.buffer, tuple(map(simplify, n.indices)), n.mask)
            return at.get(n.name) if isinstance(n, Var) else None

        return transform(e, change, concerns=lambda n: not names(n).isdisjoint(self.loops))
