"""Pictures as the arrays that inputs of pipelines take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..apps import Layout
from .picture import Array, Picture

_CHANNELS = {1: "plane", 3: "rgb", 4: "rgba"}


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
