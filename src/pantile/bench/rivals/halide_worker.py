"""A process that compiles and times Halide pipelines on request.

It runs under any Python that can import ``halide``, needs nothing else beyond the
standard library, and is driven by :mod:`pantile.bench.rivals.halide`. Requests and
answers are JSON objects, one per line, on standard input and output:

``{"cmd": "prepare", "app", "schedule", "threads", "inputs", "output_shape"}``
    Builds and compiles an application. `inputs` maps names to ``.npy`` files;
    `schedule` is ``"manual"`` or the name of an autoscheduler. Answers with
    `schedule_s` and `compile_s`.
``{"cmd": "time", "repeat"}``
    Runs the pipeline `repeat` times and answers with the fastest run, `ms`, and with
    all of them, `runs_ms`.
``{"cmd": "result", "path"}``
    Saves the output as a ``.npy`` file.

Every answer carries `ok`; a failed request is answered with `error`. Halide reads the
number of threads from ``HL_NUM_THREADS`` when the process starts its first pipeline.
"""

import ast
import importlib
import json
import math
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import halide as hl

AUTOSCHEDULERS = {"mullapudi2016": "Mullapudi2016", "adams2019": "Adams2019"}
CACHE_BYTES = 1 << 20
LOAD_COST = 40

# Type strings of the .npy format, as item formats of memoryview and as Halide types.
ELEMENT_TYPES = {
    "|u1": ("B", hl.UInt(8)),
    "<u2": ("H", hl.UInt(16)),
    "<i2": ("h", hl.Int(16)),
    "<i4": ("i", hl.Int(32)),
    "<f4": ("f", hl.Float(32)),
}

NPY_MAGIC = b"\x93NUMPY"


class Array:
    """A dense array in pages of its own, seen by Halide as a buffer.

    The buffer may have rows to spare above and below the array's, at negative
    coordinates and past the end.
    """

    def __init__(self, dtype: str, shape: Sequence[int], spare_rows: int = 0) -> None:
        """Allocate a zeroed array; huge pages are asked for, as NumPy does."""
        item_format: Any
        item_format, self.halide_type = ELEMENT_TYPES[dtype]
        self.dtype = dtype
        self.shape = tuple(shape)
        *planes, rows, columns = shape
        allocated = (*planes, rows + 2 * spare_rows, columns)
        self._row_bytes = columns * struct.calcsize(item_format)
        self._spare_rows = spare_rows
        self._memory = mmap.mmap(-1, math.prod(allocated[:-1]) * self._row_bytes)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self.buffer = _innermost_first(hl.Buffer(memoryview(self._memory).cast(item_format, allocated)))
        self.buffer.set_min([0, -spare_rows, *(0 for _ in planes)])

    @classmethod
    def load(cls, path: Path, spare_rows: int) -> "Array":
        """Read a C-ordered ``.npy`` file."""
        with path.open("rb") as file:
            dtype, shape = _read_npy_header(file)
            array = cls(dtype, shape, spare_rows)
            for plane in array._planes():
                file.readinto(plane)
        return array

    def save(self, path: Path) -> None:
        """Write a ``.npy`` file of format version 1.0."""
        header = repr({"descr": self.dtype, "fortran_order": False, "shape": self.shape})
        prefix = len(NPY_MAGIC) + 4
        padded = header + " " * (-(prefix + len(header) + 1) % 64) + "\n"
        with path.open("wb") as file:
            file.write(NPY_MAGIC + bytes((1, 0)) + struct.pack("<H", len(padded)))
            file.write(padded.encode("latin1"))
            file.writelines(self._planes())

    def _planes(self) -> Iterator[memoryview]:
        """Yield the bytes of each plane, without the spare rows."""
        *planes, rows, _ = self.shape
        for plane in range(math.prod(planes)):
            first = plane * (rows + 2 * self._spare_rows) + self._spare_rows
            yield memoryview(self._memory)[first * self._row_bytes : (first + rows) * self._row_bytes]


