"""posttile on GPUs: §III-C, §V and Table I of the post-tiling fusion paper, and that schedules are legal and right."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import VARIANTS, Found, GroupReport, PostTile, Problem
from pantile.backends.launch_report import LaunchReport
from pantile.machine import named
from pantile.machine.multiprocessor import Gpu
from pantile.simulator import counting

from .problems import TINY_GPU, problem_of

P6000, H200 = named("Quadro P6000"), named("H200")  # the paper's, and one with more shared memory
SMALL_GPU = replace(TINY_GPU, bandwidth=TINY_GPU.bandwidth / 68)  # of one multiprocessor
NO_LIMIT = {"most_recomputed": 1e12, "most_recomputed_of_one": 1e12}


@cache
def app(name: str, gpu: Gpu = H200) -> Problem:
    return problem_of(APPS[name].build().with_options(target="cuda-sim"), gpu, **APPS[name].sizes["paper"])


def groups(found: Found) -> list[set[str]]:
    return [{*g.members, g.output} for g in found.report.groups]


def marks(found: Found, stage: str) -> dict[str, tuple[object, ...]]:
    return {d.verb: d.args for d in found.schedule.on(stage).directives}


# ---- §III-C: m


def sums_of_rows(ndim: int) -> pt.Pipeline:
    """A live-out with so many parallel loops, which reads a stage with as many."""
    dims = pt.vars("z y x")[-ndim:]
    img, f, out = pt.Input("img", "float32", ndim=ndim), pt.Func("f"), pt.Func("out")
    f[dims] = pt.sqrt(img[dims])
    out[dims] = f[dims] + f[(*dims[:-1], dims[-1] + 1)]
    return pt.Pipeline(out, shape=(*img.shape[:-1], img.shape[ndim - 1] - 1))


def test_a_live_out_with_one_parallel_loop_is_not_tilable() -> None:
    """m is 1, and "greater than 1" is what GPUs need; on CPUs it is tiled and fused."""
    found = PostTile().find(problem_of(sums_of_rows(1), H200, img=(1 << 20,)))
    assert groups(found) == [{"out"}, {"f"}]
    assert found.report.groups[0].remarks == ("not tiled: blocks and threads need two parallel loops, and it has one",)
    assert groups(PostTile().find(problem_of(sums_of_rows(1), named("neoverse-n1"), img=(1 << 20,)))) == [{"f", "out"}]


def test_m_is_two_at_most() -> None:
    """A space with two parallel loops is fused with a live-out that has three."""
    z, y, x = pt.vars("z y x")
    img, flat, out = pt.Input("img", "float32", ndim=2), pt.Func("flat"), pt.Func("out")
    flat[y, x] = pt.sqrt(img[y, x])
    out[z, y, x] = (flat[y, x] + flat[y, x + 1]) * z
    pipeline = pt.Pipeline(out, shape=(4, img.shape[0], img.shape[1] - 1))
    assert groups(PostTile().find(problem_of(pipeline, H200, img=(1024, 1024)))) == [{"flat", "out"}]


def test_a_space_with_fewer_parallel_loops_is_left_out() -> None:
    y, x, i = pt.vars("y x i")
    img, table, out = pt.Input("img", "uint8", ndim=2), pt.Func("table"), pt.Func("out")
    table[i] = pt.sqrt(i * 2.0)
    out[y, x] = table[img[y, x]]
    report = PostTile().find(problem_of(pt.Pipeline(out, shape=img.shape), H200, img=(512, 512))).report
    assert report.groups[0].remarks == ("table is left out: has 1 parallel loops, the live-out space 2",)


# ---- §V: blocks, threads, shared and private memory


def test_tiles_are_blocks_and_points_threads() -> None:
    found = PostTile(tile_sizes=(8, 128), threads=(8, 64)).find(app("blur"))
    assert marks(found, "blur_y")["block"] == ("y_o", "x_o")
    assert marks(found, "blur_y")["thread"] == ("y_i", "x_i_t")
    assert marks(found, "blur_y")["split"] == ("x_i", "x_i_p", "x_i_t", 64)
    assert marks(found, "blur_x") == {"compute_at": ("blur_y", "x_o"), "thread": ("y", "x")}


def test_extension_spaces_are_boxes_in_shared_memory() -> None:
    """The box of Figure 4, at tiles of 16 x 16: as many bytes as `explain` says, in the kernel that comes of it."""
    strategy = PostTile(tile_sizes=(16, 16))
    found = strategy.find(app("conv2d"))
    (group,) = found.report.groups
    assert group.remarks == ("extension schedule of quantized: h 18 x w 18 per tile, 1.26 times in all",)
    assert group.costs["shared bytes"] == 18 * 18 * 4
    pipeline = APPS["conv2d"].build().with_options(target="cuda-sim").with_schedule(found.schedule)
    launches = pipeline.predict(**APPS["conv2d"].sizes["paper"])
    assert isinstance(launches, LaunchReport)
    assert [k.shared_bytes for k in launches.kernels] == [-(-18 * 18 * 4 // 128) * 128]


def sums_of_any_length() -> pt.Pipeline:
    """S1 and S2 of Figure 1 in a stage that cannot be inlined, S3 reads it at the same point."""
    y, x = pt.vars("y x")
    img, kernel = pt.Input("img", "float32", ndim=2), pt.Input("kernel", "float32", ndim=1)
    k = pt.RDom((0, kernel.shape[0]), name="k")
    total, out = pt.Func("total"), pt.Func("out")
    total[y, x] = 0.0
    total[y, x] += img[y, x + k[0]] * kernel[k[0]]
    out[y, x] = pt.maximum(total[y, x], 0.0)
    return pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - kernel.shape[0] + 1))


def test_what_one_thread_reads_is_private_to_it() -> None:
    """Also sums, point by point where a thread has several points."""
    strategy = PostTile(tile_sizes=(16, 32), threads=(8, 16))
    found = strategy.find(problem_of(sums_of_any_length(), H200, img=(100, 130), kernel=(3,)))
    (group,) = found.report.groups
    assert group.remarks[-1] == "private to threads: total" and group.costs["shared bytes"] == 0
    assert marks(found, "total")["compute_at"] == ("out", "x_i_p")
    assert marks(found, "total")["store_in"] == ("register",)
    pipeline = sums_of_any_length().with_options(target="cuda-sim").with_schedule(found.schedule)
    rng = np.random.default_rng(0)
    given = {"img": rng.random((100, 130), dtype=np.float32), "kernel": rng.random(3, dtype=np.float32)}
    np.testing.assert_allclose(pipeline(**given), pipeline.reference(**given), rtol=1e-5)


def test_channels_of_which_nobody_knows_the_number_are_tiles_of_their_own() -> None:
    """What a block keeps has a constant size: of all channels at the expected number of them."""
    found = PostTile(tile_sizes=(16, 64)).find(app("gaussian"))
    assert groups(found) == [{"img_edge", "out"}]
    assert ("c", "c_o", "c_i", 3) in [d.args for d in found.schedule.on("out").directives if d.verb == "split"]
    pipeline = APPS["gaussian"].build().with_options(target="cuda-sim").with_schedule(found.schedule)
    rng = np.random.default_rng(0)
    for channels in (1, 3, 4):
        img = (rng.random((40, 100, channels)) * 255).astype(np.uint8)
        arguments = {**APPS["gaussian"].arguments("small"), "img": img}
        np.testing.assert_array_equal(pipeline(**arguments), pipeline.reference(**arguments))


# ---- Table I

TABLE_1 = {  # tile size, GPU grid parameter
    "bilateral_grid": ((8, 128), (8, 64)),
    "camera_pipe": ((64, 256), (16, 32)),
    "harris": ((32, 256), (16, 32)),
    "local_laplacian": ((8, 256), (8, 64)),
    "interpolate": ((32, 128), (32, 16)),
    "unsharp": ((8, 512), (8, 32, 3)),
}


@pytest.mark.parametrize("gpu", [P6000, H200], ids=lambda gpu: gpu.name)
@pytest.mark.parametrize("name", TABLE_1)
def test_table_1_within_the_limits_of_a_gpu(name: str, gpu: Gpu) -> None:
    """No group is refused, and none needs more than a block has."""
    tile, threads = TABLE_1[name]
    found = PostTile(tile_sizes=tile, threads=threads).find(app(name, gpu))
    assert not any("on their own" in remark for remark in found.report.remarks)
    first = found.report.groups[0]
    assert first.output in app(name, gpu).graph.output
    assert tuple(first.levels[0].values()) == tile
    assert len(marks(found, first.output)["thread"]) == len(threads)
    for group in found.report.groups:
        assert group.costs.get("shared bytes", 0) <= gpu.multiprocessor.shared_per_block


@pytest.mark.parametrize(("name", "count"), [("bilateral_grid", 7), ("harris", 4), ("unsharp", 4)])
def test_table_1_is_fused_where_shared_memory_suffices(name: str, count: int) -> None:
    """With the table's tiles and no other limit than the memory of a block. A P6000 has 48 KB, of which one
    stage of harris takes most."""
    tile, threads = TABLE_1[name]
    found = PostTile(tile_sizes=tile, threads=threads, **NO_LIMIT).find(app(name))
    assert len(groups(found)[0]) == count
    on_p6000 = PostTile(tile_sizes=tile, threads=threads, **NO_LIMIT).find(app(name, P6000))
    assert len(groups(on_p6000)[0]) < count


def test_threads_of_unsharp() -> None:
    """8 x 32 x 3, the third along colours."""
    found = PostTile(tile_sizes=(8, 512), threads=(8, 32, 3)).find(app("unsharp_polymage"))
    (group,) = found.report.groups
    splits = [d.args for d in found.schedule.on(group.output).directives if d.verb == "split"]
    assert ("c", "c_p", "c_t", 3) in splits and ("x_i", "x_i_p", "x_i_t", 32) in splits
    assert marks(found, group.output)["thread"] == ("c_t", "y_i", "x_i_t")


def test_a_block_has_1024_threads_at_most() -> None:
    with pytest.raises(pt.UserError, match="1,536 threads, and a block has 1,024 at most"):
        PostTile(threads=(32, 16, 3))


def test_minfuse_fuses_nothing() -> None:
    """The baseline: "minfuse does not fuse any of the 4 stages of Unsharp Mask"."""
    strategy = replace(VARIANTS["posttile-minfuse"], tile_sizes=(8, 512), threads=(8, 32, 3))
    found = strategy.find(app("unsharp_polymage"))
    assert len(found.report.groups) >= 4
    for group in found.report.groups:
        assert not group.members and group.levels
        assert marks(found, group.output)["block"] == ("y_o", "x_o")


def test_shared_memory_saves_traffic_beside_minfuse() -> None:
    """Blocks of 16 x 64 of harris load a third of what kernels of single stages load."""
    arguments, loads = APPS["harris"].arguments("small"), []
    for fusion in ("posttile", "minfuse"):
        pipeline = APPS["harris"].build().with_options(target="cuda-sim")
        pipeline = pipeline.with_schedule(PostTile(tile_sizes=(16, 64), fusion=fusion, **NO_LIMIT))
        with counting() as counts:
            result = pipeline(**arguments)
        np.testing.assert_allclose(result, pipeline.reference(**arguments), rtol=2e-4, atol=1e-3)
        loads.append(sum(c.traffic.global_sectors["load"] for c in counts))
    assert loads[0] < loads[1] / 3


# ---- equake


def test_equake_is_fused() -> None:
    """§VI-B: as on CPUs, what the rows of the matrix sum up is computed with the loops over the mesh, "taking advantage
    of faster memory on GPU"."""
    found = PostTile().find(app("equake"))
    assert {"direct", "step"} in groups(found)
    (group,) = [g for g in found.report.groups if g.output == "step"]
    assert "private to threads: direct" in group.remarks
    assert marks(found, "direct")["store_in"] == ("register",)


