"""What rounding may do to what a pipeline computes."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

y, x = pt.vars("y x")
img, photo = pt.Input("img", "uint8", ndim=2), pt.Input("photo", "float32", ndim=2)
SINGLE, HALF = (float(np.finfo(t).eps) for t in (np.float32, np.float16))
EXACT, ROUNDED, STEPPED = pt.Rounding(), pt.Rounding(SINGLE), pt.Rounding(SINGLE, True)

VALUES = {
    "integers": (lambda: img[y, x] * 3 // 2, EXACT),
    "a comparison of integers": (lambda: pt.select(img[y, x] > 3, img[y, x], 0), EXACT),
    "floats": (lambda: pt.sqrt(photo[y, x] * 0.1), ROUNDED),
    "floats of integers": (lambda: img[y, x] * 0.1, ROUNDED),
    "floats of coarser ones": (lambda: pt.cast("float32", pt.cast("float16", photo[y, x])), pt.Rounding(HALF)),
    "minima": (lambda: pt.minimum(photo[y, x], 1.0), ROUNDED),
    "integers of floats": (lambda: pt.cast("uint8", img[y, x] * 0.1), STEPPED),
    "whole floats": (lambda: pt.floor(photo[y, x]), STEPPED),
    "choices by floats": (lambda: pt.select(photo[y, x] > 0.5, img[y, x], 0), STEPPED),
    "places of floats": (lambda: img[y, pt.clamp(pt.cast("int32", x * 0.5), 0, 9)], STEPPED),
    "sums of some": (lambda: pt.sum(photo[y, R.x], over=R.where(photo[y, R.x] > 0.5)), STEPPED),
}
R = pt.RDom((0, 10), names="x")


@pytest.mark.parametrize("name", VALUES)
def test_by_what_is_computed(name: str) -> None:
    value, rounding = VALUES[name]
    f, g = pt.Func("f"), pt.Func("g")
    f[y, x] = value()
    g[y, x] = f[y, x] + f[y + 1, x]
    p = pt.Pipeline([f, g], shape=[(8, 10)] * 2)
    assert p.rounding == (rounding, rounding)
    assert p.with_options(strict=True).rounding == (EXACT, EXACT)


def test_an_output_that_no_float_takes_part_in_is_exact_beside_others() -> None:
    f, g = pt.Func("f"), pt.Func("g")
    f[y, x], g[y, x] = (img[y, x] + 1, img[y, x] // 2), pt.cast("uint8", photo[y, x])
    p = pt.Pipeline([f, g], shape=[(8, 10)] * 2)
    assert p.rounding == (EXACT, EXACT, STEPPED)
