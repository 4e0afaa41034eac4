"""The launches of a call on a GPU, as far as they are known without running it, with their predicted times; also as
text.

blur, target sm_90: 2 kernels, 9.2 µs predicted on an H200
  kernel               time  limited by  blocks  threads  shared bytes  registers  occupancy  bytes read  written
  blur_x.y.block.0  4.63 µs      memory     250      256             0         20       100%     904,000  241,000
  blur_y.y.block.1  4.57 µs      memory     250      256             0         20       100%     720,000  238,000
  arrays of the call have 0.48 MB, memory between kernels 0.24 MB; kernels move 2.1 MB
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, ClassVar

from ..cost_model.result import Causes, Cost, StageCost, time
from ..dataclass import dataclass
from ..expr.depth import on_deep_stack
from ..ir.registers import estimated_registers
from ..launch_cost import LaunchTime, Work, launch_time, shares_in_l2, work_of
from ..runtime.launches import LaunchPlan, PlannedLaunch
from ..target import Target

if TYPE_CHECKING:
    from ..machine import Gpu, Occupancy

MOST_KERNELS = 40  # listed at most


@dataclass(frozen=True)
class KernelReport:
    """One launch: its stage, grid, blocks, and the arrays that it accesses, maybe in part. `registers` is an estimate
    per thread, and `occupancy` follows from it. `work` and `time` are None if the number of accesses depends on
    data."""

    name: str
    stage: str
    blocks: int
    threads: int
    shared_bytes: int
    registers: int
    occupancy: Occupancy
    arrays: tuple[str, ...]
    bytes: int
    work: Work | None
    time: LaunchTime | None

    @property
    def footprint(self) -> Mapping[str, int]:
        """The bytes of each array that are accessed, as far as they are known."""
        return {} if self.work is None else dict(zip(self.arrays, self.work.moved, strict=True))

    def timed(self, gpu: Gpu, in_l2: Mapping[str, float]) -> KernelReport:
        """The launch with its predicted time, given the fraction of the accesses to each array that L2 serves."""
        if self.work is None:
            return self
        shares = [in_l2[name] for name in self.arrays]
        took = launch_time(gpu, self.work, self.blocks, self.threads, self.occupancy.blocks, shares)
        return replace(self, time=took)


@dataclass(frozen=True)
class LaunchReport:
    """All launches of a call in order, the bytes of its arguments and results, and the bytes of each buffer between
    kernels, by name."""

    name: str
    target: str
    gpu: str
    kernels: tuple[KernelReport, ...]
    bytes_of_arrays: int
    between: Mapping[str, int]

    compile_seconds: ClassVar[float] = nan  # unknown

    def of_stage(self, name: str) -> LaunchReport:
        """The part of the report on the launches of a stage at root, with the memory between kernels that they
        access."""
        kernels = tuple([k for k in self.kernels if k.stage == name])
        accessed = {b: self.between[b] for k in kernels for b in k.arrays if b in self.between}
        return replace(self, kernels=kernels, between=accessed)

    @staticmethod
    def joined(parts: Sequence[LaunchReport], gpu: Gpu) -> LaunchReport:
        """The report of a call that makes the launches of all `parts`, which belong to one pipeline."""
        between = {b: size for part in parts for b, size in part.between.items()}
        return replace(parts[0], kernels=_timed(gpu, [k for part in parts for k in part.kernels]), between=between)

    @property
    def bytes_between(self) -> int:
        """The bytes of all memory between kernels."""
        return sum(self.between.values())

    @property
    def seconds(self) -> float:
        """The predicted time of the call, launched as one graph; NaN if it depends on data."""
        return sum(nan if k.time is None else k.time.seconds for k in self.kernels)

    @property
    def cost(self) -> Cost:
        """The predicted time and its causes for each stage that kernels compute; infinite if it depends on data."""
        of_stage: dict[str, Causes] = {}
        for k in self.kernels:
            causes = Causes(overhead=inf) if k.time is None else k.time.causes
            of_stage[k.stage] = of_stage.get(k.stage, Causes()) + causes
        stages = tuple([StageCost(name, c.seconds, c, 0.0, 0.0, ()) for name, c in of_stage.items()])
        total = sum(of_stage.values(), Causes())
        return Cost(self.name, total.seconds, total, stages, (), 0, 0.0)

    @property
    def head(self) -> str:
        """The report as one sentence."""
        count = f"{len(self.kernels)} kernel{'' if len(self.kernels) == 1 else 's'}"
        took = "data decide their time" if isnan(self.seconds) else f"{time(self.seconds)} predicted on {self.gpu}"
        return f"{self.name}, target {self.target}: {count}, {took}"

    @property
    def memory(self) -> str:
        """The memory of the call as one sentence."""
        return (
            f"arrays of the call have {self.bytes_of_arrays / 1e6:.3g} MB, memory between kernels "
            f"{self.bytes_between / 1e6:.3g} MB; {self._moved}"
        )

    @property
    def _moved(self) -> str:
        works = [k.work for k in self.kernels if k.work is not None]
        if len(works) < len(self.kernels):
            return "data decide how often kernels access it"
        most = "at most " if any(w.is_bound for w in works) else ""
        return f"kernels move {most}{sum(w.read + w.written for w in works) / 1e6:.3g} MB"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The column titles, then a row for each launch."""
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
    "kernel", "time", "limited by", "blocks", "threads", "shared bytes", "registers", "occupancy", "bytes read",
    "written", "in its arrays",
)  # fmt: skip


