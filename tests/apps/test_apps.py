"""Every app under every schedule against its mathematics: odd sizes, layouts, threads, checked and guarded runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pantile.apps import APPS
from tests.fuzz.guarded import guarded
from tests.fuzz.isolate import isolated

from .formulas import FORMULAS, Array
from .pipelines import EVERY, image, pipeline

every_app = pytest.mark.parametrize(("name", "how"), EVERY, ids=map("-".join, EVERY))
# Rows and columns of output: one pixel, one row, less than a vector, primes; LARGE has whole tiles and a bit.
ODD = [(1, 1), (1, 67), (5, 3), (13, 101)]
LARGE = (331, 521)
SIZES = [*ODD, LARGE]


def agree(name: str, img: Array, found: Array) -> None:
    """Integers agree exactly, floats to what single precision leaves of the largest value."""
    expected = FORMULAS[name](img)
    assert found.shape == expected.shape and found.dtype == img.dtype
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", APPS)
def test_reference_is_the_mathematics(name: str) -> None:
    img = image(name, 23, 37)
    agree(name, img, pipeline(name, "default").reference(img=img))


@every_app
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_odd_sizes(name: str, how: str, size: tuple[int, int]) -> None:
    img = image(name, *size)
    agree(name, img, pipeline(name, how)(img=img))


@every_app
def test_small_size(name: str, how: str) -> None:
    inputs = APPS[name].inputs("small", seed=1)
    agree(name, inputs["img"], pipeline(name, how)(**inputs))


@pytest.mark.parametrize("how", ["default", "expert"])
def test_16_bit_sums_wrap(how: str) -> None:
    img = np.random.default_rng(3).integers(0, 2**16, (71, 83), dtype=np.uint16)
    agree("blur", img, pipeline("blur", how)(img=img))


@every_app
def test_threads(name: str, how: str) -> None:
    img = image(name, *LARGE)
    once = pipeline(name, how)(img=img, num_threads=1)
    for threads in (2, 3):
        np.testing.assert_array_equal(pipeline(name, how)(img=img, num_threads=threads), once)


@every_app
def test_strict_is_the_reference_bit_for_bit(name: str, how: str) -> None:
    p, img = pipeline(name, how, strict=True), image(name, *LARGE)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))


@every_app
def test_no_access_leaves_its_buffer(name: str, how: str) -> None:
    img = image(name, *LARGE)
    agree(name, img, pipeline(name, how, debug=True)(img=img))


@every_app
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "start"])
def test_beside_an_unmapped_page(name: str, how: str, at_end: bool) -> None:
    p = pipeline(name, how)

    def run() -> None:
        for size in SIZES:
            img = image(name, *size)
            out = guarded(np.zeros_like(FORMULAS[name](img), img.dtype), at_end)
            agree(name, img, p(img=guarded(img, at_end), out=out, num_threads=2))

    isolated(run)


def interleaved(a: Array) -> Array:
    """The same values, the first axis contiguous."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)


def backwards(a: Array) -> Array:
    """The same values, last ones first in memory."""
    return np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1]


def every_other(a: Array) -> Array:
    """The same values, with others between them."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), 99, a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def window(a: Array) -> Array:
    """The same values amid a larger array."""
    wide = np.full((*a.shape[:-2], a.shape[-2] + 3, a.shape[-1] + 5), 99, a.dtype)
    wide[..., 1:-2, 3:-2] = a
    return wide[..., 1:-2, 3:-2]


@every_app
@pytest.mark.parametrize("layout", [interleaved, backwards, every_other, window])
def test_strides(name: str, how: str, layout: Callable[[Array], Array]) -> None:
    img = image(name, *LARGE)
    out = layout(np.zeros_like(FORMULAS[name](img), img.dtype))
    assert pipeline(name, how)(img=layout(img), out=out) is out
    agree(name, img, out)


def test_views_that_are_written_through_change_nothing_else() -> None:
    img = image("unsharp", 17, 29)  # of columns 4, 6, .. 60
    around = np.full((3, 21, 66), 7, np.float32)
    pipeline("unsharp", "default")(img=img, out=around[:, 2:19, 4:62:2])
    agree("unsharp", img, around[:, 2:19, 4:62:2])
    around[:, 2:19, 4:62:2] = 7
    assert (around == 7).all()
