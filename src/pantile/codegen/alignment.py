"""Alignment facts about a kernel's buffers. If an address is known to be a multiple of 4, 8 or 16 bytes, adjacent
elements can be accessed together.

    out[4*x .. 4*x + 3]     if out holds float32s and is aligned to 16 bytes, so is this access

All facts follow from the alignment of arrays and from known factors of strides, which callers of a program guarantee.
CPUs do not need them.
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
class AlignmentFacts:
    """Facts that hold in one kernel; nothing is known about buffers that are not listed."""

    alignments: dict[str, int] = field(default_factory=dict)  # the alignment of a buffer's address, in bytes
    classes: dict[str, Class] = field(default_factory=dict)  # congruence classes of scalars
    constant: frozenset[str] = frozenset()  # buffers that do not change while the kernel runs
    lows: dict[str, int] = field(default_factory=dict)  # lower bounds of scalars
    known: dict[int, Class] = field(default_factory=dict)  # memo by node id, valid for the current `classes`
    alive: list[Expr] = field(default_factory=list)  # nodes whose ids are keys

    def of(self, buffer: str | None, index: Expr) -> Class:
        """The congruence class of an index."""
        if buffer not in self.alignments:
            return ANY
        self.alive.append(index)
        return congruence(index, self.classes, self.known)

    def let(self, name: str, value: Expr) -> None:
        """Record the value of a scalar."""
        if value.dtype.kind != INDEX.kind or value.lanes != 1:
            return
        if self.alignments:
            self._classify(name, congruence(value, self.classes))
        self._begin(name, value)

    def loop(self, name: str, low: Expr) -> None:
        """Record that a scalar counts up from a value."""
        if name in self.classes:
            self._classify(name, ANY)
        self._begin(name, low)

    def _classify(self, name: str, known: Class) -> None:
        """Record the class of a scalar. If it has changed, the memo is dropped: versions of the same code bind the same
        names and share nodes."""
        if self.classes.get(name, known) != known:
            self.known.clear()
            self.alive.clear()
        self.classes[name] = known

    def least(self, e: Expr) -> int | None:
        """The known lower bound of an index."""
        return least(e, self.lows) if e.dtype.kind == INDEX.kind else None

    def _begin(self, name: str, low: Expr) -> None:
        """Record a lower bound of a scalar."""
        known = self.least(low)
        if known is None:
            self.lows.pop(name, None)
        else:
            self.lows[name] = known

    def alignment(self, buffer: str, index: Class, element: int) -> int:
        """The known alignment in bytes of an element's address; `element` is the element's size."""
        known = self.alignments.get(buffer)
        if known is None:
            return element
        modulus, r = index
        bytes_ = gcd(LONGEST_ACCESS, known, modulus * element, r * element)
        return max(element, bytes_ & -bytes_)


def alignment_facts(kernel: Kernel, program: Program, lows: dict[str, int]) -> AlignmentFacts:
    """The facts that hold in all launches of a kernel. `lows` has lower bounds of its scalars."""
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
    return AlignmentFacts(alignments, classes, _constant(kernel, launches), lows)


def _alignments(program: Program) -> dict[str, int]:
    """The alignments of the arrays of the host part."""
    arguments = {b.name: max(b.alignment, b.dtype.bytes) for b in program.buffers}
    allocations = [s for s in walk(program.body) if isinstance(s, Alloc) and s.memory is Memory.HEAP]
    return {**arguments, **{s.buffer: LONGEST_ACCESS for s in allocations}}


def _classes(program: Program) -> dict[str, Class]:
    """The congruence classes of the scalars of the host part."""
    classes: dict[str, Class] = {name: (factor, 0) for name, factor in program.multiples}
    for s in walk(program.body):
        if isinstance(s, Let) and s.value.dtype is INDEX and s.value.lanes == 1:
            classes[s.name] = congruence(s.value, classes)
    return classes


def _constant(kernel: Kernel, launches: Iterable[Launch]) -> frozenset[str]:
    """The buffers that the kernel does not store to under any name."""
    written = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    captured = [b.name for b in kernel.buffers]
    for launch in launches:
        given = {g for name, g in zip(captured, launch.buffers, strict=True) if name in written}
        written |= {name for name, g in zip(captured, launch.buffers, strict=True) if g in given}
    return frozenset(captured) - written
