"""What sioutas-thesis chapter 4 says of its algorithms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.kernel import CONTIGUOUS, SPATIAL, TEMPORAL, Kernel, TemporalOptimizer, classify
from pantile.autoschedule.nest.capacity import (
    Capacity,
    Prefetcher,
    l1_misses,
    l2_misses,
    most_rows,
    order_cost,
    without,
    working_set,
)
from pantile.autoschedule.nest.statement import Statement
from pantile.machine import Cache, named
from pantile.schedule.resolve import resolve

from .problems import problem_of

I7 = named("i7-5930k")
A15 = named("cortex-a15")


# ---- the kernels of Table 4.4, as the thesis writes them


def matmul() -> pt.Pipeline:
    i, j = pt.vars("i j")
    a, b = (pt.Input(n, "float32", ndim=2) for n in "ab")
    k = pt.RDom((0, a.shape[1]), name="r", names="k").k
    c = pt.Func("c")
    c[i, j] = 0.0
    c[i, j] += a[i, k] * b[k, j]
    return pt.Pipeline(c, shape=(a.shape[0], b.shape[1]))


def triangular(where: Any, left: Any, right: Any, count: int = 1) -> pt.Pipeline:
    i, j = pt.vars("i j")
    a, b = (pt.Input(n, "float32", ndim=2) for n in "ab")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    k = r.where(where(i, j, r.k)).k
    c = pt.Func("c")
    c[i, j] = 0.0
    c[i, j] += left(a, b, i, j, k) * right(a, b, i, j, k)
    if count > 1:
        c[i, j] += left(b, a, i, j, k) * right(b, a, i, j, k)
    return pt.Pipeline(c, shape=a.shape)


def trmm() -> pt.Pipeline:
    return triangular(lambda i, j, k: k > i, lambda a, b, i, j, k: a[k, i], lambda a, b, i, j, k: b[k, j])


def syrk() -> pt.Pipeline:
    return triangular(lambda i, j, k: j <= i, lambda a, b, i, j, k: a[i, k], lambda a, b, i, j, k: a[j, k] * b[0, 0])


def syr2k() -> pt.Pipeline:
    return triangular(lambda i, j, k: j <= i, lambda a, b, i, j, k: a[i, k], lambda a, b, i, j, k: b[j, k], 2)


def doitgen() -> pt.Pipeline:
    r, q, p = pt.vars("r q p")
    a, c4 = pt.Input("a", "float32", ndim=3), pt.Input("b", "float32", ndim=2)
    s = pt.RDom((0, a.shape[2]), name="s", names="s").s
    out = pt.Func("out")
    out[r, q, p] = 0.0
    out[r, q, p] += a[r, q, s] * c4[s, p]
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[1], c4.shape[1]))


def convlayer() -> pt.Pipeline:
    n, y, x, co = pt.vars("n y x co")
    a, b = pt.Input("a", "float32", ndim=4), pt.Input("b", "float32", ndim=4)
    r = pt.RDom((0, 3), (0, 3), (0, b.shape[2]), name="r", names="y x c")
    out = pt.Func("out")
    out[n, y, x, co] = 0.0
    out[n, y, x, co] += a[n, y + r.y, x + r.x, r.c] * b[r.y, r.x, r.c, co]
    return pt.Pipeline(out, shape=(a.shape[0], a.shape[1] - 2, a.shape[2] - 2, b.shape[3]))


def pointwise(transposed: bool, masked: bool) -> pt.Pipeline:
    y, x = pt.vars("y x")
    a, b = (pt.Input(n, "uint32", ndim=2) for n in "ab")
    out = pt.Func("out")
    value = a[x, y] if transposed else a[y, x]
    out[y, x] = value & b[y, x] if masked else value
    return pt.Pipeline(out, shape=a.shape)


def square(n: int) -> dict[str, tuple[int, ...]]:
    return {"a": (n, n), "b": (n, n)}


# Table 4.5: tiles compared and runs of Algorithm 1. 3mm and gemm are matrix products with the loops of matmul.
TABLE_4_5 = {
    "convlayer": (convlayer, {"a": (16, 258, 258, 64), "b": (3, 3, 64, 64)}, (3265920, 25)),
    "doitgen": (doitgen, {"a": (256, 256, 256), "b": (256, 256)}, (157464, 15)),
    "matmul": (matmul, square(2048), (5184, 21)),
    "trmm": (trmm, square(2048), (5184, 21)),
    "syrk": (syrk, square(2048), (5184, 21)),
    "syr2k": (syr2k, square(2048), (5184, 21)),
    "tpm": (lambda: pointwise(True, True), square(4096), (81, 4)),
    "tp": (lambda: pointwise(True, False), {"a": (4096, 4096)}, (81, 5)),
    "copy": (lambda: pointwise(False, False), {"a": (4096, 4096)}, (0, 0)),
    "mask": (lambda: pointwise(False, True), square(4096), (0, 0)),
}
KINDS = {"tpm": SPATIAL, "tp": SPATIAL, "copy": CONTIGUOUS, "mask": CONTIGUOUS}


def statement(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> Statement:
    """The last definition of the pipeline's only stage."""
    problem = problem_of(pipeline, I7, **shapes)
    stage = problem.graph.stages[-1]
    return Statement.of(problem, stage, len(stage.definitions) - 1)


