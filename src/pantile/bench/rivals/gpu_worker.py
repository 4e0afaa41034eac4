"""A process that runs programs of Python libraries on a GPU on request (see :mod:`.serving`).

The programs of a system are the modules of the folder ``SYSTEM_gpu_apps``, one per app. Each offers
``prepare(inputs, shapes)``: given the input arrays on the GPU by name, as the library has them, and the shapes of the
results, it does what is done once, and returns a function that starts computing the results and returns them.
``DIFFERS`` says what it computes instead, where that is not quite what the app does.

Results are timed by CUDA events around many calls, as they are made one by one, and as a CUDA graph of some of them.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .gpu_timing import TimedWork
from .serving import compile_seconds, serve

DEVICES = {"torch": "torch_device", "triton": "torch_device", "cupy": "cupy_device"}  # whose arrays programs take


class GpuWorker:
    """Holds the program prepared last, with its arrays."""

    def __init__(self, system: str) -> None:
        """Start without a program."""
        self._system = system
        self._device: Any = importlib.import_module(f"{__package__}.{DEVICES[system]}")
        self._compute: Callable[[], Any] | None = None
        self._timed: TimedWork | None = None
        self._results: Any = ()

    def prepare(
        self,
        app: str,
        schedule: str,
        threads: int,
        inputs: Mapping[str, str],
        outputs: Sequence[tuple[str, Sequence[int]]],
    ) -> dict[str, Any]:
        """Compiling is what the first run does and the second need not."""
        del schedule, threads  # There is one, and the GPU has as many as it likes.
        module = importlib.import_module(f"{__package__}.{self._system}_gpu_apps.{app}")
        arrays = {name: self._device.put(np.load(path)) for name, path in inputs.items()}

        def compute() -> None:
            self._compute = module.prepare(arrays, tuple(tuple(shape) for _, shape in outputs))
            self._timed = TimedWork(self._device, self._compute)

        seconds = compile_seconds(compute, self.run)
        return {"schedule_s": 0.0, "compile_s": seconds, "differs": getattr(module, "DIFFERS", None)}

    def run(self) -> None:
        """Compute the results."""
        if self._compute is None:
            raise RuntimeError("no program has been prepared")
        self._results = self._compute()
        self._device.wait()

    def time(self, repeat: int) -> dict[str, Any]:
        """In both ways."""
        if self._timed is None:
            raise RuntimeError("no program has been prepared")
        return self._timed.answer(repeat)

    def save(self, paths: Sequence[Path]) -> None:
        """Write the results as ``.npy`` files."""
        results = self._results if isinstance(self._results, tuple) else (self._results,)
        for array, path in zip(results, paths, strict=True):
            np.save(path, self._device.get(array))


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(GpuWorker(system))