class Worker:
    """Holds the pipeline prepared last and answers requests about it."""

    def __init__(self) -> None:
        """Start with no pipeline."""
        self._target = hl.get_jit_target_from_environment()
        self._pipeline: hl.Pipeline | None = None
        self._images: dict[str, tuple[hl.ImageParam, Array]] = {}
        self._output: Array | None = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out one request; exceptions become answers that are not ok."""
        commands: dict[str, Callable[..., dict[str, Any]]] = {
            "prepare": self._prepare,
            "time": self._time,
            "result": self._result,
        }
        try:
            arguments = {key: value for key, value in request.items() if key != "cmd"}
            return {"ok": True, **commands[request["cmd"]](**arguments)}
        except Exception as error:  # Whatever went wrong, the client has to hear of it.
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}

    def _prepare(
        self,
        app: str,
        schedule: str,
        threads: int,
        inputs: Mapping[str, str],
        output_shape: Sequence[int],
    ) -> dict[str, Any]:
        module = importlib.import_module(f"{__package__}.halide_apps.{app}")
        self._images = {
            name: _bind_image(name, Array.load(Path(path), module.SPARE_ROWS)) for name, path in inputs.items()
        }
        self._output = Array(module.OUTPUT_DTYPE, output_shape)
        self._output.buffer.set_min(list(module.ORIGIN))

        start = time.perf_counter()
        manual = schedule == "manual"
        parameters = {name: parameter for name, (parameter, _) in self._images.items()}
        output = module.build(parameters, self._target, manual=manual)
        output.set_estimates(list(zip(module.ORIGIN, reversed(output_shape), strict=True)))
        self._pipeline = hl.Pipeline(output)
        if not manual:
            _autoschedule(self._pipeline, self._target, schedule, threads)
        scheduled = time.perf_counter()
        self._pipeline.compile_jit(self._target)
        compiled = time.perf_counter()
        return {"schedule_s": scheduled - start, "compile_s": compiled - scheduled}

    def _time(self, repeat: int) -> dict[str, Any]:
        self._run()
        runs_ms = [self._run() for _ in range(repeat)]
        return {"ms": min(runs_ms), "runs_ms": runs_ms}

    def _run(self) -> float:
        """Run the pipeline once and return the milliseconds it took."""
        if self._pipeline is None or self._output is None:
            raise RuntimeError("no pipeline has been prepared")
        start = time.perf_counter()
        self._pipeline.realize(self._output.buffer, self._target)
        return (time.perf_counter() - start) * 1e3

    def _result(self, path: str) -> dict[str, Any]:
        if self._output is None:
            raise RuntimeError("no pipeline has been prepared")
        self._run()
        self._output.save(Path(path))
        return {}


def _read_npy_header(file: IO[bytes]) -> tuple[str, tuple[int, ...]]:
    """Return the type string and the shape, leaving `file` at the first element."""
    magic = file.read(len(NPY_MAGIC))
    major, _ = file.read(2)
    if magic != NPY_MAGIC or major != 1:
        raise ValueError("expected a .npy file of format version 1.0")
    (length,) = struct.unpack("<H", file.read(2))
    header = ast.literal_eval(file.read(length).decode("latin1"))
    if header["fortran_order"]:
        raise ValueError("expected an array in C order")
    return header["descr"], header["shape"]


def _innermost_first(buffer: hl.Buffer) -> hl.Buffer:
    """Put the contiguous dimension first, as newer releases of Halide do unasked."""
    rank = buffer.dimensions()
    if buffer.dim(0).stride() == 1:
        return buffer
    return buffer.transposed(list(reversed(range(rank))))


def _bind_image(name: str, array: Array) -> tuple[hl.ImageParam, Array]:
    """Make a pipeline parameter that holds `array`, and keep the two together."""
    rank = len(array.shape)
    parameter = hl.ImageParam(array.halide_type, rank, name)
    parameter.set(array.buffer)
    for dimension, extent in enumerate(reversed(array.shape)):
        parameter.dim(dimension).set_estimate(0, extent)
    return parameter, array


def _autoschedule(pipeline: hl.Pipeline, target: hl.Target, name: str, threads: int) -> None:
    """Let the autoscheduler `name` schedule `pipeline`."""
    if name not in AUTOSCHEDULERS:
        raise ValueError(f"unknown schedule {name!r}; known: manual, {', '.join(AUTOSCHEDULERS)}")
    hl.load_plugin(_plugin_path(name))
    if hasattr(hl, "MachineParams"):  # Up to Halide 14.
        machine = hl.MachineParams(threads, CACHE_BYTES, LOAD_COST)
        pipeline.auto_schedule(AUTOSCHEDULERS[name], target, machine)
        return
    settings = {"parallelism": str(threads)}
    if name == "mullapudi2016":
        settings |= {"last_level_cache_size": str(CACHE_BYTES), "balance": str(LOAD_COST)}
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(AUTOSCHEDULERS[name], settings))


def _plugin_path(name: str) -> str:
    """Find the shared library of an autoscheduler, or leave the search to the loader."""
    library = f"libautoschedule_{name}.so"
    package = Path(hl.__file__).parent
    folders = [
        *package.glob("lib*"),
        *Path("/usr/lib").glob("*/halide*"),
        *Path("/usr/local/lib").glob("halide*"),
    ]
    found = (folder / library for folder in folders if (folder / library).is_file())
    return str(next(found, Path(library)))


def main() -> None:
    """Answer requests until standard input ends."""
    # Halide's own messages must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = Worker()
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)
