"""NVIDIA GPUs: kernels are PTX, which the driver compiles for the GPU at hand; the runtime executes the host part.

An artifact is the PTX, the entry of each kernel and the buffers that it writes, and the program without kernel bodies.
"""

from __future__ import annotations

from dataclasses import replace

from ..codegen.compile import assemblies, with_own_features
from ..codegen.entry import entries
from ..errors import UserError
from ..ir.nodes import Block, Program
from ..runtime.cuda.arrays import CudaArrays
from ..runtime.cuda.code import CudaCode
from ..runtime.cuda.device import current
from ..runtime.cuda.execution import CudaExecutable
from ..runtime.cuda.order import written_buffers
from ..target import Target
from .backend import GpuBackend


class Cuda(GpuBackend):
    """The backend for all GPUs from sm_70 on."""

    arrays = CudaArrays()

    def check(self, target: Target) -> None:
        current().check(target.cpu)

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        if debug:
            raise UserError("debug=True: code for GPUs checks no accesses; target='cuda-sim' checks all of them")
        return super().llvm(program, target, strict=strict, debug=debug)

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        kernels = tuple([replace(k, body=Block(())) for k in program.kernels])
        writes = tuple([written_buffers(k) for k in program.kernels])
        host = replace(program, kernels=kernels)
        started, capability = entries(program, target.index_bits), with_own_features(text, target).cpu
        return CudaCode(assemblies(text, target), capability, started, writes, host, target.index_bits).to_bytes()

    def loaded(self, artifact: bytes) -> CudaExecutable:
        return CudaExecutable(CudaCode.from_bytes(artifact))
