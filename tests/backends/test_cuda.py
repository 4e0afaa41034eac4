"""Code for NVIDIA's GPUs, made anywhere."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.backends import backend_of
from pantile.backends.cuda import Cuda
from pantile.compile import Options, to_kernels, to_llvm, trace_of
from pantile.errors import UserError
from pantile.ir.nodes import Block, Launch
from pantile.ir.visit import walk
from pantile.runtime.cuda.code import CudaCode
from pantile.target import GPUS, host


def scaled(target: str | None = None) -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, gain, out = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32"), pt.Func("out")
    out[y, x] = img[y, x] * gain
    p = pt.Pipeline(out, shape=img.shape, name="scaled")
    return p if target is None else p.with_options(target=target)


def test_backends_by_target() -> None:
    assert isinstance(backend_of(GPUS["sm_90"]), Cuda)
    assert not isinstance(backend_of(host()), Cuda)


@pytest.mark.parametrize("cpu", GPUS)
def test_ptx_of_a_pipeline(cpu: str) -> None:
    text = scaled().asm(cpu)
    assert f".target {cpu}" in text
    assert "ld.global.nc.b32" in text
    assert "st.global.b32" in text
    assert "define ptx_kernel void" in scaled(cpu).llvm()


def test_an_artifact_is_all_that_running_takes() -> None:
    target = GPUS["sm_80"]
    options = Options(target)
    backend, trace = backend_of(target), trace_of(options)
    program = to_kernels(scaled("sm_80")._for_display._scheduled().program(), options, trace)
    artifact = CudaCode.from_bytes(backend.artifact(program, to_llvm(program, options, trace), target, debug=False))
    (entry,), (kernel,) = artifact.entries, artifact.program.kernels
    assert (entry.kernel, entry.threads, entry.shared) == (kernel.name, kernel.threads, kernel.shared)
    assert f".entry {entry.symbol}(" in artifact.ptx[0]
    assert f"[{entry.size}]" in artifact.ptx[0]
    assert kernel.body == Block(()) or isinstance(kernel.body, Block)
    (launch,) = [s for s in walk(artifact.program.body) if isinstance(s, Launch)]
    assert launch.kernel == kernel.name
    numbers = {"gain": 0.5}
    frame = entry.pack([numbers.get(v.name, 7) for v in kernel.scalars], [1 << 40] * len(kernel.buffers))
    assert len(frame) == entry.size
    found = {s.name: frame[s.byte : s.byte + 8] for s in entry.slots}
    assert np.frombuffer(found["gain"][:4], np.float32)[0] == 0.5
    assert all(int.from_bytes(found[b.name], "little") == 1 << 40 for b in kernel.buffers)


def test_debug_builds_are_the_simulators() -> None:
    with pytest.raises(UserError, match="code for GPUs checks no accesses; target='cuda-sim' checks all of them"):
        scaled().with_options(target="sm_90", debug=True).llvm()
