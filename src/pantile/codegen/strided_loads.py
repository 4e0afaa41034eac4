"""Finds strided loads that together read every element of a range, and gathers that read adjacent elements in every
lane.

`img[3*x]`, `img[3*x + 1]` and `img[3*x + 2]`, each a vector with stride 3, access 3*lanes contiguous elements. One wide
load serves them all, and LLVM turns it into the target's de-interleaving load. A single one of them must not read
beyond its own last element.

`f[n*x]` .. `f[n*x + 3]`, with any other stride n, are columns of a matrix whose rows are contiguous: dense loads of the
rows and a transposition in registers serve them all.

`t[i]`, `t[i + 1]`, ... with the same vector `i` of data-dependent indices read one short run per lane. Each lane loads
its run at once, and the runs are transposed into one vector per offset. The bytes of a pixel become a 32-bit number per
lane, which is moved from general registers to vector registers as a whole, and each byte is then shifted out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..dataclass import cached_property, dataclass, memoized
from ..expr.linear import Linear, linear
from ..expr.nodes import Broadcast, Const, Expr, Load, Op, Ramp, const
from ..expr.runs import Run, runs
from ..expr.visit import key, walk
from ..ir.nodes import For, If, Stmt
from ..ir.visit import children, expressions

STRIDES = range(2, 5)
_Family = tuple[object, ...]
E = TypeVar("E", bound=Expr)


@dataclass(frozen=True)
class Affine:
    """An index vector rest + offset + stride*lane, in which `rest` is a scalar, or None for zero."""

    rest: Expr | None
    offset: int
    stride: Expr

    @property
    def constant_stride(self) -> int | None:
        return int(self.stride.value) if isinstance(self.stride, Const) else None


def affine(index: Expr) -> Affine | None:
    """The index as an affine function of the lane, or None if it is not visibly one."""
    if isinstance(index, Ramp):
        rest, offset = split_offset(index.base)
        return Affine(rest, offset, index.stride)
    if isinstance(index, (Broadcast, Const)):
        rest, offset = split_offset(index.value if isinstance(index, Broadcast) else index)
        return Affine(rest, offset, const(0, index.dtype))
    if isinstance(index, Op) and index.op in ("add", "sub"):
        return _shifted(index)
    return None


def _shifted(index: Op) -> Affine | None:
    """The sum or difference of a ramp and a uniform vector."""
    a, b = index.args
    if index.op == "add" and isinstance(a, (Const, Broadcast)):
        a, b = b, a
    ramp = affine(a)
    if ramp is None:
        return None
    if isinstance(b, Const):
        offset = int(b.value) if index.op == "add" else -int(b.value)
        return Affine(ramp.rest, ramp.offset + offset, ramp.stride)
    if isinstance(b, Broadcast):
        base = b.value if ramp.rest is None else Op(b.dtype, 1, index.op, (ramp.rest, b.value))
        if ramp.rest is not None or index.op == "add":
            return Affine(base, ramp.offset, ramp.stride)
    return None


def split_offset(e: Expr) -> tuple[Expr | None, int]:
    """Split a scalar index into (rest, constant); the rest is None if it is zero."""
    if isinstance(e, Const):
        return None, int(e.value)
    if isinstance(e, Op) and e.op == "add" and isinstance(e.args[1], Const):
        rest, offset = split_offset(e.args[0])
        return rest, offset + int(e.args[1].value)
    return e, 0


def places(load: Load) -> Linear:
    """The index vector of a load as a sum of vectors, plus a constant that is the same in all lanes."""
    return linear(load.indices[0])


def _gathered_family(load: Load) -> _Family:
    return (load.buffer, load.lanes, frozenset((k, c) for k, (_, c) in places(load).terms.items()))


class Groups:
    """The strided loads and gathers that a statement executes unconditionally, by the common part of their indices."""

    def __init__(self, s: Stmt) -> None:
        self._stmt = s

    @cached_property
    def _runs(self) -> dict[_Family, dict[int, Run]]:
        """For each family of gathers whose indices differ only by a constant, the run that serves each offset."""
        families: dict[_Family, list[Load]] = {}
        for load in _certain_loads(self._stmt):
            if affine(load.indices[0]) is None:
                families.setdefault(_gathered_family(load), []).append(load)
        return {
            family: runs((places(load).constant for load in of), of[0].dtype, of[0].lanes)
            for family, of in families.items()
        }

    def run(self, load: Load) -> Run:
        """The run of adjacent gathers that this gather belongs to, all of which are executed unconditionally."""
        offset = places(load).constant
        return self._runs.get(_gathered_family(load), {}).get(offset, Run(offset, 1))

    @cached_property
    def _offsets(self) -> dict[_Family, set[int]]:
        """The offsets of each family, collected on first use; most code has no strided loads."""
        offsets: dict[_Family, set[int]] = {}
        for load in _certain_loads(self._stmt):
            index = affine(load.indices[0])
            if index is not None and index.constant_stride not in (-1, 0, 1):
                offsets.setdefault(_family(load, index), set()).add(index.offset)
        return offsets

    def window(self, load: Load, index: Affine, size: int) -> int | None:
        """The first offset of `size` adjacent loads that include this one and are all executed unconditionally; None if
        there are none."""
        return self._windows(_family(load, index), size).get(index.offset)

    @memoized
    def _windows(self, family: _Family, size: int) -> dict[int, int]:
        """Cover the offsets, from the lowest up, by runs of `size` consecutive ones: offset -> first of its run."""
        noted, windows = self._offsets.get(family, set()), dict[int, int]()
        for offset in sorted(noted):
            for start in range(offset, offset - size, -1):
                if offset not in windows and all(start + k in noted for k in range(size)):
                    for k in range(size):
                        windows.setdefault(start + k, start)
        return windows


def _family(load: Load, index: Affine) -> _Family:
    rest = () if index.rest is None else key(index.rest)
    return (load.buffer, load.lanes, key(index.stride), rest)


def _certain_loads(s: Stmt) -> Iterator[Load]:
    """Vector loads without a mask that are executed whenever the statement runs."""
    return (e for e in certain(s, Load) if e.lanes > 1 and e.mask is None)


def certain(s: Stmt, kind: type[E]) -> Iterator[E]:
    """The expressions of one kind that are computed whenever a statement runs: outside of inner loops and branches."""
    if isinstance(s, (For, If)):
        return
    for e in walk(*expressions(s)):
        if isinstance(e, kind):
            yield e
    for c in children(s):
        yield from certain(c, kind)
