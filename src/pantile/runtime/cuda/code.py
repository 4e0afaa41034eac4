"""Code for GPUs: the result of compiling, and its machine code for a device.

PTX runs on any GPU from its compute capability on. The driver compiles it to machine code, which takes as long as
compiling to PTX, so the machine code is also cached on disk, for each kind of GPU and driver version. Long code is
split into parts, which LLVM and the driver compile in parallel.
"""

from __future__ import annotations

import ctypes
import hashlib
import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...codegen.entry import KernelEntry
from ...dataclass import dataclass
from ...errors import PantileError, UserError
from ...expr.depth import side_by_side
from ...forks import Lock
from ...ir.nodes import Program
from ...target.gpu import SHARED_WITHOUT_OPT_IN
from .. import cache
from .device import Device
from .driver import checked, failure, launch_failure

_LOG = 8192  # bytes for the driver's message about rejected PTX
_OF_HOPPER = ".target sm_90a"


@dataclass(frozen=True)
class CudaCode:
    """The result of compiling: PTX, in several parts if it is long; the entry of each kernel, and which of its buffers
    it writes; and the program without the bodies of its kernels."""

    ptx: tuple[str, ...]
    capability: str
    entries: tuple[KernelEntry, ...]
    writes: tuple[tuple[bool, ...], ...]
    program: Program
    index_bits: int  # of indices

    def to_bytes(self) -> bytes:
        return pickle.dumps((self.ptx, self.capability, self.entries, self.writes, self.program, self.index_bits))

    @staticmethod
    def from_bytes(data: bytes) -> CudaCode:
        return CudaCode(*pickle.loads(data))


@dataclass(frozen=True)
class DeviceFunction:
    """A kernel on a device."""

    handle: Any
    entry: KernelEntry
    writes: tuple[bool, ...]


class Functions:
    """The kernels of a piece of code, loaded on each device that uses them."""

    def __init__(self, code: CudaCode) -> None:
        self.code = code
        self._on: dict[int, dict[str, DeviceFunction]] = {}
        self._modules: list[Any] = []
        self._lock = Lock()

    def on(self, device: Device) -> dict[str, DeviceFunction]:
        """The kernels on a device, by name. The context of the device must be current."""
        functions = self._on.get(device.ordinal)
        if functions is None:
            with self._lock:
                functions = self._on.get(device.ordinal) or self._load(device)
                self._on[device.ordinal] = functions
        return functions

    def _load(self, device: Device) -> dict[str, DeviceFunction]:
        device.check(self.code.capability)
        for entry in self.code.entries:
            _check_limits(device, entry)
        modules = [checked(device.cu.cuModuleLoadData(image)) for image in images(device, self.code.ptx)]
        self._modules += modules
        of = [next(m for m, ptx in zip(modules, self.code.ptx, strict=True) if _has(ptx, e)) for e in self.code.entries]
        return {
            entry.kernel: DeviceFunction(_handle(device, module, entry), entry, writes)
            for module, entry, writes in zip(of, self.code.entries, self.code.writes, strict=True)
        }


def _has(ptx: str, entry: KernelEntry) -> bool:
    return f".entry {entry.symbol}(" in ptx


def _handle(device: Device, module: Any, entry: KernelEntry) -> Any:
    """The driver's function for a kernel, set up for the shared memory that it needs."""
    cu, attribute = device.cu, device.cu.CUfunction_attribute
    handle = checked(cu.cuModuleGetFunction(module, entry.symbol.encode()))
    most = int(checked(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle)))
    if entry.threads > most:
        registers = int(checked(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, handle)))
        raise UserError(
            f"kernel {entry.kernel} has blocks of {entry.threads} threads, but with {registers} registers each "
            f"{device} runs up to {most}; give its blocks fewer threads"
        )
    if entry.shared > SHARED_WITHOUT_OPT_IN:
        wanted = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (error,) = cu.cuFuncSetAttribute(handle, wanted, entry.shared)
        if error:
            raise launch_failure(error, 0, f"kernel {entry.kernel} with {entry.shared:,} bytes of shared memory")
    return handle


def resident_blocks(device: Device, function: DeviceFunction) -> int:
    """The number of resident blocks of a kernel on the whole device, at least one per multiprocessor. The context of
    the device must be current."""
    entry, of_one = function.entry, device.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor
    return device.multiprocessors * max(1, int(checked(of_one(function.handle, entry.threads, entry.shared))))


def _check_limits(device: Device, entry: KernelEntry) -> None:
    name, threads, shared = entry.kernel, entry.threads, entry.shared
    if threads > device.most_threads:
        raise UserError(
            f"kernel {name} has blocks of {threads} threads, but {device} runs up to {device.most_threads}; "
            "give its blocks fewer threads"
        )
    if shared > device.most_shared:
        raise UserError(
            f"kernel {name} has {shared:,} bytes of shared memory in a block, but {device} has {device.most_shared:,}; "
            "make its tiles smaller"
        )


# ---- machine code


def images(device: Device, parts: Sequence[str]) -> list[bytes]:
    """The machine code of parts of PTX for this device, compiled in parallel."""
    if len(parts) == 1:
        return [image(device, parts[0])]
    return side_by_side([partial(_image_of_part, device, ptx) for ptx in parts])


def _image_of_part(device: Device, ptx: str) -> bytes:
    entered = device.enter()
    try:
        return image(device, ptx)
    finally:
        device.leave(entered)


def image(device: Device, ptx: str) -> bytes:
    """The machine code of PTX for this device, cached."""
    capability = "sm_{}{}".format(*device.capability)
    version = str(checked(device.cu.cuDriverGetVersion()))
    key = cache.key("cubin", hashlib.sha256(ptx.encode()).hexdigest(), capability, version)
    return cache.fetch(key, lambda: _link(device, ptx))


def _link(device: Device, ptx: str) -> bytes:
    cu, option = device.cu, device.cu.CUjit_option
    log = bytes(_LOG)  # written by the driver
    options: dict[Any, Any] = {option.CU_JIT_ERROR_LOG_BUFFER: log, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG}
    if _OF_HOPPER in ptx:
        options[option.CU_JIT_TARGET] = cu.CUjit_target.CU_TARGET_COMPUTE_90A
    state = checked(cu.cuLinkCreate(len(options), [*options], [*options.values()]))
    try:
        text = ptx.encode() + b"\0"
        (error,) = cu.cuLinkAddData(
            state, cu.CUjitInputType.CU_JIT_INPUT_PTX, text, len(text), b"pantile.ptx", 0, [], []
        )
        if error:
            raise _link_failure(error, log)
        error, address, size = cu.cuLinkComplete(state)
        if error:
            raise _link_failure(error, log)
        return ctypes.string_at(int(address), int(size))
    finally:
        cu.cuLinkDestroy(state)


def _link_failure(error: Any, log: bytes) -> PantileError:
    """The error for PTX that the driver rejects, with the driver's message."""
    error_of = failure(error)
    message = log.split(b"\0")[0].decode(errors="replace").strip()
    return error_of if not message else type(error_of)(f"{error_of}; the driver says: {message}")
