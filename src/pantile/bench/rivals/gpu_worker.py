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
from typing import Any, Protocol

import numpy as np

from .gpu_timing import CAPTURED_CALLS, per_call_ms
from .serving import compile_seconds, serve

DEVICES = {"torch": "torch_device", "triton": "torch_device", "cupy": "cupy_device"}  # whose arrays programs take


class Device(Protocol):
    """A library's view of the GPU."""

    def put(self, array: Any) -> Any:
        """A copy there."""

    def get(self, array: Any) -> Any:
        """A copy on the host."""

    def wait(self) -> None:
        """Until it has nothing to do."""

    def elapsed_ms(self, work: Callable[[], object], calls: int) -> float:
        """How long so many calls take there."""

    def captured(self, work: Callable[[], object], calls: int) -> Callable[[], object]:
        """So many calls as one graph."""


class Timed:
    """Some work on a device, timed in both ways. A graph that cannot be captured is not tried again; `why` says why."""

    def __init__(self, device: Device, work: Callable[[], object]) -> None:
        self._device, self._work = device, work
        self._replay: Callable[[], object] | None = None
        self.why: str | None = None

    def called_ms(self, repeat: int) -> list[float]:
        """Milliseconds of a call among others."""
        return per_call_ms(lambda calls: self._device.elapsed_ms(self._work, calls), repeat)

    def captured_ms(self, repeat: int) -> list[float]:
        """Milliseconds of a call in a graph; none where there is no graph."""
        if self._replay is None and self.why is None:
            try:
                self._replay = self._device.captured(self._work, CAPTURED_CALLS)
                self._replay()
                self._device.wait()
            except Exception as error:  # Whatever a library does that cannot be captured, it can still be called.
                self._replay, self.why = None, f"{type(error).__name__}: {error}"
        replay = self._replay
        if replay is None:
            return []
        times = per_call_ms(lambda calls: self._device.elapsed_ms(replay, calls), repeat)
        return [ms / CAPTURED_CALLS for ms in times]


class GpuWorker:
    """Holds the program prepared last, with its arrays."""

    def __init__(self, system: str) -> None:
        """Start without a program."""
        self._system = system
        self._device: Any = importlib.import_module(f"{__package__}.{DEVICES[system]}")
        self._compute: Callable[[], Any] | None = None
        self._timed: Timed | None = None
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
            self._timed = Timed(self._device, self._compute)

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
        called, captured = self._timed.called_ms(repeat), self._timed.captured_ms(repeat)
        return {"runs_ms": called, "captured_ms": captured, "no_graph": self._timed.why}

    def save(self, paths: Sequence[Path]) -> None:
        """Write the results as ``.npy`` files."""
        results = self._results if isinstance(self._results, tuple) else (self._results,)
        for array, path in zip(results, paths, strict=True):
            np.save(path, self._device.get(array))


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(GpuWorker(system))
