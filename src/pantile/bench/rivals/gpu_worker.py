"""A process that runs programs of Python libraries on a GPU on request (see :mod:`.serving`).

The programs of a system are those of ``SYSTEM_gpu_apps``, as :mod:`.library_worker` describes them. Given the input
arrays on the GPU by name, as the library has them, and the shapes of the results, a program does what is done once, and
returns a function that starts computing the results and returns them.

Results are timed by CUDA events around many calls, as they are made one by one, and as a CUDA graph of some of them.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from . import library_worker
from .gpu_timing import TimedWork
from .serving import Preparation, serve

DEVICES = {"torch": "torch_device", "triton": "torch_device", "cupy": "cupy_device"}  # whose arrays programs take

Array = Any  # of CuPy
Tensor = Any  # of PyTorch
Inputs = Mapping[str, Any]
Shapes = tuple[tuple[int, ...], ...]
Program = Callable[[], Any]


class GpuWorker(library_worker.LibraryWorker):
    """Holds the program prepared last, with its arrays on the GPU."""

    _timed: TimedWork

    def __init__(self, system: str) -> None:
        super().__init__(f"{system}_gpu_apps")
        self._device: Any = importlib.import_module(f"{__package__}.{DEVICES[system]}")

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        answer = super().prepare(wanted)
        self._timed = TimedWork(self._device, self._program)
        return answer

    def run(self) -> None:
        super().run()
        self._device.wait()

    def time(self, repeat: int) -> dict[str, Any]:
        return self._timed.answer(repeat)

    def _loaded(self, path: str) -> Array:
        return self._device.put(super()._loaded(path))

    def _outputs_of(self, wanted: Preparation) -> Shapes:
        return tuple(tuple(shape) for _, shape in wanted.outputs)

    def _on_host(self, array: Array) -> library_worker.Array:
        host: library_worker.Array = self._device.get(array)
        return host


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(GpuWorker(system))
