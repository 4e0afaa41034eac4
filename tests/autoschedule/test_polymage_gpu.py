"""polymage_gpu: the facts of Jangda and Guha (PACT 2020), and that its schedules are legal and right."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import VARIANTS, PolymageGpu, Report
from pantile.autoschedule.blocks import warp_tile_model
from pantile.autoschedule.blocks.group_tiles import FusedGroup, FusedStage, GroupTiles
from pantile.autoschedule.blocks.warp_costs import OF_H200, TABLE_3, Algorithm2, Weights, weights_of
from pantile.autoschedule.blocks.warp_tile_model import Form, WarpTileModel
from pantile.autoschedule.blocks.warp_tiles import Blocks, TileShapes, candidates, warp_sizes, warp_tile
from pantile.autoschedule.fusion.alignment import StageGraph
from pantile.autoschedule.polymage_gpu import FORMS
from pantile.launch_cost import sampled_launch
from pantile.machine import named
from pantile.machine.multiprocessor import Gpu

from ..launch_cost.as_written import levels_as_written
from .problems import TINY_GPU, problem_of

V100 = named("Tesla V100")


def blocks(tile: tuple[int, ...], block: tuple[int, ...], *, per_warp: bool = True) -> Blocks:
    return Blocks(tuple(np.array([n]) for n in tile), tuple(np.array([n]) for n in block), per_warp)


def algorithm_2(
    gpu: Gpu, group: FusedGroup, tried: Blocks, fractions: tuple[float, ...] = (0.0,), *, printed: bool = False
) -> Algorithm2:
    return Algorithm2(gpu, Weights(), GroupTiles(group, tried.shapes), tried, fractions, printed)


# ---- §4


def test_warps_and_their_tiles() -> None:
    """The example of §4."""
    warp = warp_sizes((16, 8, 1))
    assert tuple(map(int, warp)) == (16, 2, 1)
    assert tuple(map(int, warp_tile((8, 4, 1), warp))) == (128, 8, 1)


@pytest.mark.parametrize("block", [(64, 4, 1), (8, 8, 8), (4, 2, 32), (1, 1, 64), (32, 1, 1)])
def test_a_warp_has_32_threads(block: tuple[int, ...]) -> None:
    assert np.prod(warp_sizes(block)) == 32


def test_tiles_of_single_warps() -> None:
    """A row of warps needs nothing of the next one if nothing overlaps along y, or if there is no next one."""
    tile, block = (np.array([1] * 3), np.array([1] * 3)), (np.array([64, 64, 16]), np.array([4, 1, 8]))
    tried = Blocks(tile, block)
    assert tried.of_single_warps((True, True)).block[1].tolist() == [1, 8]
    assert tried.of_single_warps((True, False)).block[1].tolist() == [4, 1, 8]


def test_the_size_of_scratchpads() -> None:
    """⌈B_i / W_i⌉ (T_i W_i + O_i) along each dim: 1 (128 + 2) and 4 (8 + 4); all of a block high where warps are one
    thread high; and one tile where it is that of the block."""

    def computed(tried: Blocks, density: tuple[float | None, ...], overlap: tuple[float, ...]) -> int:
        tiles = GroupTiles(FusedGroup((FusedStage(1, (), density, overlap),), (1 << 10,) * 3), tried.shapes)
        return int(tiles.computed[0, 0] * tried.count[0])

    assert computed(blocks((8, 4, 1), (16, 8, 1)), (1.0, 1.0, 1.0), (2, 4, 0)) == 130 * 4 * 12
    assert computed(blocks((8, 2), (64, 4)), (1.0, 1.0), (2, 4)) == 2 * 258 * (8 + 4)
    assert computed(blocks((8, 2), (64, 4), per_warp=False), (1.0, 1.0), (2, 4)) == 514 * 12
    assert computed(blocks((8, 2), (64, 4), per_warp=False), (0.5, None), (2, 4)) == 257


def test_blocks_of_one_shape() -> None:
    """Blocks of one, two and 32 warps side by side have tiles of the same shape, which is looked at once."""
    tried = candidates((4256, 2832), per_warp=True, is_last=False)
    rows = tried[(tried.block[1] == 1) & (tried.tile[0] == 4) & (tried.tile[1] == 2)]
    assert rows.threads.tolist() == [1024, 512, 256, 128, 64, 32] and len({*rows.shape.tolist()}) == 1
    shapes = zip(*tried.shapes.extents, *tried.shapes.warp, tried.shapes.split_dim, strict=True)
    assert len({*shapes}) == len(tried.shapes.split_dim) < len(tried.threads) / 4


def test_what_is_tried() -> None:
    """§7.1: tile sizes from 1 to 32, and blocks of whole warps; smaller than the picture."""
    tried = candidates((4256, 2832), per_warp=True, is_last=True)
    assert all(set(t.tolist()) == set(range(1, 33)) for t in tried.tile)
    assert not (tried.threads % 32).any() and tried.threads.max() == 1024
    assert [tuple(map(int, (t[0] for t in tried.tile)))] == [(1, 1)]
    small = candidates((40, 20), per_warp=True, is_last=True)
    assert (small.extents[0] * small.tiles[0] < 40).all() and (small.extents[1] * small.tiles[1] < 20).all()


# ---- Algorithm 2


def blur_costs(fraction: float, *, printed: bool) -> dict[str, list[float]]:
    """Figure 5: tiles of 8, blocks of 64 x 4, of a picture of 1024 x 512; by transaction sizes."""
    where = (((32, 1), (4.0, 1.0)),)
    blur_x = FusedStage(4, where, (1.0, 1.0), (2.0, 0.0), registers=10, seconds=10e-9)
    blur_y = FusedStage(4, (((32, 1), (0.0, 0.0)),), (1.0, 1.0), (0.0, 0.0), registers=12, seconds=10e-9)
    group = FusedGroup((blur_x, blur_y), (1024, 512))
    found = algorithm_2(V100, group, blocks((8, 1), (64, 4)), (fraction,), printed=printed)
    return {name[:2]: np.broadcast_to(n, found.cost.shape)[:, 0, 0].tolist() for name, n in found.terms.items()}


def test_the_terms_mended() -> None:
    """2 (256 + 2) 4 floats are 8256 bytes, half of them but for the overlap in 4 registers of 256 threads, which have
    22 besides. Of the 256 blocks, 80 multiprocessors get 4 at the most, which run at a time: half of the 64 warps. A
    warp has 5.625 GB/s: 8 transactions of 128 bytes take 182 ns, 8 points 160 ns; those of the first stage, which has
    all transactions and half of the time, 258/256 as long. 16 of 2048 points are redone."""
    terms = blur_costs(0.5, printed=False)
    redone = 258 / 256
    assert terms["w1"] == [50 * 4 * redone, 50 * 1 * redone]
    assert terms["w2"] == [0.25, 0.25]
    assert terms["w3"] == pytest.approx([60 * (1024 * redone / 5.625) / (80 * redone + 80)] * 2)
    assert terms["w4"] == pytest.approx([10 * (1 - (8256 - 4096) * 4 / 98304)] * 2)
    assert terms["w5"] == pytest.approx([2 * (1 - 26 * 1024 / 65536)] * 2)
    assert terms["w6"] == pytest.approx([100 * 2 / 256] * 2)
    assert terms["w7"] == [0, 0]


@pytest.mark.parametrize("gpu", ["Tesla V100", "H200", "Jetson AGX Xavier", "K40"])
def test_blocks_that_run_are_those_of_the_occupancy_calculator(gpu: str) -> None:
    """Whole blocks, of shared memory and registers in the units that the hardware allocates."""
    has = named(gpu)
    tile, block = [(1, 1), (5, 3), (8, 2), (4, 4)], [(32, 1), (64, 3), (32, 16), (64, 2)]
    stage = FusedStage(4, (((32, 1), (1.0, 1.0)),), (1.0, 1.0), (2.0, 2.0), registers=19, seconds=1e-9)
    group = FusedGroup((stage, replace(stage, overlap=(0.0, 0.0))), (1 << 14, 1 << 14))
    tried = Blocks(*(tuple(np.array(of).T) for of in (tile, block)))
    found = algorithm_2(has, group, tried)
    each = zip(tried.threads, found.shared_per_block.ravel(), found.running_blocks.ravel(), strict=True)
    assert all(has.occupancy(int(n), int(shared), 38).blocks == running for n, shared, running in each)


def test_the_terms_as_printed() -> None:
    """2048 elements, half of them, and a quarter of them in 2 registers of 256 threads. 32 blocks fit; 3 there are."""
    terms = blur_costs(0.5, printed=True)
    assert terms["w1"] == [50 * 8 * 4, 50 * 8 * 1]
    assert terms["w3"] == pytest.approx([60 * 1024 / (900e9 * 32 / 80 * 64) / 160e-9] * 2)
    assert terms["w4"] == pytest.approx([10 * (1 - 1024 * 32 / 98304)] * 2)
    assert terms["w5"] == pytest.approx([2 * (1 - 24 * 2048 / 65536)] * 2)
    assert terms["w6"] == pytest.approx([100 * 8 / 8] * 2)
    assert terms["w7"] == [3, 3]


@pytest.mark.parametrize("printed", [False, True])
def test_without_shared_memory(printed: bool) -> None:
    """At a fraction of 1, line 18 divides by zero: shared memory is no limit. Mended, the overlap is there."""
    assert blur_costs(1.0, printed=printed)["w4"] == [10 if printed else 10 * (1 - 64 * 4 / 98304)] * 2
    assert all(np.isfinite(both).all() for both in blur_costs(1.0, printed=printed).values())


def test_whole_tiles_are_in_registers() -> None:
    """Lines 15 and 20 of Algorithm 1: along the first dim of more than one point, R of T tiles; the overlap along it is
    in shared memory. Of 4 rows and 2 more, 2 lanes along y have 3."""
    each = blocks((5, 2), (16, 2)), blocks((1, 4), (16, 2)), blocks((1, 1), (16, 2))
    shares = np.array([[0.0], [0.5], [1.0]])
    assert [b.whole_tiles(shares)[:, 0].tolist() for b in each] == [[0, 2, 5], [0, 2, 4], [0, 0, 0]]
    group = FusedGroup((FusedStage(4, (), (1.0, 1.0), (2.0, 2.0)),), (1 << 10, 1 << 10))
    points, registers = zip(*(GroupTiles(group, b.shapes).in_registers for b in each), strict=True)
    assert [p.tolist() for p in points] == [[[96]], [[36]], [[0]]]
    assert [r.tolist() for r in registers] == [[[96]], [[64]], [[0]]]


def test_redundant_computations_of_blur() -> None:
    """§3: 0.8 % with tiles of 8, 0.4 % with tiles of 16."""
    for tile, percent in ((8, 0.8), (16, 0.4)):
        stage = FusedStage(4, (((32, 1), (1.0, 1.0)),), (1.0, 1.0), (2.0, 0.0), seconds=1e-9)
        group = FusedGroup((stage, replace(stage, overlap=(0.0, 0.0))), (4096, 4096))
        found = algorithm_2(V100, group, blocks((tile, 1), (64, 4)))
        assert round(100 * float(found.overlap[0]), 1) == percent


def test_configurations_that_are_invalid() -> None:
    """Lines 12 and 21, and, mended, blocks for all multiprocessors."""
    stage = FusedStage(4, (((32, 1), (1.0, 1.0)),), (1.0, 1.0), (2.0, 2.0), registers=40, seconds=1e-9)
    group = FusedGroup((stage, stage), (4096, 4096))
    tile = blocks((8, 4), (64, 4), per_warp=False)
    assert algorithm_2(V100, group, tile).is_valid.all()
    assert not algorithm_2(V100, replace(group, stages=(stage,) * 12), tile).is_valid.any()
    assert not algorithm_2(V100, replace(group, extents=(1024, 256)), tile).is_valid.any()
    hot = replace(stage, registers=128)
    assert not algorithm_2(V100, replace(group, stages=(hot, hot)), tile).is_valid.any()


def test_weights_of_machines() -> None:
    """Table 3; other GPUs have those of an H200, and given ones count."""
    assert (TABLE_3["GTX 1080 Ti"].w3, TABLE_3["GTX 1080 Ti"].w4) == (45, 20)
    chosen = [report("blur", PolymageGpu(w6=7.0), gpu).parameters for gpu in ("GTX 1080 Ti", "Tesla V100", "A100")]
    assert [p["w3"] for p in chosen] == [45, 60, OF_H200.w3] and {p["w6"] for p in chosen} == {7.0}
    assert weights_of("Tesla V100-SXM2-16GB", printed=False) == weights_of("NVIDIA A100", printed=True) == Weights()


# ---- groups


DEFAULT = PolymageGpu()


def report(name: str, strategy: PolymageGpu = DEFAULT, gpu: str = "Tesla V100") -> Report:
    app = APPS[name]
    return strategy.find(problem_of(app.build(), named(gpu), **app.sizes["paper"])).report


def test_coalesced_loads() -> None:
    """Lines 14-17: 32 floats of a row are 4 transactions of 32 bytes or one of 128, 16 of each of two rows 4 or 2, and
    those of a transposed picture one each."""
    y, x = pt.vars("y x")
    img, out, turned = pt.Input("img", "float32", ndim=2), pt.Func("out"), pt.Func("turned")
    out[y, x] = img[y, x] * 2.0
    turned[y, x] = img[x, y]
    for func, wanted in ((out, {(32, 1): (4, 1), (16, 2): (4, 2)}), (turned, {(32, 1): (32, 32), (1, 32): (4, 1)})):
        stages = StageGraph(problem_of(pt.Pipeline(func, shape=(1000, 1000)), V100, img=(1000, 1000)))
        model = WarpTileModel(stages, V100, Weights(), Form(per_warp=False, fractions=(0.0,)))
        aligned = stages.aligned(1)
        assert aligned is not None
        found = dict(model.inputs(aligned).stages[0].transactions)
        assert {warp: found[warp] for warp in wanted} == wanted


@pytest.mark.parametrize("name", ["blur", "unsharp_polymage", "harris_polymage"])
def test_stencils_are_one_group(name: str) -> None:
    """§3 fuses both stages of blur; §7.2.1 has tiles of Harris corners and of the unsharp mask as a whole."""
    (group,) = report(name).groups
    assert group.members and {"w1 transactions", "w7 extra blocks", "registers"} <= set(group.costs)


def test_reductions_are_not_fused() -> None:
    """§7.2: "Halide can fuse the histogram stage, which performs a reduction, [...] whereas PolyMage-GPU cannot"."""
    graph = APPS["bilateral_grid_polymage"].build().graph
    sums = {s.name for s in graph.stages if any(d.domain for d in s.definitions)}
    groups = report("bilateral_grid_polymage").groups
    fused = {name for g in groups if g.members for name in (*g.members, g.output)}
    assert fused and fused.isdisjoint(sums)
    assert any("reduction" in remark for g in groups for remark in g.remarks)


def test_registers_of_blur() -> None:
    """§3: "On a GTX 1080Ti, the code so far only uses 24 registers"; here that is estimated."""
    (group,) = report("blur", PolymageGpu(tiles="warp")).groups
    assert 20 <= group.costs["registers"] <= 28


def test_tiles_and_blocks_are_written_as_chosen() -> None:
    """A thread computes points that are as far apart as its block is wide."""
    app = APPS["blur"]
    found = PolymageGpu(tiles="block").find(problem_of(app.build(), V100, **app.sizes["paper"]))
    (group,) = found.report.groups
    (tile,) = group.levels
    chain = found.schedule.on("blur_y")
    splits = {d.args[0]: d.args[3] for d in chain.directives if d.verb == "split"}
    assert {"y": splits["y"], "x": splits["x"]} == tile
    assert ("blocks of" in group.remarks[0]) and not any("own" in r for r in found.report.remarks)


@pytest.mark.parametrize("name", ["blur", "harris_polymage", "camera_pipe_polymage"])
def test_tiles_of_warps_are_written_as_chosen(name: str) -> None:
    """A block computes a tile of each of its warps, and a lane points that are as far apart as the warp is wide. What
    is computed there lies in shared memory."""
    app = APPS[name]
    found = PolymageGpu(tiles="warp").find(problem_of(app.build(), V100, **app.sizes["paper"]))
    assert not any("not of warps" in remark for remark in found.report.remarks)
    for group in (g for g in found.report.groups if g.members):
        chain = found.schedule.on(group.output)
        (tile,) = group.levels
        splits = [d.args for d in chain.directives if d.verb == "split"]
        factors = {loop: factor for loop, _, _, factor in splits}
        assert all(factors[dim] * factors.get(f"{dim}_w", 1) == n for dim, n in tile.items() if dim in factors)
        (lanes,) = (d.args for d in chain.directives if d.verb == "lane")
        sizes = {inner: factor for _, _, inner, factor in splits}
        assert prod(sizes[loop] for loop in lanes) == 32 and "warp" in chain.verbs
        assert all({"lane", "store_in"} <= found.schedule.on(member).verbs for member in group.members)


def test_the_printed_lines_prefer_single_points() -> None:
    """Line 35 counts all transactions of a warp, which are fewest where its threads have one point each."""
    (group,) = report("copy", PolymageGpu(cost="printed")).groups
    assert "x 1" in group.remarks[0].split("which compute")[1]
    assert VARIANTS["polymage_gpu-printed"] == PolymageGpu(cost="printed")


# ---- hybrid tiling


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each load counts at every access."""
    monkeypatch.setattr(sampled_launch, "levels_of", levels_as_written)


