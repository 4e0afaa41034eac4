"""A rival in a process of its own, asked to compile, to run and to tell its times. What goes wrong is `Unavailable`.

Its threads and memory are then its own: none of ours wait or spin beside them. `serving` is the other end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from ..contender import Array, Label, Task, Unavailable
from .gpu_timing import better, least

BENCH_FOLDER = Path(__file__).resolve().parents[1]

# Where these libraries read how many threads they may use.
THREAD_VARIABLES = ("HL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ProcessContender:
    """A program that another process has compiled and holds."""

    def __init__(self, system: str, task: Task, python: str | Path, program: str) -> None:
        """Start `program`, given the bench folder and the system's name, and compile in it."""
        self.label = Label(system, task.schedule, task.threads)
        self._limit_s = task.limit_s
        self._outputs = len(task.outputs)
        self._folder = tempfile.TemporaryDirectory(prefix=f"pantile-{system}-")
        self._log = (Path(self._folder.name) / "messages.txt").open("w+")
        self._process = subprocess.Popen(
            [python, "-c", program, str(BENCH_FOLDER), system],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **(dict.fromkeys(THREAD_VARIABLES, str(task.threads)) if task.threads else {})},
            text=True,
        )
        try:
            prepared = self._prepare(task)
        except Unavailable:
            self.close()
            raise
        self.schedule_s: float = prepared["schedule_s"]
        self.compile_s: float = prepared["compile_s"]
        self.details: dict[str, Any] = {}
        self.differs: str | None = prepared.get("differs")

    def outputs(self) -> tuple[Array, ...]:
        """Run, and return the results."""
        paths = [Path(self._folder.name) / f"output-{k}.npy" for k in range(self._outputs)]
        self._request(cmd="result", paths=[str(path) for path in paths])
        return tuple(np.load(path) for path in paths)

    def time(self, calls: int) -> Sequence[float]:
        """Run once to warm up, then `calls` times: the milliseconds of each, measured in its process."""
        answer = self._request(cmd="time", repeat=calls)
        called, captured = answer["runs_ms"], answer.get("captured_ms", ())
        if self.label.on_gpu:
            self.details.update(least(self.details, called_ms=called, captured_ms=captured))
            self.details |= {key: answer[key] for key in ("no_graph",) if answer.get(key)}
        return better(called, captured)

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
            raise Unavailable(limit if late else f"its process has ended\n{self._messages()}")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise Unavailable(answer["error"])
        return answer

    def _exchange(self, line: str) -> str:
        """Write a line, read a line; none comes from a process that has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()

    def _messages(self) -> str:
        """What the process has written to its standard error."""
        self._log.seek(0)
        return self._log.read()


def programs(system: str) -> frozenset[str]:
    """The names of the apps that a system has a program for."""
    folder = Path(__file__).with_name(f"{system}_apps")
    if folder.is_dir():
        return frozenset(module.stem for module in folder.glob("[!_]*.py"))
    return frozenset(
        re.findall(r"^(?:def )?([a-z]\w*)(?= = |\(inputs: )", folder.with_suffix(".py").read_text(), re.MULTILINE)
    )
