"""The launches of a call on a GPU, as far as they are known without running it; also as text. No time is predicted.

blur, target sm_90: 2 kernels; no time is predicted for GPUs
  kernel            blocks  threads  shared bytes  registers  occupancy  bytes of its arrays
  blur_x.y.block.0     250      256             0         20       100%              482,000
  blur_y.y.block.1     250      256             0         20       100%              478,000
  arrays of the call have 0.48 MB, memory between kernels 0.24 MB
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, ClassVar

from ..dataclass import dataclass
from ..ir.registers import estimated_registers
from .launches import LaunchPlan, PlannedLaunch

if TYPE_CHECKING:
    from ..machine import Occupancy

MOST_KERNELS = 40  # that are listed


@dataclass(frozen=True)
class KernelReport:
    """One launch: its grid, its blocks, and its arrays, which it may access in part. `registers` of a thread are
    estimated, and `occupancy` follows from them."""

    name: str
    blocks: int
    threads: int
    shared_bytes: int
    registers: int
    occupancy: Occupancy
    arrays: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class LaunchReport:
    """All launches of a call, in order; the bytes of its arguments and results, and of memory between kernels."""

    name: str
    target: str
    kernels: tuple[KernelReport, ...]
    bytes_of_arrays: int
    bytes_between: int

    seconds: ClassVar[float] = nan  # of a call, and of compiling: unknown
    compile_seconds: ClassVar[float] = nan

    @property
    def head(self) -> str:
        """The report in a sentence."""
        count = f"{len(self.kernels)} kernel{'' if len(self.kernels) == 1 else 's'}"
        return f"{self.name}, target {self.target}: {count}; no time is predicted for GPUs"

    @property
    def memory(self) -> str:
        """The memory of the call in a sentence."""
        return (
            f"arrays of the call have {self.bytes_of_arrays / 1e6:.3g} MB, memory between kernels "
            f"{self.bytes_between / 1e6:.3g} MB"
        )

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The column titles, and a row for each launch."""
        return [TITLES, *map(_row, self.kernels)]

    def __str__(self) -> str:
        shown, rest = self.rows[: MOST_KERNELS + 1], len(self.kernels) - MOST_KERNELS
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = [
            "  ".join([f"  {row[0]:<{widths[0]}}", *(f"{n:>{w}}" for n, w in zip(row[1:], widths[1:], strict=True))])
            for row in shown
        ]
        more = [f"  and {rest} more"] if rest > 0 else []
        return "\n".join([self.head, *lines, *more, f"  {self.memory}"])

    __repr__ = __str__


TITLES = ("kernel", "blocks", "threads", "shared bytes", "registers", "occupancy", "bytes of its arrays")


def _row(k: KernelReport) -> tuple[str, ...]:
    sizes = (f"{n:,}" for n in (k.blocks, k.threads, k.shared_bytes, k.registers))
    return (k.name, *sizes, f"{k.occupancy.share:.0%}", f"{k.bytes:,}")


def launched(
    name: str, target: str, plan: LaunchPlan, arrays: Mapping[str, int], occupancy: Callable[[int, int, int], Occupancy]
) -> LaunchReport:
    """The report of a plan. `arrays` has the bytes of arguments and results by name; `occupancy` is a function of the
    threads and the shared bytes of a block and of the registers of a thread."""
    between = {a.name: a.elements * a.dtype.bytes for a in plan.allocations}
    sizes = {**arrays, **between}

    def kernel(e: PlannedLaunch) -> KernelReport:
        k, registers = e.kernel, estimated_registers(e.kernel)
        resident = occupancy(k.threads, k.shared, registers)
        return KernelReport(
            k.name, e.blocks, k.threads, k.shared, registers, resident, e.buffers, _total(sizes, e.buffers)
        )

    kernels = tuple(kernel(e) for e in plan.launches)
    return LaunchReport(name, target, kernels, sum(arrays.values()), sum(between.values()))


def _total(sizes: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(sizes[n] for n in dict.fromkeys(names))