# ---- schedules


@pytest.mark.parametrize("fusion", ["posttile", "minfuse"])
@pytest.mark.parametrize("name", ["blur", "unsharp", "harris", "camera_pipe", "equake"])
def test_apps(name: str, fusion: str) -> None:
    """On a GPU that a small picture has enough blocks for."""
    app = APPS[name]
    p = (
        app.build()
        .with_options(target="cuda-sim")
        .with_schedule(PostTile(fusion=fusion, **NO_LIMIT), machine=SMALL_GPU)
    )
    arguments = app.arguments("small")
    results, expected = p(**arguments), p.reference(**arguments)
    for mine, theirs in zip(np.atleast_1d(results), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=1e-3)
    placed = [s for s in p.graph.stages if "compute_at" in p.schedule.on(s.name).verbs]
    assert bool(placed) == (fusion == "posttile")
    assert p.report is not None and not any("on their own" in remark for remark in p.report.remarks)


def test_large_tiles_are_made_smaller_where_a_block_has_no_room() -> None:
    """Blocks of the fewest points that the paper's tuner tries, on a GPU whose blocks have 4 KB."""
    small = replace(H200, multiprocessor=replace(H200.multiprocessor, shared_per_block=4 << 10))
    found = PostTile().find(app("harris", small))
    assert not any("on their own" in remark for remark in found.report.remarks)
    assert any(g.members for g in found.report.groups)
    for group in found.report.groups:
        assert _shared(group) <= 4 << 10


