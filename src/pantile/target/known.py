"""Targets that LLVM generates code for: this machine's, and some by name."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from ..errors import UserError, shown
from .description import SIMULATED, Target, cpu_target, gpu_target, has_feature

# The width of the preferred vector registers by CPU features.
_WIDTHS = (("avx512f", 512), ("avx2", 256))
_USUAL_WIDTH = 128


def llvm_target(triple: str, cpu: str, features: str = "") -> Target:
    """The target of a CPU by its names in LLVM."""
    wide = [bits for feature, bits in _WIDTHS if has_feature(cpu, features, feature)]
    width = max(wide, default=_USUAL_WIDTH)
    return cpu_target(triple.split("-")[0], width, triple=triple, cpu=cpu, features=features)


# Code is equal for all operating systems with ELF objects; Linux stands for them.
_LINUX = "unknown-linux-gnu"
CPUS = {
    "x86-64-v3": llvm_target(f"x86_64-{_LINUX}", "x86-64-v3"),
    "x86-64-v4": llvm_target(f"x86_64-{_LINUX}", "x86-64-v4"),
    "aarch64": llvm_target(f"aarch64-{_LINUX}", "neoverse-n1"),
    "riscv64": llvm_target(f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zfh,+zvfh"),
}
GPUS = {name: gpu_target(name) for name in ("sm_70", "sm_75", "sm_80", "sm_90")}
CUDA_GPU = "cuda"  # the GPU at hand, which only the runtime knows; here a capability that most GPUs have
# Kernels of the last one run on any machine.
NAMED = {**CPUS, CUDA_GPU: gpu_target("sm_80"), **GPUS, SIMULATED: gpu_target("sm_90", SIMULATED)}


# Features that LLVM does not use well. With permutations of single bytes, its instruction selection hangs on some
# shuffles of 192 bytes. On a Xeon box_filter is twice as fast without, eight others are as fast; median varied.
_AVOIDED = ("avx512vbmi",)


@cache
def host() -> Target:
    """The machine this process runs on."""
    features = llvm.get_host_cpu_features()
    features.update({name: False for name in _AVOIDED if name in features})
    return llvm_target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())


def named(name: str) -> Target:
    """A target by name: "host" or one of `NAMED`."""
    if not isinstance(name, str) or name not in ("host", *NAMED):
        raise UserError(f"{shown(name)} is not a target; use one of host, {', '.join(NAMED)}")
    if name == "host":
        return host()
    return NAMED[name]
