"""The interface of a backend to the rest of the compiler: how loops are compiled, and how the code is run.

    program ──► kernels ──► LLVM text ──► artifact ──► executable ──► prepared call ──► result
           `kernels`    `llvm`      `artifact`    `loaded`      `prepare`           `run`

Everything up to the artifact works on any machine. An artifact is a byte string, which the compile cache stores; it is
loaded once per process, prepared for calls of one kind (shapes, strides and types of arrays), and run for each of
them.
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


# Takes inputs and outputs, params and a number of threads. Runs the call and returns True, unless some array is no
# longer of that kind or an output may overlap another array.
Enter = Callable[[list[Any], Values, int], bool]


class PreparedCall(Protocol):
    """Code for calls of one kind."""

    @property
    def enter(self) -> Enter | None:
        """A fast path for calls like the previous one, if there is one."""

    def run(self, arrays: Sequence[AnyArray], numbers: Values, threads: int) -> bool:
        """Run the code on inputs and outputs, and params; raise a RunError if that fails.

        Return whether it has waited for the results, so that the elapsed time is that of the code.
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
        """Prepare calls with params and arrays of such layouts; `labels` has the names of buffers in messages."""


class Backend(Protocol):
    """One kind of target."""

    @property
    def arrays(self) -> Arrays:
        """The arrays that calls of such code take."""

    def check(self, target: Target) -> None:
        """Raise a UserError where this process cannot run such code."""

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        """Turn loops into a host part and kernels."""

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        """The LLVM text of the host part and the kernels."""

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        """The assembly that the LLVM text is compiled to."""

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        """The compiled LLVM text, with all that loading needs to know of the program."""

    def loaded(self, artifact: bytes) -> Executable:
        """Load an artifact into this process."""


class GpuBackend:
    """What the backends of GPUs, real and simulated ones, have in common."""

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        return make_kernels(program, Device.GPU, trace, debug)

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        return emit(program, target, strict=strict)

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        return assembly(text, target)
