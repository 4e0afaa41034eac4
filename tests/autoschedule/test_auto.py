"""auto: the cheapest of what strategies propose, and of what rolling, crossing and resizing makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import STRATEGIES, Auto, Problem
from pantile.autoschedule.auto import _SOURCES, EQUAL_COST, _AutoSearch
from pantile.autoschedule.search.bands import bands
from pantile.autoschedule.search.candidates import Candidate, CostedSchedules
from pantile.autoschedule.search.cells import cells
from pantile.autoschedule.search.crossover import cheaper_parts, crossings
from pantile.autoschedule.search.groups import StageGroup, groups
from pantile.autoschedule.search.prefetch import prefetching
from pantile.autoschedule.search.resizing import WIDEST, even_strips, filling_lines, resizings
from pantile.autoschedule.search.rolling import INSIDE, WRITTEN_OUT, Roll, chains, columns, rolls, variations
from pantile.autoschedule.search.siblings import MOST, siblings
from pantile.autoschedule.search.slanted_reads import COLUMNS, ROWS, in_tiles
from pantile.cost_model.result import Causes, Cost, StageCost

from .problems import ORDINARY, chain, problem_of

SOURCES = [source.name for source, _ in _SOURCES]
Y, X = pt.vars("y x")


def two_outputs() -> pt.Pipeline:
    """A stencil and a pointwise stage, which have nothing to do with each other."""
    img, f, g, h = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g"), pt.Func("h")
    f[Y, X] = pt.edge(img)[Y, X] * 2.0
    g[Y, X] = f[Y - 1, X] + f[Y + 1, X]
    h[Y, X] = img[Y, X] + 1.0
    return pt.Pipeline([g, h], shape=[img.shape, img.shape])


@pytest.mark.parametrize("name", ["blur", "harris", "bilateral_grid", "hist_eq"])
def test_no_strategy_is_cheaper(name: str) -> None:
    app = APPS[name]
    problem = problem_of(app.build(), ORDINARY, **app.sizes["paper"])
    candidates = CostedSchedules(problem)
    found = candidates.candidate("auto", Auto().find(problem).schedule)
    assert found is not None
    for source in SOURCES:
        other = candidates.candidate(source, STRATEGIES[source]().find(problem).schedule)
        assert other is not None and found.seconds <= other.seconds * (1 + EQUAL_COST)


def test_the_search_ends() -> None:
    problem = problem_of(chain(12), ORDINARY, img=(2000, 2000))
    for steps in (0, 60):
        found = Auto(steps=steps).find(problem)
        # beyond these, what each proposal has that is cheaper, and the output by lines
        assert found.report.counts["schedules evaluated"] <= steps / 12 + 2 * len(SOURCES) + 1


def test_parts_that_nothing_outside_refers_to_change_places() -> None:
    graph = two_outputs().graph
    fused = pt.Schedule(pt.on("f").compute_at("g", "y"), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    apart = pt.Schedule(pt.on("f").compute_root(), pt.on("g").vectorize("x", 4), pt.on("h").vectorize("x", 8))
    found = list(crossings(graph, fused, apart))
    assert fused.replace(apart.on("f"), apart.on("g")) in found
    assert fused.replace(apart.on("h")) in found
    assert all((s.on("f") == fused.on("f")) == (s.on("g") == fused.on("g")) for s in found)


def test_all_cheaper_parts_change_places_at_once() -> None:
    graph = two_outputs().graph
    mine = pt.Schedule(pt.on("f").compute_at("g", "y"), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    other = pt.Schedule(pt.on("f").compute_root(), pt.on("g").vectorize("x", 4), pt.on("h").vectorize("x", 8))
    gains = {"f": 2.0, "g": -1.0, "h": 0.5}
    assert cheaper_parts(graph, mine, other, lambda part: sum(gains[n] for n in part)) == mine.replace(*other.values())
    assert cheaper_parts(graph, mine, other, lambda part: -1.0) is None


def test_inlined_stages_go_with_those_that_read_them() -> None:
    graph = two_outputs().graph
    one = pt.Schedule(pt.on("f").compute_inline(), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    other = pt.Schedule(pt.on("f").compute_root(), pt.on("g").vectorize("x", 4), pt.on("h").parallel("y"))
    assert list(crossings(graph, one, other)) == [one.replace(other.on("f"), other.on("g"))]


def test_each_factor_is_doubled_and_halved() -> None:
    schedule = pt.Schedule(pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", 16, 64).vectorize("xi", WIDEST))
    changed = {repr(s.on("g")) for _, s in resizings(schedule)}
    sizes = [(32, 64, WIDEST), (8, 64, WIDEST), (16, 128, WIDEST), (16, 32, WIDEST), (16, 64, WIDEST // 2)]
    assert changed == {
        repr(pt.on("g").tile("y", "x", "yo", "xo", "yi", "xi", a, b).vectorize("xi", c)) for a, b, c in sizes
    }


def test_vectors_of_outputs_fill_lines() -> None:
    problem = problem_of(two_outputs(), ORDINARY, img=(500, 500))
    half = pt.Schedule(pt.on("f").vectorize("x", 8), pt.on("g").vectorize("x", 8), pt.on("h").vectorize("x", 16))
    assert filling_lines(problem, half, "g") == half.replace(pt.on("g").vectorize("x", 16))
    assert filling_lines(problem, half, "h") is None


def test_what_is_all_that_is_computed_keeps_its_vectors() -> None:
    img, masked, out = pt.Input("img", "uint32", ndim=2), pt.Input("masked", "uint32", ndim=2), pt.Func("out")
    out[Y, X] = img[Y, X] & masked[Y, X]
    problem = problem_of(pt.Pipeline(out, shape=img.shape), ORDINARY, img=(4096, 4096), masked=(4096, 4096))
    search = _AutoSearch(problem, steps=0, worth=0.03)
    half = search.candidates.candidate("half", pt.Schedule(pt.on("out").vectorize("x", 8).parallel("y", 8)))
    assert half is not None and search._filling_lines(half) is half


def test_what_is_larger_than_all_that_it_reads_fills_lines() -> None:
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    out[Y, X] = pt.cast("int16", img[Y, X]) - 128
    problem = problem_of(pt.Pipeline(out, shape=img.shape), ORDINARY, img=(4096, 4096))
    search = _AutoSearch(problem, steps=0, worth=0.03)
    half = search.candidates.candidate("half", pt.Schedule(pt.on("out").vectorize("x", 16).parallel("y", 8)))
    assert half is not None
    assert search._filling_lines(half).schedule == pt.Schedule(pt.on("out").vectorize("x", 32).parallel("y", 8))


def strips_of(rows: int, *chains: pt.StageSchedule, half: bool = False) -> list[int]:
    """The lengths that are tried instead of those of `out`, which reads what is blurred down columns."""
    img, blurred, out = pt.Input("img", "uint8", ndim=2), pt.Func("blurred"), pt.Func("out")
    blurred[Y, X] = img[Y, X] + img[Y + 1, X]
    out[Y, X] = blurred[Y // 2 if half else Y, X] + blurred[(Y // 2 if half else Y) + 1, X]
    size = (rows + 4, 1024)
    p = pt.Pipeline(out, shape=(rows, 1024))
    schedule = pt.Schedule(*chains)
    found = even_strips(problem_of(p, replace(ORDINARY, cores=4, threads=4), img=size), schedule, "out")
    return [int(d.args[3]) for s in found for d in s.on("out").directives if d.verb == "split" and d.args[1] == "y_o"]


def test_strips_become_even_and_longer() -> None:
    """Four for each of four threads, of whole blocks, of 256 rows at most; in pairs of rows, or by themselves."""
    out = pt.on("out").compute_root()
    strips = out.split("y", "y_o", "y_i", 64).parallel("y_o")
    assert strips_of(2000, strips) == [126]
    assert strips_of(2000, strips.unroll("y_i", 4)) == [128]
    assert strips_of(8192, strips) == [256]
    assert strips_of(2000, out.split("y", "y", "y_r", 2).split("y", "y_o", "y_i", 32).parallel("y_o")) == [63]
    assert strips_of(1000, out.split("y", "y_o", "y_i", 72).parallel("y_o")) == []


def test_strips_that_are_computed_otherwise_stay() -> None:
    out = pt.on("out").compute_root()
    strips = out.split("y", "y_o", "y_i", 64).parallel("y_o")
    inside = pt.on("blurred").compute_at("out", "y_i").store_at("out", "y_o")
    assert strips_of(2000, strips, inside) == [126]
    assert strips_of(2000, strips, inside, half=True) == []  # pictures of another size
    assert strips_of(2000, out.parallel("y", 8)) == []
    assert strips_of(2000, strips.parallel("x")) == []


def test_much_code_for_few_stages_must_be_worth_it() -> None:
    """Four percent for a second; beyond what is usual for so many stages, three times as much."""

    def seconds(compile_s: float, stages: int) -> float:
        each = StageCost("f", 1.0 / stages, Causes(), 1.0, 0.0, ())
        cost = Cost("p", 1.0, Causes(), (each,) * stages, (), 0, compile_s)
        return Candidate("", pt.Schedule(), cost).seconds

    assert seconds(1.0, 2) == pytest.approx(1.04)
    assert seconds(2.25, 2) == pytest.approx(1.09 + 0.08)
    assert seconds(2.25, 40) == pytest.approx(1.09)


def test_the_report_says_what_was_proposed() -> None:
    app = APPS["blur"]
    text = app.build().with_schedule("auto", estimates=app.sizes["small"], machine=ORDINARY).explain()
    assert "proposals: naive" in text and "predicted seconds" in text


# ---- groups that roll


def pyramid() -> pt.Pipeline:
    """Three planes: rows are halved, blurred and read back, with a level that all planes share."""
    c = pt.Var("c")
    img = pt.Input("img", "float32", ndim=3)
    level, low, blurred, out = (pt.Func(n) for n in ("level", "low", "blurred", "out"))
    level[Y, X] = pt.edge(img)[0, Y, X] + pt.edge(img)[1, Y, X]
    low[Y, X] = level[2 * Y, X] + level[2 * Y + 1, X]
    blurred[Y, X] = low[Y - 1, X] + low[Y, X] + low[Y + 1, X - 1]
    out[c, Y, X] = blurred[Y // 2, X] * img[c, Y, X]
    return pt.Pipeline(out, shape=img.shape)


def test_the_groups_of_a_schedule() -> None:
    graph = two_outputs().graph
    fused = pt.Schedule(pt.on("f").compute_at("g", "y"), pt.on("g").parallel("y"), pt.on("h").parallel("y"))
    assert StageGroup("g", ("f",), ()) in groups(graph, fused)
    shared = fused.replace(pt.on("f").compute_inline())
    assert StageGroup("g", (), ("f",)) in groups(graph, shared)
    apart = fused.replace(pt.on("f").compute_root(), pt.on("g").compute_with("f", "y"))
    assert "g" not in [g.output for g in groups(graph, apart)]


def test_rows_that_are_used_again_are_kept() -> None:
    problem = problem_of(chain(2), ORDINARY, img=(500, 500))
    rolled = {c.name: repr(c) for c in chains(problem, Roll("f1", ("f0",), tile=256))}
    assert rolled["f0"] == (
        'pt.on("f0").compute_at("f1", "y_i").store_at("f1", "x_o").split("y", "y", "y_r", 2).vectorize("x", 8)'
        '.reorder("y", "x", "y_r", "x_v").unroll("y_r")'
    )
    assert rolled["f1"] == (
        'pt.on("f1").compute_root().split("y", "y_o", "y_i", 64).split("y_i", "y_i", "y_r", 2)'
        '.split("x", "x_o", "x_i", 256).vectorize("x_i", 8).reorder("y_o", "x_o", "y_i", "x_i", "y_r", "x_i_v")'
        '.unroll("y_r").parallel("y_o")'
    )


def test_what_cannot_slide_does_not_roll() -> None:
    """Every second row of the output needs a new row of `low`; `level` would be computed again in the others."""
    problem = problem_of(pyramid(), ORDINARY, img=(3, 500, 500))
    assert rolls(problem, Roll("out", ("blurred",)))
    assert not rolls(problem, Roll("blurred", ("low", "level")))  # the last strip may be shorter
    assert rolls(problem, Roll("blurred", ("low", "level"), rows=1))


@pytest.mark.parametrize(
    "roll",
    [
        Roll("out", ("low", "blurred"), planes=INSIDE, strip=16),
        Roll("out", ("blurred",), ("low",), planes=WRITTEN_OUT, tile=64, rows=4),
    ],
)
def test_rolls_are_right(roll: Roll) -> None:
    pipeline = pyramid()
    problem = problem_of(pipeline, ORDINARY, img=(3, 500, 500))
    assert rolls(problem, roll)
    found = pipeline.with_schedule(pt.Schedule(*chains(problem, roll)))
    for shape in ((3, 131, 77), (3, 9, 5)):
        img = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 61
        np.testing.assert_array_equal(found(img=img), pipeline.reference(img=img))


def test_variations_change_one_thing() -> None:
    problem = problem_of(pyramid(), ORDINARY, img=(3, 500, 500))
    start = Roll("out", ("blurred",), ("low",))
    found = dict(variations(problem, start))
    assert found["blurred inlined"] == Roll("out", (), ("low", "blurred"), planes=WRITTEN_OUT)  # once for all planes
    assert found["low stored"] == Roll("out", ("low", "blurred"))
    assert found["planes inside"] == Roll("out", ("blurred",), ("low",), planes=INSIDE)
    assert found["4 rows at a time"].rows == 4 and "8 rows at a time" not in found


# ---- sums of cells


def test_cells_go_by_blocks() -> None:
    """Sum and number of a cell's pixels, by their value, are a vector; what is counted is computed for a block."""
    y, x, z, c = pt.vars("y x z c")
    img, level, grid, out = pt.Input("img", "float32", ndim=2), pt.Func("level"), pt.Func("grid"), pt.Func("out")
    level[y, x] = pt.cast("int32", pt.clamp(img[y, x], 0, 1) * 7)
    r = pt.RDom((0, 4), (0, 4), names="y x")
    at = (4 * y + r.y, 4 * x + r.x)
    grid[y, x, z, c] = 0.0
    grid[y, x, pt.within(level[at], 0, 7), c] += pt.select(c == 0, img[at], 1)
    out[y, x, z] = grid[y, x, z, 0] + 2 * grid[y, x, z, 1]
    p = pt.Pipeline(out, shape=(img.shape[0] // 4, img.shape[1] // 4, 8))
    problem = problem_of(p, ORDINARY, img=(400, 600))
    start = STRATEGIES["naive"]().find(problem).schedule
    alone, with_levels = cells(problem, start, "grid")
    assert repr(alone.on("grid")).endswith(
        '.update(0).split("x", "x", "x_i", 16).vectorize("c", 2)'
        '.reorder("y", "x", "c", "r.y", "x_i", "r.x", "c_v").unroll("r.x").parallel("y")'
    )
    assert repr(with_levels.on("level")) == 'pt.on("level").compute_at("grid", "x").vectorize("x", 8)'
    assert list(cells(problem, start, "out")) == []
    values = np.random.default_rng(0).random((41, 83), np.float32)
    for schedule in (alone, with_levels):
        np.testing.assert_allclose(p.with_schedule(schedule)(img=values), p.reference(img=values), rtol=1e-5)


# ---- scans


def smoothed(turned: bool) -> pt.Pipeline:
    """Columns are filtered down and up, and read as they are or transposed."""
    c, y, x = pt.vars("c y x")
    img, f, out = pt.Input("img", "float32", ndim=3), pt.Func("f"), pt.Func("out")
    planes, height, width = img.shape
    r = pt.RDom((1, height - 1), names="y", name="r")
    up = height - 1 - r.y
    f[c, y, x] = img[c, y, x]
    f[c, r.y, x] = (f[c, r.y - 1, x] + f[c, r.y, x]) / 2
    f[c, up, x] = (f[c, up + 1, x] + f[c, up, x]) / 2
    out[c, y, x] = f[c, x, y] if turned else f[c, y, x] + 1
    return pt.Pipeline(out, shape=(planes, width, height) if turned else img.shape)


@pytest.mark.parametrize("turned", [True, False])
def test_scans_go_by_columns(turned: bool) -> None:
    """In blocks that threads share, and in bands of what reads them."""
    p = smoothed(turned)
    problem = problem_of(p, replace(ORDINARY, cores=4, threads=4), img=(1, 1000, 1200))
    start = STRATEGIES["naive"]().find(problem).schedule
    found = list(bands(problem, start, "f"))
    places = [next(d for d in s.on("f").directives if d.verb.startswith("compute")) for s in found]
    assert [d.verb for d in places].count("compute_root") == 3
    assert {d.args for d in places if d.verb == "compute_at"} == {("out", "y_o" if turned else "x_o")}
    assert 'parallel("c").parallel("x_o")' in repr(found[0].on("f"))
    assert list(bands(problem, start, "out")) == []
    values = np.random.default_rng(0).random((2, 37, 71), np.float32)
    for schedule in found:
        np.testing.assert_allclose(p.with_schedule(schedule)(img=values), p.reference(img=values), rtol=1e-5)


def test_a_scan_with_few_planes_is_shared_by_columns() -> None:
    """Sixteen cores have no work with one plane, unless they share its columns."""
    many = replace(ORDINARY, cores=16, threads=16)
    problem = problem_of(smoothed(turned=False), many, img=(1, 2000, 3000))
    found = [Auto(without=w).find(problem).report.counts["predicted seconds"] for w in (None, ("bands",))]
    assert found[0] < found[1] / 2


def test_what_is_no_scan_has_no_bands() -> None:
    """Rows that are summed along themselves, and totals of columns, which read what they write."""
    img, along, total = pt.Input("img", "float32", ndim=2), pt.Func("along"), pt.Func("total")
    r = pt.RDom((1, img.shape[1] - 1), name="r")
    along[Y, X] = img[Y, X]
    along[Y, r[0]] += along[Y, r[0] - 1]
    rows = pt.RDom((0, img.shape[0]), name="rows")
    total[X] = 0.0
    total[X] += img[rows[0], X]
    p = pt.Pipeline([along, total], shape=[img.shape, img.shape[1:]])
    problem = problem_of(p, ORDINARY, img=(400, 600))
    start = STRATEGIES["naive"]().find(problem).schedule
    assert [s for name in ("along", "total") for s in bands(problem, start, name)] == []


# ---- pictures that are turned


def moved(turn: bool) -> pt.Pipeline:
    """A picture turned by a matrix, or made larger by it, between two pixels."""
    c = pt.Var("c")
    img, m = pt.Input("img", "uint8", shape=(None, None, 3)), pt.Input("m", "float32", ndim=2)
    src, out = pt.edge(img, axes=(0, 1)), pt.Func("out")
    down = m[0, 0] * Y + (m[0, 1] * X if turn else 0.0)
    row, column = (pt.cast("int32", pt.floor(e)) for e in (down, m[1, 0] * Y + m[1, 1] * X))
    out[Y, X, c] = pt.rounding_cast("uint8", pt.lerp(src[row, column, c], src[row + 1, column + 1, c], 0.25))
    return pt.Pipeline(out, shape=img.shape)


def _lanes(chain: pt.StageSchedule) -> int:
    return next(int(d.args[1]) for d in chain.directives if d.verb == "vectorize")


def test_what_turns_a_picture_goes_by_tiles() -> None:
    found = {}
    for turn in (True, False):
        problem = problem_of(moved(turn), ORDINARY, img=(2000, 3000, 3), m=(2, 2))
        found[turn] = repr(Auto().find(problem).schedule.on("out"))
        plain = pt.Schedule(pt.on("img_edge").compute_inline(), pt.on("out").compute_root())
        assert [_lanes(s.on("out")) for s in in_tiles(problem, plain, "out")] == ([8, 4] if turn else [])
    assert f'.split("y", "y_o", "y_i", {ROWS})' in found[True]
    assert f'.split("x", "x_o", "x_i", {COLUMNS})' in found[True]
    assert f'"x_i", {COLUMNS})' not in found[False]


def test_a_number_is_no_picture_that_is_turned() -> None:
    img, total = pt.Input("img", "float32", ndim=2), pt.Func("total")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    total[()] = pt.sum(pt.edge(img)[r[0] - r[1], r[1] // 2], over=r)
    problem = problem_of(pt.Pipeline(total, shape=(), strict=True), ORDINARY, img=(400, 600))
    start = STRATEGIES["naive"]().find(problem).schedule
    assert list(in_tiles(problem, start, problem.graph.stages[-1].name)) == []


# ---- places that data decide


def called(name: str) -> Problem:
    """What `auto` is asked by a call of an app on two cores, which knows how many channels pixels have."""
    two = replace(ORDINARY, cores=2, threads=2)
    return replace(APPS[name].build().problem(**APPS[name].sizes["paper"]), machine=two)


def test_rows_that_share_nothing_that_is_known_are_not_computed_side_by_side() -> None:
    found = Auto().find(called("colour_table")).schedule
    assert _lanes(found.on("out")) == 8 and '"y_r"' not in repr(found.on("out"))


def test_a_lens_is_undone_in_tiles_of_short_vectors() -> None:
    found = Auto().find(called("undistort")).schedule
    assert _lanes(found.on("out")) == 8 and f'"x_o", "x_i", {COLUMNS})' in repr(found.on("out"))


def test_what_covers_a_whole_dim_does_not_become_longer() -> None:
    schedule = pt.Schedule(pt.on("out").vectorize("x", 8).unroll("c", 3))
    factors = {
        (d.verb, d.args[1])
        for _, s in resizings(schedule, lambda name: {"x": 100, "c": 3})
        for d in s.on("out").directives
    }
    assert factors == {("vectorize", n) for n in (4, 16)} | {("unroll", 3)}


# ---- rows that are asked for early


def sharpened(planes: int = 1, below: int = 3) -> tuple[pt.Pipeline, pt.Schedule]:
    """A stencil over rows of the mean of some planes, times the picture; rolling down strips, two rows at a time."""
    c = pt.Var("c")
    img, gray, out = pt.Input("img", "float32", ndim=3), pt.Func("gray"), pt.Func("out")
    gray[Y, X] = img[0, Y, X] + img[1, Y, X]
    factor = gray[Y, X] + gray[Y + below, X]
    out[c, Y, X] = sum((factor * img[c + k, Y, X] for k in range(planes)), 0.0)
    p = pt.Pipeline(out, shape=(1, img.shape[1] - below, img.shape[2]))
    problem = problem_of(p, ORDINARY, img=(2 + planes, 2000, 3000))
    return p, pt.Schedule(*chains(problem, Roll("out", ("gray",), planes=INSIDE)))


def test_the_last_stage_asks_for_the_rows_that_another_reads_next() -> None:
    p, schedule = sharpened()
    found = prefetching(problem_of(p, ORDINARY, img=(3, 2000, 3000)), schedule, StageGroup("out", ("gray",), ()))
    assert found is not None
    asked = [d.args for d in found.on("out").directives if d.verb == "prefetch"]
    assert asked == [("img", "y_r", 3 + 2)]
    data = np.random.default_rng(0).random((3, 203, 97), np.float32)
    np.testing.assert_array_equal(p.with_schedule(found)(img=data), p.with_schedule("plain")(img=data))


@pytest.mark.parametrize("of", [sharpened(planes=2), sharpened(below=0)], ids=["planes that it has seen", "no rows"])
def test_no_line_is_asked_for_again(of: tuple[pt.Pipeline, pt.Schedule]) -> None:
    p, schedule = of
    assert prefetching(problem_of(p, ORDINARY, img=(4, 2000, 3000)), schedule, StageGroup("out", ("gray",), ())) is None


def test_stages_by_themselves_ask_for_nothing() -> None:
    problem = problem_of(two_outputs(), ORDINARY, img=(2000, 3000))
    schedule = pt.Schedule(*chains(problem, Roll("g", (), ("f",))))
    assert prefetching(problem, schedule, StageGroup("g", (), ("f",))) is None


def test_rows_share_what_is_inlined_and_columns_do_not() -> None:
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[Y, X] = pt.sqrt(img[Y, X])
    out[Y, X] = f[Y, X] + f[Y + 1, X] + f[Y + 2, X] + f[Y, X + 1]
    problem = problem_of(pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 1)), ORDINARY, img=(2000, 2000))
    assert columns(problem, "f") == 2


def test_terms_of_a_sum_are_places_too_but_for_their_rows() -> None:
    img, f, total, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("total"), pt.Func("out")
    r = pt.RDom((0, 8), (0, 5))
    f[Y, X] = pt.sqrt(img[Y, X])
    total[Y, X] = 0.0
    total[Y, X] += f[Y // 8 * 8 + r[0], X // 5 * 5 + r[1]]
    out[Y, X] = total[Y, X] * 2
    p = pt.Pipeline(out, shape=(img.shape[0] // 8 * 8, img.shape[1] // 5 * 5))
    assert columns(problem_of(p, ORDINARY, img=(2000, 2000)), "f") == 5


# ---- stages that read the same


def products(related: bool = False) -> tuple[pt.Pipeline, pt.Schedule]:
    """Products of a picture with itself and its neighbours, in loops of their own; perhaps each of the one before."""
    img = pt.Input("img", "float32", ndim=2)
    funcs = [pt.Func(name) for name in ("a", "b", "c")]
    before = img
    for k, f in enumerate(funcs):
        f[Y, X] = img[Y, X] * before[Y, X + k]
        before = f if related else img
    p = pt.Pipeline(funcs, shape=[(img.shape[0], img.shape[1] - 8)] * len(funcs))
    return p, pt.Schedule(*(pt.on(f.name).parallel("y").vectorize("x", 8) for f in funcs))


def test_two_that_read_the_same_share_loops() -> None:
    p, schedule = products()
    (found,) = siblings(problem_of(p, ORDINARY, img=(2000, 3000)), schedule)
    assert [s.name for s in found] == ["a", "b"] and len(found) == MOST
    assert found[1] == schedule.on("b").compute_with("a", "x")
    data = np.random.default_rng(0).random((37, 61), np.float32)
    for shared, alone in zip(p.with_schedule(schedule.replace(*found))(img=data), p(img=data), strict=True):
        np.testing.assert_array_equal(shared, alone)


def test_those_that_need_each_other_or_have_other_loops_do_not() -> None:
    p, schedule = products(related=True)
    problem = problem_of(p, ORDINARY, img=(2000, 3000))
    assert not [*siblings(problem, schedule)]
    p, schedule = products()
    problem = problem_of(p, ORDINARY, img=(2000, 3000))
    others = [pt.on("b").parallel("y").vectorize("x", 4), pt.on("c").compute_with("a", "x").vectorize("x", 8)]
    assert not [*siblings(problem, schedule.replace(*others))]


def test_all_that_the_last_stage_needs_is_computed_for_strips_of_it_at_once() -> None:
    app = APPS["camera_pipe_polymage"]
    problem = problem_of(app.build(), replace(ORDINARY, cores=2, threads=2), **app.sizes["paper"])
    found = Auto().find(problem).schedule
    assert all('.compute_at("picture", "y_o")' in repr(found.on(n)) for n in ("mosaic", "green", "others", "colours"))
    assert all(".compute_root()" in repr(found.on(name)) for name in ("curve", "matrix"))  # the same for all strips
    p = app.build().with_schedule(found)
    given = app.inputs("small")
    np.testing.assert_array_equal(p(**given), p.reference(**given))


def test_outputs_of_other_shapes_share_no_loops() -> None:
    """They may be as large as each other for the sizes that were asked about, and are not for others."""
    img = pt.Input("img", "int32", ndim=1)
    x = pt.vars("x")
    a, b = pt.Func("a"), pt.Func("b")
    a[x] = img[x] * 2
    b[x] = img[x] + 1
    alike = pt.Schedule(*(pt.on(n).compute_root().parallel("x", 4096).vectorize("x_p", 4) for n in "ab"))
    for shapes, sharing in (((img.shape, img.shape), 1), ((img.shape, (img.shape[0] // 2 + 1,)), 0)):
        p = pt.Pipeline([a, b], shape=list(shapes))
        assert len([*siblings(problem_of(p, ORDINARY, img=(2,)), alike)]) == sharing


def test_stages_of_which_other_parts_are_needed_share_no_loops() -> None:
    """A strip of the output needs one column more of one of them, and one row more of the other."""
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    a, b = pt.Func("a"), pt.Func("b")
    a[Y, X] = img[Y, X] * 2
    b[Y, X] = img[Y, X] + 1
    for (v, u), sharing in (((0, 1), 1), ((1, 0), 0)):
        out[Y, X] = a[Y, X] + a[Y, X + 1] + b[Y, X] + b[Y + v, X + u]
        p = pt.Pipeline(out, shape=(img.shape[0] - 1, img.shape[1] - 1))
        inside = [pt.on(n).compute_at("out", "strip").vectorize("x", 8) for n in "ab"]
        schedule = pt.Schedule(pt.on("out").split("y", "strip", "row", 8).parallel("strip"), *inside)
        found = [*siblings(problem_of(p, ORDINARY, img=(2000, 3000)), schedule)]
        assert len(found) == sharing
        data = np.random.default_rng(0).random((37, 61), np.float32)
        for shared in found:
            np.testing.assert_array_equal(p.with_schedule(schedule.replace(*shared))(img=data), p.reference(img=data))
        out = pt.Func("out")