def _row(k: KernelReport) -> tuple[str, ...]:
    took = ("?", "?") if k.time is None else (time(k.time.seconds), k.time.limit)
    sizes = (f"{n:,}" for n in (k.blocks, k.threads, k.shared_bytes, k.registers))
    most = "<= " if k.work is not None and k.work.is_bound else ""
    moved = ("?", "?") if k.work is None else (f"{most}{n:,}" for n in (k.work.read, k.work.written))
    return (k.name, *took, *sizes, f"{k.occupancy.share:.0%}", *moved, f"{k.bytes:,}")


@on_deep_stack
def launched(name: str, target: Target, gpu: Gpu, plan: LaunchPlan, arrays: Mapping[str, int]) -> LaunchReport:
    """The report on a plan; `arrays` has the bytes of arguments and results by name."""
    between = {a.name: a.elements * a.dtype.bytes for a in plan.allocations}
    sizes = {**arrays, **between}
    known: dict[Any, KernelReport] = {}

    def kernel(e: PlannedLaunch) -> KernelReport:
        k, buffers = e.kernel, tuple([sizes[b] for b in e.buffers])
        launch = (k.name, e.scalars, buffers, e.blocks)  # the sweeps of a smoother are the same launch many times
        if launch not in known:
            registers = estimated_registers(k)
            occupancy = gpu.occupancy(k.threads, k.shared, registers)
            work = work_of(k, e.scalars, buffers, e.blocks)
            own = sum({b: sizes[b] for b in e.buffers}.values())
            known[launch] = KernelReport(
                k.name, e.stage, e.blocks, k.threads, k.shared, registers, occupancy, e.buffers, own, work, None
            )
        return replace(known[launch], stage=e.stage, arrays=e.buffers)

    kernels = _timed(gpu, [kernel(e) for e in plan.launches])
    described = f"{target.architecture} ({target.cpu})"
    return LaunchReport(name, described, gpu.name, kernels, sum(arrays.values()), between)


def _timed(gpu: Gpu, kernels: Sequence[KernelReport]) -> tuple[KernelReport, ...]:
    """The launches of a call with their predicted times."""
    shares = shares_in_l2([k.footprint for k in kernels], gpu.costs.l2_share * gpu.l2)
    return tuple([k.timed(gpu, in_l2) for k, in_l2 in zip(kernels, shares, strict=True)])
