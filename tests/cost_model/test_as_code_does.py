"""Prices count what lowering and LLVM make of a definition: often less than it says."""

from __future__ import annotations

from typing import Any

import pytest

import pantile as pt
from pantile.cost_model import Cost
from pantile.machine import named

N1 = named("neoverse-n1")
Y, X, C = pt.vars("y x c")


def pipeline(read: Any, dtype: str = "float32", ndim: int = 2, shape: Any = None) -> pt.Pipeline:
    img, out = pt.Input("img", dtype, ndim=ndim), pt.Func("out")
    indices = (Y, X, C)[:ndim]
    out[indices] = read(img)
    return pt.Pipeline(out, shape=shape or (1024, 1024, 4)[:ndim], algebra=False)


def cost_of(p: pt.Pipeline, *chains: pt.StageSchedule, size: int = 1200) -> Cost:
    ndim = p.graph.inputs[0].ndim
    given = (size, size, 4)[:ndim]
    return p.with_schedule(pt.Schedule(*chains), machine=N1).predict(img=given, num_threads=1)


def test_lanes_of_fused_loops_are_dense() -> None:
    p = pipeline(lambda img: img[Y, X, C] * 2, ndim=3)
    fused = cost_of(p, pt.on("out").fuse("x", "c", "xc").vectorize("xc", 8))
    assert fused.causes.shuffles == 0 == fused.causes.gathers


def test_channels_that_are_computed_alike_are_not_taken_apart() -> None:
    chain = pt.on("out").vectorize("x", 8).unroll("c", 4).reorder("y", "x", "c", "c_u", "x_v")
    alike = cost_of(pipeline(lambda img: img[Y, X, C] * 2, ndim=3), chain)
    mixed = cost_of(pipeline(lambda img: img[Y, X, C] * img[Y, X, 0], ndim=3), chain)
    assert alike.causes.shuffles == 0 < mixed.causes.shuffles


def test_few_channels_of_single_elements_are_written_out() -> None:
    """LLVM leaves no loop over three or four channels: nothing begins for each pixel."""
    p = pipeline(lambda img: img[Y, X, C] * 2, ndim=3)
    channels, rows = cost_of(p, pt.on("out")), cost_of(p, pt.on("out").reorder("y", "c", "x"))
    assert channels.causes.overhead < 2 * rows.causes.overhead


def test_pixels_side_by_side_are_one_row_of_memory() -> None:
    def traffic(pixels: int) -> float:
        p = pipeline(lambda img: sum([img[Y, X + k, C] for k in range(1, pixels)]) + img[Y, X, C], ndim=3)
        chain = pt.on("out").vectorize("x", 4).unroll("c", 4).reorder("y", "x", "c", "c_u", "x_v")
        return cost_of(p, chain, size=4096).causes.traffic

    assert traffic(24) <= traffic(2)


def test_rows_written_out_share_sums() -> None:
    p = pipeline(lambda img: sum([img[Y + k, X] for k in range(1, 9)]) + img[Y, X])

    def arithmetic(rows: int) -> float:
        chain = pt.on("out").vectorize("x", 8).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(p, chain).causes.arithmetic

    assert arithmetic(4) < 0.7 * arithmetic(1)


def test_rows_share_what_all_sums_of_a_family_have() -> None:
    """Three windows of three rows have a row in common, which their sums begin with; a fourth is by itself."""
    p = pipeline(lambda img: sum([img[Y + j, X + k] for j in range(3) for k in range(3)]))

    def arithmetic(rows: int) -> float:
        chain = pt.on("out").vectorize("x", 8).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(p, chain).causes.arithmetic

    assert arithmetic(2) < 0.8 * arithmetic(1)
    assert 0.85 * arithmetic(2) < arithmetic(8)


def test_coordinates_decide_for_rows_that_are_written_out() -> None:
    p = pipeline(lambda img: pt.select(Y % 2 == 0, pt.sqrt(img[Y, X]), img[Y, X] + 1))
    plain = cost_of(p, pt.on("out").vectorize("x", 8))
    written = cost_of(p, pt.on("out").vectorize("x", 8).unroll("y", 2).reorder("y", "x", "y_u", "x_v"))
    assert written.causes.arithmetic < 0.7 * plain.causes.arithmetic


