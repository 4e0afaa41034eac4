"""The launches of a call on a GPU, as far as they are known without running it; also as text. No time is predicted.

blur, target sm_90: 2 kernels; no time is predicted for GPUs
  kernel            blocks  threads  shared bytes  registers  occupancy  bytes read  written  in its arrays
  blur_x.y.block.0     250      256             0         20       100%     904,000  241,000        482,000
  blur_y.y.block.1     250      256             0         20       100%     720,000  238,000        478,000
  arrays of the call have 0.48 MB, memory between kernels 0.24 MB; kernels move 2.1 MB
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

from .. import machine as machines
from .. import simulator
from ..dataclass import dataclass
from ..expr.depth import on_deep_stack
from ..ir.registers import estimated_registers
from ..runtime.launches import LaunchPlan, PlannedLaunch
from ..target import Target

if TYPE_CHECKING:
    from ..machine import Occupancy
    from ..simulator import MovedBytes

MOST_KERNELS = 40  # that are listed


@dataclass(frozen=True)
class KernelReport:
    """One launch: its grid, its blocks, and its arrays, which it may access in part. `registers` of a thread are
    estimated, and `occupancy` follows from them. `moved` is what its warps request of global memory, at each access
    anew; None if data decide how often something is accessed."""

    name: str
    blocks: int
    threads: int
    shared_bytes: int
    registers: int
    occupancy: Occupancy
    arrays: tuple[str, ...]
    bytes: int
    moved: MovedBytes | None


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
            f"{self.bytes_between / 1e6:.3g} MB; {self._moved}"
        )

    @property
    def _moved(self) -> str:
        moved = [k.moved for k in self.kernels if k.moved is not None]
        if len(moved) < len(self.kernels):
            return "data decide how often kernels access it"
        most = "at most " if any(m.is_bound for m in moved) else ""
        return f"kernels move {most}{sum(m.read + m.written for m in moved) / 1e6:.3g} MB"

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


TITLES = (
    "kernel", "blocks", "threads", "shared bytes", "registers", "occupancy", "bytes read", "written", "in its arrays",
)  # fmt: skip


def _row(k: KernelReport) -> tuple[str, ...]:
    sizes = (f"{n:,}" for n in (k.blocks, k.threads, k.shared_bytes, k.registers))
    most = "<= " if k.moved is not None and k.moved.is_bound else ""
    moved = ("?", "?") if k.moved is None else (f"{most}{n:,}" for n in k.moved[:2])
    return (k.name, *sizes, f"{k.occupancy.share:.0%}", *moved, f"{k.bytes:,}")


@on_deep_stack
def launched(name: str, target: Target, plan: LaunchPlan, arrays: Mapping[str, int]) -> LaunchReport:
    """The report of a plan; `arrays` has the bytes of arguments and results by name."""
    between = {a.name: a.elements * a.dtype.bytes for a in plan.allocations}
    sizes = {**arrays, **between}
    moved: dict[Any, MovedBytes | None] = {}

    def kernel(e: PlannedLaunch) -> KernelReport:
        k, registers, buffers = e.kernel, estimated_registers(e.kernel), tuple([sizes[b] for b in e.buffers])
        launch = (k.name, e.scalars, buffers, e.blocks)  # the sweeps of a smoother are the same launch many times
        if launch not in moved:
            moved[launch] = simulator.moved_bytes(k, e.scalars, buffers, e.blocks)
        return KernelReport(
            k.name,
            e.blocks,
            k.threads,
            k.shared,
            registers,
            machines.occupancy_of(target.cpu, k.threads, k.shared, registers),
            e.buffers,
            sum({b: sizes[b] for b in e.buffers}.values()),
            moved[launch],
        )

    kernels = tuple(kernel(e) for e in plan.launches)
    described = f"{target.architecture} ({target.cpu})"
    return LaunchReport(name, described, kernels, sum(arrays.values()), sum(between.values()))
