"""What takes longer has a higher predicted cost. The machine is named, so that all machines agree."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.cost_model import Cost
from pantile.cost_model.traffic import cache_capacities
from pantile.machine import named
from tests.autoschedule.problems import chain

N1 = named("neoverse-n1")
Y, X = pt.vars("y x")
SHAPE = (2048, 2048)


def blur() -> pt.Pipeline:
    """Five rows of a stage of five columns."""
    img, across, down = pt.Input("img", "float32", ndim=2), pt.Func("across"), pt.Func("down")
    across[Y, X] = sum(img[Y, X + k] for k in range(1, 5)) + img[Y, X]
    down[Y, X] = sum(across[Y + k, X] for k in range(1, 5)) + across[Y, X]
    return pt.Pipeline(down, shape=(img.shape[0] - 4, img.shape[1] - 4), algebra=False)


def cost_of(p: pt.Pipeline, *chains: pt.StageSchedule, threads: int = 1, shape: tuple[int, ...] = SHAPE) -> Cost:
    return p.with_schedule(pt.Schedule(*chains), machine=N1).predict(img=shape, num_threads=threads)


def tiled(y: int, x: int) -> tuple[pt.StageSchedule, ...]:
    down = pt.on("down").tile("y", "x", "yo", "xo", "yi", "xi", y, x).vectorize("xi", 8).parallel("yo")
    return down, pt.on("across").compute_at("down", "xo").vectorize("x", 8)


def stage(found: Cost, name: str) -> Any:
    return next(s for s in found.stages if s.name == name)


def test_boxes_are_those_that_loops_compute() -> None:
    found = cost_of(blur(), *tiled(32, 256))
    rows, columns = 2044, 2044
    tiles = -(-rows // 32) * -(-columns // 256)
    assert stage(found, "across").points == tiles * 36 * 256
    assert stage(found, "down").points == rows * columns


def test_smaller_tiles_compute_more_again() -> None:
    again = [stage(cost_of(blur(), *tiled(n, 256)), "across").redundant for n in (64, 16, 4)]
    assert again == sorted(again) and again[0] > 0
    costs = [cost_of(blur(), *tiled(n, 256)).seconds for n in (64, 32, 16)]
    assert costs == sorted(costs)


def test_sliding_computes_each_row_once() -> None:
    down = pt.on("down").split("y", "strip", "yi", 128).vectorize("x", 8).parallel("strip")
    across = pt.on("across").compute_at("down", "yi").vectorize("x", 8)
    again, slid = cost_of(blur(), down, across), cost_of(blur(), down, across.store_at("down", "strip"))
    assert stage(slid, "across").points < 1.1 * 2048 * 2044 < 4 * 2048 * 2044 < stage(again, "across").points
    assert slid.seconds < again.seconds


def test_blocks_of_columns_do_not_slide_where_the_last_one_overlaps() -> None:
    out = pt.on("down").split("y", "strip", "yi", 64).vectorize("x", 64).reorder("strip", "yi", "x", "x_v")
    inner = pt.on("across").store_at("down", "strip").compute_at("down", "x").vectorize("x", 64)
    even, odd = (cost_of(blur(), out, inner, shape=(1028, n + 4)) for n in (1024, 1040))
    assert stage(odd, "across").seconds < 1.2 * stage(even, "across").seconds


def test_inlining_repeats_operations() -> None:
    down = pt.on("down").vectorize("x", 8)
    inlined = cost_of(blur(), down, pt.on("across").compute_inline())
    stored = cost_of(blur(), down, pt.on("across").compute_root().vectorize("x", 8))
    assert inlined.causes.arithmetic > 2 * stored.causes.arithmetic
    assert inlined.causes.stores < stored.causes.stores


def test_vectors_are_cheaper_than_elements_and_wide_ones_spill() -> None:
    def seconds(lanes: int) -> float:
        across = pt.on("across").compute_root().vectorize("x", lanes)
        return cost_of(blur(), pt.on("down").vectorize("x", lanes), across).seconds

    scalar = cost_of(blur(), pt.on("down"), pt.on("across").compute_root()).seconds
    assert seconds(8) < seconds(2) < scalar
    assert seconds(8) < seconds(64)


def test_rows_written_out_share_loads() -> None:
    def loads(rows: int) -> float:
        down = pt.on("down").vectorize("x", 8).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(blur(), down, pt.on("across").compute_root().vectorize("x", 8)).causes.loads

    assert loads(4) < 0.75 * loads(1)


def pointwise(read: Any) -> pt.Pipeline:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[Y, X] = read(img)
    return pt.Pipeline(out, shape=(48, 48))  # a cache holds all that is read


def test_gathers_are_dearer_than_strides_and_these_than_rows() -> None:
    table = pt.table(np.arange(4096, dtype=np.int32) % 97)
    dense = pointwise(lambda img: img[Y, X] + 1)
    strided = pointwise(lambda img: img[Y, 2 * X] + 1)
    turned = pointwise(lambda img: img[X, Y] + 1)
    gathered = pointwise(lambda img: img[Y, pt.within(table[X], 0, 97)] + 1)
    seconds = [cost_of(p, pt.on("out").vectorize("x", 8)).seconds for p in (dense, strided, turned)]
    assert seconds == sorted(set(seconds))
    found = cost_of(gathered, pt.on("out").vectorize("x", 8))
    assert found.causes.gathers > 0 and found.seconds > seconds[1]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_small_elements_are_gathered_by_words_where_there_is_an_instruction(dtype: type) -> None:
    table = pt.table(np.arange(97, dtype=dtype))
    looked_up = pointwise(lambda img: pt.cast("float32", table[pt.clamp(pt.cast("int32", img[Y, X]), 0, 96)]))
    schedule = pt.Schedule(pt.on("out").vectorize("x", 8))
    p = looked_up.with_schedule(schedule, machine=replace(N1, costs=replace(N1.costs, lookup=0.5)))
    assert p.predict(img=SHAPE, num_threads=1).causes.gathers > 0
    assert looked_up.with_schedule(schedule, machine=N1).predict(img=SHAPE, num_threads=1).causes.gathers == 0


def coloured(channels: int, dtype: str = "float32") -> pt.Pipeline:
    """Colours that a table has for grey levels."""
    c = pt.Var("c")
    img, table = pt.Input("img", "uint8", ndim=2), pt.Input("table", dtype, shape=(256, 1000, channels))
    out = pt.Func("out")
    out[Y, X, c] = table[img[Y, X], img[Y, X], c]
    return pt.Pipeline(out, shape=(*img.shape, channels))


def test_channels_at_a_place_that_data_decides_are_loaded_at_once() -> None:
    def gathered(channels: int, dtype: str, lanes: int = 8) -> float:
        chain = pt.on("out").vectorize("x", lanes).unroll("c", channels).reorder("y", "x", "c", "c_u", "x_v")
        p = coloured(channels, dtype).with_schedule(pt.Schedule(chain), machine=N1)
        return p.predict(img=SHAPE, table=(256, 1000, channels), num_threads=1).causes.gathers

    assert gathered(4, "float32") == 0 < gathered(1, "float32")
    assert gathered(3, "float32") == pytest.approx(gathered(1, "float32"))  # a run of two, and the third one
    assert gathered(1, "uint8") == 0 < gathered(3, "uint8") < gathered(3, "uint8", lanes=32)


def test_channels_share_the_lines_that_they_are_in() -> None:
    chain = pt.on("out").vectorize("x", 8).unroll("c", 4).reorder("y", "x", "c", "c_u", "x_v")
    p = coloured(4).with_schedule(pt.Schedule(chain), machine=N1)
    found = p.predict(img=SHAPE, table=(256, 1000, 4), num_threads=1)
    assert sum(found.bytes) < 2 * SHAPE[0] * SHAPE[1] * N1.l1.line


def test_where_coordinates_lead_neighbours_lead_to_neighbours() -> None:
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    far = (Y * Y + X * X) * 1e-6
    row, column = (pt.cast("int32", pt.floor(e * (1 - far))) for e in (Y, X))
    out[Y, X] = pt.edge(img)[row, column]
    found = cost_of(
        pt.Pipeline(out, shape=img.shape), pt.on("img_edge").compute_inline(), pt.on("out").vectorize("x", 8)
    )
    assert sum(found.bytes[1:]) < 0.1 * SHAPE[0] * SHAPE[1] * N1.l1.line


def test_one_instruction_gathers_what_data_decide_not_what_is_rounded() -> None:
    table = pt.table(np.arange(4096, dtype=np.int32) % 97)
    gathered = pointwise(lambda img: img[Y, pt.within(table[X], 0, 97)] + 1)
    enlarged = pointwise(lambda img: img[Y, 2 * X // 3] + 1)
    gathering = replace(N1, costs=replace(N1.costs, lookup=0.5))

    def gathers(p: pt.Pipeline, machine: pt.machine.Machine) -> float:
        schedule = pt.Schedule(pt.on("out").vectorize("x", 8))
        return p.with_schedule(schedule, machine=machine).predict(img=SHAPE, num_threads=1).causes.gathers

    assert gathers(gathered, gathering) < gathers(gathered, N1)
    assert gathers(enlarged, gathering) == gathers(enlarged, N1) > 0


def test_long_iterations_wait_for_the_chain_that_all_else_waits_for() -> None:
    """Pixels around computed columns, the same in all rows: the more rows share these, the less each of them waits."""
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("out")
    first = pt.cast("int32", pt.floor((X + 2.5) / 1.5 - 0.5))
    out[Y, X] = sum([w * img[Y, first + k] for k, w in enumerate((0.25, 0.5, 0.75, 1.0))])
    enlarged = pt.Pipeline(out, shape=(img.shape[0], 3000))

    def stalls(rows: int) -> float:
        chain = pt.on("out").vectorize("x", 16).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(enlarged, chain).causes.stalls

    assert stalls(4) > 1.8 * stalls(8) > 0


def test_what_is_computed_before_all_else_is_waited_for() -> None:
    """One exp that a long iteration begins with, beside the same in a loop of its own."""
    img, scale, out = pt.Input("img", "float32", ndim=2), pt.Func("scale"), pt.Func("out")
    scale[Y, X] = pt.exp(pt.exp(img[Y, X]))
    out[Y, X] = sum([pt.pow(scale[Y, X] + k, 0.3) for k in range(1, 5)])
    p = pt.Pipeline(out, shape=img.shape)
    together = cost_of(p, pt.on("out").vectorize("x", 8), pt.on("scale").compute_inline())
    apart = cost_of(p, pt.on("out").vectorize("x", 8), pt.on("scale").compute_at("out", "y").vectorize("x", 8))
    assert together.causes.stalls > 1.5 * apart.causes.stalls


def test_what_fits_a_cache_does_not_come_from_memory() -> None:
    chains = pt.on("down").vectorize("x", 8), pt.on("across").compute_root().vectorize("x", 8)
    small, large = (cost_of(blur(), *chains, shape=(n, n)) for n in (48, 8192))
    assert small.bytes[-1] == 0 and sum(small.bytes) == 0
    assert large.bytes[-1] > 2 * 4 * 8192 * 8192
    fused = cost_of(blur(), *tiled(32, 512), shape=(8192, 8192))
    assert fused.bytes[-1] < 0.75 * large.bytes[-1]


def test_what_is_kept_in_a_circle_does_not_come_from_farther_away() -> None:
    """Five rows are all the memory that a stage has, however many of them are computed."""
    down = pt.on("down").split("y", "strip", "yi", 1024).vectorize("x", 8).parallel("strip")
    across = pt.on("across").store_at("down", "strip").compute_at("down", "yi").vectorize("x", 8)
    found = cost_of(blur(), down, across, shape=(2048, 4096))
    computed = 4 * 2044 * 4092
    assert stage(found, "across").bytes[-1] < 1.2 * computed  # the picture alone
    assert found.bytes[-1] < 2 * computed


def test_what_was_computed_right_before_is_there() -> None:
    """Of five rows that the first cache does not keep from one iteration to the next, one is new."""
    last: Any = pt.Input("img", "float32", ndim=2)
    shape = (last.shape[0] - 16, last.shape[1])
    for name in "abcd":
        f, last = last, pt.Func(name)
        last[Y, X] = sum(f[Y + k, X] for k in range(1, 5)) + f[Y, X]
    d = pt.on("d").split("y", "strip", "yi", 1024).vectorize("x", 8).parallel("strip")
    others = (pt.on(n).store_at("d", "strip").compute_at("d", "yi").vectorize("x", 8) for n in "abc")
    found = cost_of(pt.Pipeline(last, shape=shape), d, *others, shape=(1040, 800))
    assert 3.9 < stage(found, "d").bytes[0] / (4 * 1024 * 800) < 4.1


def test_rows_on_many_pages_are_dear() -> None:
    """A tall window of whole rows is on as many pages as it has rows; one of short rows on a few."""
    img, tall, out = pt.Input("img", "float32", ndim=2), pt.Func("tall"), pt.Func("out")
    tall[Y, X] = img[Y, X] * 2.0
    out[Y, X] = sum([tall[Y + 2 * k, X] for k in range(60)])
    p = pt.Pipeline(out, shape=(1024, 4096), algebra=False)

    def traffic(columns: int) -> float:
        chain = pt.on("out").split("x", "xo", "xi", columns).split("y", "yo", "yi", 512).vectorize("xi", 8)
        chain = chain.reorder("yo", "xo", "yi", "xi", "xi_v")
        kept = pt.on("tall").compute_at("out", "yi").store_at("out", "xo").vectorize("x", 8)
        q = p.with_schedule(pt.Schedule(chain, kept), machine=N1)
        of = stage(q.predict(img=(1200, 4096), num_threads=1), "out")
        return float(of.causes.traffic / of.bytes[0])

    assert traffic(1024) > 1.2 * traffic(256)


def test_threads_share_the_work_as_far_as_there_are_tasks() -> None:
    chains = tiled(512, 2044)  # four tasks
    one, two, three, four = (cost_of(blur(), *chains, threads=n) for n in (1, 2, 3, 4))
    assert two.seconds < 0.6 * one.seconds
    assert three.seconds == pytest.approx(two.seconds, rel=0.2) and three.causes.imbalance > two.causes.imbalance
    assert four.seconds < 0.75 * three.seconds


def test_threads_share_an_update_only_if_it_is_parallel_itself() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[Y, X] = img[Y, X]
    r = pt.RDom((1, SHAPE[0] - 1))
    out[r[0], X] += out[r[0] - 1, X]
    p = pt.Pipeline(out, shape=SHAPE)
    rows = pt.on("out").parallel("y", 16).vectorize("x", 8)
    scan = rows.update(0).vectorize("x", 8).reorder("r.0", "x", "x_v")
    columns = rows.update(0).split("x", "x", "x_i", 256).vectorize("x_i", 8).reorder("x", "r.0", "x_i", "x_i_v")
    alone = cost_of(p, scan)
    eight = cost_of(p, scan, threads=8)
    assert eight.seconds > 0.4 * alone.seconds, "the scan is serial"
    assert cost_of(p, columns.parallel("x"), threads=8).seconds < 0.5 * eight.seconds


def test_a_scan_by_narrow_blocks_of_columns_waits_for_each_row() -> None:
    """It reads and writes its rows, and parts of rows come slower than whole ones."""
    img, f = pt.Input("img", "float32", ndim=2), pt.Func("f")
    r = pt.RDom((1, img.shape[0] - 1), name="r")
    f[Y, X] = img[Y, X]
    f[r[0], X] += f[r[0] - 1, X]
    p = pt.Pipeline(f, shape=img.shape)
    start = pt.on("f").vectorize("x", 8).parallel("y", 16).update(0)
    loop = p.graph.stage["f"].updates[0].domain[0].name
    found = [cost_of(p, start.vectorize("x", 8).reorder(loop, "x", "x_v"), shape=(4000, 4000)).seconds]
    for width in (1024, 256, 64):
        blocks = start.split("x", "xo", "xi", width).vectorize("xi", 8).reorder("xo", loop, "xi", "xi_v")
        found.append(cost_of(p, blocks, shape=(4000, 4000)).seconds)
    assert found == sorted(found) and found[-1] > 1.5 * found[0]


def test_a_cache_that_cores_share_holds_what_all_of_them_touch() -> None:
    shared = N1.caches[2]
    large = replace(N1, cores=16, threads=16, caches=(*N1.caches[:2], replace(shared, size=1 << 28)))
    assert cache_capacities(large, 16, 1e8)[-1] == inf and cache_capacities(large, 16, 1e9)[-1] < 1e8
    assert cache_capacities(large, 16, 1e6)[1] < 1e6  # a core's own has its own part alone


def test_sums_in_registers_are_cheaper_than_in_memory() -> None:
    i, j = pt.vars("i j")
    a, b, c = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("c")
    k = pt.RDom((0, a.shape[1]), name="k")
    c[i, j] = 0.0
    c[i, j] += a[i, k[0]] * b[k[0], j]
    p = pt.Pipeline(c, shape=(a.shape[0], b.shape[1]))

    def seconds(chain: pt.StageSchedule) -> float:
        return p.with_schedule(pt.Schedule(chain), machine=N1).predict(a=(496, 496), b=(496, 496)).seconds

    plain = pt.on("c").vectorize("j", 8).update()
    (k_name,) = (r.name for r in p.graph.stage["c"].updates[0].domain)
    in_memory = plain.vectorize("j", 8).reorder("i", k_name, "j", "j_v")
    block = plain.vectorize("j", 8).unroll("i", 4).reorder("i", "j", k_name, "i_u", "j_v")
    assert seconds(block) < 0.5 * seconds(in_memory)


def product(rows: int, terms: int, near: bool, length: int = 2048, columns: int = 2048) -> float:
    """Seconds of a product of matrices, in blocks of some rows by 16 columns, for some terms of sums at a time."""
    i, j, a, b, c = *pt.vars("i j"), pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("c")
    k = pt.RDom((0, a.shape[1]), name="k")
    c[i, j] = pt.sum(a[i, k[0]] * b[k[0], j], over=k)
    sums = pt.on("c").vectorize("j", 16).update().split("j", "j", "lane", 16).split("i", "i", "row", rows)
    sums = sums.split("k.0", "slice", "k", terms).split("k", "k", "step", 4)
    sums = sums.reorder("j", "slice", "i", "k", "step", "row", "lane").vectorize("lane").unroll("row").unroll("step")
    copy = [pt.on("b").copy_in("c", "near", "k", "j"), pt.on("near").compute_at("c", "j").vectorize("j", 16)]
    p = pt.Pipeline(c, shape=(a.shape[0], b.shape[1]), schedule=pt.Schedule(sums, *copy[: 2 * near]), machine=N1)
    return p.predict(a=(2048, length), b=(length, columns), num_threads=1).seconds


def test_rows_that_fall_into_few_sets_of_a_cache_are_dear() -> None:
    """Those of b are 8192 bytes apart: two of 256 sets hold all of a column. Measured: 1.8 to one."""
    assert product(4, 512, near=False) > 1.3 * product(4, 512, near=True)


def test_what_is_pushed_out_before_it_is_used_is_waited_for() -> None:
    """Rows of b are 2048 or 1984 bytes apart, which caches follow, but those of the former fall into eight of 256 sets.
    A loop of 16 products, a line of each of 256 rows: measured 13.4 and 8.8 cycles."""
    assert product(4, 256, False, 256, 512) / 512 > 1.4 * product(4, 256, False, 256, 496) / 496


def test_what_the_next_cache_sends_ahead_is_free() -> None:
    """32 and 128 kB of b for each block of rows, of which the first cache holds one: measured 488 and 506 ms."""
    assert product(4, 2048, near=True) < 1.1 * product(4, 512, near=True)


def test_sums_are_begun_and_ended() -> None:
    """Measured: 541 and 490 ms."""
    assert product(4, 32, near=True) > 1.1 * product(4, 512, near=True)


def test_sums_that_registers_have_no_room_for_are_dear() -> None:
    """Measured: 500 ms for 5 rows, 604 for 6 and 806 for 8: each has a vector of numbers to multiply by, too."""
    few, some, many = (product(rows, 2048, near=True) for rows in (5, 6, 8))
    assert 1.05 * few < some < 0.8 * many


def test_a_block_larger_than_its_loop_runs_element_by_element() -> None:
    down = pt.on("down").split("x", "xo", "xi", 16).vectorize("xi", 16)
    fits = cost_of(blur(), down, pt.on("across").compute_at("down", "xo").vectorize("x", 16))
    misfit = cost_of(blur(), down, pt.on("across").compute_at("down", "xo").vectorize("x", 32))
    assert misfit.seconds > 2 * fits.seconds


def test_more_code_takes_longer_to_compile() -> None:
    def size(rows: int) -> Cost:
        down = pt.on("down").vectorize("x", 8).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(blur(), down, pt.on("across").compute_root().vectorize("x", 8))

    assert size(1).instructions < size(4).instructions < size(16).instructions
    assert size(1).compile_seconds < size(16).compile_seconds


def test_it_is_the_same_every_time_and_reads_well() -> None:
    found = cost_of(blur(), *tiled(32, 256))
    assert found == cost_of(blur(), *tiled(32, 256))
    assert found.seconds == pytest.approx(sum(s.seconds for s in found.stages) + N1.costs.call_s)
    text = repr(found)
    assert text.startswith("down: ") and "predicted" in text and "computed again" in text


def test_arguments_are_checked_as_those_of_a_call() -> None:
    with pytest.raises(pt.UserError, match="img"):
        blur().predict()
    with pytest.raises(pt.UserError, match="the number of threads is 0"):
        blur().with_schedule(pt.Schedule(), machine=N1).predict(img=SHAPE, num_threads=0)


def test_costs_of_long_chains_need_no_deep_recursion() -> None:
    p = chain(600)
    chains = [pt.on(f"f{k}").compute_at("f599", "y").vectorize("x", 8) for k in range(599)]
    assert cost_of(p, *chains, pt.on("f599").vectorize("x", 8), shape=(64, 64)).seconds > 0


def test_a_dim_in_two_parts_of_memory() -> None:
    """Columns of a stage that lie side by side are read as rows are; those of the others are gathered."""
    img, src, out = pt.Input("img", "float32", ndim=2), pt.Func("src"), pt.Func("out")
    src[Y, X] = img[Y, X] * 2.0
    out[Y, X] = src[X, Y] + src[X, Y + 1]
    p = pt.Pipeline(out, shape=(1024, 1024), algebra=False)
    plain, rows = pt.on("src").compute_root().vectorize("x", 8), pt.on("out").vectorize("x", 8)
    panels = plain.split_storage("y", "panel", "lane", 8).reorder_storage("panel", "x", "lane")
    assert (
        stage(cost_of(p, rows, panels), "out").causes.loads < 0.5 * stage(cost_of(p, rows, plain), "out").causes.loads
    )


@pytest.mark.parametrize("scale", [0.0, 1e-320, 65504.0, inf, -inf, np.nan])
def test_places_that_are_no_finite_numbers(scale: float) -> None:
    """They have a cost, as they have a value: floats as integers are held to the range of these."""
    img, by, out = pt.Input("img", "float32", ndim=2), pt.Param("by", "float64"), pt.Func("out")
    far = pt.cast("int32", pt.cast("float64", 65537) // by) + pt.cast("int32", by * 1e300 * 1e300)
    out[Y, X] = pt.edge(img)[pt.clamp(far, 0, 15), X]
    p = pt.Pipeline(out).with_schedule(pt.Schedule(pt.on("img_edge").compute_root()), machine=N1)
    assert 0 < p.predict(img=(64, 64), by=scale).seconds < 1


def test_numbers_that_only_code_folds() -> None:
    """A conversion of the smaller of two numbers, and a remainder of infinity, have a cost."""
    img, out = pt.Input("img", "uint16", ndim=2), pt.Func("out")
    number = pt.cast("uint16", pt.clamp(pt.cast("float32", 0.0), 0, 100))
    out[Y, X] = pt.select(pt.cast("float32", X) % pt.cast("float32", inf) < 5.0, number, img[Y, X])
    assert 0 < pt.Pipeline(out, machine=N1).predict(img=(64, 64)).seconds < 1
