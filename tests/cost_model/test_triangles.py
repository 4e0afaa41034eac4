"""Conditions that bound loops: how much is computed, how long tasks take, what blocks cost that they cut through."""

from __future__ import annotations

from typing import Any

import pytest

import pantile as pt
from pantile.cost_model import Cost
from pantile.cost_model.triangles import Triangle, makespan
from pantile.expr.nodes import coordinate, var
from pantile.machine import named

N1 = named("neoverse-n1")
N = 1024
ROW, COLUMN = pt.vars("i j")


def triangle(*conditions: Any, **extents: int) -> Triangle:
    return Triangle(conditions, {v: (0, n) for v, n in extents.items()}, {"n": 100})


BELOW = triangle(coordinate("j") <= coordinate("i"), i=N, j=N)


def test_half_of_a_square_is_below_its_diagonal() -> None:
    assert BELOW.part() == pytest.approx(0.5, rel=0.01)
    strictly = triangle(coordinate("j") < coordinate("i"), i=4, j=4)
    assert strictly.part() == pytest.approx(6 / 16)


def test_scalars_and_several_conditions() -> None:
    half = triangle(coordinate("i") < var("n"), i=200)
    assert half.part() == pytest.approx(0.5)
    band = triangle(coordinate("j") <= coordinate("i"), coordinate("j") + 256 > coordinate("i"), i=N, j=N)
    assert band.part() == pytest.approx(0.5 - 0.5 * 0.75**2, rel=0.02)


def test_tasks_have_what_is_between_their_rows() -> None:
    assert BELOW.tasks("j", 2, N // 2) == pytest.approx([0.75, 0.25], abs=0.01)
    assert BELOW.tasks("i", 2, N // 2) == pytest.approx([0.25, 0.75], abs=0.01)
    three = BELOW.tasks("i", 3, 400)  # the last one has 224 rows
    assert sum(three) == pytest.approx(1) and three[2] < 0.5


def test_the_slowest_core_takes_tasks_as_they_come() -> None:
    assert makespan([1.0] * 5, 2) == 3
    assert makespan([3.0, 1.0, 1.0, 1.0], 2) == 3


def test_of_squares_the_diagonal_cuts_through_the_fewest() -> None:
    square, flat = (BELOW.cut({"i": i, "j": j}, "j") for i, j in ((8, 8), (4, 16)))
    assert square == pytest.approx(8 / N, rel=0.05) and flat == pytest.approx(16 / N, rel=0.05)
    assert BELOW.cut({"i": 8, "j": 8}, "k") == 0


def product(condition: Any = None) -> pt.Pipeline:
    a, b, out = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    over = r if condition is None else r.where(condition(ROW, COLUMN, r.k))
    out[ROW, COLUMN] = pt.sum(a[ROW, r.k] * b[r.k, COLUMN], over=over)
    return pt.Pipeline(out, shape=(a.shape[0], b.shape[1]))


def blocks(rows: int = 4, lanes: int = 16, tasks: int = 64) -> pt.StageSchedule:
    chain = pt.on("out").compute_root().update(0).split("i", "i_o", "i_i", tasks).unroll("i_i", rows)
    chain = chain.vectorize("j", lanes).unroll("r.k", 4).parallel("i_o")
    return chain.reorder("i_o", "j", "i_i", "r.k", "r.k_u", "i_i_u", "j_v")


def cost_of(p: pt.Pipeline, chain: pt.StageSchedule, threads: int = 1) -> Cost:
    shape = (N, N)
    return p.with_schedule(pt.Schedule(chain), machine=N1).predict(a=shape, b=shape, num_threads=threads)


def test_half_of_the_terms_take_half_as_long() -> None:
    every, half = cost_of(product(), blocks()), cost_of(product(lambda i, j, k: k > i), blocks())
    assert half.causes.arithmetic == pytest.approx(every.causes.arithmetic / 2, rel=0.02)  # a bound is not evaluated
    assert half.seconds == pytest.approx(every.seconds / 2, rel=0.05)


def test_tasks_of_a_triangle_are_uneven_if_they_are_few() -> None:
    few, many = (cost_of(product(lambda i, j, k: k > i), blocks(tasks=n), threads=2) for n in (N // 2, N // 64))
    assert few.causes.imbalance > 0.2 * few.seconds > 2 * many.causes.imbalance


def test_lanes_that_a_condition_leaves_out_are_computed_one_by_one() -> None:
    p = product(lambda i, j, k: j <= i)
    masked, apart = cost_of(p, blocks()), cost_of(p, blocks().partition("i_i", "always"))
    assert masked.causes.stalls > 5 * apart.causes.stalls > 0
    squares = cost_of(p, blocks(rows=8, lanes=8).partition("i_i", "always"))
    assert squares.causes.stalls < 0.7 * apart.causes.stalls


def test_sums_that_go_through_memory_wait_for_it() -> None:
    """They are loaded before anything is summed, and on Arm the units that sum store them."""
    through = pt.on("out").compute_root().update(0).unroll("i", 4).vectorize("j", 16).unroll("r.k", 4)
    through = through.reorder("r.k", "j", "i", "r.k_u", "i_u", "j_v").parallel("j")
    kept = pt.on("out").compute_root().update(0).unroll("i", 4).vectorize("j", 16).unroll("r.k", 4)
    kept = kept.reorder("j", "i", "r.k", "r.k_u", "i_u", "j_v").parallel("j")
    assert cost_of(product(), through).causes.stalls > 0.25 * cost_of(product(), kept).causes.arithmetic


def test_llvm_stores_all_terms_of_large_blocks() -> None:
    def stalls(terms: int) -> float:
        chain = pt.on("out").compute_root().update(0).unroll("i", 4).vectorize("j", 16).unroll("r.k", terms)
        found = cost_of(product(), chain.reorder("r.k", "j", "i", "r.k_u", "i_u", "j_v").parallel("j"))
        return found.causes.stalls

    assert stalls(2) > 2 * stalls(4) and stalls(8) > stalls(4)
