"""Code for calls of one kind on a GPU: the launches are planned once, and started for each call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UserError
from ...expr.nodes import Var
from ...expr.types import DType
from ...expr.visit import variables
from ...forks import Lock
from ...ir.nodes import Launch as LaunchStmt
from ...ir.nodes import Program, Stmt
from ...ir.visit import expressions, walk
from ...target.description import INDEX_BITS
from ..arguments import AnyArray, NDArray, element_strides
from ..launches import LaunchPlan, check_near, launches, scalars_of
from . import graphs, staging
from .code import CudaCode, DeviceFunction, Functions, resident_blocks
from .device import Device, current, device
from .graphs import CudaGraph, KernelLaunch, Launcher
from .memory import pool
from .order import dependencies, places, rounded
from .parameters import LaunchArguments, Parameters, ParamSlot
from .views import Constant, View

_MOST_RUNS = 16  # plans per kind of call, one for each combination of the params that affect launches
_MOST_GRAPHS = 4  # streams with a graph of their own


class CudaExecutable:
    """The code of one variant of a pipeline. Its kernels are loaded on a device at the first call there."""

    def __init__(self, code: CudaCode) -> None:
        self.code = code
        self.functions = Functions(code)
        computed = set(_host_variables(code.program))
        self.deciding = tuple(k for k, a in enumerate(code.program.scalars) if a.name in computed)

    def prepare(
        self,
        inputs: Sequence[AnyArray],
        outputs: Sequence[AnyArray],
        numbers: Sequence[DType],
        labels: Mapping[str, str],
    ) -> CudaCall:
        arrays = [*inputs, *outputs]
        names = [labels.get(b.name, b.name) for b in self.code.program.buffers]
        _check_together(arrays, names)
        return CudaCall(self, [a.shape for a in arrays], [element_strides(a) for a in arrays])


class CudaCall:
    """The launches of one kind of call."""

    enter = None

    def __init__(
        self, loaded: CudaExecutable, shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]]
    ) -> None:
        self._loaded, self._shapes, self._strides, self._deciding = loaded, shapes, strides, loaded.deciding
        self._inputs = sum(not b.writable for b in loaded.code.program.buffers)
        self._runs: dict[tuple[object, ...], PlanExecution] = {}
        self._lock = Lock()

    def run(self, arrays: Sequence[Any], numbers: Sequence[Any], threads: int) -> bool:
        """Start the launches in the caller's stream, and wait for them if the call uses host arrays."""
        addresses: list[int] = []
        library = None
        for a in arrays:
            if type(a) is not View or a.stream is not None or (library is not None and a.library is not library):
                return self._run_any(arrays, numbers)
            library = a.library
            addresses.append(a.address)
        # All arrays belong to one library, and are ready in its current stream.
        assert library is not None
        on = device(arrays[0].layout.ordinal)
        entered = on.enter()
        try:
            self._run_for(on, (), numbers).start(addresses, numbers, library.stream(on.ordinal))
        finally:
            if entered:
                on.leave(entered)
        return False

    def _run_any(self, arrays: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """Run a call with host arrays, which are copied; with tables, which are copied to each device once; or with
        arrays of several libraries, whose streams wait for each other."""
        views = [a for a in arrays if type(a) is View]
        staged = tuple([k for k, a in enumerate(arrays) if type(a) is not View and type(a) is not Constant])
        on = device(views[0].ordinal) if views else current()
        entered = on.enter()
        try:
            streams_of = [_stream_of(a) for a in views] or [on.own_stream()]
            stream, others = streams_of[0], set(streams_of[1:]) - {streams_of[0]}
            addresses = [a.address if type(a) is View else a.on(on) if type(a) is Constant else 0 for a in arrays]
            run = self._run_for(on, staged, numbers)
            if others:
                on.wait_for(others, stream)
            if staged:
                self._with_copies(run, arrays, addresses, numbers, stream)
            else:
                run.start(addresses, numbers, stream)
            for other in others:
                on.wait_for([stream], other)
        finally:
            on.leave(entered)
        return bool(staged)

    def _with_copies(
        self, run: PlanExecution, arrays: Sequence[Any], addresses: list[int], numbers: Sequence[Any], stream: int
    ) -> None:
        """Copy host arrays to device memory of this call, run the launches, and copy results back."""
        on = run.device
        kept: list[NDArray] = []
        results: list[tuple[NDArray, NDArray]] = []
        with run.memory(stream) as memory:
            for k, at in run.staged:
                addresses[k] = memory + at
                if k < self._inputs:
                    kept.append(staging.send(on, arrays[k], memory + at, stream))
            run.start_in(memory, addresses, numbers, stream)
            for k, at in run.staged:
                if k >= self._inputs:
                    results.append((arrays[k], staging.fetch(on, arrays[k], memory + at, stream)))
        on.wait(stream)
        for given, received in results:
            staging.arrived(given, received)

    def _run_for(self, on: Device, staged: tuple[int, ...], numbers: Sequence[Any]) -> PlanExecution:
        key: tuple[object, ...] = (on.ordinal, staged)
        if self._deciding:
            key += tuple([numbers[k] for k in self._deciding])
        run = self._runs.get(key)
        if run is None:
            with self._lock:
                run = self._runs.get(key)
                if run is None:
                    if len(self._runs) >= _MOST_RUNS:
                        self._runs.clear()
                    run = self._runs[key] = self._plan(on, staged, numbers)
        return run

    def _plan(self, on: Device, staged: tuple[int, ...], numbers: Sequence[Any]) -> PlanExecution:
        program = self._loaded.code.program
        given: list[Any] = [n if k in self._loaded.deciding else ParamSlot(k) for k, n in enumerate(numbers)]
        functions = self._loaded.functions.on(on)
        scalars = scalars_of(program, self._shapes, self._strides, given)
        plan = launches(program, scalars, lambda k: resident_blocks(on, functions[k.name]))
        if self._loaded.code.index_bits < INDEX_BITS:
            check_near(plan)
        sizes = [(k, _bytes(self._shapes[k], program.buffers[k].dtype)) for k in staged]
        return PlanExecution(on, functions, plan, program, sizes)


class PlanExecution:
    """One plan on one device, with its driver handles."""

    def __init__(
        self,
        on: Device,
        functions: Mapping[str, DeviceFunction],
        plan: LaunchPlan,
        program: Program,
        staged: Sequence[tuple[int, int]],
    ) -> None:
        self.device = on
        at, size = places(plan)
        self.staged: list[tuple[int, int]] = []  # the numbers of host arrays, and their offsets in the call's memory
        for k, n in staged:
            self.staged.append((k, size))
            size += rounded(n)
        self.size = size
        number = {b.name: k for k, b in enumerate(program.buffers)}
        memory = len(program.buffers)  # the number of the call's own memory, after all arguments
        self._launches = [KernelLaunch(functions[one.kernel.name], one.blocks) for one in plan.launches]
        for launch in self._launches:
            _check_blocks(on, launch)
        self._given = [
            LaunchArguments(
                launch.function.entry,
                one.scalars,
                tuple((memory, at[b]) if b in at else (number[b], 0) for b in one.buffers),
            )
            for launch, one in zip(self._launches, plan.launches, strict=True)
        ]
        where = {a.name: (at[a.name], at[a.name] + a.elements * a.dtype.bytes) for a in plan.allocations}
        writes = [launch.function.writes for launch in self._launches]
        self._waits = dependencies(plan.launches, writes, where) if len(plan.launches) > 1 else [[]]
        self._is_several = len(self._launches) > 1
        self._launcher = Launcher(on, self._launches, Parameters(self._given))
        self._graphs: dict[int, CudaGraph] = {}
        self._lock = Lock()

    def start(self, addresses: list[int], numbers: Sequence[Any], stream: int) -> None:
        """Allocate the memory of this call and start all launches."""
        if not self.size:
            self.start_in(0, addresses, numbers, stream)
            return
        with self.memory(stream) as memory:
            self.start_in(memory, addresses, numbers, stream)

    def memory(self, stream: int) -> _Memory:
        """The memory of a call, allocated for the duration of a with statement."""
        return _Memory(self.device, self.size, stream)

    def start_in(self, memory: int, addresses: list[int], numbers: Sequence[Any], stream: int) -> None:
        """Start all launches with allocated memory. This copies their parameters, so the next call may change them."""
        by_graph = self._is_several and graphs.enabled and not self.device.is_captured(stream)
        addresses.append(memory)
        with self._lock:
            starter = self._graph(stream) if by_graph else self._launcher
            starter.start(addresses, numbers, stream)

    def _graph(self, stream: int) -> CudaGraph:
        graph = self._graphs.get(stream)
        if graph is None:
            if len(self._graphs) >= _MOST_GRAPHS:
                self._graphs.clear()
            graph = self._graphs[stream] = CudaGraph(self.device, self._launches, Parameters(self._given), self._waits)
        return graph


class _Memory:
    """Device memory that is allocated inside a with statement."""

    def __init__(self, on: Device, size: int, stream: int) -> None:
        self._pool, self._size, self._stream = pool(on), size, stream
        self._address = 0

    def __enter__(self) -> int:
        self._address = self._pool.take(self._size, self._stream) if self._size else 0
        return self._address

    def __exit__(self, *_: object) -> None:
        if self._address:
            self._pool.give(self._address, self._stream)


def _stream_of(a: View) -> int:
    return a.library.stream(a.ordinal) if a.stream is None else a.stream


def _bytes(shape: Sequence[int], t: DType) -> int:
    return int(np.prod(shape, dtype=object)) * t.bytes


def _host_variables(program: Program) -> Iterator[str]:
    """The names that the host part uses for anything but kernel arguments."""
    for s in walk(program.body):
        for e in _host_expressions(s):
            yield from variables(e)


def _host_expressions(s: Stmt) -> list[Any]:
    if isinstance(s, LaunchStmt):
        return [e for e in (*s.scalars, s.extent) if not isinstance(e, Var) or e is s.extent]
    return list(expressions(s))


# ---- checks


def _check_together(arrays: Sequence[Any], names: Sequence[str]) -> None:
    views = [(a, name) for a, name in zip(arrays, names, strict=True) if type(a) is View]
    for a, name in views[1:]:
        first, of = views[0]
        if a.ordinal != first.ordinal:
            raise UserError(
                f"{name} is on GPU {a.ordinal}, but {of} on GPU {first.ordinal}; a call runs on one GPU: copy one of "
                "them"
            )


def _check_blocks(on: Device, launch: KernelLaunch) -> None:
    if launch.blocks > on.most_blocks:
        raise UserError(
            f"kernel {launch.function.entry.kernel} would have {launch.blocks:,} blocks, but {on} runs up to "
            f"{on.most_blocks:,}; make its blocks larger"
        )
