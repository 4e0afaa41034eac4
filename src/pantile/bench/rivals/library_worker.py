"""A process that runs programs of Python libraries on request (see :mod:`.serving`).

The programs of a system are the modules of the folder ``SYSTEM_apps``, one per app. Each offers
``prepare(inputs, outputs)``: given the input arrays by name and output arrays of the right types and shapes, it does
what is done once, and returns a function that computes the results and returns them, in those arrays or others.
``DIFFERS`` says what it computes instead, where that is not quite what the app does.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .serving import compile_seconds, runs_ms, serve

Array = NDArray[Any]
Arrays = Array | tuple[Array, ...]


class LibraryWorker:
    """Holds the program prepared last, with its arrays."""

    def __init__(self, system: str) -> None:
        """Start without a program."""
        self._system = system
        self._compute: Callable[[], Arrays] | None = None
        self._results: Arrays = ()

    def prepare(
        self,
        app: str,
        schedule: str,
        threads: int,
        inputs: Mapping[str, str],
        outputs: Sequence[tuple[str, Sequence[int]]],
    ) -> dict[str, Any]:
        """Compiling is what the first run does and the second need not."""
        del schedule  # There is one.
        module = importlib.import_module(f"{__package__}.{self._system}_apps.{app}")
        package = importlib.import_module(f"{__package__}.{self._system}_apps")
        package.set_threads(threads)
        arrays = {name: np.load(path) for name, path in inputs.items()}
        made = tuple(np.empty(shape, dtype) for dtype, shape in outputs)

        def compute() -> None:
            self._compute = module.prepare(arrays, made)

        seconds = compile_seconds(compute, self.run)
        return {"schedule_s": 0.0, "compile_s": seconds, "differs": getattr(module, "DIFFERS", None)}

    def run(self) -> None:
        """Compute the results."""
        if self._compute is None:
            raise RuntimeError("no program has been prepared")
        self._results = self._compute()

    def time(self, repeat: int) -> dict[str, Any]:
        """Run so many times."""
        return {"runs_ms": runs_ms(self.run, repeat)}

    def save(self, paths: Sequence[Path]) -> None:
        """Write the results as ``.npy`` files."""
        results = self._results if isinstance(self._results, tuple) else (self._results,)
        for array, path in zip(results, paths, strict=True):
            np.save(path, array)


def main(system: str) -> None:
    """Answer requests until standard input ends."""
    serve(LibraryWorker(system))
