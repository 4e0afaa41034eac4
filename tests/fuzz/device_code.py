"""Compiles simulated kernels to device code as well, since the simulator does not exercise code generation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from pantile.backends import cuda_sim
from pantile.backends.cuda import Cuda
from pantile.backends.cuda_sim import SimulatedCuda
from pantile.ir.nodes import Program
from pantile.runtime.cuda.code import CudaCode
from pantile.target import Target
from pantile.target.description import CUDA

from ..codegen.nvptx.assembler import assembled, has_assembler

RESIDENT = 3  # resident blocks of the simulated GPU
_QUICKLY = "-O1"  # the code is not run, and all levels accept the same code
_simulated = SimulatedCuda.artifact
_taken: set[str] = set()  # PTX that the assembler has accepted in this process


@contextmanager
def compiled_for_devices() -> Iterator[None]:
    """Inside this context, kernels that are compiled for the simulator are also compiled to PTX, for the same variant,
    and assembled if there is an assembler. The simulated GPU has few resident blocks, so that persistent ones loop."""
    with patch.object(SimulatedCuda, "artifact", _artifact), patch.object(cuda_sim, "resident_blocks", _few):
        yield


def _few(gpu: object, kernel: object) -> int:
    return RESIDENT


def _artifact(self: SimulatedCuda, program: Program, text: str, target: Target, debug: bool) -> bytes:
    device = replace(target, architecture=CUDA)
    for ptx in CudaCode.from_bytes(Cuda().artifact(program, text, device, debug)).ptx:
        if has_assembler and ptx not in _taken:
            assembled(ptx, device, _QUICKLY)
            _taken.add(ptx)
    return _simulated(self, program, text, target, debug)
