"""A process that compiles and times Halide pipelines on NVIDIA's GPUs on request (see :mod:`.serving`).

As :mod:`.halide_worker`, which see. Inputs and outputs stay on the GPU between calls, and memory of intermediate arrays
is kept for the next one, as Halide's own benchmarks have it.
"""

import ctypes
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import halide as hl

from .gpu_timing import per_call_ms
from .halide_worker import HalideWorker, library_folders
from .serving import serve

# All that some release of Halide knows; the GPU's driver turns code for older ones into its own.
CAPABILITIES = (90, 86, 80, 75, 70, 61, 50)
REUSE = "_ZN6Halide8Internal16JITSharedRuntime24reuse_device_allocationsEb"  # no Python binding has it

_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # attributes of a device, as the driver numbers them


class HalideGpuWorker(HalideWorker):
    """Holds the pipeline prepared last, with its arrays on the GPU."""

    def __init__(self) -> None:
        """Start with no pipeline."""
        super().__init__(_target(10 * _attribute(_MAJOR) + _attribute(_MINOR)))

    def prepare(
        self,
        app: str,
        schedule: str,
        threads: int,
        inputs: Mapping[str, str],
        outputs: Sequence[tuple[str, Sequence[int]]],
    ) -> dict[str, Any]:
        """Build, schedule, compile, and bring inputs to the GPU. Compiling includes the first run's, the driver's."""
        del threads
        answer = super().prepare(app, schedule, _attribute(_MULTIPROCESSORS), inputs, outputs)
        for _, array in self._images.values():
            array.buffer.set_host_dirty(True)  # so that the first run copies it
        _keep_memory()
        start = time.perf_counter()
        self.run()
        first = time.perf_counter()
        self.run()
        second = time.perf_counter()
        answer["compile_s"] += max(0.0, (first - start) - (second - first))
        return answer

    def run(self) -> None:
        """Compute the outputs, and wait."""
        super().run()
        self._wait()

    def time(self, repeat: int) -> dict[str, Any]:
        """Calls one after the other. Halide cannot be captured: it launches into the default stream."""
        return {"runs_ms": per_call_ms(self._elapsed_ms, repeat)}

    def save(self, paths: Sequence[Path]) -> None:
        """Write the outputs as ``.npy`` files."""
        for array in self._outputs:
            array.buffer.copy_to_host()
        super().save(paths)

    def _elapsed_ms(self, calls: int) -> float:
        self._wait()
        start = time.perf_counter()
        for _ in range(calls):
            super().run()
        self._wait()
        return (time.perf_counter() - start) * 1e3

    def _wait(self) -> None:
        for array in self._outputs[:1]:
            if array.buffer.has_device_allocation():
                array.buffer.device_sync()


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
    driver = ctypes.CDLL("libcuda.so.1")
    device, value = ctypes.c_int(), ctypes.c_int()
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0)
    if failed or driver.cuDeviceGetAttribute(ctypes.byref(value), number, device):
        raise RuntimeError(f"the NVIDIA driver finds no GPU (error {failed})")
    return value.value


def _keep_memory() -> None:
    """Have Halide keep memory of intermediate arrays for the next call, if this release can be told to."""
    for library in (folder / "libHalide.so" for folder in library_folders()):
        if library.is_file():
            with suppress(OSError, AttributeError):
                getattr(ctypes.CDLL(str(library)), REUSE)(ctypes.c_bool(True))


def main() -> None:
    """Answer requests until standard input ends."""
    serve(HalideGpuWorker())
