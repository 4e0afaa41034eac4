"""A process that compiles and times Halide pipelines on request (see :mod:`.serving`).

It runs under any Python that can import ``halide``, and needs nothing else beyond the standard library. A schedule is
``"manual"`` or the name of an autoscheduler. Halide reads the number of threads from ``HL_NUM_THREADS`` when it starts
its first pipeline.
"""

import ast
import ctypes
import importlib
import math
import mmap
import os
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import halide as hl

from .serving import Preparation, runs_ms, serve

AUTOSCHEDULERS = {
    "mullapudi2016": "Mullapudi2016",
    "li2018": "Li2018",
    "adams2019": "Adams2019",
    "anderson2021": "Anderson2021",
}
CACHE_BYTES = 1 << 20
LOAD_COST = 40
# Parallelism and bytes of cache of Mullapudi2016 on GPUs: those of its paper, and of Halide's benchmarks on newer ones.
ON_GPUS = ((128, 48 << 10), (4096, 10_000))

# Type strings of the .npy format, as item formats of struct and memoryview and as Halide types.
ELEMENT_TYPES = {
    "|b1": ("?", hl.Bool()),
    "|u1": ("B", hl.UInt(8)),
    "|i1": ("b", hl.Int(8)),
    "<u2": ("H", hl.UInt(16)),
    "<i2": ("h", hl.Int(16)),
    "<u4": ("I", hl.UInt(32)),
    "<i4": ("i", hl.Int(32)),
    "<u8": ("Q", hl.UInt(64)),
    "<i8": ("q", hl.Int(64)),
    "<f2": ("e", hl.Float(16)),
    "<f4": ("f", hl.Float(32)),
    "<f8": ("d", hl.Float(64)),
}

Settings = dict[str, int]  # of an autoscheduler

NPY_MAGIC = b"\x93NUMPY"
HUGE_PAGE = 2 << 20  # bytes


class HalideArray:
    """A dense array in memory of its own, seen by Halide as a buffer.

    The buffer may have rows to spare above and below the array's, at negative
    coordinates and past the end.
    """

    def __init__(self, dtype: str, shape: Sequence[int], spare_rows: int = 0) -> None:
        """Allocate a zeroed array."""
        item_format, self.halide_type = ELEMENT_TYPES[dtype]
        self.dtype = dtype
        self.shape = tuple(shape)
        self._rows, columns = (1, *shape)[-2:]
        self._planes = math.prod(shape[:-2])
        self._row_bytes = columns * struct.calcsize(item_format)
        self._spare_rows = spare_rows if len(shape) > 1 else 0
        allocated = list(shape)
        if self._spare_rows:
            allocated[-2] += 2 * spare_rows
        self.buffer, self._bytes = _allocate(item_format, self.halide_type, allocated)
        if self._spare_rows:
            self.buffer.set_min([0, -spare_rows, *(0 for _ in shape[:-2])])

    @classmethod
    def load(cls, path: Path, spare_rows: int) -> "HalideArray":
        """Read a C-ordered ``.npy`` file."""
        with path.open("rb") as file:
            dtype, shape = _read_npy_header(file)
            array = cls(dtype, shape, spare_rows)
            for plane in array._plane_bytes():
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
            file.writelines(self._plane_bytes())

    def _plane_bytes(self) -> Iterator[memoryview]:
        """Yield the bytes of each plane, without the spare rows."""
        for plane in range(self._planes):
            first = plane * (self._rows + 2 * self._spare_rows) + self._spare_rows
            yield self._bytes[first * self._row_bytes : (first + self._rows) * self._row_bytes]


