"""A driver without a GPU: memory is the host's, kernels are run by the simulator, and every call is noted.

A graph runs its nodes as late ones first as their dependencies allow, so that one too few is seen in the results.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pantile.codegen.entry import KernelEntry
from pantile.ir.nodes import Kernel
from pantile.runtime.arguments import from_bfloat_bits
from pantile.simulator.block_batch import simulate
from pantile.simulator.global_memory import Global

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE = 0, 1, 2, 400
# The kernels of all PTX that was made in this process, by their names in it.
MADE: dict[str, dict[str, tuple[Kernel, KernelEntry]]] = {}


class Names:
    """An enumeration: whatever is asked for is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class Struct:
    """Anything may be written into it."""


class Memory:
    """Pieces of the host's, by address."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[Any, int]] = {}

    def take(self, size: int) -> int:
        piece = ctypes.create_string_buffer(size + 256)
        ctypes.memset(piece, 0xCD, size + 256)  # what nobody has written is not zero
        address = -(-ctypes.addressof(piece) // 256) * 256
        self._pieces[address] = piece, size
        return address

    def give(self, address: int) -> None:
        del self._pieces[address]

    def held(self) -> int:
        return sum(size for _, size in self._pieces.values())

    def around(self, address: int) -> tuple[int, int]:
        """The piece that an address is in: where it begins and ends."""
        for begin, (_, size) in self._pieces.items():
            if begin <= address < begin + size:
                return begin, begin + size
        raise AssertionError(f"{address:#x} is no memory of the device")


class FakeDriver:
    """Functions as `cuda.bindings.driver` has them. `failing` has error codes for the next calls of a function."""

    def __init__(self, devices: int = 1, capacity: int = 1 << 30, capability: tuple[int, int] = (9, 0)) -> None:
        self.memory, self.host_memory = Memory(), Memory()
        self.capacity, self.capability, self.devices = capacity, capability, devices
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failing: dict[str, list[int]] = {}
        self.destroyed: set[int] = set()
        self.captured: set[int] = set()
        self.milliseconds = 1.0  # between any two events
        self.kept = 0  # bytes that a pool has not given back
        self.limits: dict[str, int] = {}
        self._current = threading.local()
        self._next = 0x1000
        self.linked_for: list[str] = []  # the targets that code was linked for, where they were given
        self._modules: dict[int, str] = {}
        self._functions: dict[int, tuple[str, str]] = {}
        self._graphs: dict[int, list[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        for name in ("CUdevice_attribute", "CUfunction_attribute", "CUpointer_attribute", "CUjit_option",
                     "CUjitInputType", "CUmemLocationType", "CUmemAllocationType", "CUmemPool_attribute",
                     "CUjit_target"):  # fmt: skip
            setattr(self, name, Names())
        self.CUmemLocation = self.CUmemPoolProps = self.CUDA_KERNEL_NODE_PARAMS = Struct
        self.cuuint64_t = int

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("cu"):
            raise AttributeError(name)
        function = getattr(type(self), "_" + name)

        def call(*args: Any) -> Any:
            with self._lock:
                self.calls.append((name, args))
                error = self.failing[name].pop(0) if self.failing.get(name) else SUCCESS
                if error:
                    return (error, *[0] * _RESULTS.get(name, 0))
                return function(self, *args)

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of a function."""
        return [args for called, args in self.calls if called == name]

    def counted(self) -> Counter[str]:
        return Counter(name for name, _ in self.calls)

    def _handle(self) -> int:
        self._next += 16
        return self._next

    # ---- devices and contexts

    def _cuInit(self, flags: int) -> Any:
        return (SUCCESS,) if self.devices else (100,)

    def _cuDriverGetVersion(self) -> Any:
        return SUCCESS, 13990  # which no driver is: code that it "made" is not taken for a real one's

    def _cuDeviceGetCount(self) -> Any:
        return SUCCESS, self.devices

    def _cuDeviceGet(self, ordinal: int) -> Any:
        return SUCCESS, ordinal

    def _cuDeviceGetName(self, length: int, handle: int) -> Any:
        return SUCCESS, b"Fake GPU\0\0\0"

    def _cuDeviceTotalMem(self, handle: int) -> Any:
        return SUCCESS, self.capacity

    def _cuDeviceGetAttribute(self, name: str, handle: int) -> Any:
        known = {
            "COMPUTE_CAPABILITY_MAJOR": self.capability[0], "COMPUTE_CAPABILITY_MINOR": self.capability[1],
            "MULTIPROCESSOR_COUNT": 4, "MAX_THREADS_PER_BLOCK": 1024, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
            "MAX_GRID_DIM_X": (1 << 31) - 1, "MEMORY_POOLS_SUPPORTED": 1, "CLOCK_RATE": 1980000,
            "MEMORY_CLOCK_RATE": 2619000, "GLOBAL_MEMORY_BUS_WIDTH": 5120, "L2_CACHE_SIZE": 50 << 20,
            "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
            "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536, "MAX_REGISTERS_PER_BLOCK": 65536,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
        }  # fmt: skip
        return SUCCESS, (known | self.limits)[name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def _cuDevicePrimaryCtxRetain(self, handle: int) -> Any:
        return SUCCESS, 0xC0 + handle

    def _stack(self) -> list[int]:
        if not hasattr(self._current, "stack"):
            self._current.stack = []
        return self._current.stack

    def _cuCtxGetCurrent(self) -> Any:
        return SUCCESS, self._stack()[-1] if self._stack() else 0

    def _cuCtxGetDevice(self) -> Any:
        return SUCCESS, self._stack()[-1] - 0xC0

    def _cuCtxPushCurrent(self, context: int) -> Any:
        self._stack().append(context)
        return (SUCCESS,)

    def _cuCtxPopCurrent(self) -> Any:
        return SUCCESS, self._stack().pop()

    def _cuCtxSynchronize(self) -> Any:
        return (SUCCESS,)

    # ---- memory

    def _cuMemPoolCreate(self, properties: Any) -> Any:
        assert properties.location.type and properties.allocType
        return SUCCESS, self._handle()

    def _cuMemPoolSetAttribute(self, pool: int, name: str, value: int) -> Any:
        return (SUCCESS,)

    def _cuMemPoolTrimTo(self, pool: int, size: int) -> Any:
        self.kept = 0
        return (SUCCESS,)

    def _cuMemAllocFromPoolAsync(self, size: int, pool: int, stream: int) -> Any:
        assert self._stack(), "no context is entered"
        if self.memory.held() + self.kept + size > self.capacity:
            return OUT_OF_MEMORY, 0
        return SUCCESS, self.memory.take(size)

    def _cuMemFreeAsync(self, address: int, stream: int) -> Any:
        if stream in self.destroyed:
            return (INVALID_HANDLE,)
        self.memory.give(address)
        return (SUCCESS,)

    def _cuMemAlloc(self, size: int) -> Any:
        return self._cuMemAllocFromPoolAsync(size, 0, 0)

    def _cuMemFree(self, address: int) -> Any:
        self.memory.give(address)
        return (SUCCESS,)

    def _cuMemAllocHost(self, size: int) -> Any:
        assert self._stack(), "no context is entered"
        return SUCCESS, self.host_memory.take(size)

    def _cuMemcpyHtoD(self, to: int, source: int, size: int) -> Any:
        ctypes.memmove(to, source, size)
        return (SUCCESS,)

    def _cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> Any:
        return self._cuMemcpyHtoD(to, source, size)

    def _cuMemcpyDtoH(self, to: int, source: int, size: int) -> Any:
        return self._cuMemcpyHtoD(to, source, size)

    def _cuMemcpyDtoHAsync(self, to: int, source: int, size: int, stream: int) -> Any:
        return self._cuMemcpyHtoD(to, source, size)

    def _cuPointerGetAttribute(self, name: str, address: int) -> Any:
        self.memory.around(address)
        return SUCCESS, 0

    # ---- code

    def _cuLinkCreate(self, count: int, options: Sequence[str], values: Sequence[Any]) -> Any:
        self.linked_for += [value for name, value in zip(options, values, strict=True) if name == "CU_JIT_TARGET"]
        return SUCCESS, Struct()

    def _cuLinkAddData(self, state: Any, kind: str, data: bytes, size: int, name: bytes, *_: Any) -> Any:
        assert kind == "CU_JIT_INPUT_PTX" and len(data) == size and data.endswith(b"\0")
        state.image = ctypes.create_string_buffer(b"CUBIN" + data[:-1])
        return (SUCCESS,)

    def _cuLinkComplete(self, state: Any) -> Any:
        return SUCCESS, ctypes.addressof(state.image), len(state.image) - 1

    def _cuLinkDestroy(self, state: Any) -> Any:
        return (SUCCESS,)

    def _cuModuleLoadData(self, image: bytes) -> Any:
        assert self._stack(), "no context is entered"
        handle = self._handle()
        self._modules[handle] = image.removeprefix(b"CUBIN").decode()
        return SUCCESS, handle

    def _cuModuleGetFunction(self, module: int, name: bytes) -> Any:
        assert name.decode() in MADE[self._modules[module]]
        handle = self._handle()
        self._functions[handle] = self._modules[module], name.decode()
        return SUCCESS, handle

    def _cuFuncGetAttribute(self, name: str, function: int) -> Any:
        return SUCCESS, self.limits.get(name, 1024)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function: int, threads: int, shared: int) -> Any:
        return SUCCESS, self.limits.get("RESIDENT", 1)

    def _cuFuncSetAttribute(self, function: int, name: str, value: int) -> Any:
        return (SUCCESS,)

    # ---- streams and events

    def _cuStreamCreate(self, flags: int) -> Any:
        return SUCCESS, self._handle()

    def _cuStreamSynchronize(self, stream: int) -> Any:
        return (SUCCESS,)

    def _cuStreamIsCapturing(self, stream: int) -> Any:
        return SUCCESS, int(stream in self.captured)

    def _cuEventCreate(self, flags: int) -> Any:
        return SUCCESS, self._handle()

    def _cuEventRecord(self, event: int, stream: int) -> Any:
        return (SUCCESS,)

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> Any:
        return (SUCCESS,)

    def _cuEventElapsedTime(self, begin: int, end: int) -> Any:
        return SUCCESS, self.milliseconds

    def _cuEventDestroy(self, event: int) -> Any:
        return (SUCCESS,)

    # ---- launches

    def _cuLaunchKernel(
        self, function: int, x: int, y: int, z: int, threads: int, ty: int, tz: int, shared: int, stream: int,
        parameters: int, extra: int,
    ) -> Any:  # fmt: skip
        if stream in self.destroyed:
            return (INVALID_HANDLE,)
        assert self._stack(), "no context is entered"
        assert (y, z, ty, tz, extra) == (1, 1, 1, 1, 0)
        self._run(function, self._frame(function, parameters), x, threads, shared)
        return (SUCCESS,)

    def _frame(self, function: int, parameters: int) -> bytes:
        """What the driver copies at a launch."""
        _, entry = self._known(function)
        return ctypes.string_at(ctypes.c_void_p.from_address(parameters).value or 0, entry.size)

    def _known(self, function: int) -> tuple[Kernel, KernelEntry]:
        ptx, name = self._functions[function]
        return MADE[ptx][name]

    def _run(self, function: int, frame: bytes, blocks: int, threads: int, shared: int) -> None:
        kernel, entry = self._known(function)
        assert (threads, shared) == (kernel.threads, kernel.shared)
        values = entry._struct.unpack(frame)
        count = len(entry.scalars)
        numbers = zip(entry.scalars, values, strict=False)
        scalars = [from_bfloat_bits(v) if t.kind == "bfloat" else v for t, v in numbers]
        buffers = [self._buffer(b.name, b.dtype, at) for b, at in zip(kernel.buffers, values[count:], strict=True)]
        simulate(kernel, scalars[:count], buffers, blocks)

    def _buffer(self, name: str, dtype: Any, address: int) -> Global:
        """All of the piece of memory that the address is in; which of it is an array's, nobody knows any more."""
        if not address:
            return Global.fresh(name, dtype, 0)
        begin, end = self.memory.around(address)
        before = (address - begin) // dtype.bytes
        low = address - before * dtype.bytes
        count = (end - low) // dtype.bytes
        held = (ctypes.c_char * (count * dtype.bytes)).from_address(low)
        return Global(name, dtype, np.frombuffer(held, dtype.numpy), -before)

    # ---- graphs

    def _cuGraphCreate(self, flags: int) -> Any:
        handle = self._handle()
        self._graphs[handle] = []
        return SUCCESS, handle

    def _cuGraphAddKernelNode(self, graph: int, before: Sequence[int], count: int, told: Any) -> Any:
        assert len(before) == count and set(before) <= set(range(len(self._graphs[graph])))
        self._graphs[graph].append({"before": set(before), **self._node(told)})
        return SUCCESS, len(self._graphs[graph]) - 1

    def _node(self, told: Any) -> dict[str, Any]:
        return {
            "function": told.func,
            "frame": self._frame(told.func, told.kernelParams),
            "blocks": told.gridDimX,
            "threads": told.blockDimX,
            "shared": told.sharedMemBytes,
        }

    def _cuGraphInstantiate(self, graph: int, flags: int) -> Any:
        handle = self._handle()
        self._graphs[handle] = [dict(node) for node in self._graphs[graph]]
        return SUCCESS, handle

    def _cuGraphExecKernelNodeSetParams(self, graph: int, node: int, told: Any) -> Any:
        self._graphs[graph][node].update(self._node(told))
        return (SUCCESS,)

    def _cuGraphLaunch(self, graph: int, stream: int) -> Any:
        if stream in self.destroyed:
            return (INVALID_HANDLE,)
        nodes, done = self._graphs[graph], set[int]()
        while len(done) < len(nodes):
            k = max(k for k, node in enumerate(nodes) if k not in done and node["before"] <= done)
            node = nodes[k]
            self._run(node["function"], node["frame"], node["blocks"], node["threads"], node["shared"])
            done.add(k)
        return (SUCCESS,)

    def _cuGraphExecDestroy(self, graph: int) -> Any:
        return (SUCCESS,)

    _cuGraphDestroy = _cuGraphExecDestroy


# How many results a function has besides its error code, where there are some.
_RESULTS = {"cuMemAllocFromPoolAsync": 1, "cuMemAlloc": 1, "cuMemAllocHost": 1, "cuModuleLoadData": 1,
            "cuLinkComplete": 2, "cuLinkCreate": 1, "cuGraphAddKernelNode": 1, "cuGraphInstantiate": 1,
            "cuModuleGetFunction": 1}  # fmt: skip
