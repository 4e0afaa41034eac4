"""What a kind of target is to the rest of the compiler: what becomes of loops, and how that is run.

    program ──► kernels ──► LLVM text ──► an artifact ──► loaded ──► ready ──► run
           `kernels`    `llvm`       `artifact`    `loaded`     `ready`    `run`

All up to the artifact can be had on any machine. An artifact is bytes, which the compile cache keeps; it is loaded once
in a process, made ready for calls of one kind (shapes, strides and types of arrays), and run for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..expr.types import DType
from ..ir.nodes import Program
from ..lower.passes import Trace
from ..runtime.arguments import AnyArray
from ..runtime.arrays import Arrays
from ..target import Target

Values = Sequence[bool | int | float]


# Of inputs and outputs as they were given or made, params and a number of threads: runs a call, unless some array is no
# longer of that kind or an output may overlap another array; whether it has run.
Enter = Callable[[list[Any], Values, int], bool]


class Ready(Protocol):
    """Code for calls of one kind."""

    @property
    def enter(self) -> Enter | None:
        """A quick way for calls like the one before, where there is one."""

    def run(self, arrays: Sequence[AnyArray], numbers: Values, threads: int) -> bool:
        """Run it on inputs and outputs, and params; raises a RunError where that fails. Whether it has waited for the
        results, so that the time it took is that of the code."""


class Loaded(Protocol):
    """Code of one variant of a pipeline, in this process; it stays as long as this object."""

    def ready(
        self,
        inputs: Sequence[AnyArray],
        outputs: Sequence[AnyArray],
        numbers: Sequence[DType],
        labels: Mapping[str, str],
    ) -> Ready:
        """For calls with such arrays, of which only layouts count, and params. `labels`: how messages name buffers."""


class Backend(Protocol):
    """One kind of target."""

    @property
    def arrays(self) -> Arrays:
        """Those that calls of such code take."""

    def check(self, target: Target) -> None:
        """Raise a UserError where this process cannot run such code."""

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        """The loops as a host's part and kernels."""

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        """These as LLVM text."""

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        """What the text becomes, readable."""

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        """What the text becomes, with all that loading needs to know of the program."""

    def loaded(self, artifact: bytes) -> Loaded:
        """Brought into this process."""