def _allocate(item_format: str, halide_type: Any, shape: Sequence[int]) -> tuple[hl.Buffer, memoryview]:
    """Zeroed memory, as a buffer whose contiguous dimension comes first, and as bytes.

    Huge pages are asked for, as NumPy does. Linux gives them to private memory, and on its own aligns only what is a
    whole number of them. Halves are the exception, which a memoryview cannot hold before Python 3.12: Halide allocates
    those.
    """
    if item_format == "e":
        halves = hl.Buffer(halide_type, list(reversed(shape)))
        halves.fill(0)
        exporter = halves if memoryview(halves).c_contiguous else _reversed(halves)
        size = 2 * math.prod(shape)
        return halves, memoryview((ctypes.c_char * size).from_buffer(exporter)).cast("B")
    size = math.prod(shape) * struct.calcsize(item_format)
    memory = mmap.mmap(-1, math.ceil(size / HUGE_PAGE) * HUGE_PAGE, access=mmap.ACCESS_COPY)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    view: Any = memoryview(memory)[:size]
    buffer = hl.Buffer(view.cast(item_format, list(shape)))
    # Newer releases of Halide put the contiguous dimension first unasked.
    return buffer if buffer.dim(0).stride() == 1 else _reversed(buffer), view


def _reversed(buffer: hl.Buffer) -> hl.Buffer:
    """A view of the buffer with its dimensions in reverse order."""
    return buffer.transposed(list(reversed(range(buffer.dimensions()))))


class HalideWorker:
    """Holds the pipeline prepared last, with its arrays."""

    _pipeline: hl.Pipeline

    def __init__(self, target: hl.Target | None = None) -> None:
        self._target = target or hl.get_jit_target_from_environment()
        self._images: dict[str, tuple[hl.ImageParam, HalideArray]] = {}
        self._outputs: list[HalideArray] = []
        self._buffers: Any = None  # of the outputs, as Halide wants them: one, or a list

    def prepare(self, wanted: Preparation) -> dict[str, Any]:
        module = importlib.import_module(f"{__package__}.halide_apps.{wanted.app}")
        spare_rows = getattr(module, "SPARE_ROWS", 0)
        self._images = {
            name: _bind_image(name, HalideArray.load(Path(path), spare_rows)) for name, path in wanted.inputs.items()
        }
        self._outputs = [HalideArray(dtype, shape) for dtype, shape in wanted.outputs]
        buffers = [array.buffer for array in self._outputs]
        self._buffers = buffers[0] if len(buffers) == 1 else buffers
        origins = _origins(module, self._outputs)
        for array, origin in zip(self._outputs, origins, strict=True):
            array.buffer.set_min(list(origin))

        settings = _settings(wanted, self._target, getattr(module, "BEAM_SIZE", None))
        if len(settings) > 1:
            settings = [min(settings, key=lambda s: self._ms(module, wanted.schedule, origins, s))]
        return self._compiled(module, wanted.schedule, origins, settings[0])

    def _ms(self, module: ModuleType, schedule: str, origins: Sequence[tuple[int, ...]], settings: Settings) -> float:
        """The time of a call under these settings of an autoscheduler; infinite if Halide cannot compile or run it."""
        try:
            self._compiled(module, schedule, origins, settings)
            self.run()
            return min(runs_ms(self.run, 3))
        except Exception:  # of Halide, whose kinds depend on the release
            return math.inf

    def _compiled(
        self, module: ModuleType, schedule: str, origins: Sequence[tuple[int, ...]], settings: Settings
    ) -> dict[str, Any]:
        """Build, schedule and compile the pipeline to run."""
        start = time.perf_counter()
        parameters = {name: parameter for name, (parameter, _) in self._images.items()}
        built = module.build(parameters, self._target, manual=schedule == "manual")
        funcs = list(built) if isinstance(built, (list, tuple)) else [built]
        _estimate(funcs, self._outputs, origins)
        self._pipeline = hl.Pipeline(funcs)
        if schedule != "manual":
            _autoschedule(self._pipeline, self._target, schedule, settings)
        scheduled = time.perf_counter()
        self._pipeline.compile_jit(self._target)
        compiled = time.perf_counter()
        return {"schedule_s": scheduled - start, "compile_s": compiled - scheduled}

    def run(self) -> None:
        self._pipeline.realize(self._buffers, self._target)

    def time(self, repeat: int) -> dict[str, Any]:
        return {"runs_ms": runs_ms(self.run, repeat)}

    def save(self, paths: Sequence[Path]) -> None:
        for array, path in zip(self._outputs, paths, strict=True):
            array.save(path)


