"""Updates at places that data decide, on GPUs without a schedule: in shared memory of blocks where that has room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule.search.crossover import crossings
from pantile.machine import named
from pantile.simulator import counting

Y, X, Z, C = pt.vars("y x z c")
SIDE = 4  # pixels along each side of a cell
BINS = 16
H200 = named("H200")
STRATEGIES = ("greedy", "autogpu", "polymage_gpu", "posttile")


def cells(order: str = "yxz", dtype: str = "int32", side: int = SIDE, bins: Any = BINS, **options: Any) -> pt.Pipeline:
    """How many pixels of each cell have each brightness."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    r = pt.RDom((0, side), (0, side), names="y x")

    def at(z: Any) -> tuple[Any, ...]:
        return tuple({"y": Y, "x": X, "z": z}[d] for d in order)

    level = pt.cast("int32", img[Y * side + r.y, X * side + r.x]) * bins // 256
    f[at(Z)] = pt.cast(dtype, 0)
    f[at(level)] += pt.cast(dtype, 1)
    shape = {"y": img.shape[0] // side, "x": img.shape[1] // side, "z": bins}
    return pt.Pipeline(f, shape=tuple(shape[d] for d in order), **({"target": "cuda-sim"} | options))


def sums_and_numbers() -> pt.Pipeline:
    """Of each brightness, as channels, and their running sums over bins; a boundary is read beyond the picture."""
    img, f, out = pt.Input("img", "uint8", 2), pt.Func("f"), pt.Func("out")
    r, s = pt.RDom((-1, SIDE), (0, SIDE), names="y x"), pt.RDom((1, BINS - 1))
    value = pt.edge(img)[Y * SIDE + r.y, X * SIDE + r.x]
    f[Y, X, Z, C] = 0.0
    f[Y, X, pt.cast("int32", value) // 16, C] += pt.select(C == 0, pt.cast("float32", value), 1.0)
    f[Y, X, s[0], C] = f[Y, X, s[0], C] + 0.5 * f[Y, X, s[0] - 1, C]
    f[Y, X, Z, C] = f[Y, X, Z, C] * 2.0
    out[Y, X, C] = f[Y, X, 3, C] + f[Y + 1, X, BINS - 1, C]
    return pt.Pipeline(out, shape=(img.shape[0] // SIDE, img.shape[1] // SIDE, 2), target="cuda-sim", strict=True)


def last_of_each() -> pt.Pipeline:
    """Where the last pixel of each brightness is: the order of terms matters, and there are two values."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    r = pt.RDom((0, SIDE), (0, SIDE), names="y x")
    f[Y, X, Z] = (-1, -1)
    f[Y, X, pt.cast("int32", img[Y * SIDE + r.y, X * SIDE + r.x]) // 32] = (r.y, r.x)
    return pt.Pipeline(f, shape=(img.shape[0] // SIDE, img.shape[1] // SIDE, 8), target="cuda-sim")


def of_rows(dtype: str, **options: Any) -> pt.Pipeline:
    """Of whole rows, whose extent is not known."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    r = pt.RDom((0, img.shape[1]))
    f[Y, Z] = pt.cast(dtype, 0)
    f[Y, pt.cast("int32", img[Y, r[0]]) // 16] += pt.cast(dtype, 1)
    return pt.Pipeline(f, shape=(img.shape[0], BINS), **({"target": "cuda-sim"} | options))


PIPELINES: dict[str, Callable[[], pt.Pipeline]] = {
    "bins innermost": cells,
    "bins outermost": lambda: cells("zyx"),
    "bins between": lambda: cells("yzx"),
    "bytes": lambda: cells(dtype="uint8"),
    "floats": lambda: cells(dtype="float32"),
    "channels and further updates": sums_and_numbers,
    "the order of terms matters": last_of_each,
    "many terms": lambda: cells(side=33),
    "many terms of bytes": lambda: cells(side=33, dtype="uint8"),
    "rows": lambda: of_rows("int32"),
    "rows of floats": lambda: of_rows("float32"),
}


def picture(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape, np.uint8)


def bins_of(p: pt.Pipeline) -> list[str]:
    """The stages whose bins lie in shared memory."""
    return [n for n, s in p.schedule.items() if n.endswith("_bins") and 'store_in("shared")' in repr(s)]


@pytest.mark.parametrize("name", PIPELINES)
def test_bins_are_in_shared_memory(name: str) -> None:
    p = PIPELINES[name]()
    assert bins_of(p) == ["f_bins"]
    assert any("alloc f_bins" in line and "in shared" in line for line in p.loops().splitlines())
    for shape in ((SIDE, SIDE), (37, 300), (5, 3), (0, 9), (150, 40)):
        img = picture(shape)
        try:
            expected = p.reference(img=img)
        except pt.UserError:
            continue
        with counting() as counts:
            found = p(img=img)
        several = isinstance(found, tuple)
        for a, b in zip(found if several else [found], expected if several else [expected], strict=True):
            np.testing.assert_array_equal(a, b)
        if shape == (37, 300):
            stored = sum(a.nbytes for a in (found if several else [found]))
            assert name == "channels and further updates" or counts[0].traffic.global_sectors["store"] <= stored / 8


def test_a_cell_is_stored_once() -> None:
    """Instead of a load and a store of a sector for each pixel."""
    p, img = cells(), picture((32 * SIDE, 64 * SIDE))
    with counting() as counts:
        p(img=img)
    assert counts[0].traffic.global_sectors["store"] == 32 * 64 * BINS * 4 // 32
    named_stage = p.with_schedule(
        pt.Schedule(pt.on("f").compute_root().block("y").thread("x").update().block("y").thread("x"))
    )
    with counting() as before:
        named_stage(img=img)
    assert sum(c.traffic.global_sectors["store"] for c in before) > 8 * counts[0].traffic.global_sectors["store"]


@pytest.mark.parametrize("order", ["yxz", "zyx", "yzx"])
def test_threads_at_the_same_bin_access_different_banks(order: str) -> None:
    p = cells(order)
    with counting() as counts:
        p(img=np.full((32 * SIDE, 64 * SIDE), 77, np.uint8))
    traffic = counts[0].traffic  # rows of 16 bins, padded to 17, take two passes while they are cleared and stored
    assert traffic.bank_conflicts.total() <= traffic.shared_passes.total() // 3


@pytest.mark.parametrize(
    ("dtype", "is_shared"), [("int32", True), ("uint32", True), ("uint8", False), ("float32", False)]
)
def test_many_terms_are_shared_among_threads(dtype: str, is_shared: bool) -> None:
    """Where their order does not matter, and a GPU has an atomic instruction."""
    for p in (cells(dtype=dtype, side=40), of_rows(dtype)):
        assert (".atomic()" in repr(p.schedule["f_bins"])) == is_shared
    assert ".atomic()" not in repr(cells(dtype=dtype).schedule["f_bins"])


def test_where_blocks_have_no_room() -> None:
    assert bins_of(cells(bins=256)) == ["f_bins"]
    assert bins_of(cells(bins=2048)) == []


def test_extents_of_bins_that_are_not_known() -> None:
    """Shared memory has a constant size."""
    img, n, f = pt.Input("img", "uint8", 2), pt.Param("n", "int32"), pt.Func("f")
    r = pt.RDom((0, SIDE))
    bins = pt.clamp(n, 1, BINS)
    f[Y, Z] = 0
    f[Y, pt.clamp(pt.cast("int32", img[Y, r[0]]), 0, pt.clamp(n, 1, 100000) - 1)] += 1
    p = pt.Pipeline(f, shape=(img.shape[0], bins), target="cuda-sim")
    assert bins_of(p) == []
    img_ = picture((70, 9)) % 20
    np.testing.assert_array_equal(p(img=img_, n=7), p.reference(img=img_, n=7))


def test_bins_that_are_read_under_conditions_on_coordinates() -> None:
    """The ends of what is required may be too complex for bounds to be found, which shared memory needs."""
    img, n, f, out = pt.Input("img", "uint8", 2), pt.Param("n", "int32"), pt.Func("f"), pt.Func("out")
    r = pt.RDom((0, SIDE))
    f[Y, Z] = 0
    f[Y, pt.cast("int32", img[Y, r[0]]) // 16] += 1
    out[Y, X] = pt.select(n <= X, f[Y, 3], f[Y, 5])
    p = pt.Pipeline(out, shape=(img.shape[0], 8), target="cuda-sim")
    assert bins_of(p) == []
    img_ = picture((70, 9))
    np.testing.assert_array_equal(p(img=img_, n=3), p.reference(img=img_, n=3))


def test_what_a_schedule_names_stays() -> None:
    """Others may be computed in the loops of the stage: these must be there."""
    img, g, f = pt.Input("img", "uint8", 2), pt.Func("g"), pt.Func("f")
    r = pt.RDom((0, SIDE))
    g[Y, X] = img[Y, X] // 16
    f[Y, Z] = 0
    f[Y, pt.cast("int32", g[Y, r[0]])] += 1
    p = pt.Pipeline(f, shape=(img.shape[0], BINS), target="cuda-sim")
    assert bins_of(p) == ["f_bins"]
    inside = p.with_schedule(pt.Schedule(pt.on("g").compute_at("f", "r.0")))
    assert bins_of(inside) == []
    img_ = picture((70, 9))
    for q in (p, inside):
        np.testing.assert_array_equal(q(img=img_), p.reference(img=img_))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_leave_it_to_the_default(strategy: str) -> None:
    sizes = {"img": (1024, 2048)}
    q = cells().with_schedule(strategy, machine=H200, estimates=sizes)
    assert bins_of(q) == ["f_bins"]
    if strategy != "polymage_gpu":
        assert "with bins in shared memory of blocks: f" in str(q.report)
    img = picture((37, 300))
    np.testing.assert_array_equal(q(img=img), q.reference(img=img))


def far_apart() -> pt.Pipeline:
    """Bins of rows that are far apart, of rows of another stage that are far apart, too."""
    img, near, f, out = pt.Input("img", "uint8", 2), pt.Func("near"), pt.Func("f"), pt.Func("out")
    r = pt.RDom((0, SIDE))
    near[Y, X] = img[Y, X] // 16 + img[Y, X + 1] // 16
    f[Y, Z] = 0
    f[Y, pt.cast("int32", near[Y, r[0]] + near[Y + 500, r[0]]) % BINS] += 1
    out[Y, Z] = f[Y, Z] + f[Y + 2000, Z]
    return pt.Pipeline(out, shape=(img.shape[0] - 2500, BINS), target="cuda-sim")


def test_parts_that_are_far_apart() -> None:
    """posttile computes them as copies, each with bins of its own."""
    p = far_apart()
    q = p.with_schedule("posttile", machine=H200, estimates={"img": (2700, 40)})
    assert len(bins_of(q)) == 2
    img = picture((2600, 9))
    np.testing.assert_array_equal(q(img=img), p.reference(img=img))


def test_clones_have_the_definition_of_what_is_copied_out() -> None:
    p = far_apart()
    chain = p.schedule["f"]
    schedule = pt.Schedule(chain.clone_in("out", "f_2", 1), p.schedule["f_bins"])
    q = p.with_schedule(schedule)
    assert "alloc f_2_bins" in q.loops()
    img = picture((2600, 9))
    np.testing.assert_array_equal(q(img=img), p.reference(img=img))


def two_halves() -> pt.Pipeline:
    """Bins of one picture, and a blur of another one."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    other, row, out = pt.Input("other", "float32", 2), pt.Func("row"), pt.Func("out")
    r = pt.RDom((0, SIDE), (0, SIDE), names="y x")
    f[Y, X, Z] = 0
    f[Y, X, pt.cast("int32", img[Y * SIDE + r.y, X * SIDE + r.x]) // 16] += 1
    row[Y, X] = other[Y, X] + other[Y, X + 1] + other[Y, X + 2]
    out[Y, X] = row[Y, X] + row[Y + 1, X] + row[Y + 2, X]
    shapes = [(img.shape[0] // SIDE, img.shape[1] // SIDE, BINS), (other.shape[0] - 2, other.shape[1] - 2)]
    return pt.Pipeline([f, out], shape=shapes, target="cuda-sim")


def test_schedules_with_bins_exchange_parts() -> None:
    """The bins go with their stage."""
    p = two_halves()
    plain, greedy = (
        p.with_schedule(s, machine=H200, estimates={"img": (2000, 2000), "other": (2000, 2000)}).schedule
        for s in ("plain", "greedy")
    )
    without = plain.without("f_bins").replace(
        pt.on("f").compute_root().block("y").thread("x").update(0).block("y").thread("x")
    )
    crossed = list(crossings(p.graph, without, greedy))
    assert any(s.on("f_bins") == greedy["f_bins"] and s.on("out") == plain["out"] for s in crossed)
    assert any("f_bins" not in s and s.on("out") == greedy["out"] for s in crossed)
    assert all("f_bins" not in s for s in crossings(p.graph, greedy, without) if s.on("f") == without["f"])


def test_bins_that_no_point_is_counted_into() -> None:
    """Blocks keep the bins that are read, not all that could be counted into, for which there are no initial values."""
    img, start, bins, out = pt.Input("img", "int32", 2), pt.Func("start"), pt.Func("bins"), pt.Func("out")
    pixels, r = pt.wrap(img), pt.RDom((0, 3), (-1, 3))
    never = r.where(r[0] < 0)
    start[Y, X] = pixels[Y + 2, 1], pixels[7, pt.cast("int32", pt.floor(X * 0.5))]
    bins[Y, X] = start[3 * Y - 3, (X + 3) // 2][0]
    bins[pt.clamp(start[never[1], never[1]][0], 0, 15), X] += 1
    out[Y, X] = bins[Y, X]
    p = pt.Pipeline(out, shape=(9, 2 * img.shape[1]), target="cuda-sim", schedule="plain")
    values = np.arange(85, dtype=np.int32).reshape(17, 5)
    assert np.array_equal(p(img=values), p.reference(img=values))
