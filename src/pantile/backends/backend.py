"""The interface between a backend and the rest of the compiler: how loops are compiled, and how the code is run.

    program ──► kernels ──► LLVM text ──► artifact ──► executable ──► prepared call ──► result
           `kernels`    `llvm`      `artifact`    `loaded`      `prepare`           `run`

Everything up to the artifact works on any machine. An artifact is a byte string that the compile cache stores. It is
loaded once per process, prepared once for all calls of one kind (shapes, strides and types of arrays), and run for each
call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..codegen.compile import assembly
from ..codegen.emit import emit
from ..expr.types import DType
from ..ir.nodes import Program
from ..lower.passes import Device, Trace, make_kernels
from ..runtime.arguments import AnyArray
from ..runtime.arrays import Arrays
from ..target import Target

Values = Sequence[bool | int | float]


# Takes the inputs and outputs, the params and the number of threads. Runs the call and returns True, unless some array
# is not of the prepared kind or an output may overlap another array.
Enter = Callable[[list[Any], Values, int], bool]


class PreparedCall(Protocol):
    """Code for calls of one kind."""

    @property
    def enter(self) -> Enter | None:
        """A fast path for calls like the previous one, if there is one."""

    def run(self, arrays: Sequence[AnyArray], numbers: Values, threads: int) -> bool:
        """Run the code on inputs and outputs, and params; raise a RunError if that fails.

        Return whether the call waited for the results, in which case its elapsed time is that of the code.
        """


class Executable(Protocol):
    """The code of one variant of a pipeline, loaded into this process for the lifetime of this object."""

    def prepare(
        self,
        inputs: Sequence[AnyArray],
        outputs: Sequence[AnyArray],
        numbers: Sequence[DType],
        labels: Mapping[str, str],
    ) -> PreparedCall:
        """Prepare calls with params of these types and arrays like these. `labels` maps buffers to their names in
        messages."""


class Backend(Protocol):
    """One kind of target."""

    @property
    def arrays(self) -> Arrays:
        """The kind of arrays that the code takes."""

    def check(self, target: Target) -> None:
        """Raise a UserError if this process cannot run code for the target."""

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        """Split loops into a host part and kernels."""

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        """The LLVM text of the host part and the kernels."""

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        """The assembly that the LLVM text is compiled to."""

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        """The compiled LLVM text, with everything about the program that loading needs."""

    def loaded(self, artifact: bytes) -> Executable:
        """Load an artifact into this process."""


class GpuBackend:
    """The common part of the backends for real and simulated GPUs."""

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        return make_kernels(program, Device.GPU, trace, debug)

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        return emit(program, target, strict=strict)

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        return assembly(text, target)
