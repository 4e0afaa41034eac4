"""Pipelines of one kernel and of several, as the default schedule has them."""

from __future__ import annotations

from typing import Any

import pantile as pt

Y, X = pt.vars("y x")


def doubled(kind: str = "float32", name: str = "doubled") -> pt.Pipeline:
    img, out = pt.Input("img", kind, ndim=2), pt.Func(name)
    out[Y, X] = pt.cast(kind, img[Y, X] + img[Y, X])
    return pt.Pipeline(out, shape=img.shape, target="cuda")


def scaled(**options: Any) -> pt.Pipeline:
    """Takes a param."""
    img, gain, out = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32"), pt.Func("scaled")
    out[Y, X] = img[Y, X] * gain
    return pt.Pipeline(out, shape=img.shape, target="cuda", **options)


def blur() -> pt.Pipeline:
    """Two kernels and an intermediate array."""
    img = pt.Input("img", "float32", ndim=2)
    rows, out = pt.Func("rows"), pt.Func("blurred")
    rows[Y, X] = img[Y, X] + img[Y, X + 1] + img[Y, X + 2]
    out[Y, X] = rows[Y, X] + rows[Y + 1, X] + rows[Y + 2, X]
    shape = (img.shape[0] - 2, img.shape[1] - 2)
    return pt.Pipeline(out, shape=shape, target="cuda", schedule=stored("rows", "blurred"))


def diamond() -> pt.Pipeline:
    """Four kernels, of which the two in the middle need not wait for each other, and a param."""
    img, gain = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32")
    a, left, right, out = pt.Func("a"), pt.Func("left"), pt.Func("right"), pt.Func("diamond")
    a[Y, X] = img[Y, X] * 2.0
    left[Y, X] = a[Y, X] + a[Y, pt.clamp(X + 1, 0, img.shape[1] - 1)]
    right[Y, X] = a[Y, X] - gain
    out[Y, X] = left[Y, X] * right[Y, X]
    how = stored("a", "left", "right", "diamond")
    return pt.Pipeline(out, shape=img.shape, target="cuda", schedule=how)


def chain(length: int, name: str = "chain") -> pt.Pipeline:
    """As many kernels, each of which reads what the one before has written."""
    img = pt.Input("img", "float32", ndim=2)
    last: Any = img
    names = [f"{name}{k}" for k in range(length)]
    for n in names:
        f = pt.Func(n)
        f[Y, X] = last[Y, X] + last[Y, pt.clamp(X + 1, 0, img.shape[1] - 1)]
        last = f
    return pt.Pipeline(last, shape=img.shape, target="cuda", schedule=stored(*names))


def stored(*names: str) -> pt.Schedule:
    """A kernel for each, in which a block has a row and a thread every 32nd pixel of it: the simulator runs all threads
    at once, and the steps of one after the other."""

    def kernel(name: str) -> pt.StageSchedule:
        return pt.on(name).compute_root().split("x", "part", "column", 32).block("y").thread("column")

    return pt.Schedule(*map(kernel, names))
