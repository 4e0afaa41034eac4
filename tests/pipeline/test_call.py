"""Calling: arrays in and out, of any layout and number, with params; results are the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt

from .examples import Array, X, Y, blur, picture, scaled


def test_the_example_of_the_readme() -> None:
    y, x, i = pt.vars("y x i")
    img, gain = pt.Input("img", "uint8", ndim=3), pt.Param("gain", "float32")
    src = pt.edge(img)
    gray, down, up, box, out = (pt.Func(n) for n in ("gray", "down", "up", "box", "out"))
    gray[y, x] = 0.299 * src[y, x, 0] + 0.587 * src[y, x, 1] + 0.114 * src[y, x, 2]
    down[y, x] = (gray[2 * y, 2 * x] + gray[2 * y + 1, 2 * x] + gray[2 * y, 2 * x + 1] + gray[2 * y + 1, 2 * x + 1]) / 4
    up[y, x] = down[y // 2, x // 2]
    r = pt.RDom((-1, 3), (-1, 3))
    box[y, x] = pt.sum(up[y + r[0], x + r[1]], over=r) / 9
    out[y, x] = pt.cast("uint8", pt.clamp(gain * box[y, x], 0, 255))
    h = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    hist = pt.Func("hist")
    hist[i] = 0
    hist[img[h[0], h[1], 0]] += 1
    p = pt.Pipeline([out, hist], shape=[img.shape[:2], (256,)])
    pixels = picture(37, 53, 3, dtype="uint8")
    small, counts = p(img=pixels, gain=1.5)
    expected_small, expected_counts = p.reference(img=pixels, gain=1.5)
    assert np.abs(small.astype(int) - expected_small).max() <= 1
    assert np.array_equal(counts, expected_counts) and counts.sum() == 37 * 53


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda a: a.copy(),
    "transposed": lambda a: np.asfortranarray(a),
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda a: _inside(a, (2, 3)),
    "interleaved": lambda a: np.stack([a, a], axis=-1)[..., 1],
    "part of a larger one": lambda a: np.pad(a, 5)[5:-5, 5:-5],
    "column by column, backwards": lambda a: np.asfortranarray(a[:, ::-1])[:, ::-1],
}


def _inside(a: Array, steps: tuple[int, int]) -> Array:
    room = np.zeros([n * s for n, s in zip(a.shape, steps, strict=True)], a.dtype)
    view = room[:: steps[0], :: steps[1]]
    view[...] = a
    return view


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_inputs_and_outputs(layout: str) -> None:
    p, arrange = blur(), LAYOUTS[layout]
    pixels = picture(41, 67)
    expected = p.reference(img=pixels)
    given = arrange(pixels)
    before = given.copy()
    assert np.array_equal(p(img=given), expected)
    assert np.array_equal(given, before)
    out = arrange(np.zeros_like(expected))
    assert p(img=pixels, out=out) is out
    assert np.array_equal(out, expected)


def test_writing_beside_a_view_touches_nothing_else() -> None:
    room = np.full((50, 80), 9, "uint16")
    out = room[3:42, 5:70]
    blur()(img=picture(41, 67), out=out)
    rest = np.ones_like(room, bool)
    rest[3:42, 5:70] = False
    assert (room[rest] == 9).all()


def test_channels_of_one_picture_may_be_input_and_output() -> None:
    pixels = picture(20, 30, 2, dtype="float32")
    expected = 2 * pixels[..., 0]
    scaled()(img=pixels[..., 0], out=pixels[..., 1])
    assert np.array_equal(pixels[..., 1], expected)


def test_a_row_repeated_without_memory_may_be_an_input() -> None:
    rows = np.broadcast_to(picture(1, 40), (30, 40))
    p = blur()
    assert np.array_equal(p(img=rows), p.reference(img=rows))


@pytest.mark.parametrize("shape", [(3, 3), (3, 300), (300, 3), (4, 5), (17, 19), (200, 260)])
def test_sizes(shape: tuple[int, int]) -> None:
    p, pixels = blur(), picture(*shape)
    assert np.array_equal(p(img=pixels), p.reference(img=pixels))


@pytest.mark.parametrize("shape", [(2, 9), (9, 2), (2, 2)])
def test_an_empty_output_is_returned_at_once(shape: tuple[int, int]) -> None:
    p, pixels = blur(), picture(*shape)
    found = p(img=pixels)
    assert found.shape == (shape[0] - 2, shape[1] - 2) == p.reference(img=pixels).shape
    assert found.dtype == np.uint16 and not p.timings


def test_several_outputs_and_values() -> None:
    img, both, other = pt.Input("img", "int32", 1), pt.Func("both"), pt.Func("other")
    both[X] = (img[X] + 1, pt.cast("float64", img[X]))
    other[X] = both[X][0] * 2
    p = pt.Pipeline([both, other])
    pixels = picture(50, dtype="int32")
    first, second, third = p(img=pixels)
    assert np.array_equal(first, pixels + 1) and np.array_equal(third, 2 * (pixels + 1))
    assert second.dtype == np.float64 and np.array_equal(second, pixels)
    mine = np.zeros(50)
    found = p(img=pixels, out=(None, mine, None))
    assert found[1] is mine and np.array_equal(mine, pixels) and np.array_equal(found[2], third)


class Wrapped:
    """An array type of somebody else's."""

    def __init__(self, a: Array) -> None:
        self.a = a

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.a


