"""The far end of :mod:`pantile.bench.rivals.process`: answering requests of `pantile bench`.

Nothing here needs more than the standard library, or Pantile itself. Requests and answers are JSON objects, one per
line, on standard input and output:

``{"cmd": "prepare", "app", "schedule", "threads", "inputs", "outputs"}``
    Builds and compiles an app. `inputs` maps names to ``.npy`` files; `outputs` lists the type string and the shape of
    each result. Answers with `schedule_s` and `compile_s`, and with `differs` if the program computes something else
    than the app: what that is.
``{"cmd": "time", "repeat"}``
    Runs once to warm up and `repeat` times more; answers with the milliseconds of each of these, `runs_ms`. On a GPU
    these are of a call among many, and `captured_ms` of a call in a CUDA graph; `no_graph` says why there is none.
``{"cmd": "result", "paths"}``
    Runs and saves each output as a ``.npy`` file.

Every answer carries `ok`; a failed request is answered with `error`.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Preparation(NamedTuple):
    """The app to prepare, as the request has it."""

    app: str
    schedule: str
    threads: int
    inputs: Mapping[str, str]
    outputs: Sequence[tuple[str, Sequence[int]]]


class Worker(Protocol):
    """Holds the program prepared last."""

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        """Build and compile; the answer's fields."""

    def run(self) -> None:
        """Compute the outputs."""

    def time(self, repeat: int) -> dict[str, Any]:
        """Run so many times, warm; the answer's fields."""

    def save(self, paths: Sequence[Path]) -> None:
        """Write the outputs as ``.npy`` files."""


def serve(worker: Worker) -> None:
    """Answer requests until standard input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        print(json.dumps(_answer(worker, json.loads(line))), file=answers, flush=True)


def _answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request; exceptions become answers that are not ok."""
    command = request.pop("cmd")
    try:
        if command == "prepare":
            return {"ok": True, **worker.prepare(Preparation(**request))}
        worker.run()
        if command == "time":
            return {"ok": True, **worker.time(request["repeat"])}
        worker.save([Path(path) for path in request["paths"]])
        return {"ok": True}
    except Exception as error:  # Whatever went wrong, the client has to hear of it.
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}


def compile_seconds(prepare: Callable[[], None], run: Callable[[], None]) -> float:
    """What preparing and the first run take and the second run does not."""
    prepared, first, second = _milliseconds(prepare), _milliseconds(run), _milliseconds(run)
    return max(0.0, prepared + first - second) / 1000


def runs_ms(run: Callable[[], None], repeat: int) -> list[float]:
    """The milliseconds of each of so many calls."""
    return [_milliseconds(run) for _ in range(repeat)]


def _milliseconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3
