"""Odd values in the place of every option, estimate, argument and index: it works, or it is a UserError there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt

from ..odd_values import ODD, assert_made_or_refused

Y, X = pt.vars("y x")
PIXELS = np.arange(20, dtype="float32").reshape(4, 5)
TYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def pipeline(shape: Any = None, dtype: str = "float32", **options: Any) -> pt.Pipeline:
    img, gain, f = pt.Input("img", "float32", 2), pt.Param("gain", dtype, default(dtype)), pt.Func("f")
    f[Y, X] = img[Y, X] * pt.cast("float32", gain)
    return pt.Pipeline(f, shape, **options)


def default(dtype: str) -> bool | int:
    return True if dtype == "bool" else 1


def rows(value: Any) -> pt.Pipeline:
    img, f = pt.Input("img", "float32", 2), pt.Func("f")
    f[X] = img[0, X]
    return pt.Pipeline(f, value)


PLAIN, GREEDY = pipeline(), pipeline(schedule="greedy", machine=pt.machine.named("i7-6700"))
PARAMS = {t: pipeline(dtype=t) for t in TYPES}
IMG = pt.Input("img", "float32", 2)
MACHINE = pt.machine.named("i7-6700")


def estimated(estimates: Any) -> pt.Pipeline:
    return pipeline(schedule="greedy", machine=MACHINE, estimates=estimates)


def defined(value: Any) -> None:
    f = pt.Func("f")
    f[value, X] = IMG[0, X]


PLACES: dict[str, Callable[[Any], object]] = {
    "estimates": estimated,
    "estimates, an input": lambda v: estimated({"img": v}),
    "estimates, an extent": lambda v: estimated({"img": (v, 5)}),
    "estimates, a param": lambda v: estimated({"img": (4, 5), "gain": v}),
    "estimates, a name": lambda v: estimated({v: (4, 5)} if v.__hash__ else 5),
    "estimates of with_schedule": lambda v: PLAIN.with_schedule("greedy", estimates=v, machine=MACHINE),
    "machine": lambda v: pipeline(machine=v),
    "machine of with_schedule": lambda v: PLAIN.with_schedule("greedy", machine=v),
    "machine by name": lambda v: pt.machine.named(v),
    "schedule": lambda v: pipeline(schedule=v),
    "strict": lambda v: pipeline(strict=v),
    "debug": lambda v: pipeline(debug=v),
    "target": lambda v: pipeline(target=v),
    "strict of with_options": lambda v: PLAIN.with_options(strict=v),
    "target of asm": lambda v: PLAIN.with_options(target=v),
    "name": lambda v: pipeline(name=v),
    "shape": lambda v: pipeline(shape=v),
    "shape, an extent": lambda v: pipeline(shape=(v, 3)),
    "shape in one dimension": rows,
    "outputs": lambda v: pt.Pipeline(v),
    "num_threads": lambda v: PLAIN(img=PIXELS, num_threads=v),
    "set_num_threads": pt.set_num_threads,
    "input": lambda v: PLAIN(img=v),
    "input of a strategy": lambda v: GREEDY(img=v),
    "input of reference": lambda v: PLAIN.reference(img=v),
    "input of compile": lambda v: PLAIN.compile(img=v),
    "extent of compile": lambda v: PLAIN.compile(img=(v, 7)),
    "input of work": lambda v: PLAIN.work(img=v),
    "out": lambda v: PLAIN(img=PIXELS, out=v),
    "outs": lambda v: PLAIN(img=PIXELS, out=(v,)),
    "ndim": lambda v: pt.Input("img", "float32", v),
    "dtype": lambda v: pt.Input("img", v, 2),
    "index of a shape": lambda v: IMG.shape[v],
    "index of a slice of a shape": lambda v: IMG.shape[1:][v],
    "index of an input": lambda v: IMG[v, X],
    "index of a definition": defined,
    **{f"param of {t}": lambda v, p=p: p(img=PIXELS, gain=v) for t, p in PARAMS.items()},
    **{f"default of {t}": lambda v, t=t: pt.Param("p", t, v) for t in TYPES},
}


@pytest.mark.parametrize("place", PLACES)
def test_works_or_is_refused_at_the_line(place: str) -> None:
    threads = pt.get_num_threads()
    try:
        for value in ODD:
            assert_made_or_refused(lambda value=value: PLACES[place](value), __file__)
    finally:
        pt.set_num_threads(threads)
