"""Pictures whose channels are interleaved: what a call knows of shapes, and results in any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt

Y, X, C = pt.vars("y x c")
Array = np.ndarray[Any, np.dtype[Any]]


def picture(*shape: int, dtype: str = "uint8") -> Array:
    return np.random.default_rng(0).integers(0, 200, shape).astype(dtype)


def inverted(img: pt.Input, **options: Any) -> pt.Pipeline:
    f = pt.Func("f")
    f[Y, X, C] = 255 - img[Y, X, C]
    return pt.Pipeline(f, **options)


# ---- what is known


def test_a_stated_extent_is_a_number() -> None:
    img = pt.Input("img", "uint8", shape=(None, None, 3))
    assert img.ndim == 3 and img.shape[2] == 3
    assert repr(img) == "Input('img', 'uint8', shape=(None, None, 3))"
    assert "input img: uint8[img.shape[0], img.shape[1], 3]" in str(inverted(img))
    assert "output f: uint8[img.shape[0], img.shape[1], 3]" in str(inverted(img))


def test_all_extents_may_be_stated() -> None:
    img, f = pt.Input("img", "uint8", shape=(5, 7)), pt.Func("f")
    f[Y, X] = pt.edge(img)[Y - 1, X + 1]
    p = pt.Pipeline(f)
    pixels = picture(5, 7)
    assert (p(img=pixels) == p.reference(img=pixels)).all()


def test_calls_with_few_channels_know_how_many() -> None:
    p = inverted(pt.Input("img", "uint8", 3))
    for channels in (3, 1, 4, 2, 5, 3):
        pixels = picture(9, 21, channels)
        assert (p(img=pixels) == 255 - pixels).all()
    assert sorted(known for known, _ in p._calls._scheduled) == [(), *((("img.shape.2", n),) for n in (1, 2, 3, 4))]
    assert p._calls.known({"img": (9, 21, 3)}) == (("img.shape.2", 3),)


def test_an_array_without_channels_is_no_picture() -> None:
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[Y, X] = 255 - img[Y, X]
    p = pt.Pipeline(f)
    assert (p(img=picture(9, 3)) == 255 - picture(9, 3)).all()
    assert list(p._calls._scheduled) == [((), 0)]


def test_reductions_over_channels_are_small_where_they_are_known() -> None:
    img, f = pt.Input("img", "uint8", 3), pt.Func("f")
    k = pt.RDom((0, img.shape[2]), name="k")
    f[Y, X] = pt.sum(img[Y, X, k[0]], over=k) // 2
    p = pt.Pipeline(f, img.shape[:2])
    for channels in (3, 6):
        pixels = picture(9, 21, channels)
        assert (p(img=pixels) == p.reference(img=pixels)).all()
    inlined = p._calls.scheduled(((("img.shape.2", 3),), 0)).schedule["f_sum"]
    assert "compute_inline" in repr(inlined) and "compute_inline" not in repr(p.schedule["f_sum"])


def test_what_is_inlined_beside_named_stages_stays_so() -> None:
    """With known channels, less is left of the work of a stage that is kept otherwise, or the other way round."""
    img, half, out = pt.Input("img", "uint8", 3), pt.Func("half"), pt.Func("out")
    half[Y, X, C] = img[Y, X, pt.clamp(C * 2 - img.shape[2], 0, img.shape[2] - 1)]
    out[Y, X, C] = pt.cast("uint16", half[Y, X, C]) * half[Y, X + 1, C]
    schedule = pt.Schedule(pt.on("out").parallel("y"))
    p = pt.Pipeline(out, (img.shape[0], img.shape[1] - 1, img.shape[2]), schedule=schedule)
    pixels = picture(9, 21, 3)
    assert (p(img=pixels) == p.reference(img=pixels)).all()
    known = p._calls.scheduled(((("img.shape.2", 3),), 0)).schedule
    assert ("compute_inline" in repr(known["half"])) == ("compute_inline" in repr(p.schedule["half"]))


def test_loops_of_copies_are_those_that_others_are_computed_at() -> None:
    """Blocks of GPUs go over rows and columns where channels are known, which no schedule for a copy can know."""
    y, x, c = pt.vars("y x c")
    img, f, out = pt.Input("img", "float32", ndim=3), pt.Func("f"), pt.Func("out")
    f[y, x, c] = img[y, x, c] + img[y + 1, x, c]
    out[y, x, c] = f[y, x, c] + f[y, x + 1, c]
    p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 1, img.shape[2]), target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("f").clone_in("out", "clone"),
            pt.on("img").copy_in("clone", "near", "d0", "d1", "d2"),
            pt.on("near").compute_at("clone", "c_thread"),
        )
    )
    for shape in ((9, 40, 3), (9, 7, 40)):
        picture = np.random.default_rng(0).random(shape, dtype=np.float32)
        np.testing.assert_allclose(p(img=picture), p.reference(img=picture), rtol=1e-6)


def test_partial_results_are_those_of_stages_that_others_are_computed_at() -> None:
    """A histogram on GPUs is counted in parts. Its loops are as they were where nothing was known of channels, and so
    are its parts."""
    img, g, h, i = pt.Input("img", "uint8", ndim=3), pt.Func("g"), pt.Func("h"), pt.Var("i")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), (0, img.shape[2]))
    g[i] = pt.cast("int32", i) * i
    h[i] = g[i]
    h[img[r[0], r[1], r[2]]] += 1
    p = pt.Pipeline(h, shape=(256,), target="cuda-sim")
    p = p.with_schedule(pt.Schedule(pt.on("g").compute_at("h", "i_thread")))
    picture = np.random.default_rng(0).integers(0, 256, (3, 20, 4), dtype=np.uint8)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


def test_loops_that_others_are_computed_at_stay_as_they_were() -> None:
    img, one, two, out = pt.Input("img", "uint8", 3), pt.Func("one"), pt.Func("two"), pt.Func("out")
    one[Y, X, C] = img[Y, X, C] // 2 + X
    two[Y, X, C] = one[Y, X, C] + one[Y, X + 1, C]
    out[Y, X, C] = two[Y, X, C] * one[Y, X, 0]
    schedule = pt.Schedule(pt.on("two").compute_at("out", "c"), pt.on("one").compute_at("out", "x"))
    p = pt.Pipeline(out, (img.shape[0], img.shape[1] - 1, img.shape[2]), schedule=schedule)
    pixels = picture(9, 21, 3)
    assert (p(img=pixels) == p.reference(img=pixels)).all()


@pytest.mark.parametrize("channels", [3, 4, 5])
def test_a_schedule_for_any_number_of_channels_is_one_for_each(channels: int) -> None:
    """A block has 1,024 threads at most, and as many of them as there are channels in the innermost loop."""
    img, f = pt.Input("img", "uint8", 3), pt.Func("f")
    q = pt.RDom((0, img.shape[0]), (0, img.shape[1]), (0, img.shape[2]))
    f[()] = pt.sum(img[q[0], q[1], q[2]], over=q, dtype="int64")
    threads = pt.on("f").update(0).atomic().split("r.0", "yo", "yi", 8).split("r.1", "xo", "xi", 64)
    ordered = threads.reorder("yo", "xo", "yi", "xi", "r.2").update(0).block("yo", "xo").update(0)
    p = pt.Pipeline(f, shape=(), target="cuda-sim", schedule=pt.Schedule(ordered.thread("yi", "xi", "r.2")))
    pixels = picture(9, 21, channels)
    assert p(img=pixels) == p.reference(img=pixels)


def test_strategies_schedule_pictures_of_other_channels_anew() -> None:
    p = inverted(pt.Input("img", "uint8", 3), schedule="greedy")
    for channels in (3, 4, 20):
        pixels = picture(19, 41, channels)
        assert (p(img=pixels) == 255 - pixels).all()
    assert len(p._scheduling.results) == 3
    assert p.schedule == p._calls.scheduled(((("img.shape.2", 3),), 0)).schedule


# ---- all channels at once


def test_pixels_are_cases() -> None:
    gray, rgb, wide = pt.Input("gray", "uint8", 2), pt.Func("rgb"), pt.Func("wide")
    rgb[Y, X] = pt.pixel(gray[Y, X], 255 - gray[Y, X], 7)
    assert rgb.ndim == 3 and rgb.dims == ("y", "x", "c")
    p = pt.Pipeline(rgb)
    pixels = picture(9, 41)
    expected = np.stack([pixels, 255 - pixels, np.full_like(pixels, 7)], axis=2)
    assert (p(gray=pixels) == expected).all() and (p.reference(gray=pixels) == expected).all()
    wide[C, X] = pt.pixel(pt.cast("float32", gray[C, X]), gray[C, X] / 2)
    assert wide.dims == ("c", "x", "cc")
    assert pt.Pipeline(wide)(gray=pixels).shape == (9, 41, 2)


def test_as_many_channels_as_are_given() -> None:
    rgb, out = pt.Input("rgb", "uint8", 3), pt.Func("out")
    out[Y, X] = pt.pixel(rgb[Y, X, 2], rgb[Y, X, 0])
    p = pt.Pipeline(out)
    pixels = picture(9, 41, 3)
    assert (p(rgb=pixels) == pixels[..., [2, 0]]).all()


# ---- in any layout


def layouts(pixels: Array) -> dict[str, Array]:
    """One picture in several memory layouts."""
    height, width, channels = pixels.shape
    wide = np.zeros((height, width, 4), pixels.dtype)
    wide[..., :channels] = pixels
    every_other = np.zeros((2 * height, 2 * width, channels), pixels.dtype)
    every_other[::2, ::2] = pixels
    read_only = pixels.copy()
    read_only.flags.writeable = False
    return {
        "c": pixels,
        "of four": wide[..., :channels],
        "every other": every_other[::2, ::2],
        "mirrored": pixels[:, ::-1].copy()[:, ::-1],
        "turned": pixels[::-1].copy()[::-1],
        "bgr": pixels[..., ::-1].copy()[..., ::-1],
        "fortran": np.asfortranarray(pixels),
        "planar": np.ascontiguousarray(pixels.transpose(2, 0, 1)).transpose(1, 2, 0),
        "read-only": read_only,
    }


def smoothed(img: pt.Input) -> pt.Pipeline:
    """Two stages, all neighbours."""
    e, across, down = pt.edge(img), pt.Func("across"), pt.Func("down")
    across[Y, X, C] = pt.cast("uint16", e[Y, X - 1, C]) + e[Y, X, C] + e[Y, X + 1, C]
    down[Y, X, C] = pt.cast("uint8", (across[Y - 1, X, C] + across[Y, X, C] + across[Y + 1, X, C]) // 9)
    return pt.Pipeline(down)


def mixed(img: pt.Input) -> pt.Pipeline:
    """Every channel depends on all of them."""
    f, gray = pt.Func("f"), pt.Func("gray")
    k = pt.RDom((0, img.shape[2]), name="k")
    gray[Y, X] = pt.sum(img[Y, X, k[0]], over=k)
    f[Y, X, C] = pt.cast("uint8", (img[Y, X, C] + gray[Y, X]) // 4)
    return pt.Pipeline(f)


@pytest.mark.parametrize(
    ("make", "channels"),
    [*((smoothed, n) for n in (1, 2, 3, 4)), (inverted, 2), (inverted, 3), (mixed, 3), (mixed, 4)],
)
def test_results_in_any_layout(make: Any, channels: int) -> None:
    p = make(pt.Input("img", "uint8", 3))
    pixels = picture(11, 37, channels)
    expected = p.reference(img=pixels)
    for name, layout in layouts(pixels).items():
        assert (p(img=layout) == expected).all(), name
        target = layouts(np.zeros_like(expected))[name]
        if target.flags.writeable:
            p(img=pixels, out=target)
            assert (target == expected).all(), name
    around = np.full((11, 37, 4), 77, np.uint8)
    p(img=pixels, out=around[..., :channels])
    assert (around[..., :channels] == expected).all() and (around[..., channels:] == 77).all()


@pytest.mark.parametrize("make", [inverted, smoothed, mixed])
def test_results_at_any_width(make: Any) -> None:
    p = make(pt.Input("img", "uint8", shape=(None, None, 3)))
    for width in (*range(1, 20), *range(29, 70, 3)):
        pixels = picture(4, width, 3)
        assert (p(img=pixels) == p.reference(img=pixels)).all(), width