def reads(name: str, tiles: str, gpu: str) -> int:
    """The bytes that the warps of all kernels read from global memory."""
    app = APPS[name]
    p = app.build().with_options(target="cuda-sim")
    p = p.with_schedule(PolymageGpu(tiles=tiles), machine=named(gpu), estimates=app.sizes["paper"])
    works = [kernel.work for kernel in p.predict(**app.sizes["paper"]).kernels]
    return sum(w.read for w in works if w is not None)


@pytest.mark.usefixtures("as_written")
@pytest.mark.parametrize("gpu", ["GTX 1080 Ti", "Tesla V100"])
@pytest.mark.parametrize("name", ["unsharp_polymage", "harris_polymage"])
def test_hybrid_tiles_load_less(name: str, gpu: str) -> None:
    """Table 5: hybrid tiles are larger than those in shared memory alone."""
    assert reads(name, "hybrid", gpu) < reads(name, "warp", gpu)


@pytest.mark.usefixtures("as_written")
def test_tiles_in_registers_alone_are_smaller() -> None:
    """§7.2.1: "Register-only tiles forces PolyMage-GPU to use tiny tiles, which results in a lot of redundant
    computations", of Harris corners."""
    assert reads("harris_polymage", "register", "Tesla V100") > reads("harris_polymage", "warp", "Tesla V100")


