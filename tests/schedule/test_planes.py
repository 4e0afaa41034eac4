"""Pictures of a few planes: what is known of them, what planes share, what threads share."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.analysis.channels import channels, few_along, numbered, planes
from pantile.schedule.blocks import STRIP_ROWS

C, Y, X = pt.vars("c y x")
RGB = pt.Input("img", "uint8", shape=(3, None, None))


def picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def brightened(img: pt.Input) -> pt.Pipeline:
    """All planes by the same ratio, which takes a while to compute."""
    gray, ratio, out = pt.Func("gray"), pt.Func("ratio"), pt.Func("out")
    gray[Y, X] = (pt.cast("float32", img[0, Y, X]) + img[1, Y, X] + img[2, Y, X]) / 3
    ratio[Y, X] = pt.sqrt(gray[Y, X] * 255) / (gray[Y, X] + 1)
    out[C, Y, X] = pt.rounding_cast("uint8", pt.clamp(ratio[Y, X] * img[C, Y, X], 0, 255))
    return pt.Pipeline(out, shape=img.shape)


def blurred(img: pt.Input) -> pt.Pipeline:
    """Each plane by itself."""
    src, down, out = pt.edge(img, axes=(1, 2)), pt.Func("down"), pt.Func("out")
    down[C, Y, X] = pt.cast("uint16", src[C, Y - 1, X]) + src[C, Y, X] + src[C, Y + 1, X]
    out[C, Y, X] = pt.cast("uint8", (down[C, Y, X - 1] + down[C, Y, X] + down[C, Y, X + 1]) // 9)
    return pt.Pipeline(out, shape=img.shape)


def test_planes_go_from_consumers_to_producers() -> None:
    graph = blurred(RGB).graph
    assert channels(graph) == {}
    assert planes(graph, ()) == {"img_edge": 3, "down": 3, "out": 3}
    assert planes(graph, ("down",)) == {"img_edge": 3, "out": 3}
    gray, light = pt.Func("gray"), pt.Func("light")
    light[C, Y, X] = RGB[C, Y, X] // 2
    gray[Y, X] = light[0, Y, X] + light[1, Y, X]
    assert planes(pt.Pipeline(gray, (9, 9)).graph, ()) == {"light": 2}


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 90, 90), -3),
        ((90, 90, 3), -1),
        ((5, 3, 90, 90), -3),
        ((3, 3, 90), None),
        ((3, 90, 3), -1),
        ((5, 9, 9), None),
    ],
)
def test_the_axis_of_planes_or_channels(shape: tuple[int, ...], axis: int | None) -> None:
    assert few_along(shape) == axis


def test_calls_know_how_many_planes_there_are() -> None:
    p = blurred(pt.Input("img", "uint8", 3))
    for count in (3, 1, 4, 2, 5):
        pixels = picture(count, 19, 21)
        assert (p(img=pixels) == p.reference(img=pixels)).all()
    assert sorted(known for known, _ in p._calls._scheduled) == [(), *((("img.shape.0", n),) for n in (1, 2, 3, 4))]
    assert blurred(RGB)._calls.known({"img": (3, 19, 21)}) == ()


def test_planes_that_share_their_work_are_written_out() -> None:
    out = repr(brightened(RGB).schedule["out"])
    assert '.unroll("c", 3).reorder("y", "c", "x", "c_u", "x_v")' in out
    assert '.parallel("y", 16)' in out and 'parallel("c")' not in out


def test_threads_share_the_rows_of_planes_that_share_nothing() -> None:
    schedule = blurred(RGB).schedule
    assert all(
        '.parallel("c")' not in repr(schedule[n]) and '.parallel("y", 16)' in repr(schedule[n]) for n in ("down", "out")
    )


@pytest.mark.parametrize("make", [brightened, blurred])
@pytest.mark.parametrize("size", [(3, 1, 1), (3, 5, 3), (3, 33, 65), (3, 70, 130)])
def test_planes_are_computed_right(make: object, size: tuple[int, ...]) -> None:
    assert callable(make)
    p = make(pt.Input("img", "uint8", 3))
    pixels = picture(*size)
    assert (p(img=pixels) == p.reference(img=pixels)).all()
    assert (p(img=pixels[:, ::-1, ::2]) == p.reference(img=pixels[:, ::-1, ::2])).all()


def test_weights_that_planes_share_are_computed_once() -> None:
    """A mean of frames by likeness: frames are enumerated by the sum, planes are written out around it."""
    (t,) = pt.vars("t")
    frames, weight, out = pt.Input("frames", "uint8", 4), pt.Func("weight"), pt.Func("out")
    channel, time = pt.RDom((0, 3)), pt.RDom((0, 5))
    change = pt.cast("float32", frames[t, channel[0], Y, X]) - frames[2, channel[0], Y, X]
    weight[t, Y, X] = pt.exp(pt.sum(change * change, over=channel) * -1e-3)
    total = pt.sum(weight[time[0], Y, X] * frames[time[0], C, Y, X], over=time)
    out[C, Y, X] = pt.rounding_cast("uint8", total / pt.sum(weight[time[0], Y, X], over=time))
    p = pt.Pipeline(out, shape=frames.shape[1:])
    pixels = picture(5, 3, 20, 37)
    assert np.abs(p(frames=pixels).astype(int) - p.reference(frames=pixels)).max() <= 1
    schedule = p._calls.scheduled(p._calls.class_of({"frames": pixels})).schedule
    assert "compute_inline" in repr(schedule["weight"]) and '.unroll("c", 3)' in repr(schedule["out"])


def test_rows_of_several_planes_are_different_streams() -> None:
    """Down narrow strips: five rows of three planes are more than the hardware follows."""
    gray, out = pt.Func("gray"), pt.Func("out")
    gray[Y, X] = 0.3 * RGB[0, Y, X] + 0.6 * RGB[1, Y, X] + 0.1 * RGB[2, Y, X]
    out[Y, X] = sum((gray[Y + k, X] for k in range(1, 5)), start=gray[Y, X])
    p = pt.Pipeline(out, shape=(RGB.shape[1] - 4, RGB.shape[2]))
    assert f'.parallel("y", {STRIP_ROWS})' in repr(p.schedule["out"])


def enlarged() -> pt.Pipeline:
    """By weights that only the column decides."""
    img, out = pt.Input("img", "uint8", 3), pt.Func("out")
    place = (X + 0.5) / 1.5 - 0.5
    left = pt.floor(place)
    f = place - left
    weights = [1 - f, f * f * (3 - 2 * f) + f * (1 - f) * (2 - f), f - f * f * f]
    columns = [pt.clamp(pt.cast("int32", left) + k, 0, img.shape[1] - 1) for k in range(3)]
    value = sum((w * img[Y, i, C] for w, i in zip(weights, columns, strict=True)), start=pt.cast("float32", 0))
    out[Y, X, C] = pt.rounding_cast("uint8", pt.clamp(value, 0, 255))
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1] * 3 // 2, img.shape[2]))


@pytest.mark.parametrize("how", ["default", "greedy", "posttile"])
def test_rows_that_share_their_weights_are_written_out(how: str) -> None:
    p = enlarged() if how == "default" else enlarged().with_schedule(how)
    pixels = picture(70, 90, 3)
    for rows in (70, 33, 9, 2):
        off = p(img=pixels[:rows]).astype(int) - p.reference(img=pixels[:rows])
        assert np.abs(off).max() <= 1  # sums of products round once less
    schedule = p._calls.scheduled(p._calls.class_of({"img": pixels})).schedule
    assert 'unroll("y' in repr(schedule["out"])


def parts(count: int) -> pt.Pipeline:
    """Planes that are told apart by their numbers, and their sum."""
    src, part, out = pt.edge(pt.Input("img", "uint8", ndim=2)), pt.Func("part"), pt.Func("out")
    (k,) = pt.vars("k")
    pieces = [(k == n, src[2 * Y, X] - src[2 * Y + n, X - 1]) for n in range(count - 1)]
    part[k, Y, X] = pt.case(*pieces, otherwise=src[2 * Y, X])
    out[Y, X] = sum(part[n, Y, X + n] for n in range(count))
    return pt.Pipeline(out, shape=(40, 50))


def test_numbered_planes_are_written_out_side_by_side() -> None:
    p = parts(6)
    assert numbered(p.graph) == {"part": 6}
    assert '.unroll("k", 6)' in repr(p.schedule["part"])
    img = picture(90, 60)
    np.testing.assert_array_equal(p(img=img), p.reference(img=img))
    assert numbered(parts(4).graph) == numbered(parts(33).graph) == {}  # few planes are planes, and many are too much


def test_rows_of_pixels_are_no_numbered_planes() -> None:
    out = pt.Func("out")
    out[Y, X, C] = pt.select(Y == 2, 0, pt.Input("img", "uint8", shape=(None, None, 3))[Y, X, C])
    assert numbered(pt.Pipeline(out, shape=(20, 30, 3)).graph) == {}