def optimizer(s: Statement) -> TemporalOptimizer:
    return TemporalOptimizer(Capacity(s, I7, Prefetcher()), a2=3.0, a3=9.0)


# ---- classification (Figure 4.2)


@pytest.mark.parametrize("name", sorted(TABLE_4_5))
def test_kinds(name: str) -> None:
    build, shapes, _ = TABLE_4_5[name]
    assert classify(statement(build(), **shapes)) == KINDS.get(name, TEMPORAL)


@pytest.mark.parametrize(
    ("name", "kind", "streams"),
    [
        *((n, TEMPORAL, False) for n in ("conv_layer", "doitgen", "matmul", "mm3", "gemm", "trmm", "syrk", "syr2k")),
        ("tp", SPATIAL, True),
        ("tpm", SPATIAL, True),
        ("copy", CONTIGUOUS, True),
        ("mask", CONTIGUOUS, True),
    ],
)
def test_apps(name: str, kind: str, streams: bool) -> None:
    """The suite's own forms of the kernels. Where these have several stages, the one with most work counts; results of
    products are copied by a stage of their own, which is contiguous.
    """
    app = APPS[name]
    found = Kernel().find(problem_of(app.build(), I7, **app.sizes["paper"]))
    problem = problem_of(app.build(), I7, **app.sizes["paper"])
    busiest = max((g.output for g in found.report.groups), key=problem.facts.work)
    group = [g for g in found.report.groups if g.output == busiest][-1]
    assert group.remarks[0].endswith(kind)
    assert ("non-temporal stores" in group.remarks) == streams
    assert any(d.verb == "nontemporal" for d in found.schedule[busiest].directives) == streams


def test_stencils_are_left_to_the_prefetchers() -> None:
    """§4.3: "tiling may not be effective for stencil computations"."""
    app = APPS["blur"]
    found = Kernel().find(problem_of(app.build(), I7, **app.sizes["paper"]))
    assert all("contiguous" in g.remarks[0] and not g.levels for g in found.report.groups)
    assert any("one after another" in r for r in found.report.remarks)


@pytest.mark.parametrize("name", ["copy", "mask", "tp", "tpm"])
def test_non_temporal_stores_are_in_the_machine_code(name: str) -> None:
    app = APPS[name]
    for target, machine, instruction in (("aarch64", "neoverse-n1", "stnp"), ("x86-64-v3", "i7-5930k", "movnt")):
        p = app.build().with_schedule("kernel", estimates=app.sizes["paper"], machine=named(machine))
        assert instruction in p.asm(target)


def test_blocks_of_sums_stay_in_registers() -> None:
    """Four rows by four vectors, four terms at a time; what a triangle cuts through has code of its own."""
    machine = named("neoverse-n1")
    schedule = str(Kernel().find(problem_of(matmul(), machine, **square(2048))).schedule)
    assert '.unroll("r_k_i", 4)' in schedule and '.unroll("i_i", 4)' in schedule
    assert '.vectorize("j' in schedule and ", 16)" in schedule
    assert ".partition(" not in schedule
    assert ".partition(" in str(Kernel().find(problem_of(syrk(), machine, **square(2048))).schedule)


