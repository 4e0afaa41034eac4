"""The runtime for GPUs on a driver that is made up; tests that need a real one are skipped where there is none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

import pantile as pt
from pantile.backends.cuda import Cuda
from pantile.runtime import kernels
from pantile.runtime.cuda import device, driver, libraries, memory
from pantile.runtime.cuda.code import CudaCode

from .fake_driver import MADE, FakeDriver
from .fake_libraries import FakeCupy, FakeTorch


@pytest.fixture
def make_driver(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FakeDriver]:
    """Puts a driver of some kind into the place of the real one, and runs what this process itself has compiled."""
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "made"))
    original = Cuda.artifact

    def artifact(self: Cuda, program: Any, *rest: Any) -> bytes:
        made = original(self, program, *rest)
        code = CudaCode.from_bytes(made)
        for ptx in code.ptx:
            MADE[ptx] = {e.symbol: (k, e) for k, e in zip(program.kernels, code.entries, strict=True)}
        return made

    monkeypatch.setattr(Cuda, "artifact", artifact)

    def make(kind: type[FakeDriver] = FakeDriver, **how: Any) -> FakeDriver:
        made = kind(**how)
        monkeypatch.setattr(driver, "_imported", lambda: made)
        monkeypatch.setattr(driver, "_found", None)
        monkeypatch.setattr(device, "_devices", {})
        monkeypatch.setattr(device, "_own", threading.local())
        monkeypatch.setattr(libraries, "viewers", dict(libraries.viewers))
        monkeypatch.setattr(memory, "_free", {})
        monkeypatch.setattr(memory, "_pinned", 0)
        monkeypatch.setattr(kernels, "_kernels", WeakValueDictionary())  # those of another driver have other handles
        return made

    return make


@pytest.fixture
def fake(make_driver: Callable[..., FakeDriver]) -> FakeDriver:
    return make_driver()


@pytest.fixture
def torch(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    made = FakeTorch(fake)
    monkeypatch.setitem(sys.modules, "torch", made)  # type: ignore[arg-type]
    return made


@pytest.fixture
def cupy(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    made = FakeCupy(fake)
    monkeypatch.setitem(sys.modules, "cupy", made)  # type: ignore[arg-type]
    return made


def has_gpu() -> bool:
    try:
        return device.count() > 0
    except pt.PantileError:
        return False


@pytest.fixture
def gpu() -> None:
    if not has_gpu():
        pytest.skip("there is no GPU")


def picture(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Small numbers, all of which floats of 16 bits have, too."""
    return (np.arange(int(np.prod(shape))) * 7 % 61).reshape(shape).astype(dtype)
