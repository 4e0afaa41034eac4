"""GPUs: found, described, and entered by their primary contexts, which PyTorch, CuPy and others use as well, so that
memory of theirs is ours to read."""

from __future__ import annotations

from typing import Any

from ...cached import cached_property
from ...errors import UserError
from ...forks import Lock
from ...target import named
from ...target.gpu import compute_capability
from ...target.known import CUDA_GPU
from .driver import MissingDriver, checked, driver


class Device:
    """One GPU. Its context is entered before anything is asked of it."""

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
        self._context_number = 0  # until it is needed: a context takes memory and time

    def attribute(self, name: str) -> int:
        """An attribute of the GPU, by the name after CU_DEVICE_ATTRIBUTE_."""
        attribute = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self.cu.cuDeviceGetAttribute(attribute, self._handle)))

    def __str__(self) -> str:
        return f"GPU {self.ordinal} ({self.name})"

    @cached_property
    def context(self) -> Any:
        """The primary context."""
        context = checked(self.cu.cuDevicePrimaryCtxRetain(self._handle))
        self._context_number = int(context)
        return context

    def enter(self) -> bool:
        """Make its context this thread's, and tell whether it was not: then it is left afterwards."""
        error, context = self.cu.cuCtxGetCurrent()
        if int(context) == self._context_number and not error and self._context_number:
            return False
        checked(self.cu.cuCtxPushCurrent(self.context))
        return True

    def leave(self, entered: bool) -> None:
        """Give the thread the context back that it had before `enter` returned that."""
        if entered:
            self.cu.cuCtxPopCurrent()

    def wait(self, stream: int) -> None:
        """Wait until all that is in the stream has run."""
        checked(self.cu.cuStreamSynchronize(stream))

    def is_captured(self, stream: int) -> bool:
        """Whether what is put into the stream is recorded, to be run later."""
        error, status = self.cu.cuStreamIsCapturing(stream)
        return not error and bool(int(status))

    def check(self, capability: str) -> None:
        """Refuse code that is for newer GPUs."""
        needed = compute_capability(capability)
        if needed > self.capability:
            mine = "sm_{}{}".format(*self.capability)
            raise UserError(
                f"the pipeline is compiled for {capability}, which {self} ({mine}) cannot run; leave the number out "
                f"(target='cuda'), or write target='{mine}'"
            )


_devices: dict[int, Device] = {}
_lock = Lock()


def count() -> int:
    """How many GPUs the driver sees."""
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
    """The GPU whose context this thread is in, or else the first."""
    cu = driver()
    error, context = cu.cuCtxGetCurrent()
    if error or not int(context):
        if not count():
            raise MissingDriver("the NVIDIA driver finds no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES")
        return device(0)
    return device(int(checked(cu.cuCtxGetDevice())))


def capability() -> str:
    """The capability that code is made for by default: that of the GPU at hand, or else a usual one."""
    try:
        return "sm_{}{}".format(*current().capability)
    except MissingDriver:
        return named(CUDA_GPU).cpu


def driver_version() -> str:
    """The newest version of CUDA that the driver knows."""
    number = int(checked(driver().cuDriverGetVersion()))
    return f"{number // 1000}.{number % 1000 // 10}"


def devices() -> list[Any]:
    """Return all GPUs that the driver knows, in its order."""
    return [device(k) for k in range(count())]
