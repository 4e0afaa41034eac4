"""`pantile run APP`: an app on a picture of yours."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pantile as pt

from ..apps import APPS, SCHEDULES, App, Photo
from . import pictures
from .names import WrongArgument, check
from .params import params


@dataclass(frozen=True)
class Request:
    """The command's arguments."""

    app: str
    inputs: Sequence[str]  # FILE or NAME=FILE
    output: Path
    params: Sequence[str]  # NAME=VALUE
    schedule: str
    threads: int | None


def run(request: Request) -> int:
    """Read, compute, write, and tell about it."""
    app, photo = _app(request.app)
    pipeline = _pipeline(app, request.schedule)
    values = params(pipeline, request.params)
    files = _files(photo, pipeline, request.inputs)
    pictures.check_target(request.output, list(files.values()))
    inputs = _read(photo, files)
    threads = pt.get_num_threads() if request.threads is None else request.threads
    shown = _shown(photo, _compute(pipeline, inputs, values, threads))
    pictures.write(request.output, shown)
    height, width, _ = shown.shape
    print(f"wrote     {request.output.resolve()}, {width} x {height}")
    return 0


def listing() -> str:
    """The apps that work on pictures."""
    photos = {name: app for name, app in APPS.items() if app.photo is not None}
    width = max(map(len, photos))
    return "\n".join(f"  {name.ljust(width)}  {app.description}" for name, app in photos.items())


# ---- what was asked for


def _app(name: str) -> tuple[App, Photo]:
    check(name, APPS, "app", f"these work on pictures:\n{listing()}")
    app = APPS[name]
    if app.photo is None:
        raise WrongArgument(f"{name} does not work on pictures; these do:\n{listing()}")
    return app, app.photo


def _pipeline(app: App, schedule: str) -> pt.Pipeline:
    check(schedule, SCHEDULES, "schedule")
    pipeline = app.build()
    return pipeline.with_schedule(app.schedule(schedule, pipeline.options.target))


def _files(photo: Photo, pipeline: pt.Pipeline, given: Sequence[str]) -> dict[str, Path]:
    """A file for every input: by name, or in their order."""
    names = list(photo.takes)
    files: dict[str, Path] = {}
    for item in given:
        name, equals, rest = item.partition("=")
        if equals and name in names:
            files[name] = Path(rest)
            continue
        free = [n for n in names if n not in files]
        if not free:
            raise WrongArgument(f"it takes {' and '.join(names)}, and {item} is one more")
        files[free[0]] = Path(item)
    missing = [n for n in names if n not in files and n not in photo.same]
    if missing:
        wanted = " ".join(f"--input {n}=PICTURE" if len(names) > 1 else "--input PICTURE" for n in missing)
        params = ", ".join(f"{p.name}={p.default}" for p in pipeline.graph.params)
        raise WrongArgument(f"it needs {wanted}" + (f" (and it has params: {params})" if params else ""))
    return files


# ---- the work


def _read(photo: Photo, files: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The arrays of each call: one call, or one per channel."""
    arrays: dict[str, list[Any]] = {}
    for name, path in files.items():
        picture = pictures.read(path)
        height, width, channels = picture.shape
        kind = {1: "grey", 3: "RGB", 4: "RGB with opacity"}[channels]
        print(f"read      {path}, {width} x {height}, {kind}", flush=True)
        arrays[name] = photo.takes[name].arrays(picture)
    for name, other in photo.same.items():
        arrays.setdefault(name, arrays[other])
    calls = max(len(a) for a in arrays.values())
    return [{**photo.fixed, **{name: a[k % len(a)] for name, a in arrays.items()}} for k in range(calls)]


def _compute(
    pipeline: pt.Pipeline, calls: Sequence[Mapping[str, Any]], params: Mapping[str, Any], threads: int
) -> list[Any]:
    """The results, one per call."""
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
    return results


def _shown(photo: Photo, results: list[Any]) -> Any:
    return photo.gives.picture([r[0] if isinstance(r, tuple) else r for r in results])
