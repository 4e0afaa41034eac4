"""Random arrays, as the source text that creates them: contents of every kind, in every memory layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pantile.expr.types import DType

from .extremes import extremes
from .grammar import Grammar

# The bits of bfloat16 values of moderate size: 0, 1, -1, 2, 0.1, -12.5, 50
_TAME_BFLOATS = [0x0000, 0x3F80, 0xBF80, 0x4000, 0x3DCC, 0xC148, 0x4248]
_WILD = "[0.0, -0.0, 1.0, -1.5, 0.1, 255.5, -300.0, 1e-40, 3e38, float('inf'), -float('inf'), float('nan')]"


def array(g: Grammar, t: DType, shape: tuple[int, ...], tame: bool) -> str:
    """The text of an array with this shape."""
    made, view = g.pick(_LAYOUTS)(shape)
    return view.format(a=_contents(g, t, made, tame))


def _contents(g: Grammar, t: DType, shape: tuple[int, ...], tame: bool) -> str:
    rng = f"np.random.default_rng({g.number(0, 9)})"
    kind = g.pick(["random", "random", *["extreme"] * (4 if t.bits == 64 else 2), "zeros", "ramp"])
    if kind == "zeros":
        return f"np.zeros({shape}, {t.numpy.name!r})"
    if t.kind == "bfloat":
        values = _TAME_BFLOATS if tame else [*_TAME_BFLOATS, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x0001, 0x7F7F]
        return f"{rng}.choice(np.array({values}, 'uint16'), {shape})"
    if kind == "ramp":
        size = 1
        for n in shape:
            size *= n
        return f"(np.arange({size}) % 50).astype({t.name!r}).reshape({shape})"
    if t.is_float:
        if tame:
            return f"{rng}.uniform(-50, 50, {shape}).astype({t.name!r})"
        return f"{rng}.choice(np.array({_WILD}).astype({t.name!r}), {shape})"
    if kind == "extreme":
        return f"{rng}.choice(np.array({extremes(t)}, {t.name!r}), {shape})"
    return f"{rng}.integers({t.min}, {t.max}, {shape}, {t.name!r}, endpoint=True)"


Layout = Callable[[tuple[int, ...]], tuple[tuple[int, ...], str]]


def _dense(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return shape, "{a}"


def _fortran(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return shape, "np.asfortranarray({a})"


def _transposed(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return shape[::-1], "{a}.T"


def _planar(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return (*shape[-1:], *shape[:-1]), "np.moveaxis({a}, 0, -1)"


def _backwards(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return shape, "{a}[" + ", ".join(["::-1"] * len(shape)) + "]"


def _window(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return tuple(n + 3 for n in shape), "{a}[" + ", ".join(["1:-2"] * len(shape)) + "]"


def _every_second(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return tuple(2 * n for n in shape), "{a}[" + ", ".join(["::2"] * len(shape)) + "]"


def _part_of_pixels(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return (*shape[:-1], shape[-1] + 1), "{a}[..., :-1]"


_LAYOUTS: list[Layout] = [
    _dense, _dense, _dense, _fortran, _transposed, _planar, _backwards, _window, _every_second, _part_of_pixels,
]  # fmt: skip
LAYOUTS = range(len(_LAYOUTS))


def outputs_like(expected: list[Any], layouts: list[int]) -> list[Any]:
    """Empty arrays to receive results, in varied layouts."""
    import numpy as np

    result = []
    for array, k in zip(expected, layouts, strict=True):
        made, view = (_LAYOUTS[k % len(_LAYOUTS)] if array.ndim else _dense)(array.shape)
        result.append(eval(view.format(a="a"), {"np": np, "a": np.zeros(made, array.dtype)}))
    return result
