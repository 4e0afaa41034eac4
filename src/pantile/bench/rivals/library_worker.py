"""A process that runs programs of Python libraries on request (see :mod:`.serving`).

The programs of a system are the functions of the module ``SYSTEM_apps`` that have the names of apps, or the functions
``prepare`` of such modules in a folder, where they are long. Given the input arrays by name and output arrays of the
right types and shapes, a program does what is done once, and returns a function that computes the results. That returns
them, or None where they are in the output arrays. ``DIFFERS`` says what some compute, if not quite what the app does.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .serving import Preparation, compile_seconds, runs_ms, serve

Array = NDArray[Any]
Inputs = Mapping[str, Array]
Outputs = tuple[Array, ...]
Program = Callable[[], Array | Outputs | None]


class LibraryWorker:
    """Holds the program prepared last, with its arrays."""

    _program: Callable[[], Any]

    def __init__(self, programs: str) -> None:
        self._programs = f"{__package__}.{programs}"
        self._outputs: Any = ()
        self._results: Any = ()

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        """Prepare a program. Compiling is what the first run does and the second need not."""
        programs: Any = importlib.import_module(self._programs)
        if hasattr(programs, "__path__"):
            program = importlib.import_module(f"{self._programs}.{wanted.app}").prepare
        else:
            program = getattr(programs, wanted.app)
        arrays = {name: self._loaded(path) for name, path in wanted.inputs.items()}
        self._outputs = self._outputs_of(wanted)

        def prepare() -> None:
            self._program = program(arrays, self._outputs)

        seconds = compile_seconds(prepare, self.run)
        return {"schedule_s": 0.0, "compile_s": seconds, "differs": getattr(programs, "DIFFERS", {}).get(wanted.app)}

    def run(self) -> None:
        """Compute the results."""
        results = self._program()
        self._results = self._outputs if results is None else results

    def time(self, repeat: int) -> dict[str, Any]:
        return {"runs_ms": runs_ms(self.run, repeat)}

    def save(self, paths: Sequence[Path]) -> None:
        """Write the results as ``.npy`` files."""
        results = self._results if isinstance(self._results, tuple) else (self._results,)
        for array, path in zip(results, paths, strict=True):
            np.save(path, self._on_host(array))

    def _loaded(self, path: str) -> Any:
        return np.load(path)

    def _outputs_of(self, wanted: Preparation) -> Any:
        """Arrays for the results, once the library knows how many threads it may use."""
        importlib.import_module(self._programs).set_threads(wanted.threads)
        return tuple(np.empty(shape, dtype) for dtype, shape in wanted.outputs)

    def _on_host(self, array: Array) -> Array:
        return array


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(LibraryWorker(f"{system}_apps"))