# ---- schedules


WAYS = [*((form, "mended") for form in FORMS), ("block", "printed"), ("hybrid", "printed")]


@pytest.mark.parametrize(
    ("name", "tiles", "cost"),
    [*((name, *way) for name in ("blur", "unsharp_polymage", "harris") for way in WAYS), ("camera_pipe", *WAYS[0])],
)
def test_apps(name: str, tiles: str, cost: str) -> None:
    """On a GPU that a small picture has enough blocks for. Warps need no barriers of blocks."""
    app = APPS[name]
    strategy = PolymageGpu(tiles=tiles, cost=cost)
    p = app.build().with_options(target="cuda-sim").with_schedule(strategy, machine=TINY_GPU)
    arguments = app.arguments("small")
    np.testing.assert_allclose(p(**arguments), p.reference(**arguments), rtol=2e-4, atol=1e-3)
    assert any("compute_at" in p.schedule.on(s.name).verbs for s in p.graph.stages) or cost == "printed"
    assert tiles == "block" or "bar.sync" not in p.asm()


def test_groups_that_are_alike_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of equal stages, groups of as many stages have the same cost: there are as many as stages."""
    evaluated: list[FusedGroup] = []

    def counted(group: FusedGroup, shapes: TileShapes) -> GroupTiles:
        evaluated.append(group)
        return GroupTiles(group, shapes)

    monkeypatch.setattr(warp_tile_model, "GroupTiles", counted)
    counts = []
    for count in (6, 12):
        evaluated.clear()
        found = DEFAULT.find(problem_of(repeated(count), V100, img=(2048, 2048)))
        assert found.report.counts["states explored"] >= count * (count - 1) / 2
        counts.append(len(evaluated))
    assert counts[1] <= 2.5 * counts[0]


def repeated(count: int) -> pt.Pipeline:
    """Equal stages, each of which adds the row above, where there is one, to that of the one before."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before: Any = img
    for k in range(count):
        f = pt.Func(f"f{k}")
        f[y, x] = before[y, x] + pt.select(y > 0, before[y - 1, x], 0.0)
        before = f
    return pt.Pipeline(before, shape=img.shape)