def test_no_non_temporal_stores_on_32_bit_arm() -> None:
    app = APPS["copy"]
    found = Kernel().find(problem_of(app.build(), A15, **app.sizes["paper"]))
    assert "nontemporal" not in str(found.schedule)


@pytest.mark.parametrize("name", ["convlayer", "doitgen", "matmul", "trmm", "syrk", "syr2k"])
def test_the_order_that_is_priced_is_the_one_that_runs(name: str) -> None:
    """What `explain` says of C_order holds for the loops that the schedule resolves to, sums in registers and all."""
    build, shapes, _ = TABLE_4_5[name]
    problem = problem_of(build(), I7, **shapes)
    s = statement(build(), **shapes)
    found = Kernel().find(problem)
    loops = Kernel().optimize(s.problem, s).loops
    assert loops is not None
    running = [x.name for x in resolve(problem.graph, found.schedule)[1].stages[s.stage.name].nests[-1].loops]
    (order,) = (r for r in found.report.groups[-1].remarks if r.startswith("loops: "))
    told = order.removeprefix("loops: ").split(", ")
    inside = list(loops.inner.values())
    assert [n for n in running if n in inside] == inside == told[-len(inside) :]
    cost = order_cost(s.extents, loops.tile, loops.inter, loops.intra)
    assert found.report.groups[-1].costs["C_order"] == cost


# ---- the cost of tiled matmul: Listing 4.1


@pytest.mark.parametrize("tile", [(32, 64, 512), (16, 16, 16), (256, 8, 1024)])
def test_cost_of_tiled_matmul(tile: tuple[int, int, int]) -> None:
    s = statement(matmul(), **square(2048))
    i, k, j = "i", "r.k", "j"
    ti, tk, tj = tile
    bi = bj = bk = 2048
    sizes = {i: ti, k: tk, j: tj}
    references = (s.output, *s.inputs)
    assert set(s.extents) == {i, j, k}
    # one iteration of the i loop, and a whole tile
    assert working_set(references, without(sizes, i)) == 4 * (tj + tk + tj * tk)  # 4.1
    assert working_set(references, sizes) == 4 * (tj * ti + tk * ti + tj * tk)  # 4.6
    # misses
    c_l1 = (ti + ti + tk) * (bi * bj * bk) / (ti * tj * tk)  # 4.5
    c_l2 = (ti * bj / tj + ti + tk * bj / tj) * (bi / ti) * (bk / tk)  # 4.10
    assert l1_misses(references, s.extents, sizes, outermost=i) == c_l1
    assert l2_misses(references, s.extents, sizes, innermost=j) == c_l2
    # distances
    c_order = bj * bk / (tj * tk) + bj * ti / tj + ti * tk  # 4.12
    assert order_cost(s.extents, sizes, inter=(i, k, j), intra=(i, k, j)) == c_order


def test_total_cost_of_the_tile_that_is_chosen() -> None:
    """Equation 4.11, and the constraints of Algorithm 2."""
    s = statement(matmul(), **square(2048))
    found = optimizer(s).best()
    assert found.costs is not None and found.loops is not None
    assert found.costs["C_total"] == pytest.approx(3 * found.costs["C_L1"] + 9 * found.costs["C_L2"])
    tile, inter, intra = found.loops.tile, found.loops.inter, found.loops.intra
    references = (s.output, *s.inputs)
    assert working_set(references, without(tile, intra[0])) <= I7.l1.size / 2  # two threads per core
    assert working_set(references, tile) <= I7.l2.size / 4  # and half is for what is prefetched
    assert 2048 / tile[inter[0]] >= I7.threads  # 4.13
    assert inter[0] != "j" and intra[0] != "j"  # "column index outermost" is invalid
    assert intra[-2:] == ("j", "r.k")  # the vector, around which blocks of sums run


