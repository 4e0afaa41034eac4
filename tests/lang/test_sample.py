"""Pictures between their pixels: against SciPy, against what the methods promise, and beyond the ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import pantile as pt

Y, X, C = pt.vars("y x c")
RNG = np.random.default_rng(0)
PICTURE = RNG.integers(0, 256, (23, 31), dtype=np.uint8)
PLACES = {"v": RNG.uniform(-4, 26, (19, 17)).astype(np.float32), "u": RNG.uniform(-4, 35, (19, 17)).astype(np.float32)}


def sampled(extend: Any = lambda img: img, dtype: str = "uint8", target: str | None = None, **how: Any) -> pt.Pipeline:
    img, v, u = pt.Input("img", dtype, 2), pt.Input("v", "float32", 2), pt.Input("u", "float32", 2)
    f = pt.Func("f")
    f[Y, X] = pt.sample(extend(img), v[Y, X], u[Y, X], **how)
    return pt.Pipeline(f, shape=v.shape, schedule="plain", target=target)


def check(p: pt.Pipeline, expected: np.ndarray | None = None, **arrays: np.ndarray) -> np.ndarray:
    got: np.ndarray = p(**arrays)
    np.testing.assert_allclose(got, p.reference(**arrays), rtol=1e-4, atol=1e-3)
    if expected is not None:
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)
    return got


@pytest.mark.parametrize(
    ("extend", "mode"),
    [
        (lambda img: img, "nearest"),
        (pt.edge, "nearest"),
        (pt.reflect, "reflect"),
        (pt.mirror, "mirror"),
        (pt.wrap, "grid-wrap"),
        (lambda img: pt.constant(img, 0), "grid-constant"),
    ],
)
def test_bilinear_samples_are_those_of_scipy(extend: Any, mode: str) -> None:
    places = [PLACES["v"].astype(np.float64), PLACES["u"].astype(np.float64)]
    expected = map_coordinates(PICTURE.astype(np.float64), places, order=1, mode=mode)
    check(sampled(extend), expected, img=PICTURE, **PLACES)


@pytest.mark.parametrize("target", [None, "cuda-sim"])
def test_bicubic_samples_are_right_for_polynomials_of_degree_two(target: str | None) -> None:
    rows, columns = np.mgrid[0:23, 0:31].astype(np.float32)
    inside = {"v": np.clip(PLACES["v"], 1, 20), "u": np.clip(PLACES["u"], 1, 28)}
    v, u = inside["v"], inside["u"]
    p = sampled(dtype="float32", method="bicubic", target=target)
    picture = 0.5 * rows**2 - rows * columns + 0.25 * columns**2 + 3 * columns
    check(p, 0.5 * v**2 - v * u + 0.25 * u**2 + 3 * u, img=picture, **inside)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
def test_at_whole_places_there_are_the_pixels(method: str) -> None:
    v, u = np.mgrid[0:23, 0:31].astype(np.float32)
    check(sampled(method=method), PICTURE.astype(np.float32), img=PICTURE, v=v, u=u)


def test_places_that_no_picture_has() -> None:
    v = np.array([[3e9, -3e9, np.inf, np.nan]], np.float32)
    got = check(sampled(), img=PICTURE, v=v, u=np.full_like(v, 2))
    assert got[0, :2].tolist() == [PICTURE[-1, 2], PICTURE[0, 2]]
    assert np.isnan(got[0, 2:]).all()


def test_channels_and_funcs() -> None:
    img, half, f = pt.Input("img", "uint8", 3), pt.Func("half", domain=(11, 15, 3)), pt.Func("f")
    half[Y, X, C] = img[2 * Y, 2 * X, C] / 2
    f[Y, X, C] = pt.sample(half, Y / 2, X / 2, C)
    picture = RNG.integers(0, 256, (23, 31, 3), dtype=np.uint8)
    got = check(pt.Pipeline(f, shape=(25, 33, 3), schedule="plain"), img=picture)
    np.testing.assert_allclose(got[0:21:2, 0:29:2], picture[0:21:2, 0:29:2] / 2)
    np.testing.assert_array_equal(got[22:, :29], np.broadcast_to(got[20, :29], (3, 29, 3)))


@pytest.mark.parametrize(("dtype", "result"), [("uint8", "float32"), ("float16", "float32"), ("float64", "float64")])
def test_types(dtype: str, result: str) -> None:
    assert pt.sample(pt.Input("img", dtype, 2), Y, X * 0.5).dtype.name == result
