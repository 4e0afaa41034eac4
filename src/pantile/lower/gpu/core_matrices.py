"""Core matrices: how a matrix is laid out in shared memory, if `wgmma` can read it from there.

left[k//8, i, k%8]       rows of 8 terms; the groups of 8 terms of one row are 8*rows apart
right[j//8, k, j%8]      rows of 8 columns, for consecutive terms: the instruction transposes them

The distances between elements are compared one by one, whatever splits, orders and padding of storage cause them.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dataclass import dataclass
from ...expr.build import ramp
from ...expr.congruence import known_remainder
from ...expr.linear import simplify
from ...expr.nodes import Const, Expr, Load
from ...expr.visit import names, substitute
from ...ir.nodes import For
from ...target.gpu import LONGEST_ACCESS as ROW_BYTES
from ...target.kinds import Memory
from ...target.wgmma import CORE, WARPS, CoreMatrices
from .fragments import SharedMatrices


class MatrixInSharedMemory(NamedTuple):
    """The first row of a matrix, and how its other elements are laid out."""

    first: Load
    lies: CoreMatrices


class Warpgroup(NamedTuple):
    """The warps that execute one product together: the variable of the loop over warps, and its value in the first of
    them."""

    warp: str
    first: Expr


def core_matrices(
    e: Expr, rows: For, terms: For, rows_of_warp: int, group: Warpgroup, shared: SharedMatrices
) -> MatrixInSharedMemory | None:
    """The matrix that loops over its rows and terms load in a warpgroup, or None if it is not laid out in core
    matrices. The rows of consecutive warps begin `rows_of_warp` apart."""
    if not isinstance(e, Load) or e.mask is not None or e.dtype.bytes != ROW_BYTES // CORE:
        return None
    strides = _strides(e.buffer, shared)
    if strides is None or any({rows.var, terms.var} <= names(i) for i in e.indices):
        return None
    matrix = _Matrix(e, rows, terms, strides, group, shared)
    down = [matrix.offset(n, 0) for n in range(_count(rows))]
    along = [matrix.offset(0, n) for n in range(_count(terms))]
    rows_apart, terms_apart = down[CORE], along[CORE]
    if rows_apart is None or terms_apart is None or rows_apart % CORE or terms_apart % CORE:
        return None
    lies = CoreMatrices(rows_apart, terms_apart, transposed=down[1] == 1)
    is_so = down == [lies.offset(n, 0) for n in range(len(down))]
    is_so &= along == [lies.offset(0, n) for n in range(len(along))]
    is_so &= all(matrix.offset(0, 0, warp) == matrix.offset(warp * rows_of_warp, 0) for warp in range(WARPS))
    if not is_so or not matrix.is_aligned():
        return None
    first, innermost = matrix.place(0, 0), strides.index(1)
    first[innermost] = ramp(first[innermost], 1, CORE)
    return MatrixInSharedMemory(Load(e.dtype, CORE, e.buffer, tuple(first)), lies)


@dataclass(frozen=True)
class _Matrix:
    """The elements that two loops load from a buffer in shared memory."""

    e: Load
    rows: For
    terms: For
    strides: list[int]  # strides of the buffer's dims
    group: Warpgroup
    shared: SharedMatrices

    def place(self, row: int, term: int, warp: int = 0) -> list[Expr]:
        """The indices of an element, as the given warp of the group accesses it, without names of lets."""
        here = {self.rows.var: self.rows.min + row, self.terms.var: self.terms.min + term}
        at = {self.group.warp: self.group.first + warp}
        expanded = [self.shared.named.form(simplify(substitute(i, here))).expr() for i in self.e.indices]
        return [simplify(substitute(i, at)) for i in expanded]

    def offset(self, row: int, term: int, warp: int = 0) -> int | None:
        """The distance of an element from the first one, or None if it is not constant."""
        offset = 0
        for a, b, stride in zip(self.place(row, term, warp), self.place(0, 0), self.strides, strict=True):
            distance = simplify(a - b)
            if not isinstance(distance, Const):
                return None
            offset += int(distance.value) * stride
        return offset

    def is_aligned(self) -> bool:
        """Whether the first element is at a multiple of 16 bytes from the start of the buffer."""
        for i, (low, _), stride in zip(
            self.place(0, 0), self.shared.realized[self.e.buffer].box, self.strides, strict=True
        ):
            behind = simplify(i - self.shared.named.form(low).expr())
            if stride % CORE and known_remainder(behind * stride, CORE, {}) != 0:
                return False
        return True


def _strides(buffer: str, shared: SharedMatrices) -> list[int] | None:
    """The strides of a buffer in shared memory along each dim, or None if they are not constant."""
    s, storage = shared.realized.get(buffer), shared.storage.get(buffer)
    if s is None or s.memory is not Memory.SHARED or storage is None:
        return None
    strides, size = [0] * len(s.box), 1
    for k in reversed(storage.order):
        extent = s.box[k][1]
        if not isinstance(extent, Const):
            return None
        strides[k], size = size, size * (int(extent.value) + storage.pads[k])
    return strides


def _count(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)