def _shared(group: GroupReport) -> float:
    return group.costs.get("shared bytes", 0)


def test_what_code_cannot_tell_the_size_of_is_left_out() -> None:
    """Places that floats decide: half of the stages of a group that is refused stay in it, and so on."""
    found = PostTile().find(app("bicubic_resize"))
    assert groups(found) == [{"out"}, {"across"}]
    assert "across is left out: code for more stages at a time is refused" in found.report.groups[0].remarks
    assert not any("on their own" in remark for remark in found.report.remarks)


@pytest.mark.parametrize("name", ["blur", "unsharp", "harris", "camera_pipe", "bilateral_grid", "interpolate"])
def test_blocks_have_whole_tiles_and_at_most_512_threads(name: str) -> None:
    found = PostTile().find(app(name))
    for group in found.report.groups:
        if group.levels:
            block = marks(found, group.output)
            counts = {d.args[2]: d.args[3] for d in found.schedule.on(group.output).directives if d.verb == "split"}
            assert prod(int(counts.get(loop, 1)) for loop in block["thread"]) <= 512


def test_updates_that_lack_a_dim() -> None:
    """Threads are shared out along channels, which the update computes one after the other."""
    y, x, c = pt.vars("y x c")
    img, f, out = pt.Input("img", "int32", shape=(None, None, 5)), pt.Func("f"), pt.Func("out")
    r = pt.RDom((1, 6))
    f[y, x, c] = pt.edge(img)[y, x, c] + 1
    f[y, x, r[0]] = f[y, x, r[0] - 1] * 3 + f[y, x, r[0]]
    out[y, x, c] = f[y, x, c - 1]
    p = pt.Pipeline(out, shape=(*img.shape[:2], 4), target="cuda-sim", schedule="posttile")
    given = np.arange(17 * 23 * 5, dtype=np.int32).reshape(17, 23, 5)
    assert (p(img=given) == p.reference(img=given)).all()
