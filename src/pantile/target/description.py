"""`Target`: a frozen value that describes the machine to compile for. Every host compiles for every target."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from ..dataclass import dataclass
from ..errors import UserError, shown
from . import gpu
from .kinds import CPU_LOOPS, CPU_MEMORIES, GPU_LOOPS, GPU_MEMORIES, Kind, Memory
from .mma import FIRST_WITH_MMA
from .wgmma import CAPABILITY as OF_WARPGROUPS

LINE = 64  # bytes
INDEX_BITS = 64
MANY, FEW = 32, 16  # registers
_MANY_OF = ("aarch64", "riscv")  # architectures that have MANY registers, whatever their width

_ARCHITECTURES = {"x86_64": "x86", "amd64": "x86", "arm64": "aarch64", "riscv64": "riscv"}
# Cores on which a gather is faster than scalar loads. Earlier Intel cores stall on gathers since the microcode update
# against Downfall, and AMD cores split gathers into scalar loads.
_GATHERING = ("sapphirerapids", "emeraldrapids", "graniterapids")
_V3 = frozenset({"avx2"})
_V4 = frozenset({"avx2", "avx512f"})
# The features that a CPU's name implies and that detection may leave out.
_IMPLIED: tuple[tuple[str, frozenset[str]], ...] = (
    ("x86-64-v4", _V4),
    ("x86-64-v3", _V3),
    *((core, _V4) for core in _GATHERING),
    ("neoverse", frozenset({"fullfp16"})),
    ("apple", frozenset({"fullfp16"})),
)
# The width of the preferred vector registers, by CPU feature.
_WIDTHS = (("avx512f", 512), ("avx2", 256))
_USUAL_WIDTH = 128


@dataclass(frozen=True)
class Target:
    """The instructions and memory of a machine. Without an LLVM triple, one can schedule for it, but not compile."""

    architecture: str  # x86, aarch64, riscv, cuda, or another system's name for it
    vector_bits: int  # bits of the preferred vector registers
    registers: int  # number of vector registers
    line: int = LINE  # bytes of a cache line
    index_bits: int = INDEX_BITS  # bits of memory offsets
    loops: tuple[Kind, ...] = CPU_LOOPS
    memories: tuple[Memory, ...] = CPU_MEMORIES
    triple: str = ""
    cpu: str = ""
    features: str = ""

    def __str__(self) -> str:
        return f"{self.triple}/{self.cpu}" if self.triple else self.architecture

    def lanes(self, bits: int) -> int:
        """The number of elements of this width that fill a vector."""
        return max(1, self.vector_bits // bits)

    @property
    def has_blocks(self) -> bool:
        """Whether the target runs kernels of blocks of threads: a GPU, or the simulator of one."""
        return Kind.BLOCK in self.loops

    @property
    def native_half(self) -> bool:
        """Whether the target has instructions for float16 arithmetic."""
        return self.has_blocks or any(
            has_feature(self.cpu, self.features, f) for f in ("fullfp16", "avx512fp16", "zvfh")
        )

    @property
    def native_bfloat(self) -> bool:
        """Whether the target has instructions for bfloat16 arithmetic."""
        return self.has_blocks and gpu.computes_bfloats(self.cpu)

    @property
    def has_mma(self) -> bool:
        """Whether the target has the matrix instructions of `target.mma`."""
        return self.has_blocks and gpu.compute_capability(self.cpu) >= FIRST_WITH_MMA

    @property
    def has_wgmma(self) -> bool:
        """Whether the target has the matrix instructions of `target.wgmma`."""
        return self.has_blocks and gpu.compute_capability(self.cpu) == OF_WARPGROUPS

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether an operand of a vector multiplication may be one lane of a register."""
        return self.architecture == "aarch64"

    @property
    def stores_by_arithmetic(self) -> bool:
        """Whether vector stores occupy the vector arithmetic units."""
        return self.architecture == "aarch64"

    @property
    def gathers(self) -> bool:
        """Whether a gather instruction is the fastest way to load lanes at data-dependent indices."""
        return self.cpu.startswith(_GATHERING)

    @property
    def stores_past_caches(self) -> bool:
        """Whether the target has non-temporal vector stores."""
        return self.architecture != "armv7"


def cpu_target(
    architecture: str, vector_bits: int, line: int = LINE, triple: str = "", cpu: str = "", features: str = ""
) -> Target:
    """The target of a CPU. `architecture` is the name that vendors and operating systems use, such as x86_64 or arm64;
    the last three parameters are its names in LLVM."""
    known = _ARCHITECTURES.get(architecture.lower(), architecture)
    registers = MANY if known in _MANY_OF or vector_bits == 512 else FEW
    return Target(known, vector_bits, registers, line, triple=triple, cpu=cpu, features=features)


CUDA, SIMULATED = "cuda", "cuda-sim"


def gpu_target(capability: str, architecture: str = CUDA) -> Target:
    """The target of an NVIDIA GPU by its name in LLVM, such as sm_90. Indices have 32 bits."""
    return Target(
        architecture,
        8 * gpu.LONGEST_ACCESS,
        gpu.MOST_REGISTERS,
        gpu.LINE,
        32,
        GPU_LOOPS,
        GPU_MEMORIES,
        "nvptx64-nvidia-cuda",
        capability,
    )


# A baseline that every CPU meets.
GENERIC = cpu_target("generic", 128)


def has_feature(cpu: str, features: str, feature: str) -> bool:
    """Whether a CPU has a feature; both are given by their LLVM names."""
    implied: frozenset[str] = next((known for prefix, known in _IMPLIED if cpu.startswith(prefix)), frozenset())
    return f"+{feature}" in features.split(",") or feature in implied


def llvm_target(triple: str, cpu: str, features: str = "") -> Target:
    """The target of a CPU by its names in LLVM."""
    wide = [bits for feature, bits in _WIDTHS if has_feature(cpu, features, feature)]
    width = max(wide, default=_USUAL_WIDTH)
    return cpu_target(triple.split("-")[0], width, triple=triple, cpu=cpu, features=features)


# The code is the same for all operating systems with ELF objects, so Linux stands for all of them.
_LINUX = "unknown-linux-gnu"
CPUS = {
    "x86-64-v3": llvm_target(f"x86_64-{_LINUX}", "x86-64-v3"),
    "x86-64-v4": llvm_target(f"x86_64-{_LINUX}", "x86-64-v4"),
    "aarch64": llvm_target(f"aarch64-{_LINUX}", "neoverse-n1"),
    "riscv64": llvm_target(f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zfh,+zvfh"),
}
GPUS = {name: gpu_target(name) for name in ("sm_70", "sm_75", "sm_80", "sm_90")}
CUDA_GPU = "cuda"  # the GPU at hand, which only the runtime knows; `NAMED` has a capability that most GPUs reach
# The simulator's kernels run on any machine.
NAMED = {**CPUS, CUDA_GPU: gpu_target("sm_80"), **GPUS, SIMULATED: gpu_target("sm_90", SIMULATED)}


# Features that LLVM does not use well. With byte permutations, its instruction selection hangs on some shuffles of 192
# bytes. On a Xeon, box_filter is twice as fast without them, eight other apps are as fast, and median varied.
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
