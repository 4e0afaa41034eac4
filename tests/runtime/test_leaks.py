"""What is left of kernels that are gone: next to nothing."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import pantile as pt
from pantile.codegen.engine import _Linker
from pantile.runtime import kernels

SOURCES = Path(__file__).parents[2] / "src"
X = pt.vars("x")[0]
DATA = np.arange(40, dtype=np.int32)


def added(number: int) -> pt.Pipeline:
    img, f = pt.Input("img", "int32", 1), pt.Func("f")
    f[X] = img[X] + number
    return pt.Pipeline(f, name=f"added{number}")


PROGRAM = """
import gc, sys
from tests.runtime.test_leaks import DATA, added

def resident():  # KiB
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

def compile(numbers):
    for number in numbers:
        assert added(number)(img=DATA)[1] == number + 1

compile(range(60))
before = resident()
compile(range(60, 160))
print((resident() - before) / 100)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell")
def test_memory_per_compilation() -> None:
    """KiB that stay. Without disposing of LLVM's passes it is over 50; 2 are what fragments."""
    paths = os.pathsep.join([str(SOURCES), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PANTILE_CACHE_DIR": "/dev/null", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 15


def test_kernels_outlive_the_linker_that_linked_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Linker, "MOST", 3)
    pipelines = [added(number) for number in range(8)]
    for number, p in enumerate(pipelines):
        assert (p(img=DATA) == DATA + number).all()
    del pipelines[3:5]
    gc.collect()
    for p in pipelines:
        assert (p(img=DATA) == p.reference(img=DATA)).all()


def test_no_lock_is_kept_of_a_kernel_that_was_refused() -> None:
    def refused() -> bytes:
        raise pt.UserError("no")

    for key in ("a", "b"):
        with pytest.raises(pt.UserError):
            kernels.kernel(key, refused, bytearray, lambda _, step: step())
    gc.collect()
    assert not kernels._locks


def test_a_pipeline_is_gone_with_its_last_reference() -> None:
    """And its code with it, without waiting for the collector of cycles."""
    p = added(5)
    p(img=DATA)
    calls = weakref.ref(p._calls)
    gc.disable()
    try:
        del p
        assert calls() is None
    finally:
        gc.enable()
