"""A stage that several definitions of another read, computed in a loop that each of them has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")
IMG = pt.Input("img", "int32", ndim=2)


def pipeline() -> pt.Pipeline:
    e, f, g, out = (pt.Func(n) for n in ("e", "f", "g", "out"))
    r = pt.RDom((0, 3), name="r")
    e[Y, X] = IMG[Y, X] * 3
    f[Y, X] = e[Y, X] * 2 + e[Y, X + 1]
    g[Y, X] = f[Y, X] + 1
    g[Y, X] += f[Y + r[0], X] * r[0]
    g[Y, X] += 5
    out[Y, X] = g[Y, X] - 1
    return pt.Pipeline(out, (IMG.shape[0] - 2, IMG.shape[1] - 1))


ROWS = pt.on("g").compute_root().parallel("y").update().reorder("y", "r.0", "x").parallel("y")
AT_ROWS = pt.on("f").compute_at("g", "y")
TILED = pt.on("g").compute_root().split("y", "yo", "yi", 8).update().split("y", "yo", "yi", 4)
SCHEDULES = {
    "rows": (ROWS, AT_ROWS, pt.on("e").compute_inline()),
    "another one beside it": (ROWS, AT_ROWS.vectorize("x", 4), pt.on("e").compute_at("g", "y")),
    "another one inside of it": (ROWS, AT_ROWS.vectorize("x", 4), pt.on("e").compute_at("f", "y")),
    "further in": (pt.on("g").compute_at("out", "y"), AT_ROWS, pt.on("e").compute_at("out", "y")),
    "columns": (pt.on("g").compute_root().update().reorder("x", "y", "r.0"), pt.on("f").compute_at("g", "x")),
    "loops of splits": (TILED, pt.on("f").compute_at("g", "yo"), pt.on("e").compute_at("f", "y")),
    "versions": (ROWS.specialize("img.shape[1] > 9"), AT_ROWS),
}


@pytest.mark.parametrize("stages", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("shape", [(30, 70), (5, 4), (3, 2)])
def test_in_each_definition(stages: tuple[pt.StageSchedule, ...], shape: tuple[int, int]) -> None:
    p = pipeline().with_schedule(pt.Schedule(pt.on("out"), *stages))
    image = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    np.testing.assert_array_equal(p(img=image), p.reference(img=image))
    np.testing.assert_array_equal(p.with_options(debug=True)(img=image), p.reference(img=image))


def test_each_place_computes_what_is_read_there() -> None:
    loops = pipeline().with_schedule(pt.Schedule(pt.on("out"), *SCHEDULES["rows"])).loops()
    assert loops.count("produce f:") == 2
    assert loops.count("for f.y in g.u1.y..g.u1.y + 3") == loops.count("for f.y") == 1


def test_more_places_than_there_may_be() -> None:
    before, stages = IMG, []
    for k in range(6):
        f = pt.Func(f"f{k}")
        f[Y, X] = before[Y, X]
        f[Y, X] += before[Y, X + 1]
        before, stages = f, [*stages, f.name]
    asked = [pt.on(a).compute_at(b, "y") for a, b in pairwise(stages)]
    match = r'pt.on\("f\d"\).compute_at\("f\d", "y"\): f\d would be computed in 64 places, in loops of several'
    shape = (IMG.shape[0], IMG.shape[1] - 6)
    roots = [pt.on(name).compute_root() for name in stages[:2]]
    few = pt.Pipeline(before, shape, schedule=pt.Schedule(*asked[2:], *roots))
    image = np.arange(70, dtype=np.int32).reshape(7, 10)
    np.testing.assert_array_equal(few(img=image), few.reference(img=image))
    before = pt.Func("last")
    before[Y, X] = f[Y, X]
    before[Y, X] += f[Y, X]
    with pytest.raises(pt.UserError, match=match):
        pt.Pipeline(before, shape, schedule=pt.Schedule(*asked, pt.on("f5").compute_at("last", "y")))
