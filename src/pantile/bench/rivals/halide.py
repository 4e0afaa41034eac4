"""Halide as a rival: drives a worker process that compiles and times its pipelines.

Halide's bindings often belong to another Python than Pantile's (Debian installs them
for the system's interpreter), hence the process of its own. Timing happens inside it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Schedule = Literal["manual", "mullapudi2016", "adams2019"]

INSTALL_HINT = (
    "no Python with Halide's bindings was found; install them with `apt install python3-halide` or `pip install halide`"
)

_BENCH_FOLDER = Path(__file__).resolve().parents[1]

# The folder goes last on the path, where none of its modules can hide another's.
_WORKER_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from rivals.halide_worker import main; main()"


class HalideError(RuntimeError):
    """Halide is missing, or its worker failed."""


@dataclass(frozen=True)
class Preparation:
    """Seconds that it took to schedule and to compile a pipeline."""

    schedule_s: float
    compile_s: float


@dataclass(frozen=True)
class Timing:
    """Milliseconds of every run of a pipeline, in order."""

    runs_ms: tuple[float, ...]

    @property
    def ms(self) -> float:
        """The fastest run."""
        return min(self.runs_ms)


def apps() -> frozenset[str]:
    """Return the names of the applications that have a Halide program."""
    modules = Path(__file__).with_name("halide_apps").glob("[!_]*.py")
    return frozenset(module.stem for module in modules)


@cache
def find_halide_python() -> Path:
    """Return an interpreter that can import ``halide``, or raise :class:`HalideError`."""
    for candidate in _candidate_pythons():
        probe = subprocess.run([candidate, "-c", "import halide"], capture_output=True, check=False)
        if probe.returncode == 0:
            return candidate
    raise HalideError(INSTALL_HINT)


def _candidate_pythons() -> Iterator[Path]:
    yield Path(sys.executable)
    for name in ("python3", "/usr/bin/python3"):
        path = shutil.which(name)
        if path is not None:
            yield Path(path)


class HalideRival:
    """A worker process, holding one pipeline at a time.

    Use it as a context manager: the process ends with the block.
    """

    def __init__(self, threads: int) -> None:
        """Start a worker whose pipelines run on `threads` threads."""
        self._threads = threads
        self._folder = tempfile.TemporaryDirectory(prefix="pantile-halide-")
        self._log = (Path(self._folder.name) / "messages.txt").open("w+")
        self._process = subprocess.Popen(
            [find_halide_python(), "-c", _WORKER_PROGRAM, str(_BENCH_FOLDER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "HL_NUM_THREADS": str(threads)},
            text=True,
        )

    def __enter__(self) -> "HalideRival":
        """Return the rival itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()

    def close(self) -> None:
        """End the process and delete the arrays it exchanged."""
        self._process.communicate()
        self._log.close()
        self._folder.cleanup()

    def prepare(
        self,
        app: str,
        schedule: Schedule,
        inputs: Mapping[str, NDArray[Any]],
        output_shape: tuple[int, ...],
    ) -> Preparation:
        """Schedule and compile `app` for these inputs; later calls refer to it."""
        answer = self._request(
            cmd="prepare",
            app=app,
            schedule=schedule,
            threads=self._threads,
            inputs={name: self._save(name, array) for name, array in inputs.items()},
            output_shape=output_shape,
        )
        return Preparation(answer["schedule_s"], answer["compile_s"])

    def time(self, repeat: int) -> Timing:
        """Run the pipeline once to warm up, then `repeat` times."""
        return Timing(tuple(self._request(cmd="time", repeat=repeat)["runs_ms"]))

    def result(self) -> NDArray[Any]:
        """Run the pipeline and return its output."""
        path = Path(self._folder.name) / "output.npy"
        self._request(cmd="result", path=str(path))
        output: NDArray[Any] = np.load(path)
        return output

    def _save(self, name: str, array: NDArray[Any]) -> str:
        path = Path(self._folder.name) / f"input-{name}.npy"
        np.save(path, np.ascontiguousarray(array))
        return str(path)

    def _messages(self) -> str:
        """Return what the worker has written to its standard error."""
        self._log.seek(0)
        return self._log.read()

    def _request(self, **request: object) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # A worker that has ended sends no answer either.
            print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise HalideError(f"the Halide worker has ended\n{self._messages()}")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise HalideError(answer["error"])
        return answer
