"""A stage that is read at a float of a coordinate is computed as far as it is read, wherever it is computed."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr

Y, X = pt.vars("y x")
IMG, SCALE = pt.Input("img", "uint8", ndim=2), pt.Param("scale", "float32", default=1.5)
PHOTO = np.random.default_rng(0).integers(0, 256, (24, 37), "uint8")


def taps(place: Expr, by: Expr | float) -> list[tuple[Expr, Expr]]:
    """The two neighbours of a place in the smaller picture, and their weights."""
    position = (place + 0.5) / by - 0.5
    floor = pt.floor(position)
    part = position - floor
    return [(pt.cast("int32", floor) + k, w) for k, w in enumerate((1 - part, part))]


def resized(by: Expr | float) -> pt.Pipeline:
    across, out = pt.Func("across"), pt.Func("out")
    across[Y, X] = sum(w * pt.edge(IMG)[Y, column] for column, w in taps(X, by))
    out[Y, X] = pt.rounding_cast("uint8", sum(w * across[row, X] for row, w in taps(Y, by)))
    return pt.Pipeline(out, (36, 55), strict=True)


TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 8)
SCHEDULES = {
    "default": pt.Schedule(),
    "at root": pt.Schedule(pt.on("out").vectorize("x", 4), pt.on("across").compute_root().vectorize("x", 4)),
    "at tiles": pt.Schedule(TILES.parallel("yo"), pt.on("across").compute_at("out", "xo").vectorize("x", 8)),
    "at rows": pt.Schedule(pt.on("out"), pt.on("across").compute_at("out", "y")),
    "stored outside": pt.Schedule(pt.on("out"), pt.on("across").store_root().compute_at("out", "y")),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("by", [1.5, SCALE, IMG.shape[0] / 16.0], ids=["a number", "a param", "an extent"])
def test_a_picture_made_larger(by: Expr | float, schedule: pt.Schedule) -> None:
    p = resized(by).with_schedule(schedule)
    given = {"img": PHOTO} | ({"scale": 1.5} if by is SCALE else {})
    np.testing.assert_array_equal(p(**given), p.reference(**given))
    checked = p.with_options(debug=True)
    np.testing.assert_array_equal(checked(**given), p.reference(**given))


@pytest.mark.parametrize("scale", [-1.5, 0.75, 3.0])
def test_a_param_of_either_sign(scale: float) -> None:
    p = resized(SCALE).with_schedule(SCHEDULES["at tiles"])
    np.testing.assert_array_equal(p(img=PHOTO, scale=scale), p.reference(img=PHOTO, scale=scale))


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan])
def test_a_param_that_makes_places_infinite(scale: float) -> None:
    p = resized(SCALE).with_schedule(SCHEDULES["at root"])
    with pytest.raises(pt.UserError, match=r"has no known limits: .* may be in .*; limit it with pt.clamp"):
        p(img=PHOTO, scale=scale)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_one_place_for_all_may_come_from_no_number(k: int) -> None:
    """It is what it is as an integer, whatever floats it was made of."""
    n, g, out = pt.Param("n", "uint8"), pt.Func("g"), pt.Func("out")
    g[Y] = pt.cast("int32", Y * Y)
    out[X] = g[pt.cast("uint64", 1.0 / pt.cast("float32", n)) >> 61] + X
    p = pt.Pipeline(out, (9,)).with_schedule(pt.Schedule(pt.on("g").compute_root()))
    np.testing.assert_array_equal(p(n=k), p.reference(n=k))


def test_a_clamp_to_a_few_places_is_all_of_them() -> None:
    """Code does not compute which of eight tiles a part of the picture needs."""
    tiles, out = pt.Func("tiles"), pt.Func("out")
    tiles[Y] = pt.cast("int32", Y * Y)
    out[Y, X] = IMG[Y, X] + tiles[pt.clamp(pt.cast("int32", pt.floor(Y / SCALE - 0.5)), 0, 7)]
    p = pt.Pipeline(out).with_schedule(pt.Schedule(pt.on("tiles").compute_root()))
    assert "alloc tiles: int32[8]" in p.loops()
    np.testing.assert_array_equal(p(img=PHOTO), p.reference(img=PHOTO))


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_a_clamp_to_a_few_places_that_are_not_all_there(scale: float) -> None:
    """A row of the picture that nobody reads need not be there."""
    double, out = pt.Func("double"), pt.Func("out")
    double[Y, X] = IMG[Y, X] * 2
    out[Y, X] = double[pt.clamp(pt.cast("int32", Y * SCALE), 0, 9), X]
    p = pt.Pipeline(out, (4, IMG.shape[1])).with_schedule(pt.Schedule(pt.on("double").compute_root()))
    few = PHOTO[: int(3 * scale) + 1]
    checked = p.with_options(debug=True)
    np.testing.assert_array_equal(checked(img=few, scale=scale), p.reference(img=few, scale=scale))


def test_a_clamp_of_few_rows_to_those_of_the_picture() -> None:
    """How many rows there are depends on a float; those that are copied are in the picture all the same."""
    out = pt.Func("out")
    out[Y, X] = pt.edge(IMG)[Y + 2, X]
    rows = pt.clamp(pt.cast("int32", pt.sqrt(SCALE)), 0, 9)
    copied = pt.Schedule(pt.on("img").copy_in("img_edge", "copied", "row", "column"), pt.on("copied").compute_root())
    p = pt.Pipeline(out, (rows, IMG.shape[1])).with_schedule(copied)
    checked = p.with_options(debug=True)
    np.testing.assert_array_equal(checked(img=PHOTO[:8], scale=81.0), p.reference(img=PHOTO[:8], scale=81.0))


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_few_terms_of_which_none_may_be_left(scale: float) -> None:
    """A sum that has no term which reads the picture needs no picture."""
    line, mirrored, out = pt.Input("line", "float32", ndim=1), pt.Func("mirrored"), pt.Func("out")
    mirrored[X] = pt.mirror(line)[X]
    r = pt.RDom((0, pt.clamp(pt.cast("int32", SCALE), 0, 3)))
    out[X] = pt.cast("float32", 0)
    out[X] += pt.select(r[0] > 1, mirrored[r[0]] + mirrored[-1], 1.0)
    p = pt.Pipeline(out, (5,)).with_schedule(pt.Schedule(pt.on("mirrored").compute_root()))
    nothing = np.zeros(0, np.float32)
    checked = p.with_options(debug=True)(line=nothing, scale=scale)
    np.testing.assert_array_equal(checked, p.reference(line=nothing, scale=scale))


def test_memory_where_conditions_may_leave_nothing() -> None:
    """It is for the rows that are read, not for those that an int32 could name."""
    double, across, out = pt.Func("double"), pt.Func("across"), pt.Func("out")
    double[Y, X] = pt.cast("int32", IMG[Y, X]) * 2
    across[Y, X] = double[Y, X] + pt.select(Y > 0, double[Y - 1, X], 0)
    out[Y, X] = across[pt.cast("int32", pt.round((Y + 1) * 0.5)) + 1, X]
    schedule = pt.Schedule(pt.on("out"), pt.on("across").compute_root(), pt.on("double").compute_root())
    p = pt.Pipeline(out, (2 * IMG.shape[0] - 4, IMG.shape[1]), strict=True).with_schedule(schedule)
    assert "int32(round(" in next(line for line in p.loops().splitlines() if "alloc across" in line)
    np.testing.assert_array_equal(p(img=PHOTO), p.reference(img=PHOTO))


@pytest.mark.parametrize(("t", "shift"), [("int32", 29), ("uint64", 61)])
@pytest.mark.parametrize("site", ["root", "y", "x"])
def test_a_quotient_by_nothing_in_one_iteration(site: str, t: str, shift: int) -> None:
    """Of all rows, k >> y may be anything that a uint8 is; of one row, it is a number, which may be 0."""
    k, double, out = pt.Param("k", "uint8"), pt.Func("double"), pt.Func("out")
    double[Y] = Y * 2
    quotient = pt.cast("float32", IMG[Y, X]) / pt.cast("float32", k >> pt.cast("uint8", Y))
    out[Y, X] = double[pt.cast("int32", pt.cast(t, quotient) >> shift) + Y]
    at = pt.on("double").compute_root() if site == "root" else pt.on("double").compute_at("out", site)
    p = pt.Pipeline(out, strict=True).with_schedule(pt.Schedule(pt.on("out"), at))
    few = PHOTO[:3]
    for value in (0, 2, 255):
        np.testing.assert_array_equal(p(img=few, k=value), p.reference(img=few, k=value))


@pytest.mark.parametrize("width", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("most", [1, 9])
def test_memory_of_a_picture_as_wide_as_a_float_says(width: float, most: int) -> None:
    """Where it may have no columns, what is read beyond them is not taken for memory."""
    r, out = pt.RDom((0, 3)), pt.Func("out")
    across = r.where(r[0] > 2 * X)
    out[Y, X] = pt.max(pt.edge(IMG)[Y, X + across[0]] * 3, over=across)
    n = pt.clamp(pt.cast("int32", pt.sqrt(SCALE)), 0, most)
    schedule = pt.Schedule(pt.on("img_edge").compute_at("out", "y"), pt.on("out"))
    p = pt.Pipeline(out, (IMG.shape[0], n), strict=True).with_schedule(schedule)
    given = {"img": PHOTO, "scale": width}
    np.testing.assert_array_equal(p(**given), p.reference(**given))


@pytest.mark.parametrize("k", [-3, 0, 1, 2])
def test_memory_of_a_picture_with_one_row_or_none(k: int) -> None:
    """Whether it has one is a number of the call."""
    n, double, out, other = pt.Param("n", "int64"), pt.Func("double"), pt.Func("out"), pt.Func("other")
    double[Y, X] = pt.cast("int32", IMG[Y, X]) * 2
    out[Y, X] = double[Y, X] + double[Y + 1, X]
    other[Y, X] = IMG[Y, X]
    shapes = [(pt.cast("int32", pt.clamp(n, 0, 1)), IMG.shape[1]), IMG.shape]
    p = pt.Pipeline([out, other], shapes).with_schedule(pt.Schedule(pt.on("double").compute_root(), pt.on("out")))
    for computed, expected in zip(p(img=PHOTO, n=k), p.reference(img=PHOTO, n=k), strict=True):
        np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize("target", ["host", "cuda-sim"])
@pytest.mark.parametrize("k", [-3.25, 4.5])
def test_an_extent_that_floats_decide_may_be_nothing(target: str, k: float) -> None:
    """Then nothing of a picture is read that has no columns, although another output has pixels."""
    img, number = pt.Input("img", "int32", ndim=2), pt.Param("k", "float32")
    rows, first, second = pt.Func("rows"), pt.Func("first"), pt.Func("second")
    rows[Y, X] = pt.reflect(img)[Y, X] * 2
    first[Y, X] = rows[Y, 7]
    second[Y] = Y
    columns = pt.clamp(pt.cast("int32", pt.cast("int16", number)), 0, 9)
    p = pt.Pipeline([first, second], shape=[(img.shape[0], columns), img.shape[:1]], target=target)
    p = p.with_schedule(pt.Schedule(pt.on("rows").compute_root())).with_options(debug=target == "host")
    pixels = np.arange(6, dtype=np.int32).reshape(2, 3)[:, : 0 if k < 0 else 3]
    for found, expected in zip(p(img=pixels, k=k), p.reference(img=pixels, k=k), strict=True):
        np.testing.assert_array_equal(found, expected)