class Exported:
    """An array that is shared by DLPack alone."""

    def __init__(self, a: Array) -> None:
        self.a = a

    def __dlpack__(self, **options: Any) -> Any:
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.a.__dlpack_device__()


@pytest.mark.parametrize("wrap", [Wrapped, Exported, np.asfortranarray, np.ndarray.tolist, memoryview])
def test_array_likes(wrap: Any) -> None:
    pixels = picture(6, 8, dtype="float64")
    assert np.array_equal(scaled("float64")(img=wrap(pixels)), 2 * pixels)


@pytest.mark.parametrize("gain", [3, 3.0, np.float64(3), np.float32(3), np.int8(3), np.array(3), True + 2])
def test_numbers_for_a_float(gain: Any) -> None:
    pixels = picture(6, 8, dtype="float32")
    assert np.array_equal(scaled()(img=pixels, gain=gain), 3 * pixels)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_numbers_for_an_integer(dtype: str) -> None:
    limits, pixels = np.iinfo(dtype), np.arange(48).reshape(6, 8).astype(dtype)
    p = scaled(dtype)
    for gain in (limits.min, limits.max, np.dtype(dtype).type(limits.max), False):
        assert np.array_equal(p(img=pixels, gain=gain), p.reference(img=pixels, gain=gain))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_rounded_as_in_the_reference(dtype: str) -> None:
    p = scaled(dtype, strict=True)
    held = "uint16" if dtype == "bfloat16" else dtype
    pixels = np.full((3, 9), 0x3F80 if dtype == "bfloat16" else 1, held)  # ones
    for gain in (0.1, 1 / 3, -2.5, 1.00390625, float("inf"), float("nan"), -0.0):
        found, expected = p(img=pixels, gain=gain), p.reference(img=pixels, gain=gain)
        assert np.array_equal(found, expected, equal_nan=held != "uint16")


def test_a_bool_param() -> None:
    img, flag, f = pt.Input("img", "int32", 1), pt.Param("flag", "bool"), pt.Func("f")
    f[X] = pt.select(flag, img[X], -img[X])
    p, pixels = pt.Pipeline(f), picture(20, dtype="int32")
    assert np.array_equal(p(img=pixels, flag=True), pixels)
    assert np.array_equal(p(img=pixels, flag=np.bool_(False)), -pixels)


def test_a_param_that_decides_shape_and_region_is_checked_at_every_call() -> None:
    img, n, f = pt.Input("img", "int32", 1), pt.Param("n", "int32"), pt.Func("f")
    f[X] = img[X + n]
    p, pixels = pt.Pipeline(f, (img.shape[0] - n,)), picture(20, dtype="int32")
    for k in (0, 3, 20):
        assert np.array_equal(p(img=pixels, n=k), pixels[k:])
    with pytest.raises(pt.UserError, match="leaves Input 'img'"):
        p(img=pixels, n=-1)
    with pytest.raises(pt.UserError, match=r"would have the shape \(-1,\)"):
        p(img=pixels, n=21)


def test_a_shape_is_computed_as_the_reference_does() -> None:
    n, scale, f = pt.Param("n", "uint8"), pt.Param("scale", "float32"), pt.Func("f")
    f[Y, X] = Y + X
    p = pt.Pipeline(f, (n * 2, pt.cast("int32", 10 * scale)))
    found = p(n=200, scale=0.7)
    assert found.shape == p.reference(n=200, scale=0.7).shape == ((400 - 256), 7)


def test_reads_behind_conditions_and_clamps_are_inside() -> None:
    img, f = pt.Input("img", "int32", 1), pt.Func("f")
    f[X] = pt.select(X > 0, img[pt.maximum(X - 1, 0)], 0) + img[pt.clamp(X + 5, 0, img.shape[0] - 1)]
    p, pixels = pt.Pipeline(f), picture(20, dtype="int32")
    assert np.array_equal(p(img=pixels), p.reference(img=pixels))


def test_data_decides_what_is_read_through_a_boundary_condition() -> None:
    img, at, f = pt.Input("img", "int32", 1), pt.Input("at", "int32", 1), pt.Func("f")
    f[X] = pt.edge(img)[at[X]]
    p = pt.Pipeline(f, at.shape)
    pixels, places = picture(20, dtype="int32"), np.array([-(2**31), -5, 0, 7, 19, 20, 2**31 - 1], "int32")
    assert np.array_equal(p(img=pixels, at=places), pixels[np.clip(places, 0, 19)])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_of_a_call(threads: int) -> None:
    p, pixels = blur(), picture(150, 90)
    assert np.array_equal(p(img=pixels, num_threads=threads), p.reference(img=pixels))


def test_threads_of_all_calls() -> None:
    before = pt.get_num_threads()
    try:
        pt.set_num_threads(1)
        assert pt.get_num_threads() == 1
        assert blur()(img=picture(9, 9)).shape == (7, 7)
    finally:
        pt.set_num_threads(before)


def test_a_func_may_have_the_name_of_a_c_function() -> None:
    f = pt.Func("memset")
    f[Y, X] = pt.cast("uint8", 0)
    assert not pt.Pipeline(f, (64, 640))().any()
