"""CPUs: kernels are functions that the thread pool calls, in object code that is linked into this process."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..codegen.compile import assembly, compile_objects
from ..codegen.emit import buffer_names, emit
from ..errors import UserError
from ..expr.types import DType
from ..ir.nodes import Program
from ..lower.passes import Device, Trace, make_kernels
from ..runtime.arrays import NumpyArrays
from ..runtime.fast_call import OTHERWISE
from ..runtime.fast_call import entry as entry_of
from ..runtime.fast_call import function as native_function
from ..runtime.kernel import LinkedKernel, ObjectCode, Report, failure
from ..runtime.packing import Packing
from ..target import Target, host
from .backend import Enter, Values


class CpuBackend:
    """The backend for all CPUs that LLVM supports; a process can run code only for its own CPU."""

    arrays = NumpyArrays()

    def check(self, target: Target) -> None:
        if target != host():
            raise UserError(
                f"the pipeline is compiled for {target}, which this machine ({host()}) cannot run; "
                "look at it with .asm(), or leave target= out"
            )

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        return make_kernels(program, Device.CPU, trace, debug)

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        return emit(replace(program, name=_symbol(program)), target, strict=strict, debug=debug)

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        return assembly(text, target, debug)

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        objects = compile_objects(text, target, debug)
        return ObjectCode(_symbol(program), buffer_names(program), debug, objects).to_bytes()

    def loaded(self, artifact: bytes) -> CpuExecutable:
        return CpuExecutable(ObjectCode.from_bytes(artifact))


class CpuExecutable:
    """A loaded function that takes an argument block."""

    def __init__(self, code: ObjectCode) -> None:
        self.kernel = LinkedKernel(code)

    def prepare(
        self, inputs: Sequence[Any], outputs: Sequence[Any], numbers: Sequence[DType], labels: Mapping[str, str]
    ) -> CpuCall:
        packing = Packing([*inputs, *outputs], numbers)
        enter = None if self.kernel.reports else _enter(self.kernel, inputs, outputs, packing, labels)
        return CpuCall(self.kernel, packing, labels, enter)


class CpuCall:
    """The argument block for calls of one kind, which differ only in addresses and numbers."""

    def __init__(self, kernel: LinkedKernel, packing: Packing, labels: Mapping[str, str], enter: Enter | None) -> None:
        self._kernel, self._labels = kernel, labels
        self._packed, self._function = packing.pack, kernel.function
        self.enter = enter

    def run(self, arrays: Sequence[Any], numbers: Values, threads: int) -> bool:
        if self._kernel.reports:
            return self._run_and_report(arrays, numbers, threads)
        code = self._function(self._packed(arrays, numbers, 0), threads)
        if code:
            raise failure(code, (), self._kernel.buffers, self._labels)
        return True

    def _run_and_report(self, arrays: Sequence[Any], numbers: Values, threads: int) -> bool:
        """Run code that checks all accesses, and raise an error for what it reports."""
        report = Report()
        code = self._function(self._packed(arrays, numbers, ctypes.addressof(report)), threads)
        if code:
            raise failure(code, list(report), self._kernel.buffers, self._labels)
        return True


def _enter(
    kernel: LinkedKernel, inputs: Sequence[Any], outputs: Sequence[Any], packing: Packing, labels: Mapping[str, str]
) -> Enter | None:
    """A fast path for calls with arrays of the same layouts, which need not be analyzed again."""
    entry = entry_of(kernel.address, inputs, outputs, packing.template, packing.bytes_of_numbers)
    if entry is None:
        return None
    function, pack = native_function(), packing.pack_numbers

    def enter(arrays: list[Any], numbers: Values, threads: int) -> bool:
        code = function(arrays, entry.address, pack(numbers) if numbers else b"", threads)
        if code and code != OTHERWISE:
            raise failure(code, (), kernel.buffers, labels)
        return not code

    return enter


def _symbol(program: Program) -> str:
    """A symbol that no C function has: otherwise, a pipeline named memcpy would be called to copy memory."""
    return f"pantile.{program.name}"
