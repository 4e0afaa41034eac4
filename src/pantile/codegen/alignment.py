"""What is known of where a kernel's buffers lie, so that neighbouring elements are accessed at once: addresses that are
multiples of 4, 8 or 16 bytes.

    out[4*x .. 4*x + 3]     with out at a multiple of 16 bytes and float32s in it: a multiple of 16 bytes, too

All of it follows from what is known of the arguments of a program, which whoever calls it makes sure of: the alignment
of arrays, and which strides are multiples of something. CPUs need none of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import reduce
from math import gcd

from ..dataclass import dataclass
from ..expr.congruence import ANY, Class, congruence, either
from ..expr.nodes import Expr
from ..expr.types import INDEX
from ..ir.nodes import Alloc, Kernel, Launch, Let, Program, Store
from ..ir.visit import walk, walk_program
from ..target.gpu import LONGEST_ACCESS
from ..target.kinds import Memory
from .nonnegative import least


@dataclass
class Places:
    """Facts that hold in one kernel; of buffers that are not listed nothing is known."""

    alignments: dict[str, int] = field(default_factory=dict)  # bytes that a buffer's address is a multiple of
    classes: dict[str, Class] = field(default_factory=dict)  # of scalars
    constant: frozenset[str] = frozenset()  # buffers that do not change while the kernel runs
    lows: dict[str, int] = field(default_factory=dict)  # what scalars are not below
    known: dict[int, Class] = field(default_factory=dict)  # of nodes, by their ids, as long as `classes` are the same
    alive: list[Expr] = field(default_factory=list)  # those

    def of(self, buffer: str | None, index: Expr) -> Class:
        """What is known of an index."""
        if buffer not in self.alignments:
            return ANY
        self.alive.append(index)
        return congruence(index, self.classes, self.known)

    def let(self, name: str, value: Expr) -> None:
        """A scalar is named."""
        if value.dtype.kind != INDEX.kind or value.lanes != 1:
            return
        if self.alignments:
            self._classify(name, congruence(value, self.classes))
        self._begin(name, value)

    def loop(self, name: str, low: Expr) -> None:
        """A scalar counts up from there."""
        if name in self.classes:
            self._classify(name, ANY)
        self._begin(name, low)

    def _classify(self, name: str, known: Class) -> None:
        """Versions of the same code give the same names, and share nodes."""
        if self.classes.get(name, known) != known:
            self.known.clear()
            self.alive.clear()
        self.classes[name] = known

    def least(self, e: Expr) -> int | None:
        """What an index is known not to be below."""
        return least(e, self.lows) if e.dtype.kind == INDEX.kind else None

    def _begin(self, name: str, low: Expr) -> None:
        """A scalar is not below that."""
        known = self.least(low)
        if known is None:
            self.lows.pop(name, None)
        else:
            self.lows[name] = known

    def alignment(self, buffer: str, index: Class, element: int) -> int:
        """Bytes that the address of an element is a multiple of, elements being of so many bytes."""
        known = self.alignments.get(buffer)
        if known is None:
            return element
        modulus, r = index
        bytes_ = gcd(LONGEST_ACCESS, known, modulus * element, r * element)
        return max(element, bytes_ & -bytes_)


def places_of(kernel: Kernel, program: Program, lows: dict[str, int]) -> Places:
    """What all launches of a kernel tell about it. `lows`: what its scalars are not below."""
    launches = [s for s in walk_program(program) if isinstance(s, Launch) and s.kernel == kernel.name]
    arrays, numbers = _alignments(program), _classes(program)
    alignments = {
        b.name: gcd(LONGEST_ACCESS, *(arrays.get(launch.buffers[k], b.dtype.bytes) for launch in launches))
        for k, b in enumerate(kernel.buffers)
    }
    classes = {
        v.name: reduce(either, [congruence(launch.scalars[k], numbers) for launch in launches])
        for k, v in enumerate(kernel.scalars)
        if v.dtype is INDEX and launches
    }
    return Places(alignments, classes, _constant(kernel, launches), lows)


def _alignments(program: Program) -> dict[str, int]:
    """Of arrays of the host part."""
    arguments = {b.name: max(b.alignment, b.dtype.bytes) for b in program.buffers}
    allocations = [s for s in walk(program.body) if isinstance(s, Alloc) and s.memory is Memory.HEAP]
    return {**arguments, **{s.buffer: LONGEST_ACCESS for s in allocations}}


def _classes(program: Program) -> dict[str, Class]:
    """Of scalars of the host part."""
    classes: dict[str, Class] = {name: (factor, 0) for name, factor in program.multiples}
    for s in walk(program.body):
        if isinstance(s, Let) and s.value.dtype is INDEX and s.value.lanes == 1:
            classes[s.name] = congruence(s.value, classes)
    return classes


def _constant(kernel: Kernel, launches: Iterable[Launch]) -> frozenset[str]:
    """Buffers that the kernel reads and nothing in it stores to, by whatever name."""
    written = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    captured = [b.name for b in kernel.buffers]
    for launch in launches:
        given = {g for name, g in zip(captured, launch.buffers, strict=True) if name in written}
        written |= {name for name, g in zip(captured, launch.buffers, strict=True) if g in given}
    return frozenset(captured) - written
