"""What code is generated for: a triple, a CPU and its features. Any target can be compiled for on any host."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from ..cached import cached_property
from ..dataclass import dataclass
from ..errors import UserError, shown
from ..machine.isa import vector_bits


@dataclass(frozen=True)
class Target:
    """A machine as LLVM knows it."""

    triple: str
    cpu: str
    features: str = ""

    def __str__(self) -> str:
        return f"{self.triple}/{self.cpu}"

    @cached_property
    def arch(self) -> str:
        """x86, aarch64, riscv or the triple's own first part."""
        first = self.triple.split("-")[0]
        known = {"x86_64": "x86", "amd64": "x86", "arm64": "aarch64", "riscv64": "riscv"}
        return known.get(first, first)

    @property
    def vector_bits(self) -> int:
        """The width of the registers that vector code is best written for."""
        return vector_bits(self._has)

    @property
    def native_half(self) -> bool:
        """Whether float16 arithmetic is done by instructions of its own."""
        return self._has("fullfp16") or self._has("avx512fp16") or self._has("zvfh")

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether an operand of a vector multiplication may be one lane of a register."""
        return self.arch == "aarch64"

    def _has(self, feature: str) -> bool:
        return f"+{feature}" in self.features.split(",") or feature in _implied(self.cpu)


_V3 = frozenset({"avx2"})
_V4 = frozenset({"avx2", "avx512f"})
_IMPLIED: tuple[tuple[str, frozenset[str]], ...] = (
    ("x86-64-v4", _V4),
    ("x86-64-v3", _V3),
    ("neoverse", frozenset({"fullfp16"})),
    ("apple", frozenset({"fullfp16"})),
)


def _implied(cpu: str) -> frozenset[str]:
    """Features that a CPU's name stands for and that detection may leave out."""
    return next((features for prefix, features in _IMPLIED if cpu.startswith(prefix)), frozenset())


# The same code for every operating system with ELF objects; Linux stands for them.
_LINUX = "unknown-linux-gnu"
NAMED = {
    "x86-64-v3": Target(f"x86_64-{_LINUX}", "x86-64-v3"),
    "x86-64-v4": Target(f"x86_64-{_LINUX}", "x86-64-v4"),
    "aarch64": Target(f"aarch64-{_LINUX}", "neoverse-n1"),
    "riscv64": Target(f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zfh,+zvfh"),
}


@cache
def host() -> Target:
    """The machine this process runs on."""
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def target(name: str) -> Target:
    """A target by name: "host" or one of `NAMED`."""
    if not isinstance(name, str) or name not in ("host", *NAMED):
        raise UserError(f"{shown(name)} is not a target; use one of host, {', '.join(NAMED)}")
    if name == "host":
        return host()
    return NAMED[name]
