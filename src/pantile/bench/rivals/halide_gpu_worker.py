"""A process that compiles and times Halide pipelines on NVIDIA's GPUs on request (see :mod:`.serving`).

As :mod:`.halide_worker`, which see. Inputs and outputs stay on the GPU between calls, and memory of intermediate arrays
is kept for the next one, as Halide's own benchmarks have it.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import halide as hl

from .gpu_timing import TimedWork
from .halide_device import Driver, HalideDevice
from .halide_worker import HalideWorker
from .serving import Preparation, compile_seconds, serve

# All that some release of Halide knows; the GPU's driver turns code for older ones into its own.
CAPABILITIES = (90, 86, 80, 75, 70, 61, 50)

_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # attributes of a device, as the driver numbers them


class HalideGpuWorker(HalideWorker):
    """Holds the pipeline prepared last, with its arrays on the GPU."""

    _timed: TimedWork

    def __init__(self) -> None:
        super().__init__(_target(10 * _attribute(_MAJOR) + _attribute(_MINOR)))
        self._device = HalideDevice()

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        """Build, schedule, compile, and bring inputs to the GPU. Compiling includes the first run's, the driver's."""
        answer = super().prepare(wanted._replace(threads=_attribute(_MULTIPROCESSORS)))
        for _, array in self._images.values():
            array.buffer.set_host_dirty(True)  # so that the first run copies it
        self._timed = TimedWork(self._device, super().run)
        answer["compile_s"] += compile_seconds(lambda: None, self.run)
        return answer

    def run(self) -> None:
        super().run()
        self._device.wait()

    def time(self, repeat: int) -> dict[str, Any]:
        return self._timed.answer(repeat)

    def save(self, paths: Sequence[Path]) -> None:
        for array in self._outputs:
            array.buffer.copy_to_host()
        super().save(paths)


def _target(capability: int) -> hl.Target:
    """This machine with its GPU, as new a one as Halide knows."""
    host = str(hl.get_jit_target_from_environment())
    for known in CAPABILITIES:
        if known <= capability:
            with suppress(Exception):  # which one it is depends on the release
                return hl.Target(f"{host}-cuda-cuda_capability_{known}")
    raise RuntimeError(f"Halide knows no GPU of capability {capability / 10}")


def _attribute(number: int) -> int:
    """Of the first device, which Halide uses."""
    driver, device, value = Driver(), ctypes.c_int(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return value.value


def main() -> None:
    """Answer requests until standard input ends."""
    serve(HalideGpuWorker())
