"""Stages that are read under a condition: nothing is computed for iterations in which it fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Expr

y, x = pt.vars("y x")
img = pt.Input("img", "uint8", ndim=2)

READS: list[tuple[int, Callable[[], Expr]]] = [
    (-1, lambda: y > 0),
    (1, lambda: y < img.shape[0] - 1),
    (3, lambda: (y > 2) & (y < img.shape[0] - 3)),
    (-3, lambda: (y > 2) & (y < img.shape[0] - 3)),
]


@pytest.mark.parametrize("stored", [None, "yo", "yi"])
@pytest.mark.parametrize("f_at", ["yo", "yi"])
@pytest.mark.parametrize("read", range(len(READS)))
def test_what_is_not_there_is_not_read(read: int, f_at: str, stored: str | None) -> None:
    """img has no row for f[-1], which only the first iteration would need if its condition held."""
    offset, condition = READS[read]
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = img[y, x] + 1
    g[y, x] = f[y, x] * 2
    out[y, x] = pt.select(condition(), g[y + offset, x], 3)
    g_plan = pt.on("g").compute_at("out", "yi")
    g_plan = g_plan.store_root() if stored is None else g_plan.store_at("out", stored)
    schedule = pt.Schedule(pt.on("out").split("y", "yo", "yi", 4), pt.on("f").compute_at("out", f_at), g_plan)
    p = pt.Pipeline(out, shape=img.shape, schedule=schedule, debug=True)
    pixels = np.arange(13 * 11, dtype="uint8").reshape(13, 11)
    np.testing.assert_array_equal(p(img=pixels), p.reference(img=pixels))


@pytest.mark.parametrize("tail", ["auto", "guard"])
@pytest.mark.parametrize("scale", [0.5, 1, 2])
def test_tiles_of_tiles_need_no_more_than_there_is(scale: float, tail: str) -> None:
    """The last block of an inner stage is shorter: what is computed before it reads no further than the input."""
    (i,), line = pt.vars("i"), pt.Input("line", "float32", ndim=1)
    f, g, h, out = (pt.Func(name) for name in ("f", "g", "h", "out"))
    at = i // 2 if scale < 1 else i * int(scale)
    f[i] = line[i] * 2
    g[i] = f[i] + f[i + 1]
    h[i] = g[at] + g[at + 1]
    out[i] = h[i] + h[i + 1]
    schedule = pt.Schedule(
        pt.on("f").compute_root(),
        pt.on("g").compute_at("h", "tile"),
        pt.on("h").compute_root().split("i", "strip", "rest", 32).split("rest", "tile", "point", 8, tail),
        pt.on("out").compute_root(),
    )
    height = {0.5: line.shape[0] * 2 - 6, 1: line.shape[0] - 3, 2: line.shape[0] // 2 - 2}[scale]
    p = pt.Pipeline(out, shape=(height,), schedule=schedule, debug=True)
    for size in (9, 41, 70, 133):
        data = np.arange(size, dtype="float32")
        np.testing.assert_array_equal(p(line=data), p.reference(line=data))


@pytest.mark.parametrize("site", ["root", "x", "y"])
def test_conditions_that_meet_in_many_ways(site: str) -> None:
    """Once stages are inlined there are more ways to a read than conditions are kept for; it reads no more for that."""
    img = pt.Input("img", "int32", ndim=2)
    first, *others = (pt.Func(f"f{k}") for k in range(4))
    first[y, x] = img[y, x] + img[y + 1, x]
    before = first
    for f in others:
        f[y, x] = before[y + 2, x] + sum(
            pt.select(y >= k, before[y - k, x + c], 7) + pt.select(x >= k, before[y + 1, x - k], 7)
            for k, c in ((1, 0), (2, 1))
        )
        before = f
    p = pt.Pipeline(before, shape=(img.shape[0] - 7, img.shape[1] - 3)).with_options(debug=True)
    at = pt.on("f0").compute_root() if site == "root" else pt.on("f0").compute_at("f3", site)
    scheduled = p.with_schedule(pt.Schedule(*(pt.on(f.name).compute_inline() for f in others[:-1]), at))
    photo = np.arange(18 * 9, dtype=np.int32).reshape(18, 9)
    np.testing.assert_array_equal(scheduled(img=photo), p.reference(img=photo))


@pytest.mark.parametrize("is_output", [False, True])
@pytest.mark.parametrize("first", [0, 8, 20])
def test_accumulated_at_a_place_that_is_there_if_the_update_runs(first: int, is_output: bool) -> None:
    k = pt.Param("k", "int32")
    r = pt.RDom((0, 9))
    h, out = pt.Func("h"), pt.Func("out")
    h[x] = pt.cast("int32", img[x, 0])
    h[pt.cast("int32", img[0, 0]) % 1] += pt.cast("int32", img[0, r.where(r[0] >= k)[0]])
    out[x] = h[x + 1]
    p = pt.Pipeline(h if is_output else out, shape=(5,), debug=True)
    scheduled = p.with_schedule(pt.Schedule(pt.on("h").compute_root()))
    pixels = np.arange(13 * 11, dtype="uint8").reshape(13, 11)
    np.testing.assert_array_equal(scheduled(img=pixels, k=first), p.reference(img=pixels, k=first))


def test_accumulated_outside_of_an_output_if_at_all() -> None:
    k = pt.Param("k", "int32")
    r, h = pt.RDom((0, 9)), pt.Func("h")
    h[x] = pt.cast("int32", img[x, 0])
    h[pt.cast("int32", img[0, 0]) % 1 + 7] += pt.cast("int32", img[0, r.where(r[0] >= k)[0]])
    p = pt.Pipeline(h, shape=(5,), debug=True)
    pixels = np.arange(13 * 11, dtype="uint8").reshape(13, 11)
    np.testing.assert_array_equal(p(img=pixels, k=20), p.reference(img=pixels, k=20))


def test_what_a_guard_limits_also_limits_what_is_made_of_it() -> None:
    """Vectors in blocks of two, of which the last has one: no iteration of the loop over blocks needs a second."""
    source, f, out = pt.Input("img", "uint16", ndim=2), pt.Func("f"), pt.Func("out")
    f[y, x] = source[y, x] + source[y, x + 2]
    out[y, x] = f[y, x + 2]
    p = pt.Pipeline(out, shape=(source.shape[0], source.shape[1] - 4)).with_options(debug=True)
    vectors = pt.on("out").vectorize("x", 8, tail="guard").split("x", "xo", "xi", 2).reorder("xi", "xo", "y", "x_v")
    q = p.with_schedule(pt.Schedule(vectors, pt.on("f").compute_at("out", "xi").split("x", "x", "xf", 5)))
    for columns in (29, 30, 35, 36, 45):
        picture = np.arange(3 * columns, dtype=np.uint16).reshape(3, columns)
        np.testing.assert_array_equal(q(img=picture), p.reference(img=picture))


def test_blocks_in_blocks_need_no_more_than_there_is() -> None:
    """f has half as many rows as out, whose strips are cut into pairs: of g, at root, no more is computed than f reads,
    though the last strip could be as long as any and the last pair of a strip as far down as any."""
    g, f, out = pt.Func("g"), pt.Func("f"), pt.Func("out")
    g[y, x] = img[y, x] + 1
    f[y, x] = g[y, x] + g[y + 1, x]
    out[y, x] = f[y // 2, x]
    pairs = pt.on("out").split("y", "yo", "yi", 16, tail="guard").split("yi", "yi", "row", 2).unroll("row")
    schedule = pt.Schedule(pairs, pt.on("f").compute_at("out", "yi"), pt.on("g").compute_root())
    p = pt.Pipeline(out, shape=(2 * img.shape[0] - 2, img.shape[1])).with_schedule(schedule).with_options(debug=True)
    for rows in (9, 29, 30, 33):
        picture = np.arange(rows * 7, dtype=np.uint8).reshape(rows, 7)
        np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))


def test_what_turned_out_to_be_a_constant_is_needed_by_nobody() -> None:
    """All that is read of `at` is where to read `one`, which is the same anywhere once it is inlined."""
    k, photo = pt.Param("k", "float32"), pt.Input("photo", "float32", ndim=2)
    one, at, row, other = pt.Func("one"), pt.Func("at"), pt.Func("row"), pt.Func("other")
    one[y, x] = pt.cast("int32", k)
    least = pt.cast("int32", pt.minimum(pt.cast("int64", -9223372036854775807) + 2, 2))
    at[y, x] = pt.minimum(pt.maximum(least, -2), 15)
    row[y, x] = one[at[y + 1, x], x]
    other[y, x] = photo[y, x] * 2
    in_rows = [pt.on("row").compute_root(), pt.on("other").compute_root(), pt.on("at").compute_with("other", "y")]
    p = pt.Pipeline([row, other], shape=[(photo.shape[0] // 2 + 1, photo.shape[1]), photo.shape])
    p = p.with_schedule(pt.Schedule(pt.on("one").compute_inline(), *in_rows))
    a = np.ones((7, 8), np.float32)
    for found, wanted in zip(p(photo=a, k=0.5), p.reference(photo=a, k=0.5), strict=True):
        np.testing.assert_array_equal(found, wanted)


PLACES: dict[str, tuple[int, Callable[[Expr], Expr]]] = {
    "a quotient by a param": (5, lambda k: x // k),
    "a quotient by a coordinate": (6, lambda k: 5 // (x // 5 + k)),
    "a sum of bytes": (5, lambda k: pt.cast("int32", pt.cast("uint8", x + k - 1))),
    "a product of bytes": (13, lambda k: pt.cast("int32", pt.cast("uint8", x + k - 1) * 3)),
}


@pytest.mark.parametrize(("extent", "place"), PLACES.values(), ids=PLACES)
def test_what_is_known_of_places_when_a_call_is_made(extent: int, place: Callable[[Expr], Expr]) -> None:
    """Code computes no more of a stage than what is known of the numbers of a call says."""
    row, k, n = pt.Input("row", "int32", ndim=1), pt.Param("k", "int32"), pt.Param("n", "int32")
    double, out = pt.Func("double"), pt.Func("out")
    double[x] = row[x] * 2
    out[x] = double[place(k)]
    p = pt.Pipeline(out, (n,), debug=True).with_schedule(pt.Schedule(pt.on("double").compute_root()))
    given = np.arange(extent, dtype=np.int32)
    np.testing.assert_array_equal(p(row=given, k=1, n=5), p.reference(row=given, k=1, n=5))