def _origins(module: ModuleType, outputs: Sequence[HalideArray]) -> list[tuple[int, ...]]:
    """The first coordinates of each output: all zero unless the module says otherwise."""
    zeros = [(0,) * len(array.shape) for array in outputs]
    return [getattr(module, "ORIGIN", zeros[0])] if len(outputs) == 1 else getattr(module, "ORIGINS", zeros)


def _estimate(funcs: Sequence[hl.Func], outputs: Sequence[HalideArray], origins: Sequence[tuple[int, ...]]) -> None:
    """Tell autoschedulers the sizes; a Func of several values has as many outputs, of one shape."""
    index = 0
    for func in funcs:
        func.set_estimates(list(zip(origins[index], reversed(outputs[index].shape), strict=True)))
        index += func.outputs()


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


def _bind_image(name: str, array: HalideArray) -> tuple[hl.ImageParam, HalideArray]:
    """Make a pipeline parameter that holds `array`, and keep the two together."""
    rank = len(array.shape)
    parameter = hl.ImageParam(array.halide_type, rank, name)
    parameter.set(array.buffer)
    for dimension, extent in enumerate(reversed(array.shape)):
        parameter.dim(dimension).set_estimate(0, extent)
    return parameter, array


def _settings(wanted: Preparation, target: hl.Target, beam_size: int | None) -> list[Settings]:
    """The settings of an autoscheduler; where there are several, the fastest is to be found. Those that search have a
    `beam_size`, None for their own."""
    if wanted.schedule == "mullapudi2016" and target.has_gpu_feature():
        return [{"experimental_gpu_schedule": 1, "parallelism": p, "last_level_cache_size": c} for p, c in ON_GPUS]
    settings = {"parallelism": wanted.threads}
    if wanted.schedule == "mullapudi2016":
        settings |= {"last_level_cache_size": CACHE_BYTES, "balance": LOAD_COST}
    elif beam_size is not None and wanted.schedule in ("adams2019", "anderson2021"):
        settings["beam_size"] = beam_size
    return [settings]


def _autoschedule(pipeline: hl.Pipeline, target: hl.Target, name: str, settings: Settings) -> None:
    """Let the autoscheduler `name` schedule `pipeline`."""
    if name not in AUTOSCHEDULERS:
        raise ValueError(f"unknown schedule {name!r}; known: manual, {', '.join(AUTOSCHEDULERS)}")
    hl.load_plugin(_plugin_path(name))
    if hasattr(hl, "MachineParams"):  # Up to Halide 14.
        if "beam_size" in settings:
            os.environ["HL_BEAM_SIZE"] = str(settings["beam_size"])
        machine = hl.MachineParams(settings["parallelism"], CACHE_BYTES, LOAD_COST)
        pipeline.auto_schedule(AUTOSCHEDULERS[name], target, machine)
        return
    texts = {parameter: str(value) for parameter, value in settings.items()}
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(AUTOSCHEDULERS[name], texts))


def _plugin_path(name: str) -> str:
    """Find the shared library of an autoscheduler, or leave the search to the loader."""
    library = f"libautoschedule_{name}.so"
    paths = (folder / library for folder in library_folders() if (folder / library).is_file())
    return str(next(paths, Path(library)))


def library_folders() -> list[Path]:
    """Where an installation may have its libraries."""
    package = Path(hl.__file__).parent
    return [*package.glob("lib*"), *Path("/usr/lib").glob("*/halide*"), *Path("/usr/local/lib").glob("halide*")]


def main() -> None:
    """Answer requests until standard input ends."""
    serve(HalideWorker())
