"""A launch of a kernel, whose blocks are simulated in batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..errors import InternalError
from ..expr.nodes import Const, Number
from ..expr.types import INDEX
from ..ir.nodes import Alloc, Kernel, Store
from ..ir.visit import walk
from ..target.gpu import MOST_THREADS, WARP_SIZE
from ..target.kinds import Memory
from .block_batch import BlockBatch
from .counts import new_counts
from .expressions import Expressions
from .global_memory import Global
from .races import Accesses

_AT_ONCE = 1 << 16  # threads
_SHARED_AT_ONCE = 1 << 23  # bytes


def simulate(
    kernel: Kernel, scalars: Sequence[Number], buffers: Sequence[Global], blocks: int, index_bits: int = 32
) -> None:
    """Run a kernel on global memory, given its captures in order; undefined behaviour is a SimulationError."""
    if kernel.threads % WARP_SIZE or not 0 < kernel.threads <= MOST_THREADS:
        raise InternalError(f"kernel {kernel.name} has blocks of {kernel.threads} threads")
    launch = _Launch(kernel, scalars, buffers, blocks, index_bits)
    with np.errstate(all="ignore"):
        launch.run()


class _Launch:
    """The state that all batches of a launch share."""

    def __init__(
        self, kernel: Kernel, scalars: Sequence[Number], buffers: Sequence[Global], blocks: int, index_bits: int
    ) -> None:
        self._kernel, self._blocks = kernel, blocks
        self._counts = new_counts(kernel, blocks)
        self._expressions = Expressions(index_bits)
        values = zip(kernel.scalars, scalars, strict=True)
        self._scalars = {v.name: self._expressions.number(n, v.dtype) for v, n in values}
        self._buffers = dict(zip((b.name for b in kernel.buffers), buffers, strict=True))
        self._accesses = _accesses(kernel, self._buffers)

    def run(self) -> None:
        kernel = self._kernel
        first = int(kernel.min.value) if isinstance(kernel.min, Const) else int(self._scalars[kernel.min.name].item())
        allocations = [s for s in walk(kernel.body) if isinstance(s, Alloc) and s.memory is Memory.SHARED]
        unit = min([s.dtype.bytes for s in allocations], default=1)
        numbers = {id(s): k for k, s in enumerate(walk(kernel.body), 1)}
        epoch = 1
        for begin, end in _batches(self._blocks, kernel):
            block = self._expressions.number(np.arange(first + begin, first + end), INDEX)
            batch = BlockBatch(kernel, begin, end - begin, unit, epoch, self._expressions, numbers, self._counts)
            batch.run({**self._scalars, kernel.var: block}, self._buffers, self._accesses)
            epoch = batch.epoch + 1


def _batches(blocks: int, kernel: Kernel) -> Iterable[tuple[int, int]]:
    size = max(1, min(_AT_ONCE // kernel.threads, _SHARED_AT_ONCE // max(1, kernel.shared)))
    return [(begin, min(begin + size, blocks)) for begin in range(0, blocks, size)]


def _accesses(kernel: Kernel, buffers: Mapping[str, Global]) -> dict[int, Accesses]:
    """The access histories of the memories that the kernel stores to, by id."""
    stored = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    memories = {id(m): m for name, m in buffers.items() if name in stored}
    return {k: Accesses(len(m.data), kernel.threads, across_blocks=True) for k, m in memories.items()}