def test_planes_are_tiles_of_their_own() -> None:
    """Colours of the unsharp mask need nothing of each other: a block computes one of them."""
    (group,) = report("unsharp_polymage").groups
    assert group.levels[0]["c"] == 1


def test_planes_that_a_reduction_adds_are_tiles_of_their_own() -> None:
    """Reductions are not fused: that one reads all differences at a point does not put them into one tile."""
    groups = report("nl_means", gpu="H200").groups
    (group,) = [g for g in groups if g.output == "weight"]
    assert group.members == ("difference", "down") and {"dy": 1, "dx": 1}.items() <= group.levels[0].items()


def test_the_code_of_a_group_is_limited() -> None:
    """128 points of the output and three quarters as many of two stages in registers are 320 statements, half as many
    256; in shared memory alone there are loops."""
    stage = FusedStage(4, (((32, 1), (1.0, 1.0)),), (1.0, 1.0), (0.0, 0.0), registers=1, seconds=1e-9)
    tried, fractions = blocks((16, 8), (32, 1)), np.array([[0.0], [0.5], [0.75]])
    found = Algorithm2(
        V100, Weights(), GroupTiles(FusedGroup((stage,) * 3, (4096, 4096)), tried.shapes), tried, fractions
    )
    assert found.copies[:, 0].tolist() == [128, 256, 320] and found.registers[:, 0].tolist() == [3, 131, 195]
    assert found.fits[:, 0].tolist() == [True, True, False]
