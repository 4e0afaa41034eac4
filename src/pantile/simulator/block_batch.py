"""A batch of blocks of one launch, whose threads execute the statements of a kernel in lockstep.

Threads that do not take a branch, or that have left a loop, are inactive until the others are done. Inactive threads
are an error only at a barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..expr.nodes import Const, Expr, Number
from ..expr.types import INDEX, DType
from ..ir.atomic import combined
from ..ir.instructions import WARP_BARRIER, Effect, spec_of
from ..ir.nodes import Alloc, Block, Evaluate, For, If, Kernel, Let, Manner, Prefetch, Produce, Stmt, Store
from ..ir.visit import walk
from ..reference.operations import held
from ..target.gpu import MOST_THREADS, WARP_SIZE
from ..target.kinds import Kind, Memory
from .accesses import Around, Buffer, Entries, ThreadAccess, check_inside, failure, refuse
from .active import Active, Array
from .counts import Counts, new_counts
from .expressions import Expressions, Scope
from .global_memory import Global, GlobalInLaunch
from .instructions import check_whole
from .races import Accesses, Epochs
from .shared_memory import SharedBuffer, SharedMemory

_AT_ONCE = 1 << 16  # threads
_SHARED_AT_ONCE = 1 << 23  # bytes


class BlockBatch:
    """A batch of blocks beginning with `first_block`; `unit` is the size of the smallest element in shared memory."""

    def __init__(
        self,
        kernel: Kernel,
        first_block: int,
        blocks: int,
        unit: int,
        epoch: int,
        expressions: Expressions,
        numbers: Mapping[int, int],
        counts: Counts | None,
    ) -> None:
        self.kernel_name, self.first_block, self.epoch = kernel.name, first_block, epoch
        warps = kernel.threads // WARP_SIZE
        self.last_entries: Entries | None = None
        self.epochs = Epochs(np.full(blocks, epoch, np.int64), np.full((blocks, warps), epoch, np.int64))
        self._kernel, self._shape = kernel, (blocks, kernel.threads)
        self._expressions, self._numbers, self._counts = expressions, numbers, counts
        self._traffic = None if counts is None else counts.traffic
        self._shared = SharedMemory(blocks, kernel.shared, unit, kernel.threads)
        self._scalars: dict[str, Array] = {}
        self._buffers: dict[str, Buffer] = {}
        self._thread_loop: str | None = None
        self._number = 0  # the number of the current thread loop

    def run(
        self, scalars: Mapping[str, Array], buffers: Mapping[str, Global], accesses: Mapping[int, Accesses]
    ) -> None:
        """Run the kernel body in all threads."""
        self._scalars = dict(scalars)
        self._buffers = {
            name: GlobalInLaunch(m, accesses.get(id(m)), self, self._traffic) for name, m in buffers.items()
        }
        self._statement(self._kernel.body, Active(np.ones(self._shape, np.bool_)))

    def _statement(self, s: Stmt, active: Active) -> None:
        run = _STATEMENTS.get(type(s))
        if run is None:
            raise InternalError(f"no thread can do a {type(s).__name__}, which is in kernel {self.kernel_name}")
        run(self, s, active)

    def _value(self, e: Expr, active: Active) -> Array:
        prepared = self._expressions(e)
        if self._counts is not None:
            for kind, number in prepared.operations.items():
                self._counts.operations[kind] += number * active.count
        return prepared.value(Scope(self._scalars, self._buffers, active, self))

    def _let(self, s: Let, active: Active) -> None:
        self._scalars[s.name] = self._value(s.value, active)
        self._statement(s.body, active)

    def _block(self, s: Block, active: Active) -> None:
        for c in s.stmts:
            self._statement(c, active)

    def _if(self, s: If, active: Active) -> None:
        condition = self._value(s.condition, active)
        if condition.size == 1:
            taken = s.then if condition.item() else s.otherwise
            if taken is not None:
                self._statement(taken, active)
            return
        then, otherwise = active.where(condition), active.where(~condition)
        if then.count:
            self._statement(s.then, active if then.count == active.count else then)
        if s.otherwise is not None and otherwise.count:
            self._statement(s.otherwise, active if otherwise.count == active.count else otherwise)

    def _for(self, s: For, active: Active) -> None:
        if s.kind is Kind.THREAD:
            self._threads(s, active)
            return
        if s.kind is not Kind.SERIAL:
            raise InternalError(f"loop {s.var} of kernel {self.kernel_name} is {s.kind}")
        first, extent = self._value(s.min, active), self._value(s.extent, active)
        most = int(extent.item() if extent.size == 1 else np.broadcast_to(extent, self._shape)[active.mask].max())
        for k in range(most):
            inside = active if extent.size == 1 else active.where(k < extent)
            self._scalars[s.var] = first + first.dtype.type(k)
            self._statement(s.body, active if inside.count == active.count else inside)

    def _threads(self, s: For, active: Active) -> None:
        """Run a thread loop: thread t takes iterations t, t + threads, t + 2*threads, and so on."""
        if self._thread_loop is not None or not isinstance(s.extent, Const):
            raise InternalError(f"the threads of loop {s.var} are in another loop of threads, or know not how often")
        self._thread_loop, self._number = s.var, self._numbers[id(s)]
        number = np.arange(self._shape[1]).reshape(1, -1)
        first = self._value(s.min, active)
        for start in range(0, int(s.extent.value), self._shape[1]):
            inside = active.where(start + number < int(s.extent.value))
            if inside.count:
                self._scalars[s.var] = first + (start + number).astype(first.dtype)
                self._statement(s.body, active if inside.count == active.count else inside)
        self._thread_loop = None

    def _store(self, s: Store, active: Active) -> None:
        (index,) = (self._value(i, active) for i in s.indices)
        if s.manner is Manner.ATOMIC:
            name, term = combined(s)
            access = ThreadAccess(index, None, 1, active)
            self._buffers[s.buffer].combine(access, self._value(term, active), name)
            return
        value = self._value(s.value, active)
        mask = None if s.mask is None else self._value(s.mask, active)
        access = ThreadAccess(index, mask, s.indices[0].lanes, active)
        loop = self._numbers[id(s)] if self._thread_loop is None else self._number
        buffer = self._buffers[s.buffer]
        if s.manner is not Manner.ASYNCHRONOUS:
            buffer.store(access, value, loop)
        elif isinstance(buffer, SharedBuffer):
            buffer.store(access, value, loop, asynchronous=True)
        else:
            raise InternalError(f"{s.buffer} of kernel {self.kernel_name} is not in shared memory, and copied to")

    def _alloc(self, s: Alloc, active: Active) -> None:
        if not isinstance(s.size, Const) or not isinstance(s.offset, (Const, type(None))):
            raise InternalError(f"{s.buffer} of kernel {self.kernel_name} has no constant size and place")
        elements, offset = int(s.size.value), 0 if s.offset is None else int(s.offset.value)
        if s.memory is Memory.SHARED:
            made: Buffer = SharedBuffer(self._shared, s.buffer, s.dtype, elements, offset, self, self._traffic, s.apart)
        elif s.memory in (Memory.STACK, Memory.REGISTER):
            made = Private(s.buffer, s.dtype, elements, self._shape, self)
        else:
            raise InternalError(f"{s.buffer} of kernel {self.kernel_name} is in {s.memory}")
        self._buffers[s.buffer] = made
        self._statement(s.body, active)

    def _evaluate(self, s: Evaluate, active: Active) -> None:
        run = _EFFECTS.get(spec_of(s.value.name).effect)
        if run is None:
            raise InternalError(f"{s.value} of kernel {self.kernel_name} does nothing")
        run(self, [int(a.value) for a in s.value.args if isinstance(a, Const)], active)

    def _wait_group(self, args: list[int], active: Active) -> None:
        self._shared.copies.wait(active, args[0], self.epochs, self._shared.accesses)

    def _barrier(self, _: list[int], active: Active) -> None:
        if self._thread_loop is not None:
            raise failure(self, 0, None, f"there is a barrier in loop {self._thread_loop}, which threads leave apart")
        some, all_ = active.mask.any(axis=1), active.mask.all(axis=1)
        if (some != all_).any():
            block = int(np.argmax(some != all_))
            absent = int(np.argmin(active.mask[block]))
            present = int(np.argmax(active.mask[block]))
            text = f"waits at a barrier that thread {absent} does not come to"
            raise failure(self, block, present, text)
        self.epoch += 1
        self.epochs.block[all_] = self.epochs.warp[all_] = self.epoch
        if self._counts is not None:
            self._counts.barriers += int(all_.sum())

    def _warp_barrier(self, _: list[int], active: Active) -> None:
        self.epoch += 1
        self.epochs.warp[check_whole(spec_of(WARP_BARRIER.value.name), active, self)] = self.epoch


_STATEMENTS: dict[type[Stmt], Callable[[BlockBatch, Any, Active], None]] = {
    Let: BlockBatch._let,
    Block: BlockBatch._block,
    Produce: lambda batch, s, active: batch._statement(s.body, active),
    If: BlockBatch._if,
    For: BlockBatch._for,
    Store: BlockBatch._store,
    Alloc: BlockBatch._alloc,
    Prefetch: lambda batch, s, active: None,  # it has no visible effect
    Evaluate: BlockBatch._evaluate,
}
_EFFECTS: dict[Effect, Callable[[BlockBatch, list[int], Active], None]] = {
    Effect.BARRIER: BlockBatch._barrier,
    Effect.WARP_BARRIER: BlockBatch._warp_barrier,
    Effect.COMMIT_GROUP: lambda batch, _, active: batch._shared.copies.end_group(active),
    Effect.WAIT_GROUP: BlockBatch._wait_group,
    Effect.FENCE_PROXY: lambda batch, _, active: batch._shared.fence_proxy(active),
}


class Private:
    """A buffer that is private to each thread. It stores values as they are computed, since no other code reads it."""

    def __init__(self, name: str, dtype: DType, elements: int, shape: tuple[int, int], around: Around) -> None:
        self._name, self._dtype, self._elements, self._around = name, dtype, elements, around
        self._data = np.zeros((elements, *shape), held(dtype))
        self._written = np.zeros((elements, *shape), np.bool_)

    def load(self, access: ThreadAccess) -> Array:
        k = self._same_for_all(access, "read")
        if k is not None:
            written, value = self._written[k], self._data[k].copy()
        else:
            place = self._place(access)
            written, value = self._written[place], self._data[place]
        if not written.all():
            why = "of registers, which the thread has not written"
            refuse(self._around, access, ~written, lambda k: f"{self._name} is read at element {k} {why}")
        return access.masked(value, self._dtype)

    def store(self, access: ThreadAccess, value: Array, loop: int) -> None:
        k = self._same_for_all(access, "written")
        if k is not None and access.mask is None:
            np.copyto(self._data[k], value, where=access.active.mask)
            self._written[k] |= access.active.mask
            return
        touch = access.touch()
        place = (touch.element, touch.block, touch.thread)
        self._data[place] = touch.values(value)
        self._written[place] = True

    def combine(self, access: ThreadAccess, value: Array, name: str) -> None:
        raise failure(self._around, 0, None, f"{self._name} is combined atomically, and is each thread's own")

    def _same_for_all(self, access: ThreadAccess, action: str) -> int | None:
        """Check the bounds of an access. Return the one element that all threads access, if the index is uniform."""
        if access.element.size == 1 and access.lanes == 1 and 0 <= (k := int(access.element.item())) < self._elements:
            return k
        check_inside(self._around, access, self._elements, f"{self._name} is {action}", "registers")
        return None

    def _place(self, access: ThreadAccess) -> tuple[Array, Array, Array]:
        """The position in `_data` of each lane of each thread; arbitrary for inactive lanes."""
        blocks, threads = self._data.shape[1:]
        inner = (1,) * (len(access.shape) - 2)
        return (
            access.element.clip(0, self._elements - 1),
            np.arange(blocks).reshape(-1, 1, *inner),
            np.arange(threads).reshape(1, -1, *inner),
        )


def simulate(
    kernel: Kernel, scalars: Sequence[Number], buffers: Sequence[Global], blocks: int, index_bits: int = 32
) -> None:
    """Run a kernel on global memory; `scalars` and `buffers` are its captures in order. Undefined behavior raises a
    SimulationError."""
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
    """The access histories of the memories that the kernel stores to, by the id of the memory."""
    stored = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    memories = {id(m): m for name, m in buffers.items() if name in stored}
    return {k: Accesses(len(m.data), kernel.threads, across_blocks=True) for k, m in memories.items()}
