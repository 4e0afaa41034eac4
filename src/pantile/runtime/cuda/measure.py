"""The peak rates of a GPU, measured by small kernels: its clock under load, and the bandwidths of its memories.

Each kernel (`measuring_ptx`) runs several times, and the fastest run counts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...parameters import Rate, check_fields
from ...target.gpu import LONGEST_ACCESS, MOST_THREADS
from .code import image
from .device import Device
from .driver import checked
from .measuring_ptx import COPIES, COPYING_THREADS, PTX, UNROLLED
from .memory import pool
from .streams import own_stream

COPIED_BYTES = 512 << 20  # copied; less on a GPU with little memory
STEPS = 1 << 16  # of the loops of `clock` and `shared`: some milliseconds
ROUNDS = 8


@dataclass(frozen=True)
class GpuRates:
    """The measured rates, as in `Gpu` and its `Multiprocessor`."""

    ghz: Rate
    bandwidth: Rate
    shared_per_cycle: Rate

    def __post_init__(self) -> None:
        check_fields(self)


def measure(device: Device, progress: Callable[[str], None] = lambda _: None) -> GpuRates:
    """Measure the rates in a fraction of a second. `progress` is called with the current step."""
    entered = device.enter()
    try:
        kernels = _Kernels(device)
        progress("measuring clock")
        ghz = max(kernels.ghz() for _ in range(ROUNDS))
        progress("measuring shared memory")
        shared = max(kernels.shared_per_cycle() for _ in range(ROUNDS))
        progress("measuring global memory")
        return GpuRates(ghz, kernels.bandwidth(ROUNDS), shared)
    finally:
        device.leave(entered)


class _Kernels:
    """The kernels of `PTX`, on a device whose context is current."""

    def __init__(self, device: Device) -> None:
        self._device, self._cu = device, device.cu
        self._module = checked(device.cu.cuModuleLoadData(image(device, PTX)))
        self._stream = own_stream(device)
        self._pool = pool(device)

    def ghz(self) -> float:
        """The cycles per nanosecond, while all multiprocessors compute."""
        cycles, nanoseconds = self._timed("clock", self._device.multiprocessors, 0)
        return cycles / nanoseconds

    def shared_per_cycle(self) -> float:
        """The bytes of shared memory that the threads of a block read per cycle."""
        cycles, _ = self._timed("shared", 1, MOST_THREADS * LONGEST_ACCESS)
        return STEPS * UNROLLED * MOST_THREADS * LONGEST_ACCESS / cycles

    def bandwidth(self, rounds: int) -> float:
        """The bytes per second that the fastest of several copies reads and writes."""
        of_block = COPYING_THREADS * COPIES * LONGEST_ACCESS
        blocks = max(1, min(COPIED_BYTES, self._device.memory // 8) // of_block)
        size = blocks * of_block
        memory = self._pool.take(2 * size, self._stream)
        try:
            arguments = ctypes.c_uint64(memory), ctypes.c_uint64(memory + size)
            return 2 * size / min(self._seconds("copy", blocks, arguments) for _ in range(rounds))
        finally:
            self._pool.give(memory, self._stream)

    def _timed(self, kernel: str, blocks: int, shared: int) -> tuple[int, int]:
        """The cycles and nanoseconds recorded by the first block of a launch."""
        noted = np.zeros(2, np.uint64)
        memory = self._pool.take(noted.nbytes, self._stream)
        try:
            arguments = ctypes.c_uint64(memory), ctypes.c_uint32(STEPS)
            self._launch(kernel, blocks, MOST_THREADS, shared, arguments)
            checked(self._cu.cuMemcpyDtoHAsync(noted.ctypes.data, memory, noted.nbytes, self._stream))
            self._device.wait(self._stream)
        finally:
            self._pool.give(memory, self._stream)
        return int(noted[0]), int(noted[1])

    def _seconds(self, kernel: str, blocks: int, arguments: tuple[Any, ...]) -> float:
        """The seconds of a launch, by events before and after it."""
        begin, end = (checked(self._cu.cuEventCreate(0)) for _ in range(2))
        try:
            checked(self._cu.cuEventRecord(begin, self._stream))
            self._launch(kernel, blocks, COPYING_THREADS, 0, arguments)
            checked(self._cu.cuEventRecord(end, self._stream))
            self._device.wait(self._stream)
            return float(checked(self._cu.cuEventElapsedTime(begin, end))) / 1e3
        finally:
            self._cu.cuEventDestroy(begin)
            self._cu.cuEventDestroy(end)

    def _launch(self, kernel: str, blocks: int, threads: int, shared: int, arguments: tuple[Any, ...]) -> None:
        function = checked(self._cu.cuModuleGetFunction(self._module, kernel.encode()))
        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        given = ctypes.addressof(addresses)
        (error,) = self._cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, self._stream, given, 0)
        checked((error, None))
