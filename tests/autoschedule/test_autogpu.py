"""autogpu: the facts of sioutas-thesis chapter 6, and that its schedules are legal and right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import AutoGpu, Problem
from pantile.autoschedule.blocks.group_costs import CostParameters, GroupCosts, occupancies
from pantile.autoschedule.blocks.nested_fusion import nested
from pantile.autoschedule.blocks.tile_sizes import bounds, tile_sizes, tiled_dims
from pantile.autoschedule.common.legalize import legal
from pantile.autoschedule.common.marking import Part
from pantile.autoschedule.common.tiles import TiledGroup, scheduled
from pantile.backends.launch_report import LaunchReport
from pantile.machine import named
from pantile.machine.capabilities import of_target
from pantile.target import NAMED

from .problems import TINY_GPU, problem_of

RTX = named("RTX 2080 Ti")


def khwz() -> pt.Pipeline:
    """K, H, W and Z of Figures 6.2-6.4; E, their input, is one."""
    c, y, x = pt.vars("c y x")
    e = pt.Input("E", "float32", ndim=2)
    k, h, w, z = (pt.Func(name) for name in "KHWZ")
    k[c, y, x] = (e[y, x] + e[y, x + 1] + e[y, x + 2]) * c
    h[y, x] = e[y, x] * 4.0
    w[y, x] = k[0, y, x] + k[1, y, x] + k[2, y, x] + 2.0 * h[y, x]
    z[y, x] = w[y, x] + w[y + 1, x] + w[y + 2, x] + w[y + 3, x] + w[y + 4, x]
    return pt.Pipeline(z, shape=(e.shape[0] - 4, e.shape[1] - 2))


INPUT = (1540, 2562)


def problem() -> Problem:
    """The problem of these figures, with H inlined."""
    return problem_of(khwz(), RTX, E=INPUT).inlined(["H"])


def costs(tile: Mapping[str, int], members: tuple[str, ...] = ("K", "W", "Z"), **parameters: Any) -> GroupCosts:
    tiles = {dim: np.array([n]) for dim, n in tile.items()}
    return GroupCosts(problem(), members, tiles, CostParameters(**parameters))


# ---- §6.3


def test_blocks_grow_by_dependences() -> None:
    """Lines 4205-4210: a 4 x 4 tile of Z takes a block of 4 x 8 threads, four more along y."""
    group = costs({"y": 4, "x": 4})
    assert {dim: n.tolist() for dim, n in group.thread_block.items()} == {"y": [8], "x": [4]}
    assert group.shared.tolist() == [(3 * 4 * 8 + 4 * 8) * 4]  # Figure 6.3b: K[3*4*8] and W[4*8]


def test_a_tile_of_32_by_12() -> None:
    """Lines 4341-4377: 32 x 16 threads, and 2048 bytes where nested fusion leaves only W in shared memory."""
    group = costs({"y": 12, "x": 32})
    assert {dim: n.tolist() for dim, n in group.thread_block.items()} == {"y": [16], "x": [32]}
    assert group.thread_count.tolist() == [512]
    assert costs({"y": 12, "x": 32}, ("W", "Z")).shared.tolist() == [2048]


def test_the_occupancy_of_that_kernel() -> None:
    """Lines 4387-4392: 512 threads, 64 registers and 2048 bytes are an occupancy of 100 % on compute capability 7.5."""
    assert RTX.capability == (7, 5)
    assert RTX.occupancy(threads=512, shared=2048, registers=64).share == 1.0


def test_blocks_have_these_threads() -> None:
    for tile, threads, shared in (({"y": 4, "x": 4}, 32, 512), ({"y": 12, "x": 32}, 512, 2048 * 4)):
        group = TiledGroup("Z", ("K", "W"), (tile,), threads=threads)
        run = khwz().with_options(target="cuda-sim")
        schedule = legal(problem_of(run, RTX, E=INPUT), [scheduled(problem(), group)], ["H"]).schedule
        assert schedule.on("Z").directives[-1] == pt.on("Z").threads(threads).directives[0]
        run = run.with_schedule(schedule)
        given = np.random.default_rng(0).random((44, 70), dtype=np.float32)
        np.testing.assert_allclose(run(E=given), run.reference(E=given), rtol=1e-5)
        launches = run.predict(E=INPUT)
        assert isinstance(launches, LaunchReport)
        assert [(k.threads, k.shared_bytes) for k in launches.kernels] == [(threads, shared)]


def fused(tile: Mapping[str, int]) -> tuple[Part, Mapping[str, str]]:
    group = TiledGroup("Z", ("K", "W"), (tile,))
    answer = nested(problem(), group, scheduled(problem(), group))
    return answer.part, answer.stages


def test_nested_fusion_keeps_only_w_in_shared_memory() -> None:
    """Figure 6.4: K is computed in the threads of W, W for the block."""
    part, stages = fused({"y": 4, "x": 4})
    assert stages == {"K": "W"}
    chains = {chain.name: chain for chain in part}
    assert chains["K"] == pt.on("K").compute_at("W", "x").store_in("register").unroll("c")
    assert chains["W"] == pt.on("W").compute_at("Z", "x_o").thread("y", "x")
    run = khwz().with_options(target="cuda-sim")
    schedule = legal(problem_of(run, RTX, E=INPUT), [part], ["H"])
    assert schedule.honoured == (True,)
    run = run.with_schedule(schedule.schedule)
    given = np.random.default_rng(0).random((44, 52), dtype=np.float32)
    np.testing.assert_allclose(run(E=given), run.reference(E=given), rtol=1e-5)
    launches = run.predict(E=(44, 52))
    assert isinstance(launches, LaunchReport) and [k.shared_bytes for k in launches.kernels] == [4 * 8 * 4]


# ---- §6.4


def test_limits_of_tiles() -> None:
    """Lines 4515-4533."""
    assert bounds(2560, 2) == (8, 80) and bounds(1536, 2) == (8, 48)
    assert bounds(1 << 20, 1) == (8, 8192)
    assert bounds(512, 2) == (8, 256)
    assert bounds(48, 1) == (2, 24)
    assert bounds(1, 1) == (1, 1) and bounds(3, 1) == (2, 2)


def test_short_dims_are_not_tiled() -> None:
    y, x, c = pt.vars("y x c")
    img, out = pt.Input("img", "float32", shape=(None, None, 3)), pt.Func("out")
    out[y, x, c] = img[y, x, c] * 2.0
    p = pt.Pipeline(out, shape=img.shape)
    assert tiled_dims(problem_of(p, RTX, img=(1536, 2560, 3)).facts, "out") == ("y", "x")
    assert tiled_dims(problem_of(p, RTX, img=(20, 30, 3)).facts, "out") == ("x",)


def test_steps_of_tile_sizes() -> None:
    """Powers of two while grouping, every second number in the last pass, none with more than 1024 points."""
    facts = problem().facts
    first, last = tile_sizes(facts, "Z", is_last=False), tile_sizes(facts, "Z", is_last=True)
    assert sorted(set(first["y"].tolist())) == [8, 16, 32] and sorted(set(first["x"].tolist())) == [8, 16, 32, 64]
    assert sorted(set(last["y"].tolist())) == [*range(8, 49, 2)]
    assert (first["y"] * first["x"]).max() <= 1024 and (last["y"] * last["x"]).max() <= 1024


def test_the_estimate_of_registers() -> None:
    """Lines 4690-4697: 512 threads may have 128 each, with which a multiprocessor holds one block; 64 leave room for
    two."""
    threads, shared = np.array([512]), np.array([2048])
    assert occupancies(RTX, threads, shared, 255).share.tolist() == [0.5]
    assert occupancies(RTX, threads, shared, 64).share.tolist() == [1.0]
    assert occupancies(RTX, threads, shared, 64).active_threads.tolist() == [1024]


def test_configurations_that_are_invalid() -> None:
    """Lines 25-38 of Listing 6.1."""
    assert costs({"y": 12, "x": 32}).is_valid.tolist() == [True]
    assert costs({"y": 30, "x": 32}).is_valid.tolist() == [False]  # 34 x 32 threads
    assert costs({"y": 8, "x": 8}, occupancy_threshold=1.1).is_valid.tolist() == [False]
    for wanted in (56, 57):  # 3 x 1280 blocks, 56 for each of 68 multiprocessors
        few = costs({"y": 512, "x": 2}, ("Z",), blocks_per_multiprocessor=wanted)
        assert few.is_valid.tolist() == [wanted == 56]


def test_the_last_pass_alone_wants_whole_warps_and_scales_loads() -> None:
    odd, whole = costs({"y": 8, "x": 10}), costs({"y": 12, "x": 32})
    assert np.isfinite(odd.costs(is_last=False)).all() and np.isinf(odd.costs(is_last=True)).all()
    first, last = whole.costs(is_last=False), whole.costs(is_last=True)
    busy = whole.least_occupancy * whole.active_threads
    np.testing.assert_allclose(first - last, whole.blocks * whole.memory * (1 - 1 / busy))


def test_neighbouring_loads_are_one_transaction() -> None:
    """Lines 3-4 of Listing 6.1: rows of 8 are loaded by half as much at a time as rows of 16; longer ones are not."""
    memory = {n: float((costs({"y": 8, "x": n}, ("Z",)).memory / n)[0]) for n in (8, 16, 32)}
    assert memory[8] > 1.9 * memory[16] and abs(memory[16] - memory[32]) < 0.2 * memory[32]


def test_heavy_groups_are_fused_in_threads() -> None:
    found = AutoGpu().find(problem_of(khwz(), RTX, E=INPUT))
    (group,) = [g for g in found.report.groups if g.output == "Z"]
    is_heavy = group.costs["active threads"] > 900 or group.costs["shared bytes"] > 32 << 10
    assert any("threads of" in remark for remark in group.remarks) == (is_heavy and "K" in group.members)


# ---- schedules


MODES = ("none", "overlap", "nested")


@pytest.mark.parametrize("fusion", MODES)
@pytest.mark.parametrize("name", ["blur", "unsharp", "harris", "camera_pipe"])
def test_apps(name: str, fusion: str) -> None:
    """On a GPU that a small picture has enough blocks for."""
    app = APPS[name]
    p = app.build().with_options(target="cuda-sim").with_schedule(AutoGpu(fusion=fusion), machine=TINY_GPU)
    arguments = app.arguments("small")
    np.testing.assert_allclose(p(**arguments), p.reference(**arguments), rtol=2e-4, atol=1e-3)
    placed = [s for s in p.graph.stages if "compute_at" in p.schedule.on(s.name).verbs]
    assert bool(placed) == (fusion != "none")
    assert p.report is not None and not p.report.remarks


def test_blocks_are_few_where_stages_are_fused() -> None:
    for name, counts in {"blur": (2, 1), "unsharp": (4, 1), "harris": (4, 2)}.items():
        for fusion, count in zip(("none", "overlap"), counts, strict=True):
            app = APPS[name]
            found = AutoGpu(fusion=fusion).find(problem_of(app.build(), RTX, **app.sizes["paper"]))
            assert len(found.report.groups) == count


def test_a_pipeline_is_scheduled_for_the_gpu_of_its_target() -> None:
    targets = {"sm_70": "Tesla V100", "sm_75": "RTX 2080 Ti", "sm_80": "A100", "cuda-sim": "H200"}
    for target, name in targets.items():
        assert of_target(NAMED[target]).name == name
    p, given = doubled("cuda-sim"), np.ones((70, 90), np.float32)
    assert (p(img=given) == 2).all()
    assert "autogpu for H200" in p.explain()
    assert "autogpu for A100" in doubled("sm_80").explain(img=(700, 900))


def doubled(target: str) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = img[y, x] * 2.0
    return pt.Pipeline(out, shape=img.shape, target=target, schedule="autogpu")


def test_groups_of_small_pictures_are_those_that_their_code_has_memory_for() -> None:
    """Code for small pictures has other loops: here a group is refused that large ones have."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "uint16", ndim=2)
    rows, columns = img.shape

    def within(condition: Any, value: Any) -> Any:
        return pt.select(condition, value, pt.cast("uint16", 7))

    f1, f2, f3 = pt.Func("f1"), pt.Func("f2"), pt.Func("f3")
    ends = [within(y < rows - 1, img[y + 1, x + 2]), within(y < rows, img[y, x])]
    f1[y, x] = (ends[0] + ends[1] + within((y < rows - 4) & (x >= 1), img[y + 2, x - 1])) // 3
    f2[y, x] = (within(x >= 1, f1[y, x - 1]) + f1[y + 2, x]) // 3
    f3[y, x] = within(x < columns - 4, f2[y + 2, x + 2]) + within(x >= 2, f2[y + 1, x - 2])
    p = pt.Pipeline(f3, shape=(rows - 4, columns), target="cuda-sim", schedule="autogpu", machine=TINY_GPU, strict=True)
    for shape in ((11, 2), (40, 50)):
        given = np.random.default_rng(5).integers(0, 65535, shape, "uint16")
        assert (p(img=given) == p.reference(img=given)).all()
