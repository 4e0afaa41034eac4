"""A process that runs programs of Python libraries on request (see :mod:`.serving`).

The programs of a system are the modules of the folder ``SYSTEM_apps``, one per app. Each offers
``prepare(inputs, outputs)``: given the input arrays by name and output arrays of the right types and shapes, it does
what is done once, and returns a function that computes the results. The function returns them, or None where they are
in the output arrays. ``DIFFERS`` says what it computes instead, where that is not quite what the app does.
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

    def __init__(self, folder: str) -> None:
        """Start without a program."""
        self._folder = f"{__package__}.{folder}"
        self._outputs: Any = ()
        self._results: Any = ()

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        """Prepare a program. Compiling is what the first run does and the second need not."""
        module = importlib.import_module(f"{self._folder}.{wanted.app}")
        arrays = {name: self._loaded(path) for name, path in wanted.inputs.items()}
        self._outputs = self._outputs_of(wanted)

        def prepare() -> None:
            self._program = module.prepare(arrays, self._outputs)

        seconds = compile_seconds(prepare, self.run)
        return {"schedule_s": 0.0, "compile_s": seconds, "differs": getattr(module, "DIFFERS", None)}

    def run(self) -> None:
        """Compute the results."""
        results = self._program()
        self._results = self._outputs if results is None else results

    def time(self, repeat: int) -> dict[str, Any]:
        """Run so many times."""
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
        importlib.import_module(self._folder).set_threads(wanted.threads)
        return tuple(np.empty(shape, dtype) for dtype, shape in wanted.outputs)

    def _on_host(self, array: Array) -> Array:
        return array


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(LibraryWorker(f"{system}_apps"))
