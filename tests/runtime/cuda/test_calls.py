"""Whole calls: pipelines are compiled for a GPU and run on a driver that is made up."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pantile as pt
from pantile.codegen import parts
from pantile.runtime.cuda import graphs

from .conftest import picture
from .fake_driver import FakeDriver
from .pipelines import blur, chain, diamond, doubled, scaled


def test_arrays_of_numpy_are_copied_there_and_back(fake: FakeDriver) -> None:
    img = picture(40, 70)
    p = doubled()
    assert (p(img=img) == 2 * img).all()
    assert (p.reference(img=img) == 2 * img).all()
    counted = fake.counted()
    assert counted["cuLaunchKernel"] == counted["cuMemcpyHtoDAsync"] == counted["cuMemcpyDtoHAsync"] == 1
    assert counted["cuStreamSynchronize"] == 1
    assert not fake.memory.held()


@pytest.mark.parametrize("how", ["fortran", "reversed", "every_other", "transposed", "broadcast"])
def test_any_strides(fake: FakeDriver, how: str) -> None:
    a = picture(48, 80)
    img = {
        "fortran": np.asfortranarray(a),
        "reversed": a[::-1, ::-1],
        "every_other": a[:, ::2],
        "transposed": a.T,
        "broadcast": np.broadcast_to(a[0], (48, 80)),
    }[how]
    assert (doubled()(img=img) == 2 * img).all()
    out = np.zeros((*img.shape, 2), np.float32)[..., 0] if how == "every_other" else np.empty_like(img)
    assert doubled()(img=img, out=out) is out and (out == 2 * img).all()


def test_several_kernels_are_one_graph(fake: FakeDriver) -> None:
    img = picture(40, 70)
    p = blur()
    assert (p(img=img) == p.reference(img=img)).all()
    counted = fake.counted()
    assert counted["cuGraphAddKernelNode"] == 2 and counted["cuGraphLaunch"] == 1 and not counted["cuLaunchKernel"]
    p(img=img)
    counted = fake.counted()
    assert counted["cuGraphCreate"] == 1 and counted["cuGraphLaunch"] == 2


def test_as_many_persistent_blocks_as_the_gpu_holds(fake: FakeDriver) -> None:
    """Two on each of four multiprocessors."""
    fake.limits["RESIDENT"] = 2
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "float32", ndim=2), pt.Func("out")
    out[y, x] = img[y, x] + 1.0
    rows = pt.on("out").split("x", "xo", "xi", 32).block("y", "xo").thread("xi").persistent()
    p = pt.Pipeline(out, shape=img.shape, target="cuda", schedule=pt.Schedule(rows))
    for shape, blocks in (((40, 70), 8), ((2, 40), 4)):
        a = picture(*shape)
        assert (p(img=a) == a + 1).all()
        assert fake.named("cuLaunchKernel")[-1][1] == blocks


def test_graphs_can_be_left_out(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "enabled", False)
    img, p = picture(40, 70), blur()
    assert (p(img=img) == p.reference(img=img)).all()
    assert fake.counted()["cuLaunchKernel"] == 2 and not fake.counted()["cuGraphLaunch"]


def test_a_graph_waits_for_what_is_needed_alone(fake: FakeDriver) -> None:
    img, p = picture(40, 70), diamond()
    assert (p(img=img, gain=3) == p.reference(img=img, gain=3)).all()
    waits = [set(args[1]) for args in fake.named("cuGraphAddKernelNode")]
    assert sorted(map(len, waits)) == [0, 1, 1, 2]


def test_params_change_without_a_new_plan(fake: FakeDriver) -> None:
    img, p = picture(40, 70), diamond()
    for gain in (1.5, 0.0, -0.0, 4.0):
        assert (p(img=img, gain=gain) == p.reference(img=img, gain=gain)).all()
    assert fake.counted()["cuGraphCreate"] == 1
    q = scaled()
    for gain in (1.5, 0.0, 7.0):
        assert (q(img=img, gain=gain) == img * np.float32(gain)).all()
    assert np.isnan(q(img=img, gain=float("nan"))).all()


def test_only_nodes_whose_arrays_move_are_told(fake: FakeDriver, torch) -> None:
    p, a, b = chain(6), torch.tensor(picture(40, 70)), torch.tensor(picture(40, 70) + 1)
    out = torch.tensor(np.zeros((40, 70), np.float32))
    p(img=a, out=out)
    before = fake.counted()
    assert p(img=b, out=out) is out
    told = fake.counted()["cuGraphExecKernelNodeSetParams"] - before["cuGraphExecKernelNodeSetParams"]
    # Memory of the made-up pool is another one each time, unlike a real one's.
    assert told <= 6
    assert (out.seen == chain(6).reference(img=b)).all()


def test_memory_of_a_chain_is_that_of_two_stages(fake: FakeDriver, torch) -> None:
    p, img = chain(8, "back"), torch.tensor(picture(64, 64))
    result = p(img=img)
    (size,) = {args[0] for args in fake.named("cuMemAllocFromPoolAsync")}
    assert size <= 2 * 2 * 64 * 96 * 4
    assert (result.seen == p.reference(img=img)).all()


def test_streams_have_graphs_of_their_own(fake: FakeDriver, torch) -> None:
    p, img = blur(), torch.tensor(picture(40, 70))
    for torch.stream in (0, 0x50, 0, 0x50):
        p(img=img)
    assert fake.counted()["cuGraphCreate"] == 2
    assert [args[1] for args in fake.named("cuGraphLaunch")] == [0, 0x50, 0, 0x50]
    fake.captured = {0x50}
    p(img=img)
    assert fake.counted()["cuLaunchKernel"] == 2


def test_long_code_is_made_in_parts(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_LEAST", 40)
    monkeypatch.setattr(parts, "_WORTH", 10)
    img, p = picture(40, 70), chain(5, "part")
    assert (p(img=img) == p.reference(img=img)).all()
    counted = fake.counted()
    assert counted["cuModuleLoadData"] >= 2 and counted["cuLinkCreate"] == counted["cuLinkDestroy"]
    assert counted["cuCtxPushCurrent"] == counted["cuCtxPopCurrent"] > counted["cuLinkCreate"]


def test_several_threads(fake: FakeDriver) -> None:
    p, wrong = diamond(), []

    def call(gain: float) -> None:
        img = picture(20, 40) + np.float32(gain)
        for _ in range(3):
            wrong.append((p(img=img, gain=gain) != p.reference(img=img, gain=gain)).any())

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 12 and not any(wrong)
    assert not fake.memory.held()


def test_several_threads_with_tensors(fake: FakeDriver, torch) -> None:
    """What launches are given is written and started by one thread at a time."""
    p, q, wrong = scaled(), diamond(), []
    start = threading.Barrier(4)

    def call(gain: float) -> None:
        a = picture(20, 40) + np.float32(gain)
        img, out = torch.tensor(a), torch.tensor(np.zeros_like(a))
        start.wait()
        for _ in range(3):
            wrong.append((p(img=img, gain=gain, out=out).seen != a * np.float32(gain)).any())
            wrong.append((q(img=img, gain=gain).seen != q.reference(img=a, gain=gain)).any())

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 24 and not any(wrong)


@pytest.mark.parametrize("kind", ["uint8", "int32", "float16", "float64", "int64"])
def test_types(fake: FakeDriver, kind: str) -> None:
    img, p = picture(33, 65, dtype=kind), doubled(kind)
    assert (p(img=img) == p.reference(img=img)).all()


def test_tables_are_sent_once(fake: FakeDriver) -> None:
    y, x = pt.vars("y x")
    img, out = pt.Input("img", "uint8", ndim=2), pt.Func("curved")
    curve = pt.table(np.arange(256, dtype=np.uint8)[::-1].copy(), "curve")
    out[y, x] = curve[img[y, x]]
    p, picked = pt.Pipeline(out, shape=img.shape, target="cuda"), picture(40, 70, dtype="uint8")
    for _ in range(3):
        assert (p(img=picked) == 255 - picked).all()
    assert fake.counted()["cuMemcpyHtoD"] == 1
    assert p.reference(img=picked)[0, 0] == 255


def test_empty_arrays(fake: FakeDriver, torch) -> None:
    assert doubled()(img=np.zeros((0, 5), np.float32)).shape == (0, 5)
    assert doubled()(img=torch.tensor(np.zeros((5, 0), np.float32))).shape == (5, 0)


def test_machine_code_is_kept_on_disk(fake: FakeDriver) -> None:
    img = picture(40, 70)
    doubled(name="kept_once")(img=img)
    assert fake.counted()["cuLinkCreate"] == 1
    # A new pipeline of the same formula finds the PTX, and the machine code of that.
    doubled(name="kept_once")(img=img)
    assert fake.counted()["cuLinkCreate"] == 1


def test_code_is_for_the_gpu_at_hand(fake: FakeDriver) -> None:
    assert doubled().options.target.cpu == "sm_90"


def test_large_results_are_where_the_device_copies_quickly(fake: FakeDriver) -> None:
    p, img = doubled(), picture(200, 300)
    first = p(img=img)
    assert fake.counted()["cuMemAllocHost"] == 1 and fake.named("cuMemAllocHost")[0][0] == 1 << 18
    second = p(img=img)
    assert fake.counted()["cuMemAllocHost"] == 2 and (first == second).all()
    row = first[3]
    del first
    third = p(img=img)  # a row of the first result still has its memory
    assert fake.counted()["cuMemAllocHost"] == 3
    del row, third
    assert (p(img=img) == 2 * img).all() and fake.counted()["cuMemAllocHost"] == 3
