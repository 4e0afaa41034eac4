"""A GPU as a machine: told by the driver, and measured by kernels, which a driver that is made up plays."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pantile.cli.command import main
from pantile.errors import UserError
from pantile.machine import named
from pantile.runtime.cuda import machine, measure
from pantile.runtime.cuda.device import current
from pantile.runtime.cuda.measure import COPIES, COPYING_THREADS, PTX
from pantile.target import GPUS

from ...codegen.nvptx.assembler import assembled, needs_assembler
from .conftest import has_gpu
from .fake_driver import MADE, SUCCESS, FakeDriver

Make = Callable[..., FakeDriver]
HZ_IN_GHZ, BYTES_PER_CYCLE = 1.5, 120


class Measured(FakeDriver):
    """Plays the kernels of `measure`: at 1.5 GHz, with 120 bytes of shared memory per cycle."""

    def _cuLaunchKernel(
        self, function: int, x: int, y: int, z: int, threads: int, ty: int, tz: int, shared: int, stream: int,
        parameters: int, extra: int,
    ) -> Any:  # fmt: skip
        assert self._stack(), "no context is entered"
        _, name = self._functions[function]
        first, second = (ctypes.c_void_p.from_address(parameters + 8 * k).value or 0 for k in range(2))
        address = ctypes.c_uint64.from_address(first).value
        begin, end = self.memory.around(address)
        if name == "copy":
            copied = x * threads * COPIES * 16
            assert threads == COPYING_THREADS
            to = ctypes.c_uint64.from_address(second).value
            assert (begin, to, end) == (address, address + copied, address + 2 * copied)
            ctypes.memmove(to, address, copied)
            return (SUCCESS,)
        steps = ctypes.c_uint32.from_address(second).value
        cycles = {"clock": steps * 128, "shared": steps * 16 * threads * 16 // BYTES_PER_CYCLE}[name]
        assert (threads, x, shared) == ((1024, 4, 0) if name == "clock" else (1024, 1, 1024 * 16))
        noted = (ctypes.c_uint64 * 2).from_address(address)
        noted[0], noted[1] = cycles, round(cycles / HZ_IN_GHZ)
        return (SUCCESS,)


@pytest.fixture
def make(make_driver: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(measure, "COPIED_BYTES", 1 << 20)
    monkeypatch.setitem(MADE, PTX, dict.fromkeys(("clock", "shared", "copy")))
    return make_driver


def test_what_the_driver_tells(make: Make) -> None:
    make()
    gpu, h100 = machine.detect(), named("H100")
    assert (gpu.name, gpu.capability, gpu.multiprocessors) == ("Fake GPU", (9, 0), 4)
    assert gpu.multiprocessor == h100.multiprocessor
    assert (gpu.ghz, gpu.l2) == (h100.ghz, h100.l2)
    assert gpu.bandwidth == pytest.approx(h100.bandwidth, rel=0.01)
    assert gpu.target.cpu == "sm_90"


def test_limits_are_those_that_the_driver_tells(make: Make) -> None:
    make(capability=(12, 1)).limits |= {
        "MAX_THREADS_PER_MULTIPROCESSOR": 1536,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": 20,
        "L2_CACHE_SIZE": 24 << 20,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 90 << 10,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 80 << 10,
    }
    gpu = machine.detect()
    has = gpu.multiprocessor
    assert (has.warps, has.blocks, has.shared, has.shared_per_block) == (48, 20, 90 << 10, 80 << 10)
    assert (has.cores, gpu.l2, gpu.target.cpu) == (128, 24 << 20, "sm_121")  # as of the one before it


def test_a_driver_that_does_not_tell_the_clock_of_memory(make: Make) -> None:
    make(kind=Measured).limits["MEMORY_CLOCK_RATE"] = 0
    with pytest.raises(UserError, match=r"does not report the clock of the memory of GPU 0 .* pantile calibrate --gpu"):
        machine.detect()
    assert machine.calibrate().bandwidth == machine.detect().bandwidth > 0


def test_rates_are_measured_and_kept(make: Make, tmp_path: Path) -> None:
    driver = make(kind=Measured)
    driver.milliseconds = 0.5
    before, told = machine.detect(), list[str]()
    measured = machine.calibrate(progress=told.append)
    assert measured.ghz == pytest.approx(HZ_IN_GHZ, rel=1e-4)
    assert measured.multiprocessor.shared_per_cycle == pytest.approx(BYTES_PER_CYCLE, rel=1e-4)
    assert measured.bandwidth == pytest.approx(2 * (1 << 20) / 0.5e-3)
    assert told == ["measuring clock", "measuring shared memory", "measuring global memory"]
    assert machine.detect() == measured != before
    assert driver.memory.held() == 0 and not driver._stack()
    ((key, kept),) = json.loads((tmp_path / machine.FILE_NAME).read_text()).items()
    assert key == "Fake GPU, 4 multiprocessors, 1073741824 bytes" and set(kept) == set(machine._RATES)


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"a": 1}', "{}"])
def test_a_file_that_is_not_ours_is_nothing(content: str, make: Make, tmp_path: Path) -> None:
    make()
    told = machine.detect()
    (tmp_path / machine.FILE_NAME).write_text(content)
    assert machine.detect() == told


@pytest.mark.parametrize("wrong", ["fast", -1, None, [2.0]], ids=str)
def test_rates_that_are_none_are_ignored(wrong: object, make: Make, tmp_path: Path) -> None:
    make(kind=Measured)
    told = machine.detect()
    machine.calibrate()
    path = tmp_path / machine.FILE_NAME
    ((key, kept),) = json.loads(path.read_text()).items()
    path.write_text(json.dumps({key: {**kept, "ghz": wrong}}))
    assert machine.detect() == told


def test_the_command(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(kind=Measured, devices=2)
    assert main(["calibrate", "--gpu", "1"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "Fake GPU, compute capability 9.0, 4 multiprocessors of 128 cores, 1.50 GHz"
    assert re.fullmatch(r"GB/s: global memory \d+; bytes per cycle of a multiprocessor: shared memory 120", second)


def test_the_command_without_such_a_gpu(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(devices=2)
    assert main(["calibrate", "--gpu", "2"]) == 2
    assert "there is no GPU 2; pantile devices lists the available ones" in capsys.readouterr().err
    make(devices=0)
    assert main(["calibrate", "--gpu"]) == 1
    assert "the NVIDIA driver finds no GPU" in capsys.readouterr().err


def test_geforces_are_known_by_their_names(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make(capability=(7, 5))
    name = b"NVIDIA GeForce RTX 2070\0"
    monkeypatch.setattr(FakeDriver, "_cuDeviceGetName", lambda self, length, handle: (SUCCESS, name))
    assert machine.detect().multiprocessor.matrix_instructions == named("RTX 2070").multiprocessor.matrix_instructions


@needs_assembler
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90"])
def test_the_assembler_takes_the_kernels(target: str) -> None:
    said = assembled(PTX, GPUS[target])
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == 3 and max(registers) * 1024 <= 65536, "so that blocks of 1024 threads start"


@pytest.mark.skipif(not has_gpu(), reason="there is no GPU")
def test_a_real_one() -> None:
    known, rates = machine.detect(current()).multiprocessor, measure.measure(current())
    assert min(rates.ghz, rates.bandwidth) > 0
    assert known.shared_per_cycle / 2 < rates.shared_per_cycle < 1.1 * known.shared_per_cycle
