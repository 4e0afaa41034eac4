"""`pantile run`: runs an app, or a pipeline in a file, on pictures."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pantile as pt

from ..apps import APPS, SCHEDULES, App, Photo
from ..apps.named import in_file, is_in_file
from ..apps.names import WrongArgument, check, params
from .job import Job, JobResult, job_of_app, job_of_pipeline
from .picture import Array, Picture, deepest
from .reading import read
from .writing import check_place, type_in_file, write

DEFAULT_OUTPUT = "out.png"


def run(options: Namespace) -> int:
    """Read, compute, write, and print about it."""
    if options.app is None:
        usage = "pantile run APP --input PICTURE --output PICTURE"
        print(f"{usage}, where APP is your own pipeline (FILE.py:NAME), or one of\n{listing()}")
        return 0
    job = job_named(options.app, options.schedule)
    values = params(job.pipeline, options.param)
    files = _sources(job, options.input)
    targets = _targets(job, options.output)
    for path in targets.values():
        check_place(path, [source for paths in files.values() for source in paths])
    pictures = _pictures(files)
    needed = deepest([p for several in pictures.values() for p in several])
    for result in job.results(needed):
        _check_type(result, job, targets, needed)
    calls = job.arguments(pictures)
    _tell_inputs(pictures, calls[0])
    threads = options.threads or pt.get_num_threads()
    made = job.converted(_compute(job.pipeline, calls, values, threads), needed)
    for name, array in zip(job.outputs, made, strict=True):
        if name in targets:
            _write(targets[name], array, type_in_file(targets[name], array.dtype, array.ndim, needed))
    return 0


def listing() -> str:
    """The apps that work on pictures."""
    photos = {name: app for name, app in APPS.items() if app.photo is not None}
    width = max(map(len, photos))
    return "\n".join(f"  {name.ljust(width)}  {app.description}" for name, app in photos.items())


# ---- the request


def job_named(target: str, schedule: str) -> Job:
    """The job of an app that works on pictures, or of FILE.py:NAME."""
    check(schedule, SCHEDULES, "schedule")
    if is_in_file(target):
        pipeline = in_file(target)
        by_name = schedule != "expert"  # under the schedule in the file
        return job_of_pipeline(pipeline.with_schedule(schedule) if by_name else pipeline)
    app, photo = _app(target)
    pipeline = app.build()
    return job_of_app(app, photo, pipeline.with_schedule(app.schedule(schedule, pipeline.options.target)))


def read_inputs(job: Job, given: Sequence[str]) -> dict[str, list[Picture]]:
    """The pictures of every input, given as FILE or NAME=FILE."""
    return _pictures(_sources(job, given))


def _pictures(files: Mapping[str, Sequence[Path]]) -> dict[str, list[Picture]]:
    return {name: [read(path) for path in paths] for name, paths in files.items()}


def _app(name: str) -> tuple[App, Photo]:
    check(name, APPS, "app", f"a pipeline of yours is FILE.py:NAME, and these apps work on pictures:\n{listing()}")
    app = APPS[name]
    if app.photo is None:
        raise WrongArgument(f"{name} does not work on pictures; these do:\n{listing()}")
    return app, app.photo


def _sources(job: Job, given: Sequence[str]) -> dict[str, list[Path]]:
    """The files of every input, by name or in order. An input for several pictures gets all that remain."""
    files: dict[str, list[Path]] = {}
    for item in given:
        name, equals, rest = item.partition("=")
        if equals and name in job.inputs:
            files.setdefault(name, []).append(Path(rest))
            continue
        free = [n for n in job.inputs if n not in files] or list(job.several)
        if not free:
            takes = " and ".join(job.inputs) or "no arrays"
            raise WrongArgument(f"it takes {takes}, and {item} is one more")
        files.setdefault(free[0], []).append(Path(item))
    missing = [n for n in job.inputs if n not in files and n not in job.optional]
    if missing:
        wanted = " ".join(f"--input {n}=PICTURE" if len(job.inputs) > 1 else "--input PICTURE" for n in missing)
        known = ", ".join(f"{p.name}={p.default}" for p in job.pipeline.graph.params)
        raise WrongArgument(f"it needs {wanted}" + (f" (and it has params: {known})" if known else ""))
    return files


def _targets(job: Job, given: Sequence[str]) -> dict[str, Path]:
    """The file of every output. One name for several outputs is extended by their names."""
    items = list(given) or [DEFAULT_OUTPUT]
    if len(items) == 1 and len(job.outputs) > 1 and not _named(items[0], job):
        path = Path(items[0])
        return {name: path.with_name(f"{path.stem}-{name}{path.suffix}") for name in job.outputs}
    files: dict[str, Path] = {}
    for item in items:
        free = [n for n in job.outputs if n not in files]
        name = _named(item, job) or (free[0] if free else "")
        if not name or name in files:
            raise WrongArgument(f"it gives {' and '.join(job.outputs)}, and --output {item} is one more")
        files[name] = Path(item.partition("=")[2] if _named(item, job) else item)
    if len(set(files.values())) < len(files):
        raise WrongArgument("two outputs would be written to the same file; name another --output")
    return files


def _named(item: str, job: Job) -> str:
    """The output that NAME=FILE names, if any."""
    name, equals, _ = item.partition("=")
    return name if equals and name in job.outputs else ""


def _check_type(result: JobResult, job: Job, targets: Mapping[str, Path], needed: Any) -> None:
    """Raise an error for files that cannot hold a result, with advice on naming another."""
    try:
        if result.name in targets:
            type_in_file(targets[result.name], result.dtype, result.ndim, needed)
    except OSError as error:
        if len(job.outputs) == 1:
            raise
        name = result.name
        raise OSError(f"{error} (the outputs are {', '.join(job.outputs)}; write --output {name}=FILE)") from error


# ---- the work


def _tell_inputs(pictures: Mapping[str, list[Picture]], call: Mapping[str, Array]) -> None:
    for name, several in pictures.items():
        array = call[name]
        scale = " in 0 .. 1" if array.dtype.kind == "f" and several[0].full > 1 else ""
        for picture in several:
            print(f"read      {picture} -> {name}: {array.dtype}{list(array.shape)}{scale}", flush=True)


def _compute(
    pipeline: pt.Pipeline, calls: Sequence[Mapping[str, Any]], params: Mapping[str, Any], threads: int
) -> list[list[Array]]:
    """The results of each call."""
    if sys.stderr.isatty():
        print("compiling ...", end="\r", file=sys.stderr, flush=True)
    start = time.perf_counter()
    pipeline.compile(**calls[0], **params)
    compiled = time.perf_counter()
    how = "compiled" if "llvm" in pipeline.timings else "loaded from the compile cache"
    print(f"code      {how} in {compiled - start:.2f} s", flush=True)
    results = [pipeline(**call, **params, num_threads=threads) for call in calls]
    seconds = time.perf_counter() - compiled
    each = f", {len(calls)} channels one after the other" if len(calls) > 1 else ""
    print(f"ran       in {1e3 * seconds:.1f} ms on {threads} thread{'s' if threads > 1 else ''}{each}", flush=True)
    return [list(r) if isinstance(r, tuple) else [r] for r in results]


def _write(path: Path, array: Array, dtype: Any) -> None:
    first, *others = write(path, array, dtype)
    print(f"wrote     {first}")
    for line in others:
        print(f"          {line}")
