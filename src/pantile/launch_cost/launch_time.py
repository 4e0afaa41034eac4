"""The seconds of a launch, from its work and from what a GPU has.

Each resource of a GPU is busy for some time: the warp schedulers and the instruction pipes, L1, the banks of shared
memory, and L2 or global memory. A warp that waits for a result leaves them to other warps; the time that all resident
warps together wait is one more of these times. Blocks are distributed over multiprocessors, some of which get one more
than others. All these times overlap, but not perfectly: the launch takes the cube root of the sum of their cubes. If
all of its blocks run at once (one wave), they load and compute at the same times, and overlap less: the exponent is 2.
The last of several waves keeps a GPU busy for as long as the others, but not all of it. Some time passes until the
first block begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf

from ..cost_model.result import Causes
from ..dataclass import cached_property, dataclass
from ..machine.multiprocessor import Gpu
from ..target.gpu import WARP_SIZE
from .instruction_counts import Pipe
from .sampled_launch import Work

_OVERLAP, _OVERLAP_IN_ONE_WAVE = 3.0, 2.0  # the exponents with which the times of resources are added
# The cause of each resource's time, as the cost of a schedule is explained.
_CAUSES = {
    "instructions": "arithmetic",
    "integers": "arithmetic",
    "functions": "arithmetic",
    "tensor cores": "arithmetic",
    "L1": "loads",
    "shared memory": "loads",
    "memory": "traffic",
    "latency": "stalls",
}


@dataclass(frozen=True)
class LaunchTime:
    """The seconds that each resource is busy, by name, and the seconds until the first block begins. Of `waves` of
    blocks, the last one takes part of the time of a whole one, even if it is smaller: `last_wave` of the rest."""

    busy: Mapping[str, float]
    start: float
    waves: float = inf
    last_wave: float = 0.0

    @cached_property
    def seconds(self) -> float:
        together = sum(s**self._exponent for s in self.busy.values()) ** (1 / self._exponent)
        rest = ceil(self.waves) / self.waves - 1 if 1 < self.waves < inf else 0.0
        return float(self.start + together * (1 + self.last_wave * rest))

    @property
    def _exponent(self) -> float:
        return _OVERLAP - (_OVERLAP - _OVERLAP_IN_ONE_WAVE) / max(1.0, self.waves)

    @property
    def causes(self) -> Causes:
        """The causes of the seconds: each resource has a share in proportion to its power in their sum."""
        total = sum(s**self._exponent for s in self.busy.values())
        spent = dict.fromkeys(_CAUSES.values(), 0.0)
        for name, s in self.busy.items():
            spent[_CAUSES[name]] += (self.seconds - self.start) * s**self._exponent / total if total else 0.0
        return Causes(**spent, overhead=self.start)

    @property
    def limit(self) -> str:
        """The resource that is busy for the longest time."""
        return max(self.busy, key=lambda name: self.busy[name])


def launch_time(gpu: Gpu, work: Work, blocks: int, threads: int, resident: int, in_l2: Sequence[float]) -> LaunchTime:
    """The time of a launch of this number of blocks of threads, of which a multiprocessor holds `resident` at a time.
    `in_l2` is the fraction of the accesses to each buffer that L2 serves."""
    has, costs = gpu.multiprocessor, gpu.costs
    cycle = 1e-9 / gpu.ghz
    of_busiest = -(-blocks // gpu.multiprocessors) / blocks * cycle  # seconds for a cycle of one multiprocessor
    count = {pipe: work.instructions.get(pipe, 0.0) for pipe in Pipe}
    products = count[Pipe.MATRIX] / costs.matrix_products + count[Pipe.WARPGROUP_MATRIX] / costs.warpgroup_products
    issued = sum(count.values()) - count[Pipe.WARPGROUP_MATRIX]  # one instruction of four warps is many products
    fetched = max(0.0, 1 - costs.code / max(work.code, 1))  # the fraction of instructions that caches do not hold
    issuing = max(issued / has.sub_partitions, count[Pipe.FLOAT] * WARP_SIZE / has.cores)
    cycles = {
        "instructions": issuing * (1 + fetched * costs.fetch),
        "integers": count[Pipe.INTEGER] / costs.integers,
        "functions": count[Pipe.CONVERT] / costs.conversions + count[Pipe.SPECIAL] / costs.approximations,
        "tensor cores": products / has.mma_per_cycle,
        "L1": count[Pipe.MEMORY] / costs.accesses + (work.read + work.written) / costs.l1_bytes,
        "shared memory": work.passes,
    }
    at_once = gpu.multiprocessors * max(1, resident)
    busy = {name: n * of_busiest for name, n in cycles.items()}
    moved = zip(work.moved, in_l2, strict=True)
    full_rate = sum(n * (share / costs.l2_rate + (1 - share) / costs.memory_rate) for n, share in moved)
    busy["memory"] = full_rate / gpu.bandwidth
    warps = min(blocks, at_once) * -(-threads // WARP_SIZE)
    busy["latency"] = work.latency * costs.latency * cycle / warps
    return LaunchTime(busy, costs.launch_s, blocks / at_once, costs.last_wave)
