"""Halide as a rival: drives a worker process that compiles and times its pipelines.

Halide's bindings often belong to another Python than Pantile's (Debian installs them for the system's interpreter),
hence the process of its own. Timing happens inside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from ..contender import Array, Label, Unavailable
from .rival import Task

SCHEDULES = ("manual", "mullapudi2016", "adams2019")

INSTALL_HINT = (
    "no Python with Halide's bindings was found; install them with `apt install python3-halide` or `pip install halide`"
)

_BENCH_FOLDER = Path(__file__).resolve().parents[1]

# The folder goes last on the path, where none of its modules can hide another's.
_WORKER_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from rivals.halide_worker import main; main()"


def apps() -> frozenset[str]:
    """The names of the apps that have a Halide program."""
    modules = Path(__file__).with_name("halide_apps").glob("[!_]*.py")
    return frozenset(module.stem for module in modules)


@cache
def find_python() -> Path:
    """An interpreter that can import `halide`; raises `Unavailable` if there is none."""
    for candidate in _candidate_pythons():
        probe = subprocess.run([candidate, "-c", "import halide"], capture_output=True, check=False)
        if probe.returncode == 0:
            return candidate
    raise Unavailable(INSTALL_HINT)


def _candidate_pythons() -> Iterator[Path]:
    yield Path(sys.executable)
    for name in ("python3", "/usr/bin/python3"):
        path = shutil.which(name)
        if path is not None:
            yield Path(path)


class HalideContender:
    """A Halide program in a process of its own. What goes wrong there is raised as `Unavailable`."""

    def __init__(self, task: Task) -> None:
        """Start the process and compile."""
        self.label = Label("halide", task.schedule, task.threads)
        self._limit_s = task.limit_s
        self._outputs = len(task.outputs)
        self._folder = tempfile.TemporaryDirectory(prefix="pantile-halide-")
        self._log = (Path(self._folder.name) / "messages.txt").open("w+")
        self._process = subprocess.Popen(
            [find_python(), "-c", _WORKER_PROGRAM, str(_BENCH_FOLDER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "HL_NUM_THREADS": str(task.threads)},
            text=True,
        )
        try:
            prepared = self._prepare(task)
        except Unavailable:
            self.close()
            raise
        self.schedule_s: float = prepared["schedule_s"]
        self.compile_s: float = prepared["compile_s"]

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""
        paths = [Path(self._folder.name) / f"output-{k}.npy" for k in range(self._outputs)]
        self._request(cmd="result", paths=[str(path) for path in paths])
        return tuple(np.load(path) for path in paths)

    def time(self, calls: int) -> Sequence[float]:
        """Run once to warm up, then `calls` times: the milliseconds of each, measured in its process."""
        runs_ms: list[float] = self._request(cmd="time", repeat=calls)["runs_ms"]
        return runs_ms

    def close(self) -> None:
        """End the process and delete the arrays exchanged with it."""
        self._process.communicate()
        self._log.close()
        self._folder.cleanup()

    def _prepare(self, task: Task) -> dict[str, Any]:
        """Schedule and compile; later requests refer to what comes of it."""
        return self._request(
            cmd="prepare",
            app=task.app,
            schedule=task.schedule,
            threads=task.threads,
            inputs={name: self._save(name, array) for name, array in task.inputs.items()},
            outputs=[(array.dtype.str, array.shape) for array in task.outputs],
        )

    def _save(self, name: str, array: Array) -> str:
        path = Path(self._folder.name) / f"input-{name}.npy"
        np.save(path, np.ascontiguousarray(array))
        return str(path)

    def _request(self, **request: object) -> dict[str, Any]:
        """Send one request and wait for its answer, but not forever."""
        timer = Timer(self._limit_s, self._process.kill)
        timer.start()
        line = self._exchange(json.dumps(request))
        late = not timer.is_alive()
        timer.cancel()
        if not line:
            limit = f"it took longer than {self._limit_s:g} s, the limit that --rival-limit sets"
            raise Unavailable(limit if late else f"the Halide worker has ended\n{self._messages()}")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise Unavailable(answer["error"])
        return answer

    def _exchange(self, line: str) -> str:
        """Write a line, read a line; none comes from a worker that has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()

    def _messages(self) -> str:
        """What the worker has written to its standard error."""
        self._log.seek(0)
        return self._log.read()
