"""The job of `pantile run`, for an app or for a pipeline in a file, and pictures as the arrays that inputs take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pantile as pt

from ..apps import App, Layout, Photo
from .picture import Array, Picture, quantized

PICTURE = "picture"  # converted by an app
_CHANNELS = {1: "plane", 3: "rgb", 4: "rgba"}


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


def arrays(pictures: list[Picture], layout: Layout, taker: str) -> list[Array]:
    """The arrays of each call: one call, or one per channel. A picture that the layout cannot hold is refused."""
    each = [_in_layout(p, layout, taker) for p in pictures]
    if not layout.frames:
        if len(pictures) > 1:
            raise OSError(f"{taker} takes one picture, and {pictures[1].path} is one more")
        return each[0]
    for p, frame in zip(pictures, each, strict=True):
        if frame[0].shape != each[0][0].shape:
            raise OSError(f"{p.path} and {pictures[0].path} are not of the same size, and {taker} takes both")
    return [np.stack([frame[0] for frame in each])]


def _in_layout(picture: Picture, layout: Layout, taker: str) -> list[Array]:
    given, wanted = picture.values.dtype, np.dtype(layout.dtype)
    if wanted.kind == "b":
        holds = bool(np.isin(picture.levels, (0, 1)).all())
    elif wanted.kind == "f":
        holds = np.can_cast(given, wanted)
    else:
        assert layout.white is not None
        holds = np.can_cast(given, wanted) and picture.full <= layout.white - layout.black
    if not holds and not (given.kind == "u" and layout.is_raw(picture.levels)):
        scale = "" if layout.white in (1, 255, 65535) else f" from {layout.black:g} to {layout.white:g}"
        saved = f"save array.astype(np.{wanted})" if picture.is_array and wanted.kind == "f" else "convert the picture"
        raise OSError(
            f"{picture.path} holds {given}, and {taker} takes {wanted}{scale}, which would lose precision; {saved} "
            "first, or use a pipeline that takes more"
        )
    return layout.arrays(picture.levels)


def array_of_input(pictures: list[Picture], given: Any) -> Array:
    """The array of the file as it is if type and axes fit the input, otherwise the picture in the input's layout."""
    only, dtype = pictures[0].values, given.dtype.numpy
    if len(pictures) == 1 and pictures[0].is_array and (only.dtype, only.ndim) == (dtype, given.ndim):
        return only
    if given.dtype.name == "bfloat16" or given.ndim not in (2, 3, 4):
        raise OSError(
            f"{given.name} is an array of {given.ndim} ax{'is' if given.ndim == 1 else 'es'} of {given.dtype}, which "
            "is not a picture; save an array of that type by np.save, and give the .npy file"
        )
    white = {"u1": 255, "u2": 65535}.get(dtype.str[1:], 1 if dtype.kind in "fb" else pictures[0].full)
    layout = _layout(given.name, dtype.name, white, given.known or (None,) * given.ndim)
    (array,) = arrays(pictures, layout, given.name)
    return array


def _layout(name: str, dtype: str, white: float, known: tuple[int | None, ...]) -> Layout:
    """The layout of pictures for an input: grey if it has two axes; colours, interleaved unless channels are known to
    come first; several pictures if it has four axes."""
    if len(known) == 4:
        return replace(_layout(name, dtype, white, known[1:]), frames=True)
    if len(known) == 2:
        return Layout("grey", dtype, white)
    first, _, last = known
    interleaved = last in _CHANNELS or first not in _CHANNELS
    count = (last if interleaved else first) or 3
    if count not in _CHANNELS:
        raise OSError(
            f"{name} has {count} channels, and pictures have 1, 3 or 4; save an array by np.save, and give the .npy "
            "file"
        )
    return Layout(_CHANNELS[count], dtype, white, interleaved=interleaved)
