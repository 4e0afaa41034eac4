"""Whatever the driver refuses is said in words, with what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.cli.command import main
from pantile.runtime.cuda import driver

from ...matrices import Product, Warpgroups, by_warpgroups
from .conftest import picture
from .fake_driver import FakeDriver
from .fake_libraries import FakeTorch
from .pipelines import blur, doubled

A = picture(33, 66)
Make = Callable[..., FakeDriver]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_found", None)
    monkeypatch.setitem(sys.modules, "cuda", None)
    p = doubled()
    assert p.options.target.cpu == "sm_80" and ".target sm_80" in p.asm() and "block for" in p.loops()
    with pytest.raises(pt.UserError, match=r"needs the package cuda-bindings, .* pip install 'pantile\[cuda\]'"):
        p(img=A)


def test_without_a_driver(make_driver: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @staticmethod
        def cuInit(flags: int) -> Any:
            raise RuntimeError("libcuda.so.1: cannot open shared object file")

    make_driver()
    monkeypatch.setattr(driver, "_imported", Broken)
    with pytest.raises(pt.UserError, match=r"there is no NVIDIA driver on this machine .* target='cuda-sim'"):
        doubled()(img=A)


def test_without_a_device(make_driver: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_driver(devices=0)
    with pytest.raises(pt.UserError, match=r"the NVIDIA driver finds no GPU; look at nvidia-smi"):
        doubled()(img=A)
    assert main(["devices"]) == 1
    assert "finds no GPU" in capsys.readouterr().err


def test_devices_are_listed(make_driver: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_driver(devices=2)
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "GPU 1: Fake GPU, sm_90, 4 multiprocessors, 1.0 GiB, up to 227 KiB of shared memory in a block"
    assert lines[2].startswith("driver: CUDA 13.99;")


def test_an_older_device(make_driver: Make) -> None:
    make_driver(capability=(7, 5))
    p = doubled(name="older").with_options(target="sm_90")
    with pytest.raises(pt.UserError, match=r"compiled for sm_90, which GPU 0 \(Fake GPU\) \(sm_75\) cannot run"):
        p(img=A)


def test_code_of_one_generation(make_driver: Make) -> None:
    """Matrix instructions of warpgroups are those of sm_90, and of no later GPU."""
    case = Product()
    p = case.pipeline(target="sm_90").with_schedule(by_warpgroups(case, Warpgroups()))
    fake = make_driver()
    p(**case.random(64, 32, 64))
    assert fake.linked_for == ["CU_TARGET_COMPUTE_90A"]
    make_driver(capability=(10, 0))
    with pytest.raises(pt.UserError, match=r"compiled for sm_90a, which GPU 0 \(Fake GPU\) \(sm_100\) cannot run"):
        p.with_schedule(by_warpgroups(case, Warpgroups(columns=40)))(**case.random(64, 40, 64))


def test_a_forked_child(fake: FakeDriver) -> None:
    doubled()(img=A)
    child = os.fork()
    if not child:
        try:
            doubled(name="in_child")(img=A)
        except pt.UserError as error:
            os._exit(0 if "was forked from one that has used the GPU" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_too_old_a_driver(fake: FakeDriver) -> None:
    fake.failing["cuLinkAddData"] = [222]
    with pytest.raises(pt.UserError, match=r"the NVIDIA driver is too old for this code .* update the driver"):
        doubled(name="newer")(img=A)
    assert (doubled(name="newer")(img=A) == 2 * A).all()


def test_out_of_memory_once(fake: FakeDriver) -> None:
    fake.kept = fake.capacity  # by the pool, which lets go of it
    assert (doubled()(img=A) == 2 * A).all()
    assert fake.counted()["cuMemPoolTrimTo"] == 1


def test_out_of_memory(make_driver: Make) -> None:
    fake = make_driver(capacity=100_000)
    p = doubled()
    text = r"out of memory on the GPU: there is no room for [\d,]+ bytes .* nothing is lost"
    with pytest.raises(pt.RunError, match=text):
        p(img=np.zeros((500, 500), np.float32))
    assert not fake.memory.held() and (p(img=A) == 2 * A).all()


def test_out_of_memory_of_others(fake: FakeDriver, torch: FakeTorch) -> None:
    p, img = doubled(), torch.tensor(A)
    torch.full = 1
    assert (p(img=img).seen == 2 * A).all() and torch.emptied == 1
    torch.full = 2
    with pytest.raises(pt.RunError, match=r"out of memory on the GPU"):
        p(img=img)
    assert (p(img=img).seen == 2 * A).all()


def test_a_crash(fake: FakeDriver, torch: FakeTorch) -> None:
    fake.failing["cuStreamSynchronize"] = [700]
    with pytest.raises(pt.RunError, match=r"the CUDA context of this process is lost, .* start the process anew"):
        doubled()(img=A)
    fake.failing["cuLaunchKernel"] = [719]
    with pytest.raises(pt.RunError, match=r"Pipelines on the CPU and other processes are not affected"):
        doubled()(img=torch.tensor(A))


def test_a_stream_that_is_gone(fake: FakeDriver, torch: FakeTorch) -> None:
    torch.stream = 0x70
    fake.destroyed = {0x70}
    for p in (doubled(), blur()):
        with pytest.raises(pt.UserError, match=r"the stream 0x70 cannot be used .* make another one current"):
            p(img=torch.tensor(A))
    torch.stream = 0
    assert (doubled()(img=torch.tensor(A)).seen == 2 * A).all()


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"MAX_THREADS_PER_BLOCK": 16}, r"has blocks of \d+ threads, but GPU 0 .* runs up to 16; give its blocks"),
        ({"CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": 16}, r"with 1024 registers each GPU 0 .* runs up to 16"),
        ({"MAX_GRID_DIM_X": 2}, r"would have \d+ blocks, but GPU 0 .* runs up to 2; make its blocks larger"),
    ],
)
def test_limits(fake: FakeDriver, limits: dict[str, int], text: str) -> None:
    fake.limits = limits
    with pytest.raises(pt.UserError, match=text):
        doubled(name="limited")(img=picture(64, 256))


def test_a_refused_launch(fake: FakeDriver, torch: FakeTorch) -> None:
    fake.failing["cuLaunchKernel"] = [701]
    text = r"refuses to launch kernel .*, \d+ blocks of \d+ threads .* give blocks fewer"
    with pytest.raises(pt.UserError, match=text):
        doubled()(img=torch.tensor(A))