def test_functions_hardly_wait_for_themselves() -> None:
    """Many of their instructions do not need each other, and the next iteration begins meanwhile."""
    p = pipeline(lambda img: pt.pow(img[Y, X], 0.45))
    narrow, wide = (cost_of(p, pt.on("out").vectorize("x", n)) for n in (4, 32))
    assert narrow.seconds < 1.5 * wide.seconds


def test_rows_written_out_execute_all_instructions_of_an_operation() -> None:
    """A division by three is several."""
    p = pipeline(lambda img: img[Y, X] // 3, dtype="uint16")

    def arithmetic(rows: int) -> float:
        chain = pt.on("out").vectorize("x", 8).unroll("y", rows).reorder("y", "x", "y_u", "x_v")
        return cost_of(p, chain).causes.arithmetic

    one = cost_of(p, pt.on("out").vectorize("x", 8)).causes.arithmetic
    assert arithmetic(2) == pytest.approx(one, rel=0.02)


def test_products_of_halves_need_no_conversions() -> None:
    def of(t: str) -> float:
        p = pipeline(lambda img: pt.cast("int32", img[Y, X]) * pt.cast("int32", img[Y, X + 1]), dtype=t)
        return cost_of(p, pt.on("out").vectorize("x", 8)).causes.arithmetic

    assert of("int16") < of("int32")


def half() -> pt.Pipeline:
    """Each row of `f` is read by two of `out`."""
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[Y, X] = img[Y, X] * 2
    out[Y, X] = f[Y // 2, X] + 1
    return pt.Pipeline(out, shape=(1024, 1024), algebra=False)


def test_blocks_begin_at_multiples_of_their_sizes() -> None:
    out = pt.on("out").split("y", "yo", "yi", 8).vectorize("x", 8)
    found = cost_of(half(), out, pt.on("f").compute_at("out", "yo").vectorize("x", 8))
    assert next(s.points for s in found.stages if s.name == "f") == 512 * 1024


def test_what_is_read_clamped_does_not_slide() -> None:
    def points(read: Any) -> float:
        img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f", domain=((0, 1024), (0, 1024))), pt.Func("out")
        f[Y, X] = img[Y, X] * 2
        out[Y, X] = read(f, -1) + read(f, 0) + read(f, 1)
        p = pt.Pipeline(out, shape=(1022, 1024), algebra=False)
        chain = pt.on("out").split("y", "strip", "yi", 64).vectorize("x", 8)
        sliding = pt.on("f").store_at("out", "strip").compute_at("out", "yi").vectorize("x", 8)
        return next(s.points for s in cost_of(p, chain, sliding).stages if s.name == "f")

    assert points(lambda f, k: f[Y + 1 + k, X]) < 1.1 * 1024 * 1024
    assert points(lambda f, k: f[pt.clamp(Y + k, 0, 1023), X]) > 2.5 * 1024 * 1024


def test_what_is_read_by_a_stage_that_pauses_does_not_slide() -> None:
    """Of rows that are needed every other time, one is new or none."""

    def points(rows: int) -> float:
        img, f, g, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("g"), pt.Func("out")
        f[Y, X] = img[Y, X] * 2
        g[Y, X] = f[Y, X] + f[Y + 1, X] + f[Y + 2, X]
        out[Y, X] = g[Y // 2, X] + g[Y // 2 + 1, X]
        p = pt.Pipeline(out, shape=(1024, 1024), algebra=False)
        chain = pt.on("out").split("y", "strip", "yi", 64).split("yi", "yi", "row", rows).vectorize("x", 8)
        sliding = [pt.on(n).store_at("out", "strip").compute_at("out", "yi").vectorize("x", 8) for n in ("f", "g")]
        return next(s.points for s in cost_of(p, chain, *sliding).stages if s.name == "f")

    assert points(2) < 600 * 1024 < 2000 * 1024 < points(1)


def test_tiles_of_few_columns_wait_for_their_rows() -> None:
    p = pipeline(lambda img: img[Y, X] + img[Y + 1, X])

    def traffic(columns: int) -> float:
        chain = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 64, columns).vectorize("xi", 8)
        return cost_of(p, chain, size=16000).causes.traffic

    assert traffic(64) > 1.5 * traffic(1024)


def test_lanes_that_begin_anywhere_are_gathered() -> None:
    img, f, out = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.Func("out")
    f[Y, X] = img[Y, X // 2] * 2
    out[Y, X] = f[Y, X] + f[Y, X + 1]
    p = pt.Pipeline(out, shape=(1024, 1024), algebra=False)

    def gathers(tail: str) -> float:
        chain = pt.on("out").split("x", "xo", "xi", 256, tail=tail).reorder("xo", "y", "xi").vectorize("xi", 8)
        return cost_of(p, chain, pt.on("f").compute_at("out", "xo").vectorize("x", 8)).causes.gathers

    assert gathers("shift") == 0 < gathers("guard")


def test_what_lies_between_two_reads_is_computed() -> None:
    img, f, out = pt.Input("img", "float32", ndim=3), pt.Func("f"), pt.Func("out")
    f[C, Y, X] = img[C, Y, X] * 2
    out[C, Y, X] = f[C, Y, X] / f[3, Y, X]
    p = pt.Pipeline(out, shape=(3, 256, 256), algebra=False)
    at_rows = pt.Schedule(pt.on("out").vectorize("x", 8), pt.on("f").compute_at("out", "y").vectorize("x", 8))
    found = p.with_schedule(at_rows, machine=N1).predict(img=(4, 256, 256), num_threads=1)
    assert next(s.points for s in found.stages if s.name == "f") == 3 * 3 * 256 * 256  # of four, three and two channels


def test_copies_share_what_is_computed_of_elements_that_data_choose() -> None:
    """One exp for three channels, wherever its operand is read."""
    img, table = pt.Input("img", "uint8", ndim=2), pt.Input("table", "float32", ndim=1)

    def arithmetic(at: Any) -> float:
        out = pt.Func("out")
        out[C, Y, X] = pt.exp(table[at]) * (C + 1)
        p = pt.Pipeline(out, shape=(3, 1000, 1000), algebra=False)
        chain = pt.on("out").vectorize("x", 8).reorder("y", "x", "c", "x_v").unroll("c")
        q = p.with_schedule(pt.Schedule(chain), machine=N1)
        return q.predict(**{i.name: (1000,) * i.ndim for i in p.graph.inputs}, num_threads=1).causes.arithmetic

    assert arithmetic(img[Y, X]) < 1.5 * arithmetic(X)


def test_lanes_that_read_different_rows_wait_together() -> None:
    p = pipeline(lambda img: img[X, Y])
    two, eight = (cost_of(p, pt.on("out").vectorize("x", lanes)).causes.traffic for lanes in (2, 8))
    assert two > 1.5 * eight


def test_counts_at_places_that_are_computed_on_the_way_wait() -> None:
    """A later load waits until it is known where an earlier count goes, which takes longer if it is converted first."""
    img, level, histogram = pt.Input("img", "float32", ndim=2), pt.Func("level"), pt.Func("histogram")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]), names="y x")
    level[Y, X] = pt.cast("int32", img[Y, X] * 255)
    histogram[X] = 0
    histogram[pt.within(level[r.y, r.x], 0, 255)] += 1
    p = pt.Pipeline(histogram, shape=(256,))
    stored, inlined = pt.on("level").compute_root().vectorize("x", 4), pt.on("level").compute_inline()
    assert cost_of(p, inlined).causes.stalls > 1.5 * cost_of(p, stored).causes.stalls


def test_scans_along_the_innermost_loop_have_the_row_before_in_registers() -> None:
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((1, 999), name="r", names="y")
    out[Y, X] = img[Y, X]
    out[r.y, X] = out[r.y, X] + out[r.y - 1, X] / 2
    p = pt.Pipeline(out, shape=(1000, 1000), algebra=False)

    def loads(*loops: str) -> float:
        scan = pt.on("out").vectorize("x", 32).update(0).vectorize("x", 32).unroll("r.y", 4)
        return cost_of(p, scan.reorder(*loops, "r.y_u", "x_v")).causes.loads

    assert loads("x", "r.y") < 0.7 * loads("r.y", "x")