def test_every_other_tile_costs_more() -> None:
    s = statement(matmul(), **square(512))
    o = optimizer(s)
    found = o.tiled(3)
    assert found is not None
    for outermost, second, first in o._intra_classes():
        valid = o._valid(outermost, second, first, 3)
        for parallel, innermost in o._inter_classes():
            ok = valid & o.capacity.enough_tiles(parallel, o.grid)
            costs = (o._l1[outermost] + o._l2[innermost])[ok]
            assert costs.size == 0 or costs.min() >= found[0]


# ---- Algorithm 1


def emulated(cache: Cache, threads: int, element: int, row: int, pitch: int, prefetcher: Prefetcher | None) -> int:
    """Algorithm 1 line by line."""
    lc = cache.line // element
    ways = max(1, cache.ways // (threads * cache.shared_by))
    sets = cache.size // (cache.ways * cache.line)
    if prefetcher is not None:
        lines, sets = -(-max(row, lc) // lc), sets // 2
    else:
        lines = -(-max(row + lc, 2 * lc) // lc)
    fetched = [0] * sets
    rows = s = 0
    while rows < 10_000:
        first = -(-rows * pitch // lc)
        for i in range(lines):
            if fetched[(first + i) % sets] == ways:
                return rows
            fetched[(first + i) % sets] += 1
            s += 1
            near = prefetcher is not None and s - i <= prefetcher.distance
            if near and any(fetched[(first + i + p) % sets] == ways for p in range(prefetcher.requests)):
                return rows
        rows += 1
    return rows


@pytest.mark.parametrize("prefetcher", [None, Prefetcher()])
@pytest.mark.parametrize("row", [1, 16, 100, 512])
@pytest.mark.parametrize("pitch", [16, 100, 2048, 2064, 4096])
def test_cache_emulation(row: int, pitch: int, prefetcher: Prefetcher | None) -> None:
    cache = I7.l1 if prefetcher is None else I7.l2
    assert most_rows(cache, 2, 4, row, pitch, prefetcher) == emulated(cache, 2, 4, row, pitch, prefetcher)


def test_rows_that_fall_on_the_same_sets_interfere() -> None:
    """A pitch of 4096 floats is a multiple of all sets of L1: as many rows as ways, of which two threads have half."""
    assert most_rows(I7.l1, 2, 4, 16, 4096) == I7.l1.ways // 2
    assert most_rows(I7.l1, 2, 4, 16, 4096 + 32) > I7.l1.ways


def test_shared_caches_count_for_the_part_of_a_core() -> None:
    """§4.5: "the calculation of L2way should be updated to L2way / Ncores" on the Cortex-A15."""
    whole = replace(A15.l2, shared_by=1)
    assert most_rows(A15.l2, 1, 4, 16, 65536, Prefetcher(0)) * 4 == most_rows(whole, 1, 4, 16, 65536, Prefetcher(0))


# ---- spatial reuse: Listing 4.2


def test_tall_tiles_for_transposed_arrays() -> None:
    """§4.3: "the transposed array favors tiles that have the maximum height and the minimum width"."""
    app = APPS["tp"]
    found = Kernel().find(problem_of(app.build(), I7, **app.sizes["paper"]))
    tile = found.report.groups[0].levels[0]
    assert tile["x"] == 16  # a line
    assert tile["y"] > 16


# ---- Table 4.5: what its times are spent on (docs/autoschedule.md has ours)


@pytest.mark.parametrize("name", sorted(TABLE_4_5))
def test_how_much_the_optimizer_looks_at(name: str) -> None:
    """Powers of two along every loop, in all orders that differ in cost; rows are emulated once per size."""
    build, shapes, (tiles, emulations) = TABLE_4_5[name]
    s = statement(build(), **shapes)
    most_rows.cache_clear()
    assert Kernel().optimize(s.problem, s).tiles == tiles
    assert most_rows.cache_info().misses == emulations


# ---- results


@pytest.mark.parametrize("build", [matmul, trmm, syr2k])
def test_results(build: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random((70, 70), np.float32) for _ in "ab")
    p = build().with_schedule("kernel", estimates=square(2048), machine=I7)
    assert "r_k_o" in str(p.schedule)
    np.testing.assert_allclose(p(a=a, b=b), p.reference(a=a, b=b), rtol=1e-4)
