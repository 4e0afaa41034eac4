"""Scans in strips have the values of whole ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt

from ..long import LONG

y, x = pt.vars("y x")
img = pt.Input("img", "int32", ndim=2)
factors = pt.Input("factors", "int32", ndim=2)


def picture(rows: int, columns: int = 5) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.default_rng(rows).integers(-50, 50, (rows, columns), dtype=np.int32)


def scan(step: Callable[[Any, Any], Any], up: bool = False, first: int = 0) -> pt.Pipeline:
    """f[y] = step(the value before, y) along y, from the row after `first` on."""
    height, f, out = img.shape[0], pt.Func("f"), pt.Func("out")
    r = pt.RDom((first + 1, height - 1 - 2 * first), name="r", names="y")
    here, before = (height - 1 - r.y, height - r.y) if up else (r.y, r.y - 1)
    f[y, x] = img[y, x]
    f[here, x] = step(f[before, x], here) + f[here, x] * 3
    out[y, x] = f[y, x]
    return pt.Pipeline(out, shape=img.shape)


def assert_agrees(p: pt.Pipeline, *asked: pt.StageSchedule, **arrays: Any) -> pt.Pipeline:
    scheduled = p.with_schedule(pt.Schedule(*asked))
    np.testing.assert_array_equal(scheduled(**arrays), p.reference(**arrays))
    return scheduled


IN_STRIPS = pt.on("f").update().strips("r.y", "s", 4)


# On GPUs, each power of two has code of its own.
ROWS = [
    (target, rows)
    for target in ("host", "cuda-sim")
    for rows in ((1, 2, 4, 5, 16, 23) if target == "host" or LONG else (1, 5, 23))
]


@functools.cache
def down_or_up(up: bool, target: str) -> tuple[pt.Pipeline, pt.Pipeline]:
    """Whole, and in strips."""
    p = scan(lambda before, at: 7 * before, up)
    p = p if target == "host" else p.with_options(target=target)
    return p, p.with_schedule(pt.Schedule(IN_STRIPS))


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize(("target", "rows"), ROWS)
def test_down_and_up(rows: int, up: bool, target: str) -> None:
    whole, strips = down_or_up(up, target)
    np.testing.assert_array_equal(strips(img=picture(rows)), whole.reference(img=picture(rows)))


FIRST = [(first, up) for k, first in enumerate((1, 3, 4, 6)) for up in (False, True) if LONG or up == (k in (1, 2))]


@pytest.mark.parametrize(("first", "up"), FIRST)
def test_what_the_scan_does_not_reach_is_kept(first: int, up: bool) -> None:
    assert_agrees(scan(lambda before, at: 7 * before, up, first), IN_STRIPS, img=picture(21))


@pytest.mark.parametrize(
    "step",
    [
        lambda before, at: before,
        lambda before, at: -before,
        lambda before, at: (before + img[at, x]) * 5 - img[at, 0],
        lambda before, at: img[at, x] - before * img[at, 1],  # factors that are data
        lambda before, at: pt.select(img[at, x] > 0, before * 2, img[at, x]),
        lambda before, at: before + pt.cast("int32", at) * before,
    ],
)
def test_linear_steps(step: Callable[[Any, Any], Any]) -> None:
    assert_agrees(scan(step), IN_STRIPS, img=picture(19))


def twice() -> pt.Pipeline:
    height, f, out = img.shape[0], pt.Func("f"), pt.Func("out")
    r = pt.RDom((1, height - 1), name="r", names="y")
    f[y, x] = img[y, x]
    f[r.y, x] = 3 * f[r.y - 1, x] + f[r.y, x]
    f[height - 1 - r.y, x] = 5 * f[height - r.y, x] - f[height - 1 - r.y, x]
    out[y, x] = f[y, x]
    return pt.Pipeline(out, shape=img.shape)


@pytest.mark.parametrize("lengths", [(4, 4), (4, 8), (4, None), (None, 4)])
def test_down_and_up_again(lengths: tuple[int | None, ...]) -> None:
    """In the same strips, in others, and with one of the scans whole."""
    asked = pt.on("f")
    for k, length in enumerate(lengths):
        asked = asked if length is None else asked.update(k).strips("r.y", f"s{k}", length)
    assert_agrees(twice(), asked, img=picture(22))


@pytest.mark.parametrize("lengths", [(None, 4, 4), (None, 4, None), (4, None, 4), (None, None, 4), (4, 4, 4)])
def test_updates_before_scans_and_between_them(lengths: tuple[int | None, ...]) -> None:
    """Those before a scan are computed first, whatever runs in strips after it."""
    height, f, out = img.shape[0], pt.Func("f"), pt.Func("out")
    r = pt.RDom((1, height - 1), name="r", names="y")
    f[y, x] = img[y, x]
    for factor in (2, 3, 5):
        f[r.y, x] = factor * f[r.y - 1, x] + f[r.y, x]
    out[y, x] = f[y, x]
    asked = pt.on("f")
    for k, length in enumerate(lengths):
        asked = asked if length is None else asked.update(k).strips("r.y", f"s{k}", length)
    assert_agrees(pt.Pipeline(out, shape=img.shape), asked, img=picture(22))


def test_the_other_update_keeps_its_directives() -> None:
    p = assert_agrees(
        twice(), pt.on("f").update(0).strips("r.y", "s", 4).update(1).reorder("r.y", "x"), img=picture(22)
    )
    assert "for f.u1.r.y" in p.loops() and "f.u2" not in p.loops()


def test_a_strip_of_both_in_registers() -> None:
    """Where both scans have the same strips, one strip is all that the second needs of the first."""
    strips = pt.on("f").compute_inline().update(0).strips("r.y", "down", 4).update(1).strips("r.y", "up", 4)
    p = assert_agrees(
        twice(),
        strips,
        pt.on("out").split("y", "strip", "row", 4, tail="guard").reorder("strip", "x", "row"),
        pt.on("f_up").compute_at("out", "x"),
        pt.on("f_down").clone_in("f_up_ends", "f_again").compute_at("out", "x"),
        img=picture(24),
    )
    assert "alloc f_down: int32[min(out.strip*4 + 3" in p.loops()


def test_what_strips_are_made_of() -> None:
    p = scan(lambda before, at: 7 * before).with_schedule(pt.Schedule(IN_STRIPS))
    for made in ("f_s_ends", "f_s_gains", "f_s_starts", "f_s"):
        assert f"produce {made}:" in p.loops()


def test_names_that_exist() -> None:
    taken = pt.Func("f_s")
    taken[y, x] = img[y, x]
    out = pt.Func("both")
    out[y, x] = taken[y, x] + 1
    with pytest.raises(pt.UserError, match="a stage would be called 'f_s', which exists"):
        pt.Pipeline([out, scan_func()], shape=[img.shape] * 2).with_schedule(pt.Schedule(IN_STRIPS, pt.on("f_s")))


def scan_func() -> pt.Func:
    f = pt.Func("f")
    r = pt.RDom((1, img.shape[0] - 1), name="r", names="y")
    f[y, x] = img[y, x]
    f[r.y, x] += f[r.y - 1, x]
    return f


def test_infinite_values_stay_where_they_are() -> None:
    """What is outside of the scan, and read nevertheless, does not spoil it."""
    floats, f = pt.Input("floats", "float32", ndim=1), pt.Func("f")
    r = pt.RDom((3, floats.shape[0] - 3), name="r", names="y")
    f[x] = floats[x]
    f[r.y] = 0.5 * f[r.y - 1] + 0.5 * f[r.y]
    p = pt.Pipeline(f, shape=floats.shape)
    values = np.ones(18, np.float32)
    values[:2] = np.inf
    strips = p.with_schedule(pt.Schedule(IN_STRIPS))
    np.testing.assert_allclose(strips(floats=values), p.reference(floats=values), rtol=1e-6)
