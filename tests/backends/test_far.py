"""Arrays of more elements than 32 bits count: code for GPUs has a variant for them, whose places have 64 bits."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.backends import cuda_sim
from pantile.compile import compile_kernel, trace_of
from pantile.runtime import arguments
from pantile.runtime.cuda.code import CudaCode


@pytest.fixture
def bits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of places in memory, of each kind of call that is simulated."""
    seen: list[int] = []
    made = cuda_sim.SimulatedExecutable.prepare

    def prepare(self: cuda_sim.SimulatedExecutable, *args: object) -> cuda_sim.SimulatedCall:
        seen.append(self.target.index_bits)
        return made(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(cuda_sim.SimulatedExecutable, "prepare", prepare)
    return seen


def blur(name: str, target: str = "cuda-sim") -> pt.Pipeline:
    """In a window of shared memory, with an edge."""
    y, x = pt.vars("y x")
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func(name)
    around = pt.edge(img)
    rows[y, x] = around[y, x - 1] + around[y, x] + around[y, x + 1]
    out[y, x] = rows[y - 1, x] + rows[y, x] + rows[y + 1, x]
    tiles = pt.on(name).tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")
    kept = pt.on("rows").compute_at(name, "xo").store_in("shared").thread("y", "x")
    return pt.Pipeline(out, shape=img.shape, target=target, schedule=pt.Schedule(tiles, kept))


def enlarged(name: str) -> pt.Pipeline:
    """What is stored in between is 16 times as large as the arrays."""
    y, x = pt.vars("y x")
    img, large, out = pt.Input("img", "int32", ndim=2), pt.Func("large"), pt.Func(name)
    large[y, x] = img[y // 4, x // 4] * 3 + x
    out[y, x] = large[4 * y, 4 * x] + large[4 * y + 3, 4 * x + 3]
    how = pt.Schedule(pt.on("large").compute_root(), pt.on(name).compute_root())
    return pt.Pipeline(out, shape=img.shape, target="cuda-sim", schedule=how)


def test_long_arrays_have_code_of_their_own(bits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    p, small, large = blur("far_blur"), np.ones((20, 40), np.float32), np.ones((40, 40), np.float32)
    large[7, 9] = 5
    monkeypatch.setattr(arguments, "LARGEST_COUNT", 1000)
    for img in (small, large, large, small):
        assert (p(img=img) == p.reference(img=img)).all()
    assert bits == [32, 64]


def test_strides_count_too(bits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    p, wide = blur("far_strides"), np.arange(16 * 640, dtype=np.float32).reshape(16, 640)
    monkeypatch.setattr(arguments, "LARGEST_COUNT", 1000)
    img = wide[:, :40]
    assert (p(img=img) == p.reference(img=img)).all()
    assert bits == [64]


def test_long_arrays_between_stages(bits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    p, img = enlarged("far_between"), np.arange(180, dtype=np.int32).reshape(9, 20)
    monkeypatch.setattr(arguments, "LARGEST_COUNT", 1000)
    for _ in range(2):
        assert (p(img=img) == p.reference(img=img)).all()
    assert bits == [32, 64]


def test_usual_code_counts_in_32_bits_and_only_this_in_64() -> None:
    """But for addresses, which a place is added to."""
    scheduled = blur("far_code", "sm_90")._calls.general
    usual = scheduled.variants.usual
    far = scheduled.variants.of(usual.strides, dict(usual.least), usual.aligned, far=True)
    assert far.far and far.aligned == usual.aligned
    texts = []
    for variant in (usual, far):
        options = scheduled.options
        made = compile_kernel(scheduled._resolved, scheduled._plan, variant, options, trace_of(options))
        code = CudaCode.from_bytes(made)
        texts.append("".join(code.ptx))
        assert code.index_bits == (64 if variant.far else 32)
    in_64_bits = r"(mul\.lo|mad\.lo|min|max|setp\.\w+|div|rem|sub)\.[su]64"
    assert not re.search(in_64_bits, texts[0])
    assert re.search(in_64_bits, texts[1])


def test_cpus_have_no_such_variant() -> None:
    variants = blur("far_cpu", "sm_90").with_schedule("plain").with_options(target="host")._calls.general.variants
    usual = variants.usual
    assert not variants.of(usual.strides, dict(usual.least), far=True).far
