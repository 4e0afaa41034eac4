"""The job of `pantile run`, for an app or for a pipeline in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pantile as pt

from ..apps import App, Photo
from .arguments import array_of_input, arrays
from .picture import Array, Picture, quantized

PICTURE = "picture"  # converted by an app


@dataclass(frozen=True)
class JobResult:
    """An output array. That of an app may have an additional axis of channels, if its picture has."""

    name: str
    dtype: np.dtype[Any]
    ndim: int


@dataclass(frozen=True)
class Job:
    """A pipeline, and the conversion of pictures to arguments and of results to pictures.

    inputs    the names of inputs that take pictures, in order
    optional  those of them that may be omitted
    several   those of them that take several pictures, one after another
    outputs   the names of the outputs to write
    arguments the arrays of each call, from pictures by input: one call, or one per channel
    results   the outputs, if pixels of the inputs need a given type
    converted the arrays to write, from what the calls return and of that type
    """

    pipeline: pt.Pipeline
    inputs: Sequence[str]
    optional: Sequence[str]
    several: Sequence[str]
    outputs: Sequence[str]
    arguments: Callable[[Mapping[str, list[Picture]]], list[dict[str, Array]]]
    results: Callable[[np.dtype[Any]], list[JobResult]]
    converted: Callable[[list[list[Array]], np.dtype[Any]], list[Array]]


def job_of_app(app: App, photo: Photo, pipeline: pt.Pipeline) -> Job:
    """The job of an app that works on pictures."""
    inputs = {i.name: i for i in pipeline.graph.arguments}

    def arguments(pictures: Mapping[str, list[Picture]]) -> list[dict[str, Array]]:
        of = {n: arrays(p, photo.takes[n], app.name) for n, p in pictures.items() if n in photo.takes}
        of |= {n: [array_of_input(p, inputs[n])] for n, p in pictures.items() if n in photo.fixed}
        for name, other in photo.same.items():
            of.setdefault(name, of[other])
        calls = max(len(a) for a in of.values())
        return [{**photo.fixed, **{name: a[k % len(a)] for name, a in of.items()}} for k in range(calls)]

    def results(deepest: np.dtype[Any]) -> list[JobResult]:
        ndim = 3 if photo.gives.channels in ("rgb", "rgba", "bgr") else 2
        return [JobResult(PICTURE, _type_of_picture(photo.gives.dtype, deepest), ndim)]

    def converted(calls: list[list[Array]], deepest: np.dtype[Any]) -> list[Array]:
        levels = photo.gives.levels([arrays[0] for arrays in calls])
        dtype = _type_of_picture(photo.gives.dtype, deepest)
        shown = levels[..., 0] if levels.shape[2] == 1 else levels
        return [shown if dtype.kind == "f" else quantized(shown, dtype)]

    optional = [*photo.same, *photo.fixed]
    several = [name for name, layout in photo.takes.items() if layout.frames]
    return Job(pipeline, [*photo.takes, *photo.fixed], optional, several, [PICTURE], arguments, results, converted)


def _type_of_picture(dtype: str, deepest: np.dtype[Any]) -> np.dtype[Any]:
    """The type of an output picture: as deep as the input pictures, but no deeper than the app computes."""
    return np.dtype(np.uint8) if np.dtype(dtype).itemsize == 1 else deepest


def job_of_pipeline(pipeline: pt.Pipeline) -> Job:
    """The job of a pipeline: all inputs are required, and all outputs are written unchanged."""
    inputs = {i.name: i for i in pipeline.graph.arguments}
    stages = [pipeline.graph.stage[o.stage] for o in pipeline.graph.outputs]
    outputs = [
        JobResult(buffer.removesuffix(".out"), dtype.numpy, stage.ndim)
        for stage in stages
        for buffer, dtype in zip(stage.buffers, stage.dtypes, strict=True)
    ]

    def arguments(pictures: Mapping[str, list[Picture]]) -> list[dict[str, Array]]:
        return [{name: array_of_input(p, inputs[name]) for name, p in pictures.items()}]

    names = [r.name for r in outputs]
    several = [name for name, i in inputs.items() if i.ndim == 4]
    return Job(pipeline, list(inputs), (), several, names, arguments, lambda _: outputs, lambda calls, _: calls[0])
