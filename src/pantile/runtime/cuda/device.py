"""GPUs. Each is used in its primary context, as by PyTorch, CuPy and others, so that their memory is accessible."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from ...dataclass import cached_property
from ...errors import UserError
from ...forks import Lock
from ...target import named
from ...target.description import CUDA_GPU
from ...target.gpu import OF_ONE_GENERATION, compute_capability
from .driver import MissingDriver, checked, driver

_NO_TIMING = 2  # of an event
_NON_BLOCKING = 1  # of a stream: no synchronization with the default stream

_own = threading.local()


class Device:
    """A GPU. Its context must be current for its methods."""

    def __init__(self, ordinal: int) -> None:
        self.cu = cu = driver()
        self.ordinal = ordinal
        self._handle = checked(cu.cuDeviceGet(ordinal))
        self.name = bytes(checked(cu.cuDeviceGetName(128, self._handle))).split(b"\0")[0].decode()
        self.memory = int(checked(cu.cuDeviceTotalMem(self._handle)))
        self.capability = self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")
        self.multiprocessors = self.attribute("MULTIPROCESSOR_COUNT")
        self.most_threads = self.attribute("MAX_THREADS_PER_BLOCK")
        self.most_shared = self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.most_blocks = self.attribute("MAX_GRID_DIM_X")
        self.has_pools = bool(self.attribute("MEMORY_POOLS_SUPPORTED"))
        self._context_number = 0  # 0 until a context is needed, because creating one takes memory and time

    def attribute(self, name: str) -> int:
        """An attribute of the GPU, by the name after CU_DEVICE_ATTRIBUTE_."""
        attribute = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self.cu.cuDeviceGetAttribute(attribute, self._handle)))

    def __str__(self) -> str:
        return f"GPU {self.ordinal} ({self.name})"

    @cached_property
    def context(self) -> Any:
        """Retain and return the primary context."""
        context = checked(self.cu.cuDevicePrimaryCtxRetain(self._handle))
        self._context_number = int(context)
        return context

    def enter(self) -> bool:
        """Make the device's context current. Return whether it was not, in which case `leave` must restore the previous
        one."""
        error, context = self.cu.cuCtxGetCurrent()
        if int(context) == self._context_number and not error and self._context_number:
            return False
        checked(self.cu.cuCtxPushCurrent(self.context))
        return True

    def leave(self, entered: bool) -> None:
        """Restore the thread's previous context after `enter` has returned True."""
        if entered:
            self.cu.cuCtxPopCurrent()

    def own_stream(self) -> int:
        """The stream of this thread on the device, for calls with host arrays only. The device's context must be
        current."""
        streams: dict[int, tuple[int, object]] | None = getattr(_own, "streams", None)
        if streams is None:
            streams = _own.streams = {}
        if self.ordinal not in streams:
            made = checked(self.cu.cuStreamCreate(_NON_BLOCKING))
            streams[self.ordinal] = int(made), made
        return streams[self.ordinal][0]

    def wait_for(self, others: Iterable[int], stream: int) -> None:
        """Make further work in a stream wait for the current work of the others."""
        for other in others:
            event = checked(self.cu.cuEventCreate(_NO_TIMING))
            try:
                checked(self.cu.cuEventRecord(event, other))
                checked(self.cu.cuStreamWaitEvent(stream, event, 0))
            finally:
                self.cu.cuEventDestroy(event)  # the driver keeps it while something waits for it

    def wait(self, stream: int) -> None:
        """Wait for all work in the stream."""
        checked(self.cu.cuStreamSynchronize(stream))

    def is_captured(self, stream: int) -> bool:
        """Whether the stream is being captured into a graph."""
        error, status = self.cu.cuStreamIsCapturing(stream)
        return not error and bool(int(status))

    def check(self, capability: str) -> None:
        """Raise an error for code that needs a newer GPU, or an older one."""
        needed = compute_capability(capability)
        if needed > self.capability or capability.endswith(OF_ONE_GENERATION) and needed != self.capability:
            mine = "sm_{}{}".format(*self.capability)
            raise UserError(
                f"the pipeline is compiled for {capability}, which {self} ({mine}) cannot run; leave the number out "
                f"(target='cuda'), or write target='{mine}'"
            )


_devices: dict[int, Device] = {}
_lock = Lock()


def count() -> int:
    """The number of GPUs that the driver sees."""
    return int(checked(driver().cuDeviceGetCount()))


def device(ordinal: int) -> Device:
    """A GPU by the driver's number."""
    known = _devices.get(ordinal)
    if known is None:
        with _lock:
            known = _devices.get(ordinal)
            if known is None:
                known = _devices[ordinal] = Device(ordinal)
    return known


def current() -> Device:
    """The GPU of this thread's current context, or else the first one."""
    cu = driver()
    error, context = cu.cuCtxGetCurrent()
    if error or not int(context):
        if not count():
            raise MissingDriver("the NVIDIA driver finds no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES")
        return device(0)
    return device(int(checked(cu.cuCtxGetDevice())))


def capability() -> str:
    """The default compute capability of code: that of this machine's GPU, or a common one if there is no GPU."""
    try:
        return "sm_{}{}".format(*current().capability)
    except MissingDriver:
        return named(CUDA_GPU).cpu


def driver_version() -> str:
    """The newest version of CUDA that the driver supports."""
    number = int(checked(driver().cuDriverGetVersion()))
    return f"{number // 1000}.{number % 1000 // 10}"


def devices() -> list[Any]:
    """All GPUs, in the driver's order."""
    return [device(k) for k in range(count())]
