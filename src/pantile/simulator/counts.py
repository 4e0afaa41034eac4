"""Counters of a launch, which let one compare kernels without a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from ..dataclass import dataclass
from ..ir.nodes import Kernel
from ..ir.registers import estimated_registers
from ..machine import Occupancy, occupancy_of
from .traffic import Traffic


@dataclass
class Counts:
    """Counters of one launch of a kernel over all blocks. `registers` per thread is an estimate unless it is set."""

    kernel: str
    blocks: int
    threads: int
    shared_bytes: int
    registers: int
    traffic: Traffic = field(default_factory=Traffic)
    barriers: int = 0  # barriers executed, summed over blocks
    operations: Counter[str] = field(default_factory=Counter)  # operations of threads, by kind

    @staticmethod
    def of(kernel: Kernel, blocks: int) -> Counts:
        return Counts(kernel.name, blocks, kernel.threads, kernel.shared, estimated_registers(kernel))

    def occupancy(self, capability: str = "sm_90") -> Occupancy:
        """The occupancy of this launch on a GPU; `capability` is its LLVM name, such as sm_90."""
        return occupancy(self.threads, self.shared_bytes, self.registers, capability)


def occupancy(threads: int, shared: int, registers: int, capability: str = "sm_90") -> Occupancy:
    """The occupancy for this number of threads per block, bytes of shared memory per block, and registers per
    thread."""
    return occupancy_of(capability, threads, shared, registers)


_collecting: ContextVar[list[Counts] | None] = ContextVar("counts", default=None)


@contextmanager
def counting() -> Iterator[list[Counts]]:
    """Collect the counters of all launches simulated in this context, in order. Outside of it, nothing is counted."""
    counts: list[Counts] = []
    before = _collecting.set(counts)
    try:
        yield counts
    finally:
        _collecting.reset(before)


def new_counts(kernel: Kernel, blocks: int) -> Counts | None:
    """The counters of a new launch, if they are being collected."""
    collected = _collecting.get()
    if collected is None:
        return None
    collected.append(Counts.of(kernel, blocks))
    return collected[-1]


def table(counts: Sequence[Counts], capability: str = "sm_90") -> str:
    """Format the counters as a table with a line for each launch."""
    rows = [_HEAD, *(_row(c, capability) for c in counts)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


_HEAD = (
    "kernel", "blocks", "threads", "sectors read", "written", "of bytes", "shared passes", "conflicts", "barriers",
    "operations", "shared bytes", "registers", "occupancy",
)  # fmt: skip


def _row(c: Counts, capability: str) -> tuple[str, ...]:
    t, room = c.traffic, c.occupancy(capability)
    numbers = (
        c.blocks,
        c.threads,
        t.global_sectors["load"],
        t.global_sectors["store"],
        t.global_bytes.total(),
        t.shared_passes.total(),
        t.bank_conflicts.total(),
        c.barriers,
        c.operations.total(),
        c.shared_bytes,
        c.registers,
    )
    return (c.kernel, *(f"{n:,}" for n in numbers), f"{room.share:.0%} by {room.limit}")
