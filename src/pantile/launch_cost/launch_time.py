"""The seconds of a launch, from its work and from what a GPU has.

Each resource of a GPU is busy for some time: the warp schedulers and the instruction pipes, L1, the banks of shared
memory, and L2 or global memory. A warp that waits for a result leaves them to other warps; the time that all resident
warps together wait is one more of these times. Blocks are distributed over multiprocessors, some of which get one more
than others. All these times overlap, but not perfectly: the launch takes the cube root of the sum of their cubes, and
some time to start.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..cost_model.result import Causes
from ..dataclass import cached_property, dataclass
from ..machine.multiprocessor import Gpu
from ..target.gpu import WARP_SIZE
from .instruction_counts import Pipe
from .sampled_launch import Work

_OVERLAP = 3  # the exponent with which the times of resources are added
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
    """The seconds that each resource is busy, by name, and the seconds until the first block begins."""

    busy: Mapping[str, float]
    start: float

    @cached_property
    def seconds(self) -> float:
        return float(self.start + sum(s**_OVERLAP for s in self.busy.values()) ** (1 / _OVERLAP))

    @property
    def causes(self) -> Causes:
        """The causes of the seconds: each resource has a share in proportion to its term in the sum of cubes."""
        total = sum(s**_OVERLAP for s in self.busy.values())
        spent = dict.fromkeys(_CAUSES.values(), 0.0)
        for name, s in self.busy.items():
            spent[_CAUSES[name]] += (self.seconds - self.start) * s**_OVERLAP / total if total else 0.0
        return Causes(**spent, overhead=self.start)

    @property
    def limit(self) -> str:
        """The resource that is busy for the longest time."""
        return max(self.busy, key=lambda name: self.busy[name])


def launch_time(gpu: Gpu, work: Work, blocks: int, threads: int, resident: int, data: int) -> LaunchTime:
    """The time of a launch of this number of blocks of threads, of which a multiprocessor holds `resident` at a time.
    `data` is the number of bytes of the call that the launch is part of."""
    has, costs = gpu.multiprocessor, gpu.costs
    cycle = 1e-9 / gpu.ghz
    of_busiest = -(-blocks // gpu.multiprocessors) / blocks * cycle  # seconds for a cycle of one multiprocessor
    count = {pipe: work.instructions.get(pipe, 0.0) for pipe in Pipe}
    products = count[Pipe.MATRIX] / costs.matrix_products + count[Pipe.WARPGROUP_MATRIX] / costs.warpgroup_products
    issued = sum(count.values()) - count[Pipe.WARPGROUP_MATRIX]  # one instruction of four warps is many products
    cycles = {
        "instructions": max(issued / has.sub_partitions, count[Pipe.FLOAT] * WARP_SIZE / has.cores),
        "integers": count[Pipe.INTEGER] / costs.integers,
        "functions": count[Pipe.CONVERT] / costs.conversions + count[Pipe.SPECIAL] / costs.approximations,
        "tensor cores": products / has.mma_per_cycle,
        "L1": count[Pipe.MEMORY] / costs.accesses + (work.read + work.written) / costs.l1_bytes,
        "shared memory": work.passes,
    }
    in_l2 = 1 / (1 + (data / (costs.l2_share * gpu.l2)) ** 4)  # the fraction of the data that is found there
    of_byte = in_l2 / costs.l2_rate + (1 - in_l2) / costs.memory_rate
    warps = min(blocks, gpu.multiprocessors * max(1, resident)) * -(-threads // WARP_SIZE)
    busy = {name: n * of_busiest for name, n in cycles.items()}
    busy["memory"] = work.touched * of_byte / gpu.bandwidth
    busy["latency"] = work.latency * costs.latency * cycle / warps
    return LaunchTime(busy, costs.launch_s)
